"""What Mistral's wire has of its own, through the real mistralai SDK: the literal, and the value beside it."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from mistralai.client.models import ChatCompletionChoiceFinishReason, CompletionResponseStreamChoiceFinishReason

from adapters.asking import HELLO, Wire, choice, tool
from agent_core import AudioPart, FilePart, ImagePart, Message, OtherPart, ReasoningPart, TextPart, Usage, errors
from agent_core.testing import Answer
from agent_core_mistral import MistralDialect

VENDOR = "mistral"


def thinking(text: str, **more: Any) -> dict[str, Any]:
    """A part of a content list that holds thoughts."""
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}


def text(said: str) -> dict[str, Any]:
    """A part of a content list that holds text."""
    return {"type": "text", "text": said}


def thought(said: str, **more: Any) -> ReasoningPart:
    """The same thoughts as a part of a message."""
    return ReasoningPart(said, "mistral", "m", "thinking", **more)


REFERENCE = {"type": "reference", "reference_ids": [0, "doc-2"]}


# What is sent


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"seed": 7}, {"random_seed": 7}),
        ({"stop": "END", "temperature": 0.2, "top_p": 0.9, "n": 2}, None),
        ({"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        (
            {"extra": {"prompt_mode": "reasoning", "safe_prompt": True}},
            {"prompt_mode": "reasoning", "safe_prompt": True},
        ),
        ({"extra": {"guardrails": [{"block_on_error": True}], "a_field_of_tomorrow": {"x": None}}}, None),
        ({"logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
        ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
    ],
)
async def test_options_leave_under_mistrals_names(
    request_: dict[str, Any], body: dict[str, Any] | None, wire: Wire
) -> None:
    """The SDK has no type for some of them, and none for what Mistral adds next; the body is ours."""
    sent = await wire.sent(**request_)
    if body is None:
        body = {**request_, **request_.get("extra", {})}
        body.pop("extra", None)
        body = body | ({"stop": ["END"]} if "stop" in body else {})
    assert sent == {"model": "m", "messages": HELLO, **body}


@pytest.mark.parametrize(
    ("choice_", "word"),
    [
        ("required", "any"),
        ("auto", "auto"),
        ("none", "none"),
        ("add", {"type": "function", "function": {"name": "add"}}),
    ],
)
async def test_the_word_that_forces_a_tool_is_any(choice_: str, word: Any, wire: Wire) -> None:
    """A named tool has the form of the others."""
    sent = await wire.sent(tools=[tool("add")], tool_choice=choice_, parallel_tool_calls=False)
    assert sent["tool_choice"] == word
    assert sent["parallel_tool_calls"] is False


async def test_a_stream_asks_for_nothing_but_itself(wire: Wire) -> None:
    """Usage comes unasked, and `stream_options` is refused (422)."""
    assert await wire.sent(stream=True) == {"model": "m", "messages": HELLO, "stream": True}
    assert wire.server.requests[-1].headers["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (ImagePart("https://x/y.png"), {"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
        (
            ImagePart("https://x/y.png", "low"),
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        ),
        (
            FilePart(data="data:application/pdf;base64,AAAA", filename="a.pdf"),
            {"type": "document_url", "document_url": "data:application/pdf;base64,AAAA", "document_name": "a.pdf"},
        ),
        (
            FilePart(data="data:application/pdf;base64,AAAA"),
            {"type": "document_url", "document_url": "data:application/pdf;base64,AAAA"},
        ),
        (FilePart(file_id="f-1"), {"type": "file", "file_id": "f-1"}),
        (AudioPart("AAAA", "mp3"), {"type": "input_audio", "input_audio": "AAAA"}),
        (
            {"type": "document_url", "document_url": "https://x/y.pdf"},
            {"type": "document_url", "document_url": "https://x/y.pdf"},
        ),
        (
            {"type": "input_audio", "input_audio": "https://x/y.mp3"},
            {"type": "input_audio", "input_audio": "https://x/y.mp3"},
        ),
        (
            {"type": "image_url", "image_url": "https://x/y.png"},
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        ),
    ],
)
async def test_files_and_sounds_leave_in_mistrals_form(part: Any, sent: dict[str, Any], wire: Wire) -> None:
    """A document is a `document_url`, a sound its base64 text alone; Mistral's own forms pass as they are."""
    body = await wire.sent(messages=[Message(role="user", content=[TextPart("What is this?"), part])])
    assert body["messages"] == [{"role": "user", "content": [text("What is this?"), sent]}]


