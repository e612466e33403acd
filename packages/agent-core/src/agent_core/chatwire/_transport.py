"""What sends a body and gives back bytes.

One transport serves every SDK of the common generator (openai, groq, together, and clients made like them), sync ones
in a worker thread. A client without a raw-response interface is served too: its objects are written as JSON again, so
that everything after this module sees bytes. No vendor package is imported: a client is known by what it offers.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, Protocol, TypeVar

from pydantic_core import to_json

from ..errors import ConfigError, ProviderError
from ._errors import error_from_exception

__all__ = ["ObjectTransport", "Reply", "SdkTransport", "SyncSdkTransport", "Transport", "transport_for"]

_EVENTS = "text/event-stream"
_T = TypeVar("_T")


class Reply(Protocol):
    """A successful answer: its headers have arrived, its body is still to be read, once, by one of the two methods.

    Attributes:
        secret: the key that was sent, so that it can be taken out of what the answer says in an error.
    """

    content_type: str
    request_id: str | None

    @property
    def secret(self) -> str | None: ...

    async def read(self) -> bytes:
        """Read the whole body. Raises errors of `agent_core.errors` only."""
        ...

    def chunks(self) -> AsyncGenerator[bytes]:
        """Give the body as it comes. Raises errors of `agent_core.errors` only."""
        ...


class Transport(Protocol):
    """Sends one body to one vendor. Raises errors of `agent_core.errors` only, and never chains another."""

    def open(self, body: dict[str, Any], *, timeout: float | None) -> AbstractAsyncContextManager[Reply]:
        """Send a body and wait for the headers; leaving the block closes the connection (timeout in seconds)."""
        ...

    async def aclose(self) -> None:
        """Close what this transport opened for itself."""
        ...


class _Failures:
    """Turns what an SDK raises into this library's errors; knows the key, so that it can be taken out of texts."""

    def __init__(self, client: Any, provider: str) -> None:
        self.provider = provider
        self._client = client

    @property
    def secret(self) -> str | None:
        """The key, read when it is needed: a client may renew it."""
        keys = (getattr(self._client, name, None) for name in ("api_key", "token"))  # the second is huggingface_hub's
        return next((key for key in keys if isinstance(key, str) and key), None)

    def error(self, exception: Exception, body: Mapping[str, Any], *, begun: bool = False) -> ProviderError:
        return error_from_exception(
            exception, provider=self.provider, model=body.get("model"), secret=self.secret, begun=begun
        )


class SdkTransport:
    """The raw-response interface that openai, groq and together share.

    The whole body goes in `extra_body`, which those SDKs send as it is, and `messages` stays empty: so nothing is
    validated or copied on the way (a fifth of the cost of a call). The answer's bytes are read, not its models.
    """

    def __init__(self, client: Any, *, provider: str) -> None:
        self._client = _without_retries(client)
        self._failures = _Failures(self._client, provider)

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        manager = _raw_call(self._client, body, timeout)
        failure: ProviderError | None = None
        try:
            response = await manager.__aenter__()
        except Exception as exception:  # every class an SDK raises; all are told apart by name in _errors
            failure = self._failures.error(exception, body)
        if failure is not None:
            raise failure  # outside the block above, so that the SDK's exception, which holds the key, is not chained
        try:
            yield _SdkReply(response, self._failures, body)
        finally:
            await manager.__aexit__(None, None, None)

    async def aclose(self) -> None:
        await self._client.close()


class _SdkReply:
    def __init__(self, response: Any, failures: _Failures, body: Mapping[str, Any]) -> None:
        self._response = response
        self._failures = failures
        self._body = body
        self.content_type = response.headers.get("content-type", "")
        self.request_id: str | None = response.headers.get("x-request-id")

    @property
    def secret(self) -> str | None:
        return self._failures.secret

    async def read(self) -> bytes:
        failure: ProviderError
        try:
            content: bytes = await self._response.read()
            return content
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        raise failure

    async def chunks(self) -> AsyncGenerator[bytes]:
        failure: ProviderError
        try:
            async with aclosing(self._response.iter_bytes()) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        raise failure


class SyncSdkTransport:
    """The same interface of a synchronous client; each wait happens in a worker thread."""

    def __init__(self, client: Any, *, provider: str) -> None:
        self._client = _without_retries(client)
        self._failures = _Failures(client, provider)

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        manager = _raw_call(self._client, body, timeout)
        failure: ProviderError | None = None
        try:
            response = await _in_thread(manager.__enter__)
        except Exception as exception:
            failure = self._failures.error(exception, body)
        if failure is not None:
            raise failure
        try:
            yield _SyncSdkReply(response, self._failures, body)
        finally:
            # Closing never waits for the network, and must also work while the calling task is cancelled.
            manager.__exit__(None, None, None)

    async def aclose(self) -> None:
        self._client.close()


class _SyncSdkReply:
    def __init__(self, response: Any, failures: _Failures, body: Mapping[str, Any]) -> None:
        self._response = response
        self._failures = failures
        self._body = body
        self.content_type = response.headers.get("content-type", "")
        self.request_id: str | None = response.headers.get("x-request-id")

    @property
    def secret(self) -> str | None:
        return self._failures.secret

    async def read(self) -> bytes:
        failure: ProviderError
        try:
            content: bytes = await _in_thread(self._response.read)
            return content
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        raise failure

    async def chunks(self) -> AsyncGenerator[bytes]:
        pieces: Iterator[bytes] = self._response.iter_bytes()
        failure: ProviderError
        try:
            while (piece := await _in_thread(lambda: next(pieces, None))) is not None:
                yield piece
            return
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        raise failure


