"""What Groq's wire has of its own, through the real groq SDK: the literal, and the value beside it."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.asking import HELLO, Wire, choice, tool
from agent_core import Message, ReasoningPart, RefusalPart, Usage, errors
from agent_core.testing import Answer

VENDOR = "groq"

PLAIN = {"prompt_tokens": 18, "completion_tokens": 5, "total_tokens": 23}
RICH = {**PLAIN, "prompt_tokens_details": {"cached_tokens": 16}, "completion_tokens_details": {"reasoning_tokens": 2}}


# What is sent


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        ({"max_output_tokens": 9}, {"max_completion_tokens": 9}),
        ({"seed": 7, "stop": "END"}, {"seed": 7, "stop": ["END"]}),
        ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ({"extra": {"reasoning_format": "parsed"}}, {"reasoning_format": "parsed"}),
        ({"extra": {"include_reasoning": False}}, {"include_reasoning": False}),
        ({"extra": {"reasoning_effort": "none"}, "reasoning_effort": "low"}, {"reasoning_effort": "none"}),
        ({"extra": {"search_settings": {"include_domains": ["python.org"]}}}, None),
        ({"logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
    ],
)
async def test_options_leave_under_groqs_names(
    request_: dict[str, Any], body: dict[str, Any] | None, wire: Wire
) -> None:
    """What has a field here is renamed where Groq's name differs; `extra` leaves as it is, over all others."""
    sent = await wire.sent(**request_)
    assert sent == {"model": "m", "messages": HELLO, **(request_["extra"] if body is None else body)}


async def test_tools_leave_as_everywhere(wire: Wire) -> None:
    """A named choice is an object, and several calls at once may be refused."""
    sent = await wire.sent(tools=[tool("add")], tool_choice="add", parallel_tool_calls=False)
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert sent["parallel_tool_calls"] is False


async def test_a_stream_asks_for_its_usage(wire: Wire) -> None:
    """The SDK has no argument for it; Groq takes it, and gives the richer figures."""
    sent = await wire.sent(stream=True)
    assert sent["stream_options"] == {"include_usage": True}
    assert wire.server.requests[-1].path == "/openai/v1/chat/completions"


async def test_only_its_own_reasoning_goes_back_under_the_name_it_takes(wire: Wire) -> None:
    """Groq knows `reasoning` on a message; `reasoning_content`, as other vendors have it, would be refused."""
    own = Message.build(
        "assistant",
        [ReasoningPart("Hm.", provider="groq", model="m", field="reasoning"), *Message.assistant("4").parts],
        provider="groq",
        model="m",
    )
    foreign: dict[str, Any] = {"role": "assistant", "content": "5", "reasoning_content": "Hm?"}
    sent = await wire.sent(messages=[*HELLO, own, *HELLO, foreign, *HELLO])
    assert sent["messages"][1] == {"role": "assistant", "content": "4", "reasoning": "Hm."}
    assert sent["messages"][3] == {"role": "assistant", "content": "5"}


async def test_a_refusal_goes_back_as_text(wire: Wire) -> None:
    """Its field is OpenAI's; what was refused is still part of the conversation."""
    refused = Message.build("assistant", [RefusalPart("I can't help with that.")])
    sent = await wire.sent(messages=[*HELLO, refused, *HELLO])
    assert sent["messages"][1] == {"role": "assistant", "content": "I can't help with that."}


# What arrives


async def test_reasoning_has_a_field_of_its_own(wire: Wire) -> None:
    """As from the gpt-oss models, and from others with `reasoning_format` parsed."""
    completion = await wire.message({"reasoning": "Two and two.", "content": "4"})
    assert (completion.reasoning, completion.text) == ("Two and two.", "4")
    assert completion.message.parts[0] == ReasoningPart("Two and two.", "groq", "m", "reasoning")


async def test_the_channel_of_streamed_reasoning_is_an_extra(wire: Wire) -> None:
    """gpt-oss names it beside each piece."""
    _, completion = await wire.stream(
        choice({"role": "assistant", "reasoning": "Two ", "channel": "analysis"}),
        choice({"reasoning": "and two.", "channel": "analysis"}),
        choice({"content": "4"}, "stop"),
    )
    assert (completion.reasoning, completion.text) == ("Two and two.", "4")
    assert completion.extras["channel"] == "analysis"