async def test_what_mistral_has_no_field_for_is_not_sent(wire: Wire) -> None:
    """422 `extra_forbidden`: a name but on a tool's answer, a refusal, reasoning in a field of its own."""
    sent = await wire.sent(
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "hello", "name": "ada"},
            {"role": "assistant", "content": None, "refusal": "No."},
            {"role": "user", "content": "hello?"},
            {"role": "assistant", "content": "Hi.", "reasoning_content": "Greet."},
            {"role": "user", "content": "bye"},
        ]
    )
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": "hello?"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "bye"},
    ]


# Thinking, text and references


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("4", [TextPart("4")]),
        ([text("4")], [TextPart("4")]),
        ([thinking("Two and two."), text("4")], [thought("Two and two."), TextPart("4")]),
        ([text("Well: "), thinking("Two."), text("4")], [TextPart("Well: "), thought("Two."), TextPart("4")]),
        ([text("See "), REFERENCE, text(".")], [TextPart("See "), OtherPart(REFERENCE), TextPart(".")]),
        ([thinking("Two.", signature="s1"), text("4")], [thought("Two.", signature="s1"), TextPart("4")]),
        (
            [thinking("One.", signature="s1"), thinking("Two.", signature="s2"), text("4")],
            [thought("One.", signature="s1"), thought("Two.", signature="s2"), TextPart("4")],
        ),
        ([{"type": "thinking", "thinking": "As text."}, text("4")], [thought("As text."), TextPart("4")]),
        (
            [thinking("Two.", closed=False)],
            [thought("Two.", details=({"type": "thinking", "closed": False},))],
        ),
        (
            [{"type": "thinking", "thinking": [text("See "), REFERENCE, text("there.")]}, text("4")],
            [thought("See there.", details=({"type": "thinking", "thinking": [REFERENCE]},)), TextPart("4")],
        ),
        ([{"type": "of_tomorrow", "x": 1}, text("4")], [OtherPart({"type": "of_tomorrow", "x": 1}), TextPart("4")]),
    ],
)
async def test_a_content_list_becomes_parts_in_its_order(content: Any, parts: list[Any], wire: Wire) -> None:
    """A signature ends what it signs, and whatever else a part holds is kept."""
    completion = await wire.message({"content": content})
    assert list(completion.message.parts) == parts


async def test_content_may_be_a_list_and_a_text_in_one_stream(wire: Wire) -> None:
    """While the model thinks it is a list, afterwards a text; one piece can hold both (c21)."""
    deltas, completion = await wire.stream(
        choice({"role": "assistant", "content": ""}),
        choice({"content": [thinking("Warm ")]}),
        choice({"content": [thinking("coat.", closed=True), text("Take ")]}),
        choice({"content": "a coat"}),
        choice({"content": [REFERENCE]}),
        choice({"content": "."}, "stop"),
    )
    detail = {"type": "thinking", "closed": True}
    assert list(completion.message.parts) == [
        thought("Warm coat.", details=(detail,)),
        TextPart("Take a coat"),
        OtherPart(REFERENCE),
        TextPart("."),
    ]
    assert "".join(delta.reasoning for delta in deltas) == "Warm coat."
    assert "".join(delta.text for delta in deltas) == completion.text == "Take a coat."


async def test_thoughts_in_two_places_are_both_kept(wire: Wire) -> None:
    """A field of a hosted model's own, and a content list."""
    completion = await wire.message({"reasoning_content": "One.", "content": [thinking("Two.")]})
    parts = [ReasoningPart("One.", "mistral", "m", "reasoning_content"), thought("Two.")]
    assert list(completion.message.parts) == parts


