"""No way to end a request costs a connection: with a pool of one, the next request is always answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import openai
import pytest

from agent_core import CompletionRequest, RetryPolicy, errors
from agent_core.chatwire import OpenAICompatibleProvider
from agent_core.testing import Answer, Gate, LoopbackServer

WAIT = 10.0  # seconds after which a wait has failed; nothing waits that long
ASK = CompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}])
FINE = Answer.json({"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]})
HALF: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": "half"}}]}
END: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
AFTER_HALF = len(json.dumps(HALF)) + 8
BUSY: dict[str, Any] = {"error": {"message": "busy", "code": 503}}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Every test runs on both event loops."""
    return request.param


@pytest.fixture
def server() -> Any:
    """The server that is asked."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture(params=["async", "sync"])
async def provider(request: pytest.FixtureRequest, server: LoopbackServer) -> AsyncIterator[OpenAICompatibleProvider]:
    """A provider that has one connection."""
    limits, timeout = httpx2.Limits(max_connections=1), httpx2.Timeout(WAIT)
    if request.param == "sync":
        with openai.OpenAI(
            base_url=server.url, api_key="x", http_client=httpx2.Client(limits=limits, timeout=timeout)
        ) as client:
            yield OpenAICompatibleProvider(client, retry=RetryPolicy(max_retries=0))
        return
    async with openai.AsyncOpenAI(
        base_url=server.url, api_key="x", http_client=httpx2.AsyncClient(limits=limits, timeout=timeout)
    ) as other:
        yield OpenAICompatibleProvider(other, retry=RetryPolicy(max_retries=0))


async def whole(provider: OpenAICompatibleProvider) -> None:
    """Ask for a whole answer."""
    await provider.complete(ASK)


async def streamed(provider: OpenAICompatibleProvider) -> None:
    """Ask for a stream, and read it to its end."""
    async with provider.stream(ASK) as stream:
        async for _ in stream:
            pass


async def left(provider: OpenAICompatibleProvider) -> None:
    """Leave a stream at its first piece."""
    async with provider.stream(ASK) as stream:
        async for _ in stream:
            break


async def unread(provider: OpenAICompatibleProvider) -> None:
    """Open a stream and read nothing."""
    async with provider.stream(ASK):
        pass


async def raising(provider: OpenAICompatibleProvider) -> None:
    """Raise an error of the reader's own."""
    async with provider.stream(ASK) as stream:
        async for _ in stream:
            raise ZeroDivisionError


Ask = Callable[[OpenAICompatibleProvider], Coroutine[Any, Any, None]]
STREAM = Answer.events([HALF, HALF, END], cut="event")
ENDS: dict[str, tuple[Ask, Answer, type[Exception] | None]] = {
    "a whole answer": (whole, FINE, None),
    "a stream to its end": (streamed, STREAM, None),
    "a stream that is left": (left, STREAM, None),
    "a stream that is left while it waits": (left, Answer.events([HALF, END], gates={AFTER_HALF: Gate()}), None),
    "a stream that nobody reads": (unread, STREAM, None),
    "an error of the reader's": (raising, STREAM, ZeroDivisionError),
    "a refusal": (whole, Answer.json(BUSY, status=503), errors.ServerError),
    "a stream that is refused": (streamed, Answer.json(BUSY, status=503), errors.ServerError),
    "an error with status 200": (whole, Answer.json(BUSY), errors.ServerError),
    "an error in a stream": (streamed, Answer.events([HALF, BUSY, HALF] * 9, cut="event"), errors.ServerError),
    "a page": (streamed, Answer(body=b"<p>", headers={"content-type": "text/html"}), errors.ProtocolError),
    "an event that is no json": (streamed, Answer.sse("data: {\n\n" * 99, cut="event"), errors.ProtocolError),
    "an answer that breaks off": (whole, Answer.json(BUSY, drop=True), errors.StreamInterruptedError),
    "a stream that breaks off": (streamed, Answer.sse("data: {", drop=True), errors.StreamInterruptedError),
    "no answer": (whole, Answer(hang_up=True), errors.ProviderConnectionError),
    "an end mark, and nothing after it": (
        streamed,
        Answer.events([HALF, END], gates={len(json.dumps(HALF)) + len(json.dumps(END)) + 16 + 14: Gate()}),
        None,
    ),
}


@pytest.mark.parametrize(("ask", "answer", "kind"), ENDS.values(), ids=ENDS.keys())
async def test_the_connection_is_there_for_the_next_request(
    ask: Ask, answer: Answer, kind: type[Exception] | None, provider: OpenAICompatibleProvider, server: LoopbackServer
) -> None:
    """However the one before it ended, three times over."""
    for _ in range(3):
        server.add(answer, FINE)
        if kind is None:
            await ask(provider)
        else:
            with pytest.raises(kind):
                await ask(provider)
        assert (await provider.complete(ASK)).text == "fine"
    assert server.open_connections <= 1


@pytest.mark.parametrize("ask", [whole, streamed])
@pytest.mark.parametrize("after", [None, AFTER_HALF])
async def test_a_cancelled_request_leaves_its_connection_for_the_next(
    ask: Ask, after: int | None, provider: OpenAICompatibleProvider, server: LoopbackServer
) -> None:
    """Before the headers and in the middle of the body. A thread gives it back once the server has answered it."""
    gate = Gate()
    waiting: dict[str, Any] = {"hold": gate} if after is None else {"gates": {after: gate}}
    server.add(Answer.events([HALF, END], cut="event", **waiting), FINE)
    async with anyio.create_task_group() as group:
        group.start_soon(ask, provider)
        assert await anyio.to_thread.run_sync(gate.reached.wait, WAIT)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    gate.open()
    assert (await provider.complete(ASK)).text == "fine"
