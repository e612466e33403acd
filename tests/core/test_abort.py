"""The abort signal, on both event loops: who waits is woken, what runs is ended, and nothing stays behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from agent_core import AbortSignal, errors
from agent_core._abort import unless_aborted

BOTH = ["asyncio", "trio"]


@pytest.fixture(params=BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Every test runs on both."""
    return request.param


def later(signal: AbortSignal, group: Any, reason: str = "stopped by user") -> None:
    """Raise the signal once everything else waits."""

    async def abort() -> None:
        await anyio.wait_all_tasks_blocked()
        signal.abort(reason)

    group.start_soon(abort)


async def five() -> int:
    """A call with a result."""
    await anyio.lowlevel.checkpoint()
    return 5


class Waiting:
    """A call that never ends by itself, and notes whether it was cancelled."""

    def __init__(self) -> None:
        self.started = self.cancelled = False

    async def __call__(self) -> None:
        self.started = True
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled = True
            raise


def test_a_signal_is_down_until_it_is_raised() -> None:
    """Without any event loop."""
    signal = AbortSignal()
    assert (signal.aborted, signal.reason) == (False, "")
    signal.raise_if_aborted()
    signal.abort()
    assert (signal.aborted, signal.reason) == (True, "aborted")
    with pytest.raises(errors.AbortedError, match="aborted"):
        signal.raise_if_aborted()


def test_the_first_reason_counts() -> None:
    """Raising it again does nothing."""
    signal = AbortSignal()
    signal.abort("first")
    signal.abort("second")
    assert signal.reason == "first"


def test_callbacks_are_called_once_in_their_order() -> None:
    """One that was taken back is not called, and taking it back again does no harm."""
    signal = AbortSignal()
    called: list[str] = []
    for name in "abc":
        forget = signal.on_abort(partial(called.append, name))
        if name == "b":
            forget()
            forget()
    signal.abort()
    signal.abort()
    assert called == ["a", "c"]
    signal.on_abort(partial(called.append, "late"))()
    assert called == ["a", "c", "late"]


async def test_everyone_who_waits_is_woken() -> None:
    """And who comes late does not wait."""
    signal = AbortSignal()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await signal.wait()
        woken.append(number)

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(wait, number)
        later(signal, group)
    await signal.wait()
    assert sorted(woken) == [0, 1, 2]


@pytest.mark.parametrize("signal", [None, AbortSignal()])
async def test_a_call_that_nothing_ends_gives_its_result(signal: AbortSignal | None) -> None:
    """With a signal or without one."""
    assert await unless_aborted(signal, five) == 5


async def test_a_call_is_not_begun_once_the_signal_is_up() -> None:
    """It would only be cancelled."""
    signal = AbortSignal()
    signal.abort("too late")
    call = Waiting()
    with pytest.raises(errors.AbortedError, match="too late"):
        await unless_aborted(signal, call)
    assert not call.started


@pytest.mark.parametrize("grace", [0.0, 0.01])
async def test_a_call_is_cancelled_when_the_signal_goes_up(grace: float) -> None:
    """At once, or after its grace; the error has the reason, and is an ordinary exception."""
    signal = AbortSignal()
    call = Waiting()
    async with anyio.create_task_group() as group:
        later(signal, group)
        with pytest.raises(errors.AbortedError, match="stopped by user"):
            await unless_aborted(signal, call, grace=grace)
    assert call.cancelled


async def test_a_call_that_ends_within_its_grace_gives_its_result() -> None:
    """A tool may finish in its own way."""
    signal = AbortSignal()

    async def in_its_own_way() -> str:
        await signal.wait()
        await anyio.lowlevel.checkpoint()
        return "put away"

    async with anyio.create_task_group() as group:
        later(signal, group)
        assert await unless_aborted(signal, in_its_own_way, grace=10.0) == "put away"


async def test_a_call_that_raises_the_signal_itself_and_returns_gives_its_result() -> None:
    """It was done; what follows is ended."""
    signal = AbortSignal()

    async def abort() -> int:
        signal.abort()
        return 7

    assert await unless_aborted(signal, abort) == 7
    with pytest.raises(errors.AbortedError):
        await unless_aborted(signal, five)


async def test_a_call_that_makes_something_of_its_cancellation_gives_that() -> None:
    """Such as what had come so far."""
    signal = AbortSignal()

    async def so_far() -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "half"
        return "never"

    async with anyio.create_task_group() as group:
        later(signal, group)
        assert await unless_aborted(signal, so_far) == "half"


async def test_what_a_call_raises_is_raised() -> None:
    """The signal has no part in it."""

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await unless_aborted(AbortSignal(), fail)


@pytest.mark.parametrize("grace", [0.0, 10.0])
async def test_a_cancellation_from_outside_stays_one(grace: float) -> None:
    """It is no abort: the caller's scope catches it."""
    call = Waiting()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await anyio.wait_all_tasks_blocked()
                scope.cancel()

            group.start_soon(cancel)
            await unless_aborted(AbortSignal(), call, grace=grace)
    assert scope.cancelled_caught
    assert call.cancelled


async def test_nothing_stays_with_a_signal_that_never_goes_up() -> None:
    """One signal may serve a program for its whole life."""
    signal = AbortSignal()
    for _ in range(100):
        await unless_aborted(signal, five, grace=1.0)
    with anyio.move_on_after(0):
        await unless_aborted(signal, anyio.sleep_forever)
    assert signal._callbacks == []


async def test_one_signal_ends_many_calls() -> None:
    """Those that run beside one another, and those inside one another."""
    signal = AbortSignal()
    calls = [Waiting() for _ in range(5)]
    ended: list[errors.AbortedError] = []

    async def ask(call: Callable[[], Awaitable[None]]) -> None:
        with pytest.raises(errors.AbortedError) as caught:
            await unless_aborted(signal, partial(unless_aborted, signal, call), grace=5.0)
        ended.append(caught.value)

    async with anyio.create_task_group() as group:
        for call in calls:
            group.start_soon(ask, call)
        later(signal, group)
    assert len(ended) == 5
    assert all(call.cancelled for call in calls)


@pytest.mark.parametrize("grace", [0.0, 0.01])
async def test_a_thread_raises_the_signal_through_the_loop(grace: float) -> None:
    """As its docstring says."""
    signal = AbortSignal()
    call = Waiting()

    def from_a_thread() -> None:
        anyio.from_thread.run_sync(signal.abort, "from a thread")

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, from_a_thread)
        with pytest.raises(errors.AbortedError, match="from a thread"):
            await unless_aborted(signal, call, grace=grace)
    assert call.cancelled


@pytest.mark.parametrize("grace", [0.0, 0.01])
async def test_a_callback_of_the_loop_raises_the_signal(grace: float, anyio_backend_name: str) -> None:
    """Outside any task: so a handler of Ctrl-C does, and `call_soon_threadsafe` from a thread of one's own."""
    signal = AbortSignal()
    call = Waiting()
    if anyio_backend_name == "asyncio":
        run_soon: Callable[..., Any] = asyncio.get_running_loop().call_soon_threadsafe
    else:
        import trio

        run_soon = trio.lowlevel.current_trio_token().run_sync_soon
    thread = threading.Thread(target=run_soon, args=(signal.abort, "by hand"))
    thread.start()
    with pytest.raises(errors.AbortedError, match="by hand"):
        await unless_aborted(signal, call, grace=grace)
    thread.join()
    assert call.cancelled
