"""The tool loop while it runs: its events in order, left early, aborted, and cancelled wherever it waits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from agent_core import (
    AbortSignal,
    Completion,
    CompletionDelta,
    CompletionFinished,
    CompletionRequest,
    LoopFinished,
    Message,
    RequestStarted,
    ToolFinished,
    ToolLoopHooks,
    ToolStarted,
    errors,
    run_tool_loop,
    stream_tool_loop,
)
from agent_core.testing import Answer, Gate, LoopbackServer, ScriptedProvider
from loops import ASK, STOP, calling, noting, read_through, run, tools
from openai_sdk import openai_provider

WAIT = 10.0  # seconds after which a wait has failed; nothing waits that long


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Every test runs on both event loops."""
    return request.param


async def test_events_tell_what_happens_in_order() -> None:
    """Requests, deltas, the whole answer, tools, and at last the result."""
    provider = ScriptedProvider({**calling(("look", '{"q": 1}')), "content": "Wait."}, STOP)
    kinds: list[str] = []
    async with stream_tool_loop(
        provider=provider, model="m", messages=ASK, tools=tools("look"), tool_handlers={"look": lambda _: "ok"}
    ) as events:
        assert events.result is None
        async for event in events:
            match event:
                case RequestStarted(request, iteration):
                    kinds.append(f"request {iteration} {request.tool_choice}")
                case CompletionDelta(text=text) if text:
                    kinds.append(f"text {text}")
                case CompletionFinished(completion, iteration):
                    kinds.append(f"answer {iteration} {completion.finish_reason}")
                case ToolStarted(call, arguments):
                    kinds.append(f"start {call.name} {arguments}")
                case ToolFinished(call, message):
                    kinds.append(f"end {call.name} {message.role}")
                case LoopFinished(result):
                    kinds.append(f"result {result.stop_reason}")
                    assert events.result is result
        assert [event async for event in events] == []
    assert kinds == [
        "request 0 auto", "text Wait.", "answer 0 tool_calls", "start look {'q': 1}", "end look tool",
        "request 1 auto", "text done", "answer 1 stop", "result answer",
    ]  # fmt: skip


HALF = {"choices": [{"index": 0, "delta": {"content": "half"}}]}


async def test_leaving_a_stream_of_events_hangs_up() -> None:
    """The server stops generating, and nothing is left to the garbage collector."""
    gate = Gate()
    with LoopbackServer(Answer.events([HALF] * 9, cut="event", gates={300: gate})) as server:
        async with openai_provider(server.url) as provider:
            async with stream_tool_loop(provider=provider, model="m", messages=ASK) as events:
                async for event in events:
                    if isinstance(event, CompletionDelta):
                        break
            assert events.result is None
            assert await anyio.to_thread.run_sync(server.requests[0].closed.wait, WAIT)


@pytest.mark.parametrize(
    "at", [RequestStarted, CompletionDelta, CompletionFinished, ToolStarted, ToolFinished, LoopFinished]
)
async def test_a_stream_of_events_may_be_left_at_any_event(at: type[Any]) -> None:
    """Nothing of it goes on."""
    ran: list[Any] = []
    provider = ScriptedProvider(calling("look", "look"), STOP)
    handlers = {"look": noting(ran)}
    async with stream_tool_loop(
        provider=provider, model="m", messages=ASK, tools=tools("look"), tool_handlers=handlers
    ) as events:
        async for event in events:
            if isinstance(event, at):
                break
    assert (
        len(ran) == (0 if at in (RequestStarted, CompletionDelta, CompletionFinished, ToolStarted) else 1)
        or at is LoopFinished
    )


async def test_an_error_of_the_reader_is_its_own() -> None:
    """What is raised between events ends the loop, and is not told to a hook."""
    heard: list[Any] = []
    hooks = ToolLoopHooks(on_provider_error=noting(heard))
    provider = ScriptedProvider(STOP)
    with pytest.raises(ZeroDivisionError):
        await read_through(at_delta=lambda: 1 / 0, provider=provider, model="m", messages=ASK, hooks=hooks)
    assert heard == []


