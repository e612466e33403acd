"""Every recorded exchange of OpenAI and of the services that speak like it, through the real openai SDK.

A loopback server gives the recorded answer byte for byte; what the provider makes of it is compared with the oracle,
a second reader that shares no code with the library. Groq, Mistral and Together have SDKs of their own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pytest

from agent_core import Choice, Completion, CompletionRequest, Message, Provider, ToolCall, Usage, errors
from agent_core.testing import Answer, LoopbackServer
from counting import count
from openai_sdk import openai_provider
from recordings.completeness import missing_from_stream, missing_from_whole
from recordings.oracle import (
    ANY_ID,
    Call,
    ExpectedAnswer,
    ExpectedChoice,
    Recording,
    chunks_of,
    join_details,
    read_recordings,
    read_stream,
    read_whole,
    recordings_folder,
)

_FOLDER = recordings_folder()
if _FOLDER is None:
    pytest.skip("AGENT_CORE_RECORDINGS names no folder with recordings", allow_module_level=True)

RECORDINGS = read_recordings(_FOLDER, without=frozenset({"groq", "mistral", "together"}))
BROKEN_OFF = [recording for recording in RECORDINGS if recording.name.endswith("/stream-error-midway")]
REFUSED = [recording for recording in RECORDINGS if recording.status >= 400]
ANSWERED = [recording for recording in RECORDINGS if recording.status < 400 and recording not in BROKEN_OFF]
WHOLE = [recording for recording in ANSWERED if not recording.is_stream]
STREAMS = [recording for recording in ANSWERED if recording.is_stream]
TAGGED = [recording for recording in WHOLE if "<think>" in read_whole(recording.body).choices[0].text]

CutName = Literal["whole", "event", "byte"]
CUTS: tuple[CutName, ...] = ("whole", "event", "byte")

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
FINE = Answer.json({"choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}}]})

# Class and code for each recorded refusal. The code is the service's own, or its type where it has no code. A context
# that is too long has a type of its own at llama.cpp and Perplexity; DeepSeek, Ollama and OpenRouter tell it only in
# the message.
REFUSALS: dict[str, tuple[type[errors.ProviderError], str | None]] = {
    "azure-openai/error-401-auth": (errors.AuthenticationError, "401"),
    "azure-openai/error-404-invalid-request": (errors.NotFoundError, "DeploymentNotFound"),
    "azure-openai/error-429-rate-limit": (errors.RateLimitError, "RateLimitReached"),
    "deepseek/error-400-context-overflow": (errors.ContextLengthError, "invalid_request_error"),
    "deepseek/error-400-model": (errors.BadRequestError, "invalid_request_error"),
    "deepseek/error-400-tool-choice-rejected": (errors.BadRequestError, "invalid_request_error"),
    "deepseek/error-400-unsupported-content": (errors.BadRequestError, "invalid_request_error"),
    "deepseek/error-401-auth": (errors.AuthenticationError, "invalid_request_error"),
    "doubleword/error-400-invalid-request": (errors.BadRequestError, "400"),
    "doubleword/error-400-invalid-request-2": (errors.BadRequestError, "400"),
    "doubleword/error-403-auth": (errors.PermissionDeniedError, "forbidden"),
    "doubleword/error-403-auth-2": (errors.PermissionDeniedError, "forbidden"),
    "doubleword/error-404-model": (errors.NotFoundError, "model_not_found"),
    "doubleword/error-404-model-2": (errors.NotFoundError, "model_not_found"),
    "huggingface-router/error-422-invalid-request": (errors.BadRequestError, None),
    "hyperbolic/error-400-invalid-request": (errors.BadRequestError, "40301"),
    "llamacpp/error-400-context-overflow": (errors.ContextLengthError, "400"),
    "llamacpp/error-400-context-overflow-2": (errors.ContextLengthError, "400"),
    "llamacpp/error-400-invalid-request": (errors.BadRequestError, "400"),
    "llamacpp/error-400-unsupported-content": (errors.BadRequestError, "400"),
    "llamacpp/error-401-auth": (errors.AuthenticationError, "401"),
    "llamacpp/error-500-invalid-request": (errors.ServerError, "500"),
    "llamacpp/error-500-unsupported-content": (errors.ServerError, "500"),
    "ollama/error-400-context-overflow": (errors.ContextLengthError, "invalid_request_error"),
    "ollama/error-401-auth": (errors.AuthenticationError, "api_error"),
    "openai/error-400-invalid-request": (errors.BadRequestError, "unsupported_parameter"),
    "openai/error-400-invalid-request-2": (errors.BadRequestError, "invalid_image_url"),
    "openai/error-400-model": (errors.BadRequestError, "invalid_request_error"),
    "openai/error-400-unsupported-content": (errors.BadRequestError, "invalid_value"),
    "openai/error-400-unsupported-content-2": (errors.BadRequestError, "invalid_image_format"),
    "openai/error-400-unsupported-role": (errors.BadRequestError, "unsupported_value"),
    "openai/error-401-auth": (errors.AuthenticationError, "invalid_api_key"),
    "openai/error-401-auth-2": (errors.AuthenticationError, "invalid_api_key"),
    "openai/error-404-model": (errors.NotFoundError, "model_not_found"),
    "openai/error-404-model-2": (errors.NotFoundError, "model_not_found"),
    "openrouter/error-400-context-overflow": (errors.ContextLengthError, "400"),
    "openrouter/error-400-model": (errors.BadRequestError, "400"),
    "openrouter/error-401-auth": (errors.AuthenticationError, "401"),
    "openrouter/error-429-rate-limit": (errors.RateLimitError, "429"),
    "perplexity/error-400-context-overflow": (errors.ContextLengthError, "400"),
    "perplexity/error-401-auth": (errors.AuthenticationError, "401"),
    "venice/error-404-model": (errors.NotFoundError, None),
    "venice/error-404-model-2": (errors.NotFoundError, None),
}
RETRYABLE = (errors.RateLimitError, errors.ServerError)


def each(recordings: list[Recording]) -> pytest.MarkDecorator:
    """Parametrise a test over recordings, named by vendor and scenario."""
    return pytest.mark.parametrize("recording", recordings, ids=[recording.name for recording in recordings])


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for the module, so that the provider below may keep its connection."""
    return "asyncio"


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    """A server without answers; each test adds its own."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture(scope="module")
async def provider(server: LoopbackServer) -> AsyncIterator[Provider]:
    """The real provider over the real SDK. Tags stay text, as the wire has them."""
    provider = openai_provider(server.url, think_tags=False)
    yield provider
    await provider.aclose()


def answer_of(recording: Recording, cut: CutName = "whole") -> Answer:
    """The recorded answer, to be served."""
    if recording.is_stream:
        return Answer(status=recording.status, headers=recording.headers, body=recording.sse.encode(), cut=cut)
    headers = {"content-type": "application/json", **recording.headers}
    return Answer(status=recording.status, headers=headers, body=json.dumps(recording.body).encode(), cut=cut)


async def completion_of(provider: Provider, server: LoopbackServer, recording: Recording) -> Completion:
    """Ask for the recorded answer as a whole."""
    server.add(answer_of(recording))
    return await provider.complete(CompletionRequest(model=requested_model(recording), messages=HELLO))


async def streamed(
    provider: Provider, server: LoopbackServer, recording: Recording, cut: CutName = "event"
) -> tuple[list[Any], Completion]:
    """Ask for the recorded answer as a stream; gives the deltas and the completion at its end."""
    server.add(answer_of(recording, cut))
    request = CompletionRequest(model=requested_model(recording), messages=HELLO)
    async with provider.stream(request) as stream:
        deltas = [delta async for delta in stream]
        return deltas, stream.completion


def requested_model(recording: Recording) -> str:
    """The model of the recorded request; two refused requests name none."""
    return recording.request.get("model") or "m"


def count_stream(cut: CutName) -> None:
    """A stream is one recording and as many cuts as it was tried in."""
    count("cuts")
    if cut == CUTS[0]:
        count("recordings")


def compare(completion: Completion, expected: ExpectedAnswer) -> None:
    """Hold a completion against what the oracle read."""
    assert completion.id == expected.id
    assert completion.model == expected.model
    assert [choice.index for choice in completion.choices] == sorted(expected.choices)
    for choice in completion.choices:
        compare_choice(choice, expected.choices[choice.index])
    first = completion.choices[0]
    assert completion.message == first.message
    assert (completion.finish_reason, completion.raw_finish_reason) == (first.finish_reason, first.raw_finish_reason)
    assert counts(completion.usage) == counts(expected.usage)


def compare_choice(choice: Choice, expected: ExpectedChoice) -> None:
    """Hold one choice against what the oracle read."""
    assert choice.message.role == "assistant"
    assert choice.message.text == expected.text
    assert choice.message.reasoning == expected.reasoning
    assert choice.message.refusal == expected.refusal
    assert choice.finish_reason == expected.finish_reason
    assert choice.raw_finish_reason == expected.raw_finish_reason
    compare_calls(choice.message.tool_calls, expected.calls)


def compare_calls(calls: list[ToolCall], expected: list[Call]) -> None:
    """Hold calls against expected ones: name and arguments as written, and the id or, where none came, some id."""
    assert [(call.name, call.arguments) for call in calls] == [(call.name, call.arguments) for call in expected]
    for call, wanted in zip(calls, expected, strict=True):
        if wanted.id != ANY_ID:
            assert call.id == wanted.id
        elif not call.legacy:
            assert call.id
    ids = [call.id for call in calls if not call.legacy]
    assert len(set(ids)) == len(ids)


def counts(usage: Any) -> tuple[int | None, ...] | None:
    """The five figures of a usage, this library's or the oracle's; None where there is none."""
    if usage is None:
        return None
    names = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
    return tuple(getattr(usage, name) for name in names)


@each(WHOLE)
async def test_a_whole_answer_reads_as_a_careful_reader_would(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """Text, reasoning, refusal, calls, finish reason and usage are those of the oracle."""
    compare(await completion_of(provider, server, recording), read_whole(recording.body))
    count("recordings")


@each(WHOLE)
async def test_nothing_of_a_whole_answer_is_lost(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """Every value on the wire is in a field, in extras, and in `raw`."""
    completion = await completion_of(provider, server, recording)
    assert missing_from_whole(recording.body, completion) == []
    assert completion.raw == recording.body


@pytest.mark.parametrize("cut", CUTS)
@each(STREAMS)
async def test_a_stream_reads_the_same_in_every_cut(
    recording: Recording, cut: CutName, provider: Provider, server: LoopbackServer
) -> None:
    """However the bytes are cut, the completion is that of the oracle."""
    _, completion = await streamed(provider, server, recording, cut)
    compare(completion, read_stream(recording.sse))
    assert completion.raw is None
    count_stream(cut)


@each(STREAMS)
async def test_the_deltas_of_a_stream_add_up_to_its_completion(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """Joining what the deltas say gives the texts and the usage of the completion."""
    deltas, completion = await streamed(provider, server, recording)
    for choice in completion.choices:
        of_choice = [delta for delta in deltas if delta.choice == choice.index]
        assert "".join(delta.text for delta in of_choice) == choice.message.text
        assert "".join(delta.reasoning for delta in of_choice) == choice.message.reasoning
        assert "".join(delta.refusal for delta in of_choice) == choice.message.refusal
    told: list[Usage] = [delta.usage for delta in deltas if delta.usage is not None]
    assert (told[-1] if told else None) == completion.usage


@each(STREAMS)
async def test_nothing_of_a_stream_is_lost(recording: Recording, provider: Provider, server: LoopbackServer) -> None:
    """The last value of every path on the wire is in a field or in extras."""
    _, completion = await streamed(provider, server, recording)
    assert missing_from_stream(recording.sse, completion) == []


@each(STREAMS)
async def test_the_deltas_hold_every_chunk_as_it_was_sent(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """`delta.raw` gives the chunks, in order and whole."""
    deltas, _ = await streamed(provider, server, recording)
    assert [delta.raw for delta in deltas if delta.raw is not None] == list(chunks_of(recording.sse))


@each(TAGGED)
async def test_think_tags_are_split_off_where_asked(recording: Recording, server: LoopbackServer) -> None:
    """With `think_tags=True` what stands in the tags is reasoning, an open tag included, and the rest is text."""
    inside, _, after = read_whole(recording.body).choices[0].text.partition("<think>")[2].partition("</think>")
    provider = openai_provider(server.url, think_tags=True)
    completion = await completion_of(provider, server, recording)
    await provider.aclose()
    assert completion.reasoning.strip() == inside.strip()
    assert completion.text.strip() == after.strip()


@pytest.mark.parametrize("way", ["complete", "stream"])
@each(REFUSED)
async def test_a_refusal_becomes_the_error_of_its_kind(
    recording: Recording, way: str, provider: Provider, server: LoopbackServer
) -> None:
    """Class, status, code, whether a retry may help, and the body, however the answer was asked for."""
    expected, code = REFUSALS[recording.name]
    ask = completion_of if way == "complete" else streamed
    with pytest.raises(errors.ProviderError) as caught:
        await ask(provider, server, recording)
    error = caught.value
    assert type(error) is expected
    assert error.status == recording.status
    assert error.code == code
    assert error.retryable is issubclass(expected, RETRYABLE)
    assert error.body == recording.body
    assert error.request_id == recording.headers.get("x-request-id")
    assert error.model == requested_model(recording)
    if way == "complete":
        count("recordings")


@each([recording for recording in REFUSED if recording.status == 429])
async def test_a_rate_limit_tells_how_long_to_wait(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """The wait comes from the header, in seconds; without one it is unknown."""
    with pytest.raises(errors.RateLimitError) as caught:
        await completion_of(provider, server, recording)
    told = recording.headers.get("retry-after")
    assert caught.value.retry_after == (None if told is None else float(told))


@pytest.mark.parametrize("cut", CUTS)
@each(BROKEN_OFF)
async def test_an_error_inside_a_stream_keeps_what_came_before(
    recording: Recording, cut: CutName, provider: Provider, server: LoopbackServer
) -> None:
    """The error has the class of its code, and `partial` all of the answer, the error's own chunk included."""
    with pytest.raises(errors.BadRequestError, match="Token limit reached") as caught:
        await streamed(provider, server, recording, cut)
    error = caught.value
    assert (error.status, error.code, error.retryable) == (400, "400", False)
    assert error.partial is not None
    compare(error.partial, read_stream(recording.sse))
    count_stream(cut)


