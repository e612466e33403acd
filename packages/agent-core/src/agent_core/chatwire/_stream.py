"""An answer that comes piece by piece.

Decides when a stream is whole, when it is too late, and whether a failure may still lead to another try: only until the
first piece was handed out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import anyio

from .. import errors
from .._completion import Completion, CompletionRequest
from .._deltas import Accumulator, CompletionDelta
from ..errors import ConfigError, ProviderError
from ._decode import Decoder
from ._sse import DONE, EventParser
from ._transport import Reply

if TYPE_CHECKING:
    from ._provider import OpenAICompatibleProvider

__all__ = ["ChatStream", "Limits"]

_DRAIN = 0.1  # seconds to wait for the end of a body after [DONE], so that the connection can be used again
_T = TypeVar("_T")


class Limits(NamedTuple):
    """How long to wait (seconds): for bytes of any kind, for the first piece of a stream, for each next one."""

    wait: float | None = None
    first_chunk: float | None = None
    idle: float | None = None

    @classmethod
    def checked(cls, timeout: float | None, first_chunk_timeout: float | None, idle_timeout: float | None) -> Self:
        """Take the limits as a provider's options name them.

        Raises:
            ConfigError: one is not positive.
        """
        named = {"timeout": timeout, "first_chunk_timeout": first_chunk_timeout, "idle_timeout": idle_timeout}
        for name, seconds in named.items():
            if seconds is None:
                continue
            if not isinstance(seconds, int | float):
                raise ConfigError(f"{name} must be a number of seconds, got {seconds!r}")
            if seconds <= 0:
                raise ConfigError(f"{name} must be more than 0 seconds, got {seconds:g}")
        return cls(timeout, first_chunk_timeout, idle_timeout)


class ChatStream:
    """An answer on its way. Use it in `async with`; iterate over it once."""

    def __init__(self, provider: OpenAICompatibleProvider, request: CompletionRequest, body: dict[str, Any]) -> None:
        self._provider = provider
        self._request = request
        self._body = body
        self._attempts = provider._retry.start()
        self._accumulator = self._nothing_yet()
        self._connection = AsyncExitStack()
        self._reply: Reply | None = None
        self._deltas: AsyncGenerator[CompletionDelta] | None = None
        self._first_by: float | None = None  # when the first piece has to be there, on the event loop's clock

    @property
    def completion(self) -> Completion:
        """What has come so far; the whole answer once the stream has ended."""
        return self._accumulator.completion(attempts=self._attempts.made)

    async def __aenter__(self) -> Self:
        await self._connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._deltas is not None:
                await self._deltas.aclose()
        finally:  # a task that still reads keeps the deltas from being closed, but not the connection
            await self._connection.aclose()

    def _nothing_yet(self) -> Accumulator:
        return Accumulator(provider=self._provider.name, model=self._request.model)

    def __aiter__(self) -> AsyncIterator[CompletionDelta]:
        if self._reply is None:
            raise RuntimeError("open the stream first: async with provider.stream(request) as stream")
        if self._deltas is None:
            self._deltas = self._read()
        return self._deltas

    async def _connect(self) -> None:
        """Send the request, again where the policy says so, until an answer begins."""
        limits = self._provider._limits
        while True:
            self._first_by = None if limits.first_chunk is None else anyio.current_time() + limits.first_chunk
            opening = self._provider._transport.open(self._body, timeout=self._request.timeout or limits.wait)
            try:
                connect = partial(self._connection.enter_async_context, opening)
                self._reply = await self._within(limits.first_chunk, "first piece of the answer", connect)
                return
            except ProviderError as error:
                failure = error
            await self._wait_or_raise(failure)

    def _in_time(self, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Hold the pieces to the time limits, where there are any: a scope around each costs more than reading it."""
        limits = self._provider._limits
        return chunks if limits.first_chunk is None and limits.idle is None else self._timed(chunks, limits.idle)

    async def _timed(self, chunks: AsyncGenerator[bytes], idle: float | None) -> AsyncGenerator[bytes]:
        async with aclosing(chunks):
            wait, what = idle, "next piece of the answer"
            if self._first_by is not None:
                wait, what = max(0.0, self._first_by - anyio.current_time()), "first piece of the answer"
            while (piece := await self._within(wait, what, partial(anext, chunks, None))) is not None:
                yield piece
                wait, what = idle, "next piece of the answer"

    async def _within(self, seconds: float | None, what: str, call: Callable[[], Awaitable[_T]]) -> _T:
        """Await a call for so long; its scope is closed again before anything is handed out."""
        if seconds is None:
            return await call()
        with anyio.move_on_after(seconds):
            return await call()
        raise errors.ProviderTimeoutError(f"no {what} in time", provider=self._provider.name, model=self._request.model)

    async def _wait_or_raise(self, failure: ProviderError) -> None:
        if (wait := self._attempts.wait_before_next(failure)) is None:
            raise failure
        await self._connection.aclose()
        await anyio.sleep(wait)

    async def _read(self) -> AsyncGenerator[CompletionDelta]:
        """Hand out the pieces. Until the first one is out, a failure may still lead to another try."""
        handed_out = False
        while True:
            assert self._reply is not None
            reply, accumulator = self._reply, self._accumulator
            add = accumulator.add
            try:
                if "json" in reply.content_type or "html" in reply.content_type:
                    # No stream, though one was asked for: a whole answer, an error, or a page.
                    for delta in self._provider._take_whole(self._request, reply, await reply.read(), accumulator):
                        handed_out = True
                        yield delta
                    return
                parser, decoder = EventParser(), self._provider._decoder(self._request.model)
                feed, decode = parser.feed, decoder.decode
                done = False
                async with aclosing(self._in_time(reply.chunks())) as chunks:
                    async for piece in chunks:
                        for payload in feed(piece):
                            if payload == DONE:
                                done = True
                                break
                            deltas = None
                            try:
                                deltas = decode(payload)
                            except ValueError:
                                broken = self._provider._no_answer(self._request, reply, payload)
                            if deltas is None:
                                raise broken
                            if decoder.error is not None:
                                deltas = self._told_of_answer(deltas)
                            for delta in deltas:
                                add(delta)
                                handed_out = True
                                yield delta
                            if decoder.error is not None:
                                raise self._provider._told_error(self._request, reply, decoder.error, accumulator)
                        if done:
                            await _drain(chunks)
                            break
                for delta in self._told_of_answer(self._last_deltas(parser, decoder, done)):
                    add(delta)
                    handed_out = True
                    yield delta
                if decoder.error is not None:
                    raise self._provider._told_error(self._request, reply, decoder.error, accumulator)
                self._check_whole(reply, done or parser.ended)
                return
            except ProviderError as error:
                failure = error
            if failure.partial is None and accumulator.started:
                failure.partial = self.completion
            if handed_out:
                raise failure
            await self._wait_or_raise(failure)
            self._accumulator = self._nothing_yet()
            await self._connect()

    def _told_of_answer(self, deltas: list[CompletionDelta]) -> list[CompletionDelta]:
        """Take in what says nothing of an answer, give the rest: an error that comes first leaves another try open."""
        for delta in deltas:
            if delta.choice is None:
                self._accumulator.add(delta)
        return [delta for delta in deltas if delta.choice is not None]

    def _last_deltas(self, parser: EventParser, decoder: Decoder, done: bool) -> list[CompletionDelta]:
        """Give what the end of the body brings: an event that no blank line followed, and text that was held back."""
        deltas: list[CompletionDelta] = []
        if not done and (rest := parser.rest()) is not None:
            with suppress(ValueError):  # half an event: the connection was cut, which _check_whole tells
                deltas = decoder.decode(rest)
        return deltas + decoder.flush()

    def _check_whole(self, reply: Reply, done: bool) -> None:
        accumulator = self._accumulator
        if not accumulator.started:
            raise self._provider._protocol_error(self._request, reply, "the stream holds no answer")
        if not done and not accumulator.finished:
            raise errors.StreamInterruptedError(
                "the stream ended in mid-answer: no finish reason and no [DONE]",
                provider=self._provider.name,
                model=self._request.model,
                request_id=reply.request_id,
            )


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read to the end of the body, so that the connection can be used again; what breaks now is no loss."""
    with anyio.move_on_after(_DRAIN), suppress(ProviderError):
        async for _ in chunks:
            pass
