"""One chunk of a stream, in client CPU time: iterating over the provider's deltas, against reading the same bytes bare.

The bare program is the least that one could write: the HTTP library's bytes, split into lines, each payload parsed by
orjson. It looks at nothing in them, and knows no error. The SDK's own iteration is timed beside it, for information.

A turn is one stream of 500 chunks, from the first chunk to the end of the connection's part in it; opening it is left
out, as `whole` measures that. The server sends all of it at once, so the client never waits; chunks that arrive one by
one cost both programs more, and the ratio is lower.
"""

from __future__ import annotations

import time
from typing import Any

import orjson

from agent_core import CompletionRequest

from ._measuring import Row, Side, compare
from ._server import Server
from ._vendors import Vendor, available
from ._wire import CHUNKS, KINDS, ask

__all__ = ["measure"]

_AT_MOST = 1.4


async def measure(server: Server, quick: bool) -> list[Row]:
    """Compare every vendor and kind of chunk."""
    return [await _compared(server, vendor, kind, quick) for vendor in available() for kind in KINDS]


async def _compared(server: Server, vendor: Vendor, kind: str, quick: bool) -> Row:
    async with (
        vendor.client(server, kind) as client,
        vendor.provider(server, kind) as provider,
        vendor.bare_library.AsyncClient(timeout=60) as bare,
    ):
        sides = {
            "ours": _ours(vendor, provider),
            "bare": _bare(vendor, bare, server.url(f"{vendor.name}.{kind}")),
        }
        times = await compare(sides, repeats=15 if quick else 100)
        if not quick:
            times |= await compare({"sdk": _sdk(vendor, client)}, repeats=10)
    return Row.ratio("stream", f"{vendor.name} {kind}", times, at_most=_AT_MOST, each=CHUNKS, unit="us")


def _ours(vendor: Vendor, provider: Any) -> Side:
    async def turn() -> float:
        count = 0
        async with provider.stream(CompletionRequest(**ask(vendor.name))) as stream:
            start = time.process_time()
            async for _ in stream:
                count += 1
        assert count > CHUNKS
        return time.process_time() - start

    return turn


def _bare(vendor: Vendor, client: Any, url: str) -> Side:
    async def turn() -> float:
        count, held = 0, b""
        content = orjson.dumps({**ask(vendor.name), "stream": True})
        headers = {"content-type": "application/json", "authorization": "Bearer unused"}
        async with client.stream("POST", url, content=content, headers=headers) as response:
            start = time.process_time()
            async for piece in response.aiter_bytes():
                # A piece ends where a read from the socket ended, so its last line may be half an event.
                *lines, held = (held + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: ") and line != b"data: [DONE]":
                        orjson.loads(line[6:])
                        count += 1
        assert count > CHUNKS
        return time.process_time() - start

    return turn


def _sdk(vendor: Vendor, client: Any) -> Side:
    async def turn() -> float:
        async with await vendor.open_stream(client) as stream:
            start = time.process_time()
            async for _ in stream:
                pass
        return time.process_time() - start

    return turn
