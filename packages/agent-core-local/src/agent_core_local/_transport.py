"""Sends a body to the server of its model, which is started when it is first asked for.

Decides when a server is started and given back, and how what httpx raises is told. The wire is chatwire's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from pydantic_core import to_json

from agent_core.chatwire import Reply, error_from_exception, error_from_response
from agent_core.errors import ConfigError, ProviderError

from ._server import LlamaServer
from ._shared import acquire, release

if TYPE_CHECKING:
    import httpx

__all__ = ["LocalTransport"]

_TIMEOUT = 600.0  # seconds for each next piece of an answer: a long prompt takes minutes on a small machine
_CONNECT = 5.0


class LocalTransport:
    """One HTTP client for the servers of all models that this provider was asked for.

    Args:
        options: those of `LlamaServer`.
        provider: the name that errors give.
        on_load: told in a line of text when a model begins to load and when it is ready.
        base_url: a llama.cpp server that runs already, in place of one of our own; `api_key` where it wants one.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        provider: str = "local",
        on_load: Callable[[str], object] | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        import httpx

        # No proxy of the environment stands before loopback. No connection is kept: a new one costs next to nothing
        # here, and so the client may be used from one event loop after another.
        self._client = httpx.AsyncClient(
            trust_env=False, verify=False, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0)
        )
        self._options = dict(options)
        self._base_url = base_url.rstrip("/") if base_url else None
        self._api_key = (api_key or "unused").strip()
        self._provider = provider
        self._on_load = on_load
        self._held: dict[str, LlamaServer] | None = {}
        self._announced: set[str] = set()
        self._lock = threading.Lock()

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        path = body["model"]
        server: LlamaServer | _Elsewhere
        if self._base_url is not None:
            server = _Elsewhere(self._base_url, path, self._api_key)
        else:
            server = self._running(path) or await self._load(path)
        told = {"provider": self._provider, "model": path, "secret": server.api_key}
        failure: ProviderError | None = None
        try:
            request = self._client.build_request(
                "POST",
                f"{server.base_url}/chat/completions",
                content=to_json({**body, "model": server.model}, fallback=str),
                headers={
                    "content-type": "application/json",
                    "accept-encoding": "identity",  # nothing is gained by packing what never leaves the machine
                    "authorization": f"Bearer {server.api_key}",
                },
                timeout=_timeouts(timeout or _TIMEOUT),
            )
            response = await self._client.send(request, stream=True)
            if response.status_code >= 400:
                failure = await _error(response, told)
        except Exception as exception:  # every class httpx raises, also for an address or a key that it cannot send
            failure = error_from_exception(exception, **told)
        if failure is not None:
            raise failure  # outside the block above, so that a request with the server's key is not chained
        async with aclosing(response):
            yield _Reply(response, told)

    def load(self, path: str) -> LlamaServer:
        """Start the server of a model, or give the one that runs. Blocks while the model loads.

        Raises:
            ConfigError, ProviderConnectionError: as `LlamaServer` does.
        """
        if self._base_url is not None:
            raise ConfigError(f"nothing to load: the server at {self._base_url} was started by somebody else")
        with self._lock:
            if self._held is None:
                raise ConfigError("this local provider was closed: build a new one")
            if path not in self._held:
                self._held[path] = acquire(path, self._options)  # kept here, so that a cancelled caller loses nothing
            return self._held[path]

    async def aclose(self) -> None:
        """Close every connection and give the servers back."""
        with anyio.CancelScope(shield=True):
            await self._client.aclose()
            await anyio.to_thread.run_sync(self._release_all)

    def _running(self, path: str) -> LlamaServer | None:
        return self._held.get(path) if self._held else None

    async def _load(self, path: str) -> LlamaServer:
        on_load = self._on_load if path not in self._announced else None  # told once, though many may wait for it
        self._announced.add(path)
        started = time.monotonic()
        if on_load is not None:
            on_load(f"loading {_described(path)}")
        server = await anyio.to_thread.run_sync(self.load, path)
        if on_load is not None:
            on_load(f"{server.model} is ready after {time.monotonic() - started:.1f} s")
        return server

    def _release_all(self) -> None:
        with self._lock:
            held, self._held = self._held, None
        for server in (held or {}).values():
            release(server)


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """A server that somebody else started."""

    base_url: str
    model: str
    api_key: str = field(repr=False)


class _Reply:
    request_id: str | None = None  # llama.cpp gives none

    def __init__(self, response: httpx.Response, told: Mapping[str, str]) -> None:
        self._response = response
        self._told = told
        self.content_type: str = response.headers.get("content-type", "")

    @property
    def secret(self) -> str | None:
        return self._told.get("secret")

    async def read(self) -> bytes:
        try:
            return await self._response.aread()
        except Exception as exception:
            failure = error_from_exception(exception, **self._told, begun=True)
        raise failure

    async def chunks(self) -> AsyncGenerator[bytes]:
        pieces = self._response.aiter_raw()
        try:
            async for piece in pieces:
                yield piece
            return
        except GeneratorExit:
            await self._unwind(pieces)
            raise
        except Exception as exception:
            failure = error_from_exception(exception, **self._told, begun=True)
        raise failure

    async def _unwind(self, pieces: AsyncIterator[bytes]) -> None:
        """End httpx's generators, which it leaves to the garbage collector: trio warns of each that is found there."""
        await self._response.aclose()
        with suppress(Exception):  # whatever reading from a closed connection raises
            async for _ in pieces:
                pass


def _described(path: str) -> str:
    """Name a model file, with its size where there is one."""
    file = Path(path).expanduser()
    return f"{file.name} ({file.stat().st_size / 1e6:.0f} MB)" if file.is_file() else file.name


async def _error(response: httpx.Response, told: Mapping[str, str]) -> ProviderError:
    async with aclosing(response):
        body = await response.aread()
    return error_from_response(response.status_code, response.headers, body, **told)


def _timeouts(seconds: float) -> httpx.Timeout:
    import httpx

    return httpx.Timeout(seconds, connect=_CONNECT)
