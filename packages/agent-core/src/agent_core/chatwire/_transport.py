"""What sends a body and gives back bytes.

One transport serves every SDK of the common generator (openai, groq, together, and clients made like them), sync ones
in a worker thread. A client without a raw-response interface is served too: its objects are written as JSON again, so
that everything after this module sees bytes. No vendor package is imported: a client is known by what it offers.
"""

from __future__ import annotations

import dataclasses
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from ..errors import ConfigError, ProtocolError, ProviderError
from ._errors import error_from_exception

__all__ = ["ObjectTransport", "Reply", "SdkTransport", "SyncSdkTransport", "Transport", "body_of", "transport_for"]

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
            with suppress(Exception):  # the answer is there; what closing raises is no part of it
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
        pieces = body_of(self._response.http_response)
        failure: ProviderError
        try:
            async for piece in pieces:
                yield piece
            return
        except GeneratorExit:
            await self._unwind(pieces)
            raise
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        raise failure

    async def _unwind(self, pieces: AsyncIterator[bytes]) -> None:
        """End the generators that SDK and httpx leave to the garbage collector: trio warns of each found there."""
        with anyio.CancelScope(shield=True), suppress(Exception):  # whatever reading from a closed connection raises
            await self._response.close()
            async for _ in pieces:
                pass


def body_of(response: Any) -> AsyncGenerator[bytes]:
    """Read an httpx or httpx2 response straight from the wire, where nothing is to be undone or seen on the way.

    `aiter_bytes` leads every piece through two more generators, for compression and for sizes: a tenth of all work.
    """
    pieces: AsyncGenerator[bytes]
    known = type(response).__module__ in ("httpx", "httpx2")  # a class of someone else's may want to see what is read
    if known and "content-encoding" not in response.headers and not response.is_stream_consumed:  # as by a hook
        pieces = aiter(response.stream)
    else:
        pieces = response.aiter_bytes()
    return pieces


class SyncSdkTransport:
    """The same interface of a synchronous client; each wait happens in a worker thread."""

    def __init__(self, client: Any, *, provider: str) -> None:
        self._client = _without_retries(client)
        self._failures = _Failures(self._client, provider)

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        manager = _raw_call(self._client, body, timeout)
        close = partial(manager.__exit__, None, None, None)
        failure: ProviderError | None = None
        try:
            response = await _in_thread(manager.__enter__, undo=lambda _: close())
        except Exception as exception:
            failure = self._failures.error(exception, body)
        if failure is not None:
            raise failure
        reply = _SyncSdkReply(response, self._failures, body)
        try:
            yield reply
        finally:
            if reply.reading:
                _hang_up(response)
            # Closing never waits for the network, and must also work while the calling task is cancelled.
            with suppress(Exception):
                close()

    async def aclose(self) -> None:
        self._client.close()


class _SyncSdkReply:
    """Attributes: reading: a thread waits for bytes, or was left waiting when its caller was cancelled."""

    def __init__(self, response: Any, failures: _Failures, body: Mapping[str, Any]) -> None:
        self._response = response
        self._failures = failures
        self._body = body
        self.reading = False
        self.content_type = response.headers.get("content-type", "")
        self.request_id: str | None = response.headers.get("x-request-id")

    @property
    def secret(self) -> str | None:
        return self._failures.secret

    async def read(self) -> bytes:
        content: bytes = await self._read(self._response.read)
        return content

    async def chunks(self) -> AsyncGenerator[bytes]:
        pieces: Iterator[bytes] = self._response.iter_bytes()
        while (piece := await self._read(lambda: next(pieces, None))) is not None:
            yield piece

    async def _read(self, call: Callable[[], _T]) -> _T:
        failure: ProviderError
        self.reading = True
        try:
            read = await _in_thread(call)
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        else:
            self.reading = False
            return read
        self.reading = False
        raise failure


def _hang_up(response: Any) -> None:
    """End the connection under a thread that still reads from it: closing alone would not wake the thread."""
    import socket

    with suppress(Exception):  # another HTTP library, or a connection that is gone
        stream = response.http_response.extensions["network_stream"]
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


class ObjectTransport:
    """A client with nothing but `chat.completions.create`: its objects become JSON again."""

    def __init__(self, client: Any, *, provider: str) -> None:
        self._client = client
        self._create = client.chat.completions.create
        self._failures = _Failures(client, provider)

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        failure: ProviderError | None = None
        call = partial(self._create, **_arguments_for(self._create, body))
        try:
            answer = await _within(timeout, partial(_called, call))
        except Exception as exception:
            failure = self._failures.error(exception, body)
        if failure is not None:
            raise failure
        reply = _ObjectReply(answer, self._failures, body, timeout)
        try:
            yield reply
        finally:
            await reply.aclose()

    async def aclose(self) -> None:
        close = getattr(self._client, "aclose", None) or getattr(self._client, "close", None)
        if close is not None and inspect.isawaitable(closing := close()):
            await closing


async def _called(call: partial[Any]) -> Any:
    if inspect.iscoroutinefunction(call.func):
        return await call()
    answer = await _in_thread(call, undo=_close_now)
    return await answer if inspect.isawaitable(answer) else answer