class OwnStream:
    """A provider whose stream is a generator of its own, with something to clean up."""

    name = "own"

    def __init__(self, *deltas: CompletionDelta) -> None:
        self.deltas = deltas
        self.log: list[str] = []

    async def complete(self, request: CompletionRequest) -> Completion:
        """Not asked for here."""
        raise AssertionError

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncGenerator[Any]:
        """Open, give, close."""
        self.log.append("open")
        try:
            yield self
        finally:
            self.log.append("close")

    async def __aiter__(self) -> AsyncIterator[CompletionDelta]:
        try:
            for delta in self.deltas:
                await anyio.lowlevel.checkpoint()
                yield delta
        finally:
            self.log.append("end")

    completion = Completion(Message.assistant("done"))


async def test_a_providers_own_generator_is_closed_with_its_stream() -> None:
    """Before the block it was opened in, and not by the garbage collector."""
    provider: Any = OwnStream(CompletionDelta("do"), CompletionDelta("ne"))
    async with stream_tool_loop(provider=provider, model="m", messages=ASK) as events:
        async for event in events:
            if isinstance(event, CompletionDelta):
                break
    assert provider.log == ["open", "end", "close"]


class Hanging:
    """A provider that never answers, and may make an error of its own from being cancelled."""

    name = "hanging"

    def __init__(self, signal: AbortSignal, own_error: bool) -> None:
        self.signal, self.own_error = signal, own_error
        self.cancelled = False

    async def complete(self, request: CompletionRequest) -> Completion:
        """Raise the signal, then wait for ever."""
        self.signal.abort("stopped by user")
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled = True
            if not self.own_error:
                raise
        raise errors.ProviderConnectionError("cancelled")


@pytest.mark.parametrize("own_error", [False, True])
async def test_an_abort_while_the_model_is_asked_is_an_abort(own_error: bool) -> None:
    """Whatever the provider makes of it; no hook hears of it, and nothing is asked again."""
    signal = AbortSignal()
    heard: list[Any] = []
    hooks = ToolLoopHooks(on_provider_error=noting(heard, Message.assistant("sorry")))
    provider: Any = Hanging(signal, own_error)
    with pytest.raises(errors.AbortedError, match="stopped by user") as caught:
        await run_tool_loop(provider=provider, model="m", messages=ASK, signal=signal, hooks=hooks)
    assert provider.cancelled
    assert heard == []
    assert caught.value.messages == [Message.user("go")]


async def test_an_abort_in_a_stream_hangs_up() -> None:
    """The server stops generating at once, while nothing comes."""
    signal = AbortSignal()
    gate = Gate()
    with LoopbackServer(Answer.events([HALF] * 9, cut="event", gates={len(json.dumps(HALF)) + 8: gate})) as server:
        async with openai_provider(server.url) as provider:
            with pytest.raises(errors.AbortedError):
                await read_through(at_delta=signal.abort, provider=provider, model="m", messages=ASK, signal=signal)
            assert await anyio.to_thread.run_sync(server.requests[0].closed.wait, WAIT)


async def test_an_abort_does_not_wait_for_a_sync_handler() -> None:
    """Its thread is left to itself."""
    signal, goes_on, done = AbortSignal(), threading.Event(), threading.Event()

    def slow(arguments: dict[str, Any]) -> str:
        goes_on.wait(WAIT)
        done.set()
        return "late"

    async def abort() -> None:
        await anyio.wait_all_tasks_blocked()
        signal.abort()

    async with anyio.create_task_group() as group:
        group.start_soon(abort)
        with pytest.raises(errors.AbortedError):
            await run(calling("slow"), STOP, handlers={"slow": slow}, signal=signal)
    assert not done.is_set()
    goes_on.set()
    assert await anyio.to_thread.run_sync(done.wait, WAIT)


