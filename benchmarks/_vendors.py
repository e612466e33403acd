"""How each vendor is reached in three ways: through this library, through its SDK, and over its bare HTTP library."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from agent_core import OpenAICompatibleProvider, installed_providers, load_provider

from ._server import Server
from ._wire import ask

__all__ = ["Vendor", "available"]

_KEY = "unused"
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Vendor:
    """One vendor: `sdk` is its package, `http` the HTTP library that its SDK uses."""

    name: str
    sdk: str
    http: str
    base: str
    """What follows the address of an answer in the base URL, as this SDK takes it."""

    @property
    def has_adapter(self) -> bool:
        """Whether its adapter is installed."""
        return self.name in installed_providers()

    @asynccontextmanager
    async def provider(self, server: Server, answer: str) -> AsyncGenerator[Any]:
        """This library's provider: the adapter where it is installed, else the SDK's client passed in."""
        if self.has_adapter:
            base_url = self._base_url(server, answer)
            options = {"api_key": _KEY, "base_url": base_url, "max_retries": 0, "timeout": _TIMEOUT}
            adapter: Any = load_provider(self.name, **options)
            async with adapter as provider:
                yield provider
        else:
            async with self.client(server, answer) as client:
                yield self.provider_over(client)

    def provider_over(self, client: Any) -> Any:
        """This library's provider over a client of one's own, which stays open."""
        if not self.has_adapter:
            return OpenAICompatibleProvider(client, max_retries=0)
        return load_provider(self.name, client=client, max_retries=0)

    def client(self, server: Server, answer: str, *, connections: int | None = None) -> Any:
        """The SDK's own asynchronous client; `connections` are allowed at once (by default 1,000, or 100)."""
        base_url, options = self._base_url(server, answer), {}
        if connections is not None:
            library = self.bare_library
            limits = library.Limits(max_connections=connections, max_keepalive_connections=connections)
            options["http_client"] = library.AsyncClient(limits=limits, timeout=_TIMEOUT, follow_redirects=True)
        if self.sdk == "mistralai":
            module = importlib.import_module("mistralai.client")
            return module.Mistral(api_key=_KEY, server_url=base_url, async_client=options.get("http_client"))
        module = importlib.import_module(self.sdk)
        client = {"openai": "AsyncOpenAI", "groq": "AsyncGroq", "together": "AsyncTogether"}[self.sdk]
        return getattr(module, client)(api_key=_KEY, base_url=base_url, max_retries=0, timeout=_TIMEOUT, **options)

    def _base_url(self, server: Server, answer: str) -> str:
        return server.url(f"{self.name}.{answer}{self.base}")

    @property
    def bare_library(self) -> Any:
        """The HTTP library itself: httpx or httpx2."""
        return importlib.import_module(self.http)

    def create(self, client: Any) -> Callable[..., Awaitable[Any]]:
        """The SDK's method for a whole completion."""
        method: Callable[..., Awaitable[Any]] = (
            client.chat.complete_async if self.sdk == "mistralai" else client.chat.completions.create
        )
        return method

    async def open_stream(self, client: Any) -> Any:
        """Ask for a stream through the SDK: an asynchronous context manager and iterator."""
        if self.sdk == "mistralai":
            return await client.chat.stream_async(**ask(self.name))
        return await client.chat.completions.create(**ask(self.name), stream=True)


_ALL = (
    Vendor("openai", "openai", "httpx2", "/v1"),
    Vendor("groq", "groq", "httpx", ""),
    Vendor("mistral", "mistralai", "httpx2", ""),
    Vendor("together", "together", "httpx", "/v1"),
)


def available(*, adapter: bool = False) -> list[Vendor]:
    """The vendors that can be measured here; with `adapter`, those whose adapter is installed."""
    found = [vendor for vendor in _ALL if importlib.util.find_spec(vendor.sdk) is not None]
    # mistralai's client is not OpenAI-shaped: without its adapter there is nothing to compare.
    return [vendor for vendor in found if vendor.has_adapter or (vendor.name != "mistral" and not adapter)]
