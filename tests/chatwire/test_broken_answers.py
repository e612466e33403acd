"""Answers that are not whole, not an answer, or late, through the real openai SDK: what each of them is taken for.

The rule for the end of a stream is the one in `tests/cases/README.md`. On the raw path an SDK raises nothing for a
status of 200, so all of this is the library's own duty.
"""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from agent_core import Completion, CompletionRequest, Message, errors
from agent_core.testing import Answer, Gate, LoopbackServer
from agent_core_openai import OpenAIProvider
from openai_sdk import openai_provider

WAIT = 10.0  # seconds after which a wait has failed; nothing waits that long
DONE = "data: [DONE]\n\n"


def event(delta: dict[str, Any] | None = None, finish: str | None = None, index: int = 0, **more: Any) -> str:
    """One event of a stream, with one choice where a delta is given."""
    choices = [] if delta is None else [{"index": index, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps({'id': 'c1', 'choices': choices, **more})}\n\n"


HALF = event({"role": "assistant", "content": "half"})
END = event({}, "stop")
USAGE = event(usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3})


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for the module, so that the provider may keep its connections."""
    return "asyncio"


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[OpenAIProvider]:
    """The provider of this module; `server` is what it asks."""
    with LoopbackServer() as server:
        async with openai_provider(server.url) as provider:
            SERVERS[provider] = server
            yield provider


SERVERS: dict[OpenAIProvider, LoopbackServer] = {}


@pytest.fixture
def server(provider: OpenAIProvider) -> LoopbackServer:
    """The server that the provider asks."""
    return SERVERS[provider]


def request(**options: Any) -> CompletionRequest:
    """A request."""
    return CompletionRequest(model="m", messages=[Message.user("hello")], **options)


async def streamed(provider: OpenAIProvider, **options: Any) -> Completion:
    """Ask for a stream, to its end."""
    async with provider.stream(request(**options)) as stream:
        async for _ in stream:
            pass
        return stream.completion


WHOLE_STREAMS = {
    "finish reason and end mark": (HALF + END + USAGE + DONE, "stop"),
    "end mark alone": (HALF + DONE, "unknown"),
    "finish reason alone": (HALF + END, "stop"),
    "last event without a blank line": (HALF + END.strip(), "stop"),
    "rest that does not parse": (HALF + END + 'data: {"id":', "stop"),
    "byte-order mark": ("\ufeff" + HALF + END + DONE, "stop"),
    "empty event in between": (HALF + "data:\n\n" + END + DONE, "stop"),
    "lines that end in CR": ((HALF + END + DONE).replace("\n", "\r"), "stop"),
    "named events": ("event: chunk\n" + HALF + "event: chunk\n" + END + DONE, "stop"),
    "data over two lines": (HALF + END.replace('"choices"', '\ndata: "choices"') + DONE, "stop"),
}


@pytest.mark.parametrize("cut", ["whole", "byte"])
@pytest.mark.parametrize(("sse", "finish"), WHOLE_STREAMS.values(), ids=WHOLE_STREAMS.keys())
async def test_a_stream_is_whole_with_an_end_mark_or_a_finish_reason(
    sse: str, finish: str, cut: Any, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """Whatever surrounds the events, and wherever they are cut."""
    server.add(Answer.sse(sse, cut=cut))
    completion = await streamed(provider)
    assert (completion.text, completion.finish_reason) == ("half", finish)


INTERRUPTED = {
    "no finish reason": Answer.sse(HALF),
    "one choice of two": Answer.sse(HALF + event({"content": "other"}, index=1) + END),
    "connection broken": Answer.sse(HALF, drop=True),
    "connection reset": Answer.sse(HALF, drop="reset"),
    "broken after the finish reason": Answer.sse(HALF + END, drop=True),
    "shorter than announced": Answer.sse(HALF + END, drop=True, framing="length"),
}


@pytest.mark.parametrize("answer", INTERRUPTED.values(), ids=INTERRUPTED.keys())
async def test_any_other_end_of_a_stream_is_an_interruption(
    answer: Answer, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """It may be tried again, and what had come is kept."""
    server.add(answer)
    with pytest.raises(errors.StreamInterruptedError) as caught:
        await streamed(provider)
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


NO_ANSWERS = {
    "nothing": Answer.sse(""),
    "comments": Answer.sse(": a\n\n: b\n\n"),
    "end mark": Answer.sse(DONE),
    "usage": Answer.sse(USAGE + DONE),
    "empty text": Answer(headers={"content-type": "application/json"}),
    "no choices": Answer.json({"choices": []}),
    "choices null": Answer.json({"choices": None}),
    "a list": Answer.json([1, 2]),
    "a text": Answer.json("hello"),
    "broken JSON": Answer(headers={"content-type": "application/json"}, body=b'{"choices": [{"mess'),
    "a page": Answer(headers={"content-type": "text/html"}, body=b"<!doctype html><title>Sign in</title>"),
}


@pytest.mark.parametrize("way", ["complete", "stream"])
@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
async def test_a_success_without_an_answer_is_a_protocol_error(
    answer: Answer, way: str, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """Status 200 and nothing that is an answer: not an empty completion."""
    server.add(answer)
    with pytest.raises(errors.ProtocolError) as caught:
        await (provider.complete(request()) if way == "complete" else streamed(provider))
    assert caught.value.model == "m"


@pytest.mark.parametrize("way", ["complete", "stream"])
async def test_an_error_object_with_status_200_is_an_error(
    way: str, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """Classed by its code, whichever way the answer was asked for."""
    server.add(Answer.json({"error": {"message": "slow down", "code": 429}}))
    with pytest.raises(errors.RateLimitError, match="slow down") as caught:
        await (provider.complete(request()) if way == "complete" else streamed(provider))
    assert (caught.value.status, caught.value.retryable) == (429, True)


ERROR_EVENTS = {
    "plain": 'data: {"error": {"message": "no room", "code": 503}}\n\n',
    "named": 'event: error\ndata: {"error": {"message": "no room", "code": 503}}\n\n',
    "text": 'data: {"error": "no room", "code": 503}\n\n',
    "named and flat": 'event: error\ndata: {"message": "no room", "code": 503}\n\n',
}


@pytest.mark.parametrize("text", ERROR_EVENTS.values(), ids=ERROR_EVENTS.keys())
async def test_an_error_event_ends_the_stream_with_what_had_come(
    text: str, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """In each form that services use."""
    server.add(Answer.sse(HALF + text + DONE))
    with pytest.raises(errors.ServerError, match="no room") as caught:
        await streamed(provider)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


async def test_broken_json_inside_a_stream_keeps_what_had_come(
    provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """A protocol error, as nobody knows what is missing."""
    server.add(Answer.sse(HALF + 'data: {"id": "c1", "choi\n\n' + END + DONE))
    with pytest.raises(errors.ProtocolError) as caught:
        await streamed(provider)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


async def test_a_stream_answered_by_a_whole_body_is_taken_as_it_is(
    provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """Some gateways ignore `stream`; the SDK itself gives no chunk and no error there."""
    message = {"role": "assistant", "content": "all"}
    server.add(Answer.json({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    assert (await streamed(provider)).text == "all"


async def test_a_compressed_stream_is_read(provider: OpenAIProvider, server: LoopbackServer) -> None:
    """Compression is undone, however its bytes are cut."""
    body = gzip.compress((HALF + END + DONE).encode())
    server.add(Answer.sse(body, headers={"content-encoding": "gzip"}, cut="byte"))
    assert (await streamed(provider)).text == "half"


async def test_halves_of_a_character_are_put_together(provider: OpenAIProvider, server: LoopbackServer) -> None:
    """A server may cut an emoji over two chunks; halves that stay alone don't reach the caller."""
    first, second = (event({"content": half}) for half in ("\ud83d", "\ude00"))
    server.add(Answer.sse(first + second + END + DONE), Answer.sse(first + END + DONE))
    assert (await streamed(provider)).text == "\U0001f600"
    assert (await streamed(provider)).text.encode() == "\ufffd".encode()