@pytest.mark.parametrize("model", ["qwen/qwen3-32b", "qwen/qwen3.6-27b", "deepseek-r1-distill-llama-70b"])
async def test_models_known_to_write_tags_have_them_taken_out(model: str, wire: Wire) -> None:
    """Without `reasoning_format` their thoughts stand in the text."""
    body = {"choices": [{"index": 0, "message": {"content": "<think>\nTwo and two.\n</think>\n\n4"}}]}
    completion = await wire.whole(body, model=model)
    assert (completion.reasoning.strip(), completion.text) == ("Two and two.", "4")


async def test_a_tag_of_another_model_is_text(wire: Wire) -> None:
    """A Llama that writes `<think>` means the word."""
    completion = await wire.message({"content": "<think> is a tag."})
    assert completion.text == "<think> is a tag."


@pytest.mark.parametrize(
    ("chunk", "usage"),
    [
        ({"x_groq": {"id": "req_1", "usage": PLAIN}}, Usage(18, 5, 23)),
        ({"usage": RICH}, Usage(18, 5, 23, 16, 2)),
        ({"usage": RICH, "x_groq": {"usage": PLAIN}}, Usage(18, 5, 23, 16, 2)),
        ({"usage": PLAIN, "x_groq": {"usage": RICH}}, Usage(18, 5, 23, 16, 2)),
        ({"usage": None, "x_groq": {"usage": RICH}}, Usage(18, 5, 23, 16, 2)),
        ({"usage": PLAIN, "x_groq": {"usage": {**PLAIN, "queue_time": 0.01}}}, Usage(18, 5, 23, None, None)),
        ({"x_groq": {"id": "req_1"}}, None),
        ({"x_groq": None}, None),
    ],
)
async def test_usage_is_taken_once_from_either_place(chunk: dict[str, Any], usage: Usage | None, wire: Wire) -> None:
    """In `x_groq`, beside it, or in both: the figures of both, the same ones once."""
    _, completion = await wire.stream({**choice({"content": "Hei"}, "stop"), **chunk})
    told = completion.usage
    if told is not None:
        assert told.extras in ({}, {"queue_time": 0.01})
        told = Usage(
            told.input_tokens, told.output_tokens, told.total_tokens, told.cached_tokens, told.reasoning_tokens
        )
    assert told == usage


async def test_timings_are_extras_of_the_usage(wire: Wire) -> None:
    """Seconds, under Groq's names."""
    timings = {"queue_time": 0.2, "prompt_time": 0.02, "completion_time": 0.1, "total_time": 0.12}
    completion = await wire.whole({"choices": [{"message": {"content": "4"}}], "usage": {**PLAIN, **timings}})
    assert completion.usage == Usage(18, 5, 23, extras=timings)


async def test_hardware_caches_are_no_usage(wire: Wire) -> None:
    """A whole answer has them under the same name as a stream has its usage (groq: types/chat/chat_completion.py)."""
    block = {"id": "req_1", "usage": {"dram_cached_tokens": 0, "sram_cached_tokens": 12}}
    completion = await wire.whole({"choices": [{"message": {"content": "4"}}], "x_groq": block})
    assert completion.usage is None
    assert completion.extras["x_groq"] == block


async def test_tools_that_groq_ran_are_extras(wire: Wire) -> None:
    """Compound systems run tools of their own; there is nothing to run here."""
    ran = [{"index": 0, "type": "search", "arguments": '{"query": "x"}', "output": "y"}]
    completion = await wire.message({"content": "z", "executed_tools": ran})
    assert completion.extras["executed_tools"] == ran
    assert completion.tool_calls == []
    deltas = ({"content": "z", "executed_tools": ran}, {"executed_tools": [{**ran[0], "index": 1}]})
    _, streamed = await wire.stream(*(choice(delta) for delta in deltas), choice({}, "stop"))
    assert streamed.extras["executed_tools"] == [*ran, {**ran[0], "index": 1}]


# What fails


async def test_a_stream_that_groq_stops_says_so_in_its_block(wire: Wire) -> None:
    """The text stands beside the choices, without a code (groq: types/chat/chat_completion_chunk.py)."""
    block = {"id": "req_1", "error": "over capacity, try again later"}
    with pytest.raises(errors.ProtocolError, match="over capacity") as caught:
        await wire.stream(choice({"content": "One mo"}), {**choice({"content": "ment"}), "x_groq": block})
    assert caught.value.body == block
    assert caught.value.partial is not None
    assert caught.value.partial.text == "One moment"


