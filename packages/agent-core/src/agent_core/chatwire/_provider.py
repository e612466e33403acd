"""A provider made of a transport and a dialect: everything that speaks chat completions.

Decides how a whole answer is read, when a request for one is sent again, and that every failure leaves with what had
arrived. An answer that comes piece by piece is `_stream`'s.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Self

import anyio

from .. import errors
from .._completion import Completion, CompletionRequest
from .._deltas import Accumulator, CompletionDelta
from .._json import read_json
from .._retry import Attempts, RetryPolicy
from ..errors import ConfigError, ProviderError
from ._decode import Decoder
from ._dialect import Dialect
from ._encode import encode_request
from ._errors import error_from_object, redact
from ._stream import ChatStream, Limits
from ._transport import Reply, Transport, transport_for

__all__ = ["OpenAICompatibleProvider"]

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
        timeout: how long the HTTP library waits for a connection, and for any bytes (seconds); None: the client's own.
        first_chunk_timeout: how long a stream may take to bring its first bytes, from sending the request (seconds).
        idle_timeout: how long a stream may stay silent after them (seconds).

    Raises:
        ConfigError: the client has no `chat.completions.create`, neither client nor transport is given, or a time is
            not positive.
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
        first_chunk_timeout: float | None = None,
        idle_timeout: float | None = None,
    ) -> None:
        if client is None and transport is None:
            raise ConfigError("pass a client, such as OpenAICompatibleProvider(AsyncOpenAI())")
        if retry is not None and max_retries is not None:
            raise ConfigError("pass either retry or max_retries: the second is short for the first")
        if retry is not None and not isinstance(retry, RetryPolicy):
            raise ConfigError(f"retry takes a RetryPolicy, not {type(retry).__name__}; for a number use max_retries")
        self.name = name or type(client).__module__.partition(".")[0]
        self.dialect = dialect or Dialect()
        self._transport = transport or transport_for(client, provider=self.name)
        self._think_tags = think_tags
        self._retry = retry or (RetryPolicy() if max_retries is None else RetryPolicy(max_retries=max_retries))
        self._limits = Limits.checked(timeout, first_chunk_timeout, idle_timeout)
        self._owns_transport = transport is not None
        self._closed = False

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
                async with self._transport.open(body, timeout=request.timeout or self._limits.wait) as reply:
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
            self._closed = True
            await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def _body(self, request: CompletionRequest, *, stream: bool) -> dict[str, Any]:
        if self._closed:
            raise ConfigError(f"provider {self.name!r} was closed: build a new one")
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
        return accumulator.completion(raw=read_json(data), attempts=attempts.made)

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
