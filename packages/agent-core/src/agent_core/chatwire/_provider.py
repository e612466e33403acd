"""A provider made of a transport and a dialect: everything that speaks chat completions.

Decides when an answer is whole, when a request is sent again, and that every failure leaves with what had arrived.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, suppress
from types import TracebackType
from typing import Any, Self

import anyio
from pydantic_core import from_json

from .. import errors
from .._completion import Completion, CompletionRequest
from .._deltas import Accumulator, CompletionDelta
from .._retry import Attempts, RetryPolicy
from ..errors import ConfigError, ProviderError
from ._decode import Decoder
from ._dialect import Dialect
from ._encode import encode_request
from ._errors import error_from_object, redact
from ._sse import DONE, EventParser
from ._transport import Reply, Transport, transport_for

__all__ = ["OpenAICompatibleProvider"]

_DRAIN = 0.1  # seconds to wait for the end of a body after [DONE], so that the connection can be used again
_SHOWN = 120  # characters of a body that is no answer, in a message


class OpenAICompatibleProvider:
    """Any OpenAI-shaped client as a provider.

    Args:
        client: `AsyncOpenAI()`, `OpenAI()`, `AsyncAzureOpenAI()`, `AsyncGroq()`, `AsyncTogether()`, or any object with
            `chat.completions.create`. It stays the caller's: closing the provider does not close it.
        name: what the provider is called in completions and errors; by default the client's package.
        dialect: how its wire differs from the common one.
        transport: what sends a body, in place of a client.
        think_tags: whether reasoning is taken out of the text between `<think>` tags; None: for models known to.
        retry: when a failed request is sent again; `max_retries` is short for a policy with so many.
        timeout: how long to wait for the connection and each next piece of an answer (seconds); None: the client's own.

    Raises:
        ConfigError: the client has no `chat.completions.create`, or neither client nor transport is given.
    """

    def __init__(
        self,
        client: Any = None,
        *,
        name: str | None = None,
        dialect: Dialect | None = None,
        transport: Transport | None = None,
        think_tags: bool | None = None,
        retry: RetryPolicy | None = None,
        max_retries: int | None = None,
        timeout: float | None = None,
    ) -> None:
        if client is None and transport is None:
            raise ConfigError("pass a client, such as OpenAICompatibleProvider(AsyncOpenAI())")
        if retry is not None and max_retries is not None:
            raise ConfigError("pass either retry or max_retries: the second is short for the first")
        self.name = name or type(client).__module__.partition(".")[0]
        self.dialect = dialect or Dialect()
        self._transport = transport or transport_for(client, provider=self.name)
        self._think_tags = think_tags
        self._retry = retry or (RetryPolicy() if max_retries is None else RetryPolicy(max_retries=max_retries))
        self._timeout = timeout
        self._owns_transport = transport is not None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask for a whole answer.

        Raises:
            ConfigError: the request names no model.
            ProviderError: the vendor or the way to it failed; `partial` holds what had arrived.
        """
        body = self._body(request, stream=False)
        attempts = self._retry.start()
        while True:
            failure: ProviderError
            try:
                async with self._transport.open(body, timeout=request.timeout or self._timeout) as reply:
                    return await self._whole(request, reply, attempts)
            except ProviderError as error:
                failure = error
            if (wait := attempts.wait_before_next(failure)) is None:
                raise failure
            await anyio.sleep(wait)

    def stream(self, request: CompletionRequest) -> ChatStream:
        """Ask for an answer piece by piece: `async with provider.stream(request) as stream`.

        Raises:
            ConfigError: the request names no model.
            ProviderError: on entering or while iterating; `partial` holds what had arrived.
        """
        return ChatStream(self, request, self._body(request, stream=True))

    async def aclose(self) -> None:
        """Close what this provider opened. A client that was passed in stays open."""
        if self._owns_transport:
            await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def _body(self, request: CompletionRequest, *, stream: bool) -> dict[str, Any]:
        if not request.model:
            raise ConfigError("the request names no model: set CompletionRequest(model=...)")
        return encode_request(request, self.dialect, provider=self.name, stream=stream)

    def _decoder(self, model: str) -> Decoder:
        think = self._think_tags
        if think is None:
            known = self.dialect.think_models
            think = known is not None and known.search(model) is not None
        return Decoder(self.dialect, think_tags=think)

    async def _whole(self, request: CompletionRequest, reply: Reply, attempts: Attempts) -> Completion:
        accumulator = Accumulator(provider=self.name, model=request.model)
        data = await reply.read()
        self._take_whole(request, reply, data, accumulator)
        return accumulator.completion(raw=from_json(data), attempts=attempts.made)

    def _take_whole(
        self, request: CompletionRequest, reply: Reply, data: bytes, accumulator: Accumulator
    ) -> list[CompletionDelta]:
        """Read a body that is one JSON text, or raise what it says instead."""
        decoder = self._decoder(request.model)
        deltas: list[CompletionDelta] | None = None
        with suppress(ValueError):
            deltas = [*decoder.decode(data, whole=True), *decoder.flush()]
        if deltas is None:
            raise self._no_answer(request, reply, data)
        for delta in deltas:
            accumulator.add(delta)
        if decoder.error is not None:
            raise self._told_error(request, reply, decoder.error, accumulator)
        if not accumulator.started:
            raise self._protocol_error(request, reply, "the answer holds no choices")
        return deltas

    def _no_answer(self, request: CompletionRequest, reply: Reply, data: bytes) -> ProviderError:
        # The key is taken out first, so that no half of it is left where the text is cut.
        start = redact(data[: 10 * _SHOWN].decode("utf-8", "replace"), reply.secret)[:_SHOWN].strip()
        kind = reply.content_type.partition(";")[0] or "no content type"
        return self._protocol_error(request, reply, f"expected JSON, got {kind} that begins with {start!r}")

    def _protocol_error(self, request: CompletionRequest, reply: Reply, message: str) -> ProviderError:
        return errors.ProtocolError(message, provider=self.name, model=request.model, request_id=reply.request_id)

    def _told_error(
        self, request: CompletionRequest, reply: Reply, told: Any, accumulator: Accumulator
    ) -> ProviderError:
        error = error_from_object(told, provider=self.name, model=request.model, secret=reply.secret)
        error.request_id = reply.request_id
        error.partial = accumulator.completion() if accumulator.started else None
        return error


