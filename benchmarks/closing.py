"""How soon the server sees the socket close once `async with` is left early: by break, exception or cancellation.

Wall time from leaving the block until a second connection brings the server's word that the first one is closed, so it
includes one message each way. The worst of several turns counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from agent_core import CompletionRequest

from ._measuring import Row
from ._server import Server
from ._vendors import available
from ._wire import ask

__all__ = ["measure"]

_AT_MOST = 250.0  # ms, on an idle machine
_Leave = Callable[[Any, CompletionRequest], Awaitable[float]]


async def measure(server: Server, quick: bool) -> list[Row]:
    """Leave a stream in each of the three ways, for every vendor."""
    rows = []
    for vendor in available():
        async with vendor.provider(server, "held") as provider:
            for way, leave in {"break": _by_break, "exception": _by_exception, "cancel": _by_cancellation}.items():
                waits = []
                for _ in range(3 if quick else 20):
                    left = await leave(provider, CompletionRequest(**ask(vendor.name)))
                    waits.append((await server.closed() - left) * 1000)
                rows.append(Row("close", f"{vendor.name} {way}", max(waits), "ms", _AT_MOST, {"best ms": min(waits)}))
    return rows


async def _by_break(provider: Any, request: CompletionRequest) -> float:
    async with provider.stream(request) as stream:
        async for _ in stream:
            left = time.perf_counter()
            break
    return left


async def _by_exception(provider: Any, request: CompletionRequest) -> float:
    try:
        async with provider.stream(request) as stream:
            async for _ in stream:
                left = time.perf_counter()
                raise LookupError
    except LookupError:
        return left
    raise AssertionError("the block was left in another way")


async def _by_cancellation(provider: Any, request: CompletionRequest) -> float:
    reading = asyncio.Event()

    async def read() -> None:
        async with provider.stream(request) as stream:
            async for _ in stream:
                reading.set()

    task = asyncio.create_task(read())
    await reading.wait()
    left = time.perf_counter()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return left
