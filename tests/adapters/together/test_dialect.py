"""What Together's wire has of its own, through the real together SDK: the literal, and the value beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.asking import HELLO, Wire, choice, tool
from agent_core import Message, RefusalPart, Usage, errors
from agent_core.testing import Answer

VENDOR = "together"


# What is sent


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"seed": 7, "n": 2}, {"seed": 7, "n": 2}),
        ({"stop": "END"}, {"stop": ["END"]}),
        ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ({"logprobs": 3}, {"logprobs": 3}),
        ({"logprobs": 0}, {"logprobs": 1}),
        ({"extra": {"reasoning": {"enabled": False}, "top_k": 5}}, {"reasoning": {"enabled": False}, "top_k": 5}),
        ({"extra": {"chat_template_kwargs": {"thinking": True}}}, {"chat_template_kwargs": {"thinking": True}}),
    ],
)
async def test_options_leave_under_togethers_names(request_: dict[str, Any], body: dict[str, Any], wire: Wire) -> None:
    """Log probabilities are asked for with one number; `extra` leaves as it is."""
    assert await wire.sent(**request_) == {"model": "m", "messages": HELLO, **body}


async def test_several_calls_at_once_cannot_be_refused(wire: Wire) -> None:
    """Together has no `parallel_tool_calls`; the rest of a request with tools is as everywhere."""
    sent = await wire.sent(tools=[tool("add")], tool_choice="add", parallel_tool_calls=False)
    assert "parallel_tool_calls" not in sent
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "add"}}


async def test_a_stream_asks_for_its_usage(wire: Wire) -> None:
    """It comes unasked from most models, and this makes it sure."""
    sent = await wire.sent(stream=True)
    assert sent["stream_options"] == {"include_usage": True}
    assert wire.server.requests[-1].path == "/v1/chat/completions"


async def test_a_developer_is_the_system(wire: Wire) -> None:
    """Together has no role `developer`."""
    sent = await wire.sent(messages=[{"role": "developer", "content": "Be brief."}, *HELLO])
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, *HELLO]


async def test_a_refusal_goes_back_as_text(wire: Wire) -> None:
    """Its field is OpenAI's; what was refused is still part of the conversation."""
    refused = Message.build("assistant", [RefusalPart("I can't help with that.")])
    sent = await wire.sent(messages=[*HELLO, refused, *HELLO])
    assert sent["messages"][1] == {"role": "assistant", "content": "I can't help with that."}


# What arrives


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["eos"], "stop"),
        (["stop"], "stop"),
        (["length"], "length"),
        (["length", "stop"], "stop"),
        (["stop", "eos"], "stop"),
    ],
)
async def test_a_finish_reason_may_come_twice(words: list[str], reason: str, wire: Wire) -> None:
    """The last one counts; `eos` is Together's word for a natural end."""
    _, completion = await wire.stream(choice({"content": "Hei"}), *(choice({}, word) for word in words))
    assert (completion.finish_reason, completion.raw_finish_reason) == (reason, words[-1])