@pytest.mark.parametrize("way", ["complete", "stream"])
async def test_a_request_that_gets_no_answer_in_time_times_out(
    way: str, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """The request's own timeout counts."""
    server.add(Answer.sse(HALF, hold=Gate()))
    with pytest.raises(errors.ProviderTimeoutError) as caught:
        await (provider.complete(request(timeout=0.05)) if way == "complete" else streamed(provider, timeout=0.05))
    assert caught.value.retryable


async def test_a_stream_that_stalls_times_out_with_what_had_come(
    provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """The timeout is for each next piece; `partial` has those before."""
    server.add(Answer.sse(HALF + END + DONE, gates={len(HALF): Gate()}))
    with pytest.raises(errors.ProviderTimeoutError) as caught:
        await streamed(provider, timeout=0.05)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


async def test_a_slow_stream_is_no_late_one(provider: OpenAIProvider, server: LoopbackServer) -> None:
    """A delta is handed over as soon as it is there, while the rest has not even been sent."""
    gate = Gate()
    server.add(Answer.sse(HALF + END + DONE, gates={len(HALF): gate}))
    async with provider.stream(request()) as stream:
        texts = []
        async for delta in stream:
            texts.append(delta.text)
            gate.open()
    assert texts[0] == "half"


@pytest.mark.parametrize("way", ["break", "raise", "cancel"])
async def test_leaving_a_stream_closes_its_connection(
    way: str, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """By whatever way the block is left, the server sees it at once, so a model stops writing."""
    server.add(Answer.sse(HALF + END + DONE, gates={len(HALF): Gate()}))
    with anyio.CancelScope() as scope:
        try:
            async with provider.stream(request()) as stream:
                async for _ in stream:
                    if way == "raise":
                        raise LookupError("enough")
                    if way == "break":
                        break
                    scope.cancel()
        except LookupError:
            pass
    assert await anyio.to_thread.run_sync(server.requests[-1].closed.wait, WAIT)


async def test_a_stream_read_to_its_end_leaves_its_connection_for_the_next(
    provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """Three streams, one connection."""
    before = server.open_connections
    for _ in range(3):
        server.add(Answer.sse(HALF + END + DONE, cut="event"))
        await streamed(provider)
    assert server.open_connections <= max(before, 1)
    assert not server.requests[-1].closed.is_set()


async def test_a_refused_connection_is_a_connection_error() -> None:
    """Nobody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with openai_provider(f"http://127.0.0.1:{port}") as provider:
        with pytest.raises(errors.ProviderConnectionError) as caught:
            await provider.complete(request())
    assert caught.value.retryable
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


UNANSWERED = {
    "hung up": Answer(hang_up=True),
    "whole body broken off": Answer.json({"choices": []}, drop=True),
    "page of a gateway broken off": Answer(status=502, body=b"<html>", drop=True),
}


@pytest.mark.parametrize("answer", UNANSWERED.values(), ids=UNANSWERED.keys())
async def test_a_whole_answer_that_breaks_off_may_be_tried_again(
    answer: Answer, provider: OpenAIProvider, server: LoopbackServer
) -> None:
    """One of this library's errors, with nothing chained that holds the request's headers."""
    server.add(answer)
    with pytest.raises((errors.ProviderConnectionError, errors.StreamInterruptedError, errors.ServerError)) as caught:
        await provider.complete(request())
    assert caught.value.retryable
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