async def test_a_signature_may_come_after_the_thoughts(wire: Wire) -> None:
    """In a piece of its own, with or without thoughts in it; then others may follow."""
    _, completion = await wire.stream(
        choice({"content": [thinking("One.")]}),
        choice({"content": [{"type": "thinking", "thinking": [], "signature": "s1"}]}),
        choice({"content": [thinking("Two.", signature="s2")]}),
        choice({"content": "4"}, "stop"),
    )
    assert list(completion.message.parts) == [
        thought("One.", signature="s1"),
        thought("Two.", signature="s2"),
        TextPart("4"),
    ]


async def test_half_an_emoji_in_the_thoughts_waits_for_the_other_half(wire: Wire) -> None:
    """A server that cuts one over two pieces sends two escapes, neither of which is a character."""
    head = 'data: {"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"'
    tail = '"}]}]},"finish_reason":null}]}\n\n'
    deltas, completion = await wire.events(
        Answer.sse(head + "Hm \\ud83d" + tail + head + "\\ude42." + tail + "data: [DONE]\n\n")
    )
    assert completion.reasoning == "Hm \N{SLIGHTLY SMILING FACE}."
    assert [delta.reasoning for delta in deltas] == ["Hm ", "\N{SLIGHTLY SMILING FACE}."]


async def test_thoughts_go_back_to_the_model_they_came_from(wire: Wire) -> None:
    """As content, in their place, with signature and what else they held; so do references."""
    content = [
        thinking("One.", signature="s1", closed=True),
        text("See "),
        REFERENCE,
        {"type": "thinking", "thinking": [text("Two."), REFERENCE]},
        text("4"),
    ]
    answer = (await wire.message({"content": content})).message
    sent = await wire.sent(messages=[*HELLO, answer, *HELLO])
    assert sent["messages"][1] == {"role": "assistant", "content": content}
    sent = await wire.sent(messages=[*HELLO, answer, *HELLO], model="another")
    assert sent["messages"][1] == {"role": "assistant", "content": [text("See "), REFERENCE, text("4")]}


async def test_thoughts_go_back_beside_calls(wire: Wire) -> None:
    """Without text there is still content."""
    call = {"id": "aB3dE5fG7", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}}
    answer = (await wire.message({"content": [thinking("Add.")], "tool_calls": [call]}, "tool_calls")).message
    sent = await wire.sent(messages=[*HELLO, answer, Message.tool(answer.tool_calls[0], "2")], tools=[tool("add")])
    assert sent["messages"][1:] == [
        {"role": "assistant", "content": [thinking("Add.")], "tool_calls": [call]},
        {"role": "tool", "content": "2", "tool_call_id": "aB3dE5fG7", "name": "add"},
    ]


async def test_a_message_in_mistrals_form_is_taken_at_the_door(wire: Wire) -> None:
    """As a dict, thoughts included; they are reasoning here, and go back as they came."""
    said = {"role": "assistant", "content": [thinking("Two."), text("4")]}
    message = Message.model_validate(said)
    assert (message.reasoning, message.text) == ("Two.", "4")
    sent = await wire.sent(messages=[*HELLO, message, *HELLO])
    assert sent["messages"][1] == said


async def test_a_system_message_may_show_how_to_think(wire: Wire) -> None:
    """As the system prompt of Magistral does."""
    content = [text("First think, like so: "), thinking("Your thoughts."), text(" Then answer.")]
    said = {"role": "system", "content": content}
    assert (await wire.sent(messages=[said, *HELLO]))["messages"][0] == said


# Calls


async def test_a_call_may_come_in_fragments_without_a_name(wire: Wire) -> None:
    """The SDK raises on them, and on null for a text."""
    _, completion = await wire.stream(
        choice({"tool_calls": [{"index": 0, "id": "aB3dE5fG7", "function": {"name": "add", "arguments": ""}}]}),
        choice({"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]}),
        choice({"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": ": 1"}}]}),
        choice({"tool_calls": [{"index": 0, "id": "null", "function": {"name": "", "arguments": "}"}}]}, "tool_calls"),
    )
    (call,) = completion.tool_calls
    assert (call.id, call.name, call.parse()) == ("aB3dE5fG7", "add", {"x": 1})