async def test_a_call_may_start_after_the_first_finish_reason(wire: Wire) -> None:
    """As Llama models send parallel calls: each one ends with a reason of its own."""
    _, completion = await wire.stream(
        choice({"tool_calls": [{"index": 0, "id": "call_a", "function": {"name": "add", "arguments": ""}}]}),
        choice({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, "tool_calls"),
        choice({"tool_calls": [{"index": 1, "id": "call_b", "function": {"name": "add", "arguments": ""}}]}),
        choice({"tool_calls": [{"index": 1, "function": {"arguments": '{"x": 1}'}}]}, "tool_calls"),
        choice({"content": ""}, "tool_calls"),
    )
    assert [(call.id, call.parse()) for call in completion.tool_calls] == [("call_a", {}), ("call_b", {"x": 1})]
    assert completion.finish_reason == "tool_calls"


async def test_an_index_may_be_a_float(wire: Wire) -> None:
    """The SDK types it so, and a choice's index is read the same way."""
    first = {"index": 0.0, "id": "call_a", "function": {"name": "add", "arguments": "{"}}
    _, completion = await wire.stream(
        {"choices": [{"index": 0.0, "delta": {"tool_calls": [first]}, "finish_reason": None}]},
        {"choices": [{"index": 0.0, "delta": {"tool_calls": [{"index": 0.0, "function": {"arguments": "}"}}]}}]},
        {"choices": [{"index": 1.0, "delta": {"content": "second"}, "finish_reason": "stop"}]},
        choice({}, "tool_calls"),
    )
    assert [(call.id, call.arguments) for call in completion.tool_calls] == [("call_a", "{}")]
    assert [(one.index, one.message.text) for one in completion.choices] == [(0, ""), (1, "second")]


@pytest.mark.parametrize(
    "model", ["deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "Qwen/QwQ-32B", "Qwen/Qwen3-8B"]
)
async def test_models_known_to_write_tags_have_them_taken_out(model: str, wire: Wire) -> None:
    """Their thoughts stand in the text, in a stream with tags cut anywhere."""
    pieces = ["<thi", "nk>", "\n", "Two and ", "two.", "\n</thi", "nk>", "\n\n4", " < 5"]
    deltas, completion = await wire.stream(*(choice({"content": piece}) for piece in pieces), model=model)
    assert (completion.reasoning.strip(), completion.text) == ("Two and two.", "4 < 5")
    assert "".join(delta.text for delta in deltas) == completion.text


async def test_a_tag_of_another_model_is_text(wire: Wire) -> None:
    """A Llama that writes `<think>` means the word."""
    completion = await wire.message({"content": "<think> is a tag."})
    assert completion.text == "<think> is a tag."


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_reasoning_may_have_a_field_of_its_own(name: str, wire: Wire) -> None:
    """Newer models have one; it goes back under the same name."""
    completion = await wire.message({name: "Two and two.", "content": "4"})
    assert (completion.reasoning, completion.text) == ("Two and two.", "4")
    sent = await wire.sent(messages=[*HELLO, completion.message, *HELLO])
    assert sent["messages"][1] == {"role": "assistant", "content": "4", name: "Two and two."}


async def test_a_choice_that_repeats_its_content_says_nothing_more(wire: Wire) -> None:
    """`text` is a copy of the delta's content, in tags too; one that says something else is kept."""
    _, completion = await wire.stream(
        choice({"content": "<think>Hm.</think>"}, text="<think>Hm.</think>"),
        choice({"content": "4"}, text="4"),
        choice({"content": None}, "stop", text="", seed=3),
        model="deepseek-ai/DeepSeek-R1",
    )
    assert (completion.reasoning, completion.text) == ("Hm.", "4")
    assert completion.extras == {"seed": 3}
    _, other = await wire.stream(choice({"content": "4"}, "stop", text="four"))
    assert other.extras == {"text": "four"}


async def test_cached_tokens_stand_in_the_usage_itself(wire: Wire) -> None:
    """Not in a block of details as elsewhere; zero is a count."""
    counts = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, "cached_tokens": 0}
    completion = await wire.whole({"choices": [{"message": {"content": "4"}}], "usage": counts})
    assert completion.usage == Usage(9, 2, 11, 0)


# Log probabilities, in OpenAI's shape


def entry(token: str, logprob: float, id: int | None = None, **alternatives: float) -> dict[str, Any]:
    """One token as OpenAI writes it; Together adds its id."""
    others = [{"token": text, "logprob": value, "bytes": None} for text, value in alternatives.items()]
    known = {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": others}
    return known if id is None else {**known, "token_id": id}


@pytest.mark.parametrize(
    ("logprobs", "read"),
    [
        (
            {
                "tokens": ["New", "York"],
                "token_logprobs": [-0.4, -2e-6],
                "token_ids": [3648, 4356.0],
                "top_logprobs": [{"New": -0.4, "Old": -1.5}, {"York": -2e-6}],
            },
            {"content": [entry("New", -0.4, 3648, New=-0.4, Old=-1.5), entry("York", -2e-6, 4356, York=-2e-6)]},
        ),
        (
            {"tokens": ["New"], "token_logprobs": [-0.4], "token_ids": None, "top_logprobs": None},
            {"content": [entry("New", -0.4)], "token_ids": None, "top_logprobs": None},
        ),
        (
            {"tokens": ["a", "b"], "token_logprobs": [-0.4], "top_logprobs": {"a": -0.4, "c": -1.0}},
            {"content": [entry("a", -0.4), {**entry("b", 0), "logprob": None}], "top_logprobs": {"a": -0.4, "c": -1.0}},
        ),
        ({"content": [entry("a", -0.1)], "refusal": None}, {"content": [entry("a", -0.1)], "refusal": None}),
        (None, None),
    ],
    ids=["lists", "no alternatives", "one mapping for all", "OpenAI's own", "none"],
)
async def test_lists_side_by_side_become_one_of_tokens(logprobs: Any, read: Any, wire: Wire) -> None:
    """Whole answers; what has no place in OpenAI's shape stays beside it."""
    completion = await wire.message({"content": "New York"}, logprobs=logprobs)
    assert completion.logprobs == read
    assert "logprobs" not in completion.extras


async def test_the_number_of_a_chunk_belongs_to_its_token(wire: Wire) -> None:
    """A chunk has one token, its id in the delta, its alternatives in the choice."""
    _, completion = await wire.stream(
        choice(
            {"content": "New", "token_id": 3648}, logprobs=-0.4, text="New", top_logprobs={"New": -0.4, "Old": -1.5}
        ),
        choice({"content": " York", "token_id": 4356}, logprobs=0, text=" York"),
        choice({"content": "", "token_id": 1}, "stop", logprobs=None, text=""),
    )
    assert completion.logprobs == {"content": [entry("New", -0.4, 3648, New=-0.4, Old=-1.5), entry(" York", 0, 4356)]}
    assert completion.extras == {"token_id": 1}


async def test_the_token_of_a_thought_is_in_its_reasoning(wire: Wire) -> None:
    """A chunk of reasoning has no content."""
    _, completion = await wire.stream(choice({"reasoning": "Hm"}, logprobs=-0.5), choice({"content": "4"}, "stop"))
    assert completion.logprobs == {"content": [entry("Hm", -0.5)]}


@pytest.mark.parametrize("odd", ["-0.4", [-0.4, -0.1], {"token_logprobs": -0.4, "tokens": 7}])
async def test_a_form_that_nobody_knows_is_not_lost(odd: Any, wire: Wire) -> None:
    """It is kept as it came, where log probabilities are or among the extras."""
    completion = await wire.message({"content": "New"}, logprobs=odd)
    assert odd in (completion.logprobs, completion.extras.get("logprobs"))


# What fails


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (400, {"message": "no such model", "code": "model_not_available"}, errors.NotFoundError, False),
        (
            401,
            {"message": "m", "type": "invalid_request_error", "code": "invalid_api_key"},
            errors.AuthenticationError,
            0,
        ),
        (402, {"message": "spending limit reached"}, errors.BadRequestError, False),
        (403, {"message": "you may not use this model"}, errors.PermissionDeniedError, False),
        (403, {"message": "must be less than the context length of the model"}, errors.ContextLengthError, False),
        (
            422,
            {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097."},
            errors.ContextLengthError,
            False,
        ),
        (429, {"message": "rate limited", "type": "credit_limit", "code": None}, errors.RateLimitError, True),
        (503, {"message": "overloaded", "type": "service_unavailable"}, errors.ServerError, True),
        (529, {"message": "m"}, errors.ServerError, True),
    ],
)
async def test_a_refused_request_is_the_error_of_its_kind(
    status: int, error: dict[str, Any], kind: type[errors.ProviderError], retryable: bool, wire: Wire
) -> None:
    """Together tells an exceeded context with 403 too, and names a model it does not have with 400."""
    with pytest.raises(errors.ProviderError) as caught:
        await wire.answer(Answer.json({"id": "oYx", "error": error}, status=status))
    assert type(caught.value) is kind
    assert caught.value.retryable is bool(retryable)
    assert caught.value.body == {"id": "oYx", "error": error}


async def test_a_named_error_event_is_not_dropped(wire: Wire) -> None:
    """The SDK's own stream ignores events with a name, and the answer would look complete."""
    failure = json.dumps({"error": {"message": "engine overloaded", "type": "service_unavailable"}})
    text = f"data: {json.dumps(choice({'content': 'One mo'}))}\n\nevent: error\ndata: {failure}\n\ndata: [DONE]\n\n"
    with pytest.raises(errors.ServerError, match="overloaded") as caught:
        await wire.events(Answer.sse(text))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "One mo"