async def test_a_tool_may_end_in_its_own_way_after_an_abort() -> None:
    """Its answer still counts in the conversation; the tools after it do not run."""
    signal = AbortSignal()
    ran: list[str] = []

    async def tidy(arguments: dict[str, Any]) -> str:
        ran.append("tidy")
        signal.abort()
        await anyio.lowlevel.checkpoint()
        return "put away"

    with pytest.raises(errors.AbortedError) as caught:
        await run(calling("tidy", "tidy"), handlers={"tidy": tidy}, signal=signal)
    assert ran == ["tidy"]
    assert caught.value.messages is not None
    assert json.loads(caught.value.messages[-1].text)["message"] == "put away"


class Steps:
    """Counts every place at which a loop waits; at one of them its scope is cancelled."""

    def __init__(self, cancel_at: int | None) -> None:
        self.taken = 0
        self.cancel_at = cancel_at
        self.scope = anyio.CancelScope()

    async def __call__(self) -> None:
        """Take a step."""
        self.taken += 1
        if self.taken == self.cancel_at:
            self.scope.cancel()
        await anyio.lowlevel.checkpoint()


async def stepping_loop(steps: Steps, streamed: bool) -> list[str]:
    """A loop of two rounds that takes a step wherever it can be made to wait; gives what was left open at its end."""
    left_open: list[str] = []

    def opens(what: str) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            left_open.append(what)
            try:
                await steps()
                yield
            finally:
                left_open.remove(what)

        return opened()

    replies = [calling("look", "plain"), calling("look"), STOP]

    class Stepping:
        name = "stepping"

        async def complete(self, request: CompletionRequest) -> Completion:
            async with opens("request"):
                return await ScriptedProvider(replies.pop(0)).complete(request)

        @asynccontextmanager
        async def stream(self, request: CompletionRequest) -> AsyncGenerator[Any]:
            async with opens("stream"), ScriptedProvider(replies.pop(0)).stream(request) as inner:

                class Deltas:
                    async def __aiter__(self) -> AsyncIterator[CompletionDelta]:
                        async with opens("deltas"):
                            async for delta in inner:
                                await steps()
                                yield delta

                    @property
                    def completion(self) -> Completion:
                        return inner.completion

                yield Deltas()

    async def hook(*arguments: Any) -> None:
        async with opens("hook"):
            pass

    async def look(arguments: dict[str, Any]) -> str:
        async with opens("handler"):
            return "ok"

    provider: Any = Stepping()
    options: dict[str, Any] = {
        "provider": provider,
        "model": "m",
        "messages": ASK,
        "tools": tools("look", "plain"),
        "tool_handlers": {"look": look, "plain": lambda _: "ok"},
        "hooks": ToolLoopHooks(hook, hook, hook, hook),
        "signal": AbortSignal(),
    }
    with steps.scope:
        if streamed:
            async with stream_tool_loop(**options) as events:
                async for _ in events:
                    await steps()
                assert events.result is not None
        else:
            await run_tool_loop(**options)
    return left_open


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_loop_can_be_cancelled_wherever_it_waits(streamed: bool) -> None:
    """At each of its awaits in turn: it ends, everything it opened is closed, and the cancellation is the caller's."""
    whole = Steps(None)
    assert await stepping_loop(whole, streamed) == []
    assert whole.taken > 10
    for place in range(1, whole.taken + 1):
        steps = Steps(place)
        assert await stepping_loop(steps, streamed) == []
        assert steps.scope.cancelled_caught, f"step {place}"
        assert steps.taken == place


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_is_cancelled_is_cancelled() -> None:
    """asyncio's own way: it ends as cancelled, not as an error of this library."""
    started = asyncio.Event()

    async def wait(arguments: dict[str, Any]) -> str:
        started.set()
        await asyncio.sleep(60)
        return "never"

    task = asyncio.create_task(run(calling("wait"), handlers={"wait": wait}, signal=AbortSignal()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