async def test_an_id_null_is_none(wire: Wire) -> None:
    """The placeholder of the SDK's models, which a proxy built on them may send: every call gets an id of its own."""
    calls = [{"id": "null", "function": {"name": "add", "arguments": f'{{"x": {x}}}'}, "index": 0} for x in (1, 2)]
    completion = await wire.message({"content": "", "tool_calls": calls}, "tool_calls")
    assert [call.parse() for call in completion.tool_calls] == [{"x": 1}, {"x": 2}]
    ids = [call.id for call in completion.tool_calls]
    assert len(set(ids)) == 2
    assert "null" not in ids


async def test_arguments_may_be_an_object(wire: Wire) -> None:
    """As the SDK's type allows; they are text here."""
    call = {"id": "aB3dE5fG7", "function": {"name": "add", "arguments": {"x": 1}}}
    completion = await wire.message({"tool_calls": [call]}, "tool_calls")
    assert completion.tool_calls[0].arguments == '{"x":1}'


# Usage and the end


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, None),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, Usage(7, 6, 13, 0)),
        ({"num_cached_tokens": 4}, Usage(7, 6, 13, 4)),
        (
            {"num_cached_tokens": 4, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(7, 6, 13, 4, extras={"num_cached_tokens": 4}),
        ),
        ({"service_tier": "standard"}, Usage(7, 6, 13, extras={"service_tier": "standard"})),
        (
            {"prompt_audio_seconds": 3, "prompt_tokens_details": {"audio_tokens": 5, "cached_tokens": 1}},
            Usage(7, 6, 13, 1, extras={"prompt_audio_seconds": 3, "prompt_tokens_details": {"audio_tokens": 5}}),
        ),
        ({"completion_tokens_details": {"reasoning_tokens": 2}}, Usage(7, 6, 13, None, 2)),
    ],
)
async def test_cached_tokens_are_told_in_two_ways(counts: dict[str, Any], usage: Usage | None, wire: Wire) -> None:
    """Older answers have `num_cached_tokens`; what else stands in usage is an extra of it."""
    told = {"prompt_tokens": 7, "completion_tokens": 6, "total_tokens": 13, **counts} if counts else None
    _, completion = await wire.stream({**choice({"content": "4"}, "stop"), "usage": told})
    assert completion.usage == usage


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("error", "error"),
        ("of_tomorrow", "unknown"),
    ],
)
async def test_the_end_is_named(word: str, reason: str, wire: Wire) -> None:
    """A word that nobody knows is unknown, and kept."""
    completion = await wire.message({"content": "4"}, word)
    assert (completion.finish_reason, completion.raw_finish_reason) == (reason, word)


def test_every_finish_reason_of_the_sdk_is_known() -> None:
    """A word that the SDK learns is to be put into the table."""
    named = (ChatCompletionChoiceFinishReason, CompletionResponseStreamChoiceFinishReason)
    words = {word for union in named for each in get_args(union) for word in get_args(each) if isinstance(word, str)}
    assert {"stop", "length", "error", "tool_calls"} <= words <= MistralDialect.finish_reasons.keys()


async def test_padding_is_an_extra(wire: Wire) -> None:
    """`p` fills a chunk up to a length, and means nothing; nothing that was sent is lost all the same."""
    _, completion = await wire.stream({**choice({"content": "4"}, "stop"), "p": "abcdef"})
    assert completion.extras["p"] == "abcdef"


# What fails

