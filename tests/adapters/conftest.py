"""One server and one provider for each module: making an SDK's client anew for each test is slow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from adapters.asking import Wire
from agent_core.testing import LoopbackServer
from vendors import provider_of


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for the module, so that the provider may keep its connection."""
    return "asyncio"


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    """A server without answers; each test adds its own."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture(scope="module")
async def wire(request: pytest.FixtureRequest, server: LoopbackServer) -> AsyncIterator[Wire]:
    """The real provider of the module's `VENDOR` over its real SDK, and what goes over its wire."""
    async with provider_of(request.module.VENDOR, server.url) as provider:
        yield Wire(provider, server)