FAILED: dict[str, Any] = {
    "message": "Failed to call a function.",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "failed_generation": "<function=add>{",
}


@pytest.mark.parametrize(
    "body",
    [
        {"error": FAILED},
        FAILED,
        {"error": {key: FAILED[key] for key in ("message", "code")}, "failed_generation": "<function=add>{"},
    ],
    ids=["inside", "flat", "beside"],
)
async def test_a_failed_call_is_an_error_of_its_own_at_every_nesting(body: dict[str, Any], wire: Wire) -> None:
    """The groq SDK keeps `error`, the openai SDK takes it off; the text of the model is found in all of them."""
    with pytest.raises(errors.ToolUseFailedError) as caught:
        await wire.answer(Answer.json(body, status=400))
    error = caught.value
    assert (error.status, error.code, error.retryable) == (400, "tool_use_failed", True)
    assert error.failed_generation == "<function=add>{"


@pytest.mark.parametrize(("failed", "told"), [("", ""), (None, None), ({"name": "add"}, '{"name":"add"}')])
async def test_what_the_model_wrote_is_text(failed: Any, told: str | None, wire: Wire) -> None:
    """Nothing written is not the same as not told; an object is told as JSON."""
    with pytest.raises(errors.ToolUseFailedError) as caught:
        await wire.answer(Answer.json({"error": {**FAILED, "failed_generation": failed}}, status=400))
    assert caught.value.failed_generation == told


async def test_a_failed_call_inside_a_stream_has_its_status_from_the_object(wire: Wire) -> None:
    """An event named `error` after status 200; the SDK alone would raise an error without a status."""
    text = 'data: {"choices":[{"index":0,"delta":{"content":"maybe"}}]}\n\n'
    text += 'event: error\ndata: {"error":{"message":"m","code":"tool_use_failed","status_code":400}}\n\n'
    with pytest.raises(errors.ToolUseFailedError) as caught:
        await wire.events(Answer.sse(text))
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (413, {"message": "Request too large", "code": "rate_limit_exceeded"}, errors.RequestTooLargeError, False),
        (429, {"message": "Rate limit reached", "code": "rate_limit_exceeded"}, errors.RateLimitError, True),
        (498, {"message": "flex is at capacity", "code": "capacity_exceeded"}, errors.ServerError, True),
        (503, {"message": "overloaded"}, errors.ServerError, True),
        (400, {"message": "m", "code": "context_length_exceeded"}, errors.ContextLengthError, False),
        (400, {"message": "m", "code": "json_validate_failed"}, errors.BadRequestError, False),
    ],
)
async def test_a_refused_request_is_the_error_of_its_kind(
    status: int, error: dict[str, Any], kind: type[errors.ProviderError], retryable: bool, wire: Wire
) -> None:
    """413 means the limit of tokens a minute, which no wait mends; 498 is Groq's own, and passes."""
    with pytest.raises(errors.ProviderError) as caught:
        await wire.answer(Answer.json({"error": error}, status=status))
    assert type(caught.value) is kind
    assert caught.value.retryable is retryable


@pytest.mark.parametrize(
    ("text", "headers", "wait"),
    [
        ("Please try again in 1m26.4s.", {}, 86.4),
        ("Please try again in 430ms.", {}, 0.43),
        ("Please try again in 2h3m4.5s.", {}, 7384.5),
        ("Please try again in 1m26.4s.", {"retry-after": "3"}, 3.0),
        ("Please try again later.", {}, None),
    ],
)
async def test_the_wait_is_in_a_header_or_in_the_text(
    text: str, headers: dict[str, str], wait: float | None, wire: Wire
) -> None:
    """A header comes first."""
    body = {"error": {"message": f"Rate limit reached. {text}", "type": "tokens", "code": "rate_limit_exceeded"}}
    with pytest.raises(errors.RateLimitError) as caught:
        await wire.answer(Answer.json(body, status=429, headers=headers))
    assert caught.value.retry_after == (pytest.approx(wait) if wait is not None else None)