FLAT = {"object": "error", "message": "m", "type": "t", "param": None, "code": "3051", "raw_status_code": 400}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "message"),
    [
        (400, FLAT, errors.BadRequestError, "3051", "m"),
        (400, {**FLAT, "type": "invalid_model", "code": "1500"}, errors.NotFoundError, "1500", "m"),
        (400, {**FLAT, "type": "invalid_request_message_order", "code": "3230"}, errors.BadRequestError, "3230", "m"),
        (400, {**FLAT, "type": "invalid_function_call", "code": "3280"}, errors.BadRequestError, "3280", "m"),
        (
            400,
            {**FLAT, "message": "Prompt contains 9 tokens, too large for model with 8 maximum context length"},
            errors.ContextLengthError,
            "3051",
            "Prompt contains",
        ),
        (401, {"detail": "Invalid API Key"}, errors.AuthenticationError, None, "Invalid API Key"),
        (
            401,
            {"message": "No API key found in request", "request_id": "r-1"},
            errors.AuthenticationError,
            None,
            "No API key found",
        ),
        (403, {"message": "m"}, errors.PermissionDeniedError, None, "m"),
        (
            422,
            {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required", "input": {}}]},
            errors.BadRequestError,
            None,
            "body.model: Field required",
        ),
        (
            422,
            {
                **FLAT,
                "code": None,
                "message": {"detail": [{"loc": ["body", "x"], "msg": "Extra inputs are not permitted"}]},
            },
            errors.BadRequestError,
            "t",
            "body.x: Extra inputs are not permitted",
        ),
        (
            429,
            {**FLAT, "type": "rate_limited", "code": "1300", "raw_status_code": 429},
            errors.RateLimitError,
            "1300",
            "m",
        ),
        (
            503,
            {**FLAT, "type": "unreachable_backend", "code": "1100", "raw_status_code": 503},
            errors.ServerError,
            "1100",
            "m",
        ),
    ],
)
async def test_a_refusal_is_read_in_each_of_its_shapes(
    status: int, body: Any, kind: type[errors.ProviderError], code: str | None, message: str, wire: Wire
) -> None:
    """Mistral's own, a bare `detail`, the gateway's, and FastAPI's list; the status and the words decide the class."""
    with pytest.raises(errors.ProviderError) as caught:
        await wire.answer(Answer.json(body, status=status, headers={"mistral-correlation-id": "c-1"}))
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.body, error.request_id) == (status, code, body, "c-1")
    assert message in str(error)
    assert error.__cause__ is error.__context__ is None


@pytest.mark.parametrize(
    ("event", "kind", "status"),
    [
        (FLAT, errors.BadRequestError, 400),
        ({**FLAT, "object": "Error", "raw_status_code": 429, "code": 1300}, errors.RateLimitError, 429),
        ({"object": "error", "message": "m", "type": "rate_limited", "code": "1300"}, errors.RateLimitError, None),
        ({"error": {"message": "m", "type": "internal_server_error"}}, errors.ServerError, None),
        ({"detail": "m"}, errors.ProtocolError, None),
        ({"message": "m", "request_id": "r-1"}, errors.ProtocolError, None),
    ],
)
@pytest.mark.parametrize("way", ["stream", "whole"])
async def test_an_error_after_status_200_is_raised_with_what_came_before(
    event: dict[str, Any], kind: type[errors.ProviderError], status: int | None, way: str, wire: Wire
) -> None:
    """As an event in the stream, or as the whole body; the SDK raises a validation error, or nothing."""
    ask: Any = wire.stream(choice({"content": "One mo"}), event) if way == "stream" else wire.answer(Answer.json(event))
    with pytest.raises(errors.ProviderError, match="m") as caught:
        await ask
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.body) == (status, event.get("error", event))
    if way == "stream":
        assert error.partial is not None
        assert (error.partial.text, error.partial.finish_reason) == ("One mo", "unknown")


async def test_an_error_beside_choices_is_raised_after_them(wire: Wire) -> None:
    """The SDK drops it without a word."""
    with pytest.raises(errors.ServerError) as caught:
        await wire.stream({**choice({"content": "4"}, "error"), "error": {"message": "m", "code": 503}})
    assert caught.value.partial is not None
    assert (caught.value.partial.text, caught.value.partial.finish_reason) == ("4", "error")