class ChatStream:
    """An answer on its way. Use it in `async with`; iterate over it once."""

    def __init__(self, provider: OpenAICompatibleProvider, request: CompletionRequest, body: dict[str, Any]) -> None:
        self._provider = provider
        self._request = request
        self._body = body
        self._attempts = provider._retry.start()
        self._accumulator = Accumulator(provider=provider.name, model=request.model)
        self._connection = AsyncExitStack()
        self._reply: Reply | None = None
        self._deltas: AsyncGenerator[CompletionDelta] | None = None

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
        if self._deltas is not None:
            await self._deltas.aclose()
        await self._connection.aclose()

    def __aiter__(self) -> AsyncIterator[CompletionDelta]:
        if self._reply is None:
            raise RuntimeError("open the stream first: async with provider.stream(request) as stream")
        if self._deltas is None:
            self._deltas = self._read()
        return self._deltas

    async def _connect(self) -> None:
        """Send the request, again where the policy says so, until an answer begins."""
        while True:
            try:
                self._reply = await self._connection.enter_async_context(
                    self._provider._transport.open(self._body, timeout=self._request.timeout or self._provider._timeout)
                )
                return
            except ProviderError as error:
                failure = error
            await self._wait_or_raise(failure)

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
                async with aclosing(reply.chunks()) as chunks:
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
                            for delta in deltas:
                                add(delta)
                                handed_out = True
                                yield delta
                            if decoder.error is not None:
                                raise self._provider._told_error(self._request, reply, decoder.error, accumulator)
                        if done:
                            await _drain(chunks)
                            break
                for delta in self._last_deltas(parser, decoder, done):
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
            await self._connect()

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
