"""A signal that ends a run from outside it, on asyncio and trio alike."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from .errors import AbortedError

__all__ = ["AbortSignal", "unless_aborted"]

_T = TypeVar("_T")


class AbortSignal:
    """Raise it with `abort(reason)`; whoever was given it can look (`aborted`) or wait (`await signal.wait()`).

    It belongs to one event loop: from another thread, call `abort` through that loop.
    """

    __slots__ = ("_callbacks", "_event", "aborted", "reason")

    def __init__(self) -> None:
        self.aborted = False
        self.reason = ""
        self._event: anyio.Event | None = None
        self._callbacks: list[Callable[[], None]] = []

    def abort(self, reason: str = "aborted") -> None:
        """Raise the signal. The first reason counts; later calls do nothing."""
        if self.aborted:
            return
        self.aborted, self.reason = True, reason
        if self._event is not None:
            self._event.set()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    async def wait(self) -> None:
        """Wait until the signal is raised."""
        if not self.aborted:
            self._event = self._event or anyio.Event()
            await self._event.wait()

    def raise_if_aborted(self) -> None:
        """Raise `AbortedError` with the reason once the signal is up."""
        if self.aborted:
            raise AbortedError(self.reason)

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once, when the signal goes up (at once if it is). Gives a function that takes this back."""
        if self.aborted:
            callback()
            return lambda: None
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None


async def unless_aborted(signal: AbortSignal | None, call: Callable[[], Awaitable[_T]], *, grace: float = 0.0) -> _T:
    """Await a call, but cancel it once the signal is up.

    Args:
        grace: how long the call may go on after that, to end in its own way (seconds).

    Raises:
        AbortedError: the signal went up and the call gave no result in time.
    """
    if signal is None:
        return await call()
    signal.raise_if_aborted()
    # The signal may go up outside any task, as in a handler of Ctrl-C, where the event loop's clock cannot be asked.
    clock = anyio.current_time() - time.monotonic() if grace else 0.0
    with anyio.CancelScope() as scope:

        def end() -> None:
            scope.deadline = clock + time.monotonic() + grace

        forget = signal.on_abort(end if grace else scope.cancel)
        try:
            return await call()
        finally:
            forget()
    raise AbortedError(signal.reason)
