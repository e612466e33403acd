"""A server and a provider for each class of recorded exchanges: making an SDK's client anew for each test is slow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from agent_core import Provider
from agent_core.testing import LoopbackServer
from vendors import provider_of


@pytest.fixture(scope="class")
def anyio_backend() -> str:
    """One event loop for the class, so that the provider below may keep its connection."""
    return "asyncio"


@pytest.fixture(scope="class")
def server() -> Iterator[LoopbackServer]:
    """A server without answers; each test adds its own."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture(scope="class")
async def provider(request: pytest.FixtureRequest, server: LoopbackServer) -> AsyncIterator[Provider]:
    """The real provider of the class's vendor over the real SDK. Tags stay text, as the wire has them."""
    async with provider_of(request.cls.vendor, server.url, think_tags=False) as provider:
        yield provider
