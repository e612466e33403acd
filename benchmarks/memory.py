"""Resident memory of 1,000 open streams, each with its first chunk read, against the same streams opened by the SDK.

Each turn is a fresh process that opens one stream first, so that what the first one loads is not counted. Memory is
read from the operating system (Linux: resident pages; elsewhere the highest value so far), so it includes what Python's
own bookkeeping does not see.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from agent_core import CompletionRequest

from ._measuring import Row, Times, run_child
from ._server import Server
from ._vendors import available
from ._wire import ask

__all__ = ["measure"]

_AT_MOST = 1.1
_STREAMS = 1000


async def measure(server: Server, quick: bool) -> list[Row]:
    """Compare every vendor."""
    rows = []
    streams = 200 if quick else _STREAMS
    for vendor in available():
        taken: dict[str, list[float]] = {"ours": [], "sdk": []}
        for _ in range(1 if quick else 3):
            for side, sizes in taken.items():
                child = ("-m", "benchmarks.memory", vendor.name, side, str(server.port), str(streams))
                sizes.append(float(run_child(*child)))
        ours, sdk = Times(taken["ours"]).median, Times(taken["sdk"]).median
        figures = {"ours KiB each": ours / streams / 1024, "sdk KiB each": sdk / streams / 1024}
        rows.append(Row("memory", f"{vendor.name} {streams} streams", ours / sdk, "x", _AT_MOST, figures))
    return rows


async def _child(name: str, side: str, port: int, streams: int) -> int:
    """Open the streams and give the memory they take (bytes)."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(port)
    vendor = next(vendor for vendor in available() if vendor.name == name)
    client = vendor.client(server, "held", connections=streams + 1)
    provider = vendor.provider_over(client)
    kept: list[Any] = []
    async with AsyncExitStack() as stack:

        async def open_one() -> None:
            if side == "ours":
                stream = await stack.enter_async_context(provider.stream(CompletionRequest(**ask(name))))
            else:
                stream = await stack.enter_async_context(await vendor.open_stream(client))
            deltas = aiter(stream)
            await anext(deltas)
            kept.append(deltas)

        await open_one()
        gc.collect()
        before = _resident()
        for _ in range(streams):
            await open_one()
        gc.collect()
        return _resident() - before


def _resident() -> int:
    statistics = Path("/proc/self/statm")
    if statistics.exists():
        return int(statistics.read_text("ascii").split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    print(asyncio.run(_child(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