class _ObjectReply:
    request_id: str | None = None

    def __init__(self, answer: Any, failures: _Failures, body: Mapping[str, Any], timeout: float | None) -> None:
        self._answer = answer
        self._failures = failures
        self._body = body
        self._timeout = timeout
        self._left = False  # a thread that was left to itself will close the answer
        self.content_type = _EVENTS if _is_lazy(answer) else "application/json"
        if isinstance(answer, str | bytes):  # an SDK hands over a page as it is
            self.content_type = "text/html"

    @property
    def secret(self) -> str | None:
        return self._failures.secret

    async def read(self) -> bytes:
        if isinstance(self._answer, str | bytes):
            return self._answer.encode("utf-8", "replace") if isinstance(self._answer, str) else self._answer
        return self._json(self._answer)

    async def chunks(self) -> AsyncGenerator[bytes]:
        failure: ProviderError
        try:
            async with aclosing(self._items()) as items:
                async for item in items:
                    yield b"data: " + self._json(item) + b"\n\n"
            return
        except ProviderError as error:
            failure = error
        except Exception as exception:
            failure = self._failures.error(exception, self._body, begun=True)
        raise failure

    async def _items(self) -> AsyncGenerator[Any]:
        if hasattr(self._answer, "__aiter__"):
            found = aiter(self._answer)
            try:
                while (item := await _within(self._timeout, partial(anext, found, None))) is not None:
                    yield item
            finally:
                if isinstance(found, AsyncGenerator):
                    await found.aclose()
        else:
            items = iter(self._answer)
            while (item := await _within(self._timeout, partial(self._next, items))) is not None:
                yield item

    async def _next(self, items: Iterator[Any]) -> Any:
        self._left = True
        item = await _in_thread(lambda: next(items, None), undo=lambda _: _close_now(self._answer))
        self._left = False
        return item

    async def aclose(self) -> None:
        close = getattr(self._answer, "aclose", None) or getattr(self._answer, "close", None)
        if close is None or self._left or isinstance(self._answer, Mapping):
            return
        with suppress(Exception):  # the answer is there; what closing raises is no part of it
            if inspect.isawaitable(closing := close()):
                await closing

    def _json(self, value: Any) -> bytes:
        with suppress(Exception):  # a stranger's object may raise anything
            plain = from_json(to_json(_mapping(value), fallback=_inner))
            return to_json(_without_none(plain))
        told = f"the client gave {type(value).__name__}, which is no answer"
        raise ProtocolError(told, provider=self._failures.provider, model=self._body.get("model"))


def _close_now(answer: Any) -> None:
    """Close what a thread gave that nobody waits for any more: a stream, a response, a coroutine."""
    close = getattr(answer, "close", None)
    if callable(close) and not inspect.iscoroutinefunction(close):
        with suppress(Exception):
            close()


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
    try:
        return client.with_options(max_retries=0)
    except (AttributeError, TypeError):  # it has no such method, or is a subclass that cannot be made anew
        return client


async def _in_thread(call: Callable[[], _T], *, undo: Callable[[_T], object] | None = None) -> _T:
    """Run a call in a worker thread. It cannot be cancelled: it is left to itself, and what it gives then is undone."""
    from anyio.to_thread import run_sync

    lock = threading.Lock()
    given: list[_T] = []
    left = False

    def run() -> None:  # gives nothing itself: trio refuses a coroutine here
        value = call()
        with lock:
            given.append(value)
            late = left
        if late and undo is not None:
            with suppress(Exception):
                undo(value)

    try:
        await run_sync(run, abandon_on_cancel=True)
        return given[0]
    except BaseException:
        with lock:
            left = True
        if given and undo is not None:
            with suppress(Exception):
                undo(given[0])
        raise


async def _within(seconds: float | None, call: Callable[[], Awaitable[_T]]) -> _T:
    if seconds is None:
        return await call()
    with anyio.move_on_after(seconds):
        return await call()
    raise TimeoutError


def _arguments_for(create: Callable[..., Any], body: dict[str, Any]) -> dict[str, Any]:
    """Put what a client's method has no argument for into its `extra_body`, where it has one."""
    try:
        parameters = inspect.signature(create).parameters
    except ValueError:  # written in another language than Python: it shows none
        return body
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return body
    known = {key: value for key, value in body.items() if key in parameters}
    unknown = {key: value for key, value in body.items() if key not in parameters}
    if unknown and "extra_body" in parameters:
        return {**known, "extra_body": unknown}
    unknown.pop("stream_options", None)  # only usage is lost, which nobody asked for by name
    if unknown:
        raise ConfigError(f"this client's create() takes no {', '.join(sorted(unknown))}")
    return known


def _is_lazy(answer: Any) -> bool:
    if isinstance(answer, Mapping | str | bytes) or hasattr(answer, "model_dump") or dataclasses.is_dataclass(answer):
        return False
    return any(hasattr(answer, way) for way in ("__aiter__", "__anext__", "__iter__", "__next__"))


def _mapping(value: Any) -> Any:
    """Turn a client's object into plain values, by whichever way it offers; one inside another alike.

    Raises:
        TypeError: it offers none.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(warnings=False)  # an SDK does not validate what it was sent
    for way in ("model_dump", "to_dict", "dict"):
        if callable(method := getattr(value, way, None)):
            return method()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value if isinstance(value, Mapping) else vars(value)


def _without_none(value: Any) -> Any:
    """Leave out what was not on the wire: classes fill what they were not given with None."""
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


def _inner(value: Any) -> Any:
    try:
        return _mapping(value)
    except TypeError:
        return str(value)