class ObjectTransport:
    """A client with nothing but `chat.completions.create`: its objects become JSON again."""

    def __init__(self, client: Any, *, provider: str) -> None:
        self._client = client
        self._create = client.chat.completions.create
        self._failures = _Failures(client, provider)

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        failure: ProviderError | None = None
        arguments = _arguments_for(self._create, body)
        try:
            if inspect.iscoroutinefunction(self._create):
                answer = await self._create(**arguments)
            else:
                answer = await _in_thread(lambda: self._create(**arguments))
                if inspect.isawaitable(answer):
                    answer = await answer
        except Exception as exception:
            failure = self._failures.error(exception, body)
        if failure is not None:
            raise failure
        reply = _ObjectReply(answer, self._failures, body)
        try:
            yield reply
        finally:
            await reply.aclose()

    async def aclose(self) -> None:
        close = getattr(self._client, "aclose", None) or getattr(self._client, "close", None)
        if close is not None and inspect.isawaitable(closing := close()):
            await closing


class _ObjectReply:
    request_id: str | None = None

    def __init__(self, answer: Any, failures: _Failures, body: Mapping[str, Any]) -> None:
        self._answer = answer
        self._failures = failures
        self._body = body
        streamed = hasattr(answer, "__anext__") or hasattr(answer, "__next__") or _is_lazy(answer)
        self.content_type = _EVENTS if streamed else "application/json"

    @property
    def secret(self) -> str | None:
        return self._failures.secret

    async def read(self) -> bytes:
        return to_json(_mapping(self._answer), fallback=str)

    async def chunks(self) -> AsyncGenerator[bytes]:
        failure: ProviderError
        try:
            if hasattr(self._answer, "__aiter__"):
                async for item in self._answer:
                    yield _event(item)
            else:
                items = iter(self._answer)
                while (item := await _in_thread(lambda: next(items, None))) is not None:
                    yield _event(item)
            return
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        raise failure

    async def aclose(self) -> None:
        close = getattr(self._answer, "aclose", None) or getattr(self._answer, "close", None)
        if close is not None and inspect.isawaitable(closing := close()):
            await closing


def transport_for(client: Any, *, provider: str) -> Transport:
    """Choose how to talk to a client, by what it offers.

    Raises:
        ConfigError: it has no `chat.completions.create`.
    """
    completions = getattr(getattr(client, "chat", None), "completions", None)
    if not callable(getattr(completions, "create", None)):
        raise ConfigError(
            f"{type(client).__name__} is no OpenAI-shaped client: it has no chat.completions.create. Pass an instance "
            "such as AsyncOpenAI(), or implement Provider"
        )
    if not hasattr(completions, "with_streaming_response"):
        return ObjectTransport(client, provider=provider)
    if hasattr(client, "__aenter__"):
        return SdkTransport(client, provider=provider)
    return SyncSdkTransport(client, provider=provider)


def _raw_call(client: Any, body: dict[str, Any], timeout: float | None) -> Any:
    # The model is an argument too, as Azure's client puts it into the address.
    waiting = {} if timeout is None else {"timeout": timeout}
    return client.chat.completions.with_streaming_response.create(
        model=body["model"], messages=[], extra_body=body, **waiting
    )


def _without_retries(client: Any) -> Any:
    return client.with_options(max_retries=0) if hasattr(client, "with_options") else client


async def _in_thread(call: Callable[[], _T]) -> _T:
    from anyio.to_thread import run_sync

    # A thread cannot be cancelled: it is left to itself, and ends when its socket is closed.
    return await run_sync(call, abandon_on_cancel=True)


def _arguments_for(create: Callable[..., Any], body: dict[str, Any]) -> dict[str, Any]:
    """Put what a client's method has no argument for into its `extra_body`, where it has one."""
    parameters = inspect.signature(create).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return body
    known = {key: value for key, value in body.items() if key in parameters}
    unknown = {key: value for key, value in body.items() if key not in parameters}
    if unknown and "extra_body" in parameters:
        return {**known, "extra_body": unknown}
    if unknown:
        raise ConfigError(f"this client's create() takes no {', '.join(sorted(unknown))}")
    return known


def _is_lazy(answer: Any) -> bool:
    return (hasattr(answer, "__aiter__") or hasattr(answer, "__iter__")) and not (
        isinstance(answer, Mapping) or hasattr(answer, "model_dump") or dataclasses.is_dataclass(answer)
    )


def _mapping(answer: Any) -> Any:
    """Turn a client's object into plain values, by whichever way it offers."""
    for way in ("model_dump", "to_dict", "dict"):
        if callable(method := getattr(answer, way, None)):
            return method()
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        return dataclasses.asdict(answer)
    return answer if isinstance(answer, Mapping) else vars(answer)


def _event(item: Any) -> bytes:
    return b"data: " + to_json(_mapping(item), fallback=str) + b"\n\n"