# What a request says, and what leaves for the service


def oracle_of(recording: Recording) -> ExpectedAnswer:
    """The recorded answer as the oracle reads it."""
    return read_stream(recording.sse) if recording.is_stream else read_whole(recording.body)


# An answer that was cut off may end in a call that no one could read; what says nothing at all is not sent.
REPLAYABLE = [
    recording
    for recording in ANSWERED
    if (first := oracle_of(recording).choices[0]).finish_reason != "length" and (first.text or first.calls)
]
WITH_REASONING = [
    recording
    for recording in RECORDINGS
    if any(key.startswith("reasoning") for message in recording.request["messages"] for key in message)
]
WITH_TOOLS = [
    recording
    for recording in RECORDINGS
    if any(tool["type"] == "function" for tool in recording.request.get("tools") or [])  # not a service's own alone
]


def content_meaning(content: Any) -> list[Any]:
    """Content as a list of parts: text is one text part, nothing is none."""
    if not content:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def call_meaning(call: dict[str, Any]) -> tuple[str, str, Any]:
    """Id, name and arguments of a call; arguments as a value where they are JSON."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = function["arguments"]
    return call["id"], function["name"], arguments


def meaning(message: dict[str, Any]) -> dict[str, Any]:
    """What a message says to a model, however it is spelled: role, content, calls, and which call it answers."""
    return {
        "role": message["role"],
        "content": content_meaning(message.get("content")),
        "calls": [call_meaning(call) for call in message.get("tool_calls") or []],
        "answers": message.get("tool_call_id"),
    }


async def sent_body(provider: Provider, server: LoopbackServer, request: CompletionRequest) -> dict[str, Any]:
    """What the SDK sends for a request."""
    server.add(FINE)
    await provider.complete(request)
    body: dict[str, Any] = server.requests[-1].json()
    return body


@each(RECORDINGS)
async def test_the_messages_of_a_request_leave_with_their_meaning(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """Roles, texts, images, files, calls and results of the recorded request are in the body that is sent."""
    messages = recording.request["messages"]
    body = await sent_body(provider, server, CompletionRequest(model="m", messages=messages))
    assert [meaning(message) for message in body["messages"]] == [meaning(message) for message in messages]
    count("round trips")


@each(WITH_REASONING)
async def test_the_reasoning_of_a_request_leaves_under_a_name_it_came_with(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """DeepSeek refuses a conversation without it, OpenRouter one whose details have changed."""
    messages = recording.request["messages"]
    body = await sent_body(provider, server, CompletionRequest(model="m", messages=messages))
    for sent, given in zip(body["messages"], messages, strict=True):
        assert sent.get("reasoning_details") == given.get("reasoning_details")
        names = [name for name in ("reasoning_content", "reasoning") if given.get(name)]
        assert not names or [sent[name] for name in names if name in sent][:1] == [given[names[0]]]


@each(WITH_TOOLS)
async def test_the_tools_of_a_request_leave_as_they_came(
    recording: Recording, provider: Provider, server: LoopbackServer
) -> None:
    """Name, description, parameters and `strict`; a description that is empty is none."""
    tools = [tool for tool in recording.request["tools"] if tool["type"] == "function"]
    body = await sent_body(provider, server, CompletionRequest(model="m", messages=HELLO, tools=tools))
    for sent, given in zip(body["tools"], tools, strict=True):
        assert {"description": "", **given["function"]} == {"description": "", **sent["function"]}


@each(REPLAYABLE)
async def test_an_answer_goes_back_as_it_came(recording: Recording, provider: Provider, server: LoopbackServer) -> None:
    """In the next request of the conversation: text, calls with their ids, reasoning and its details."""
    if recording.is_stream:
        _, completion = await streamed(provider, server, recording)
    else:
        completion = await completion_of(provider, server, recording)
    results = [
        Message.function(call, "done") if call.legacy else Message.tool(call, "done") for call in completion.tool_calls
    ]
    history = [Message.user("hello"), completion.message, *results, Message.user("go on")]
    body = await sent_body(provider, server, CompletionRequest(model=requested_model(recording), messages=history))
    assert len(body["messages"]) == len(history)
    sent = body["messages"][1]
    expected = oracle_of(recording).choices[0]
    assert (sent.get("content") or "") == expected.text
    if not expected.details:  # details hold the text too, and some services take no other form of it
        assert (sent.get("reasoning_content") or sent.get("reasoning") or "") == expected.reasoning
    assert join_details(sent.get("reasoning_details", [])) == join_details(expected.details)
    calls = [call["function"] for call in sent.get("tool_calls", [])]
    calls += [sent["function_call"]] if "function_call" in sent else []
    assert [(call["name"], call["arguments"]) for call in calls] == [
        (call.name, call.arguments or "{}") for call in expected.calls
    ]
    answered = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert answered == [call["id"] for call in sent.get("tool_calls", [])]
