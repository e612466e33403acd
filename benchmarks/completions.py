"""One whole completion, in client CPU time: `provider.complete(request)`, against the SDK's own `create()`.

Making the request (which validates messages) and reading text, finish reason and usage belong to both. The bare HTTP
library with orjson is timed beside them, for information.
"""

from __future__ import annotations

import time
from typing import Any

import orjson

from agent_core import CompletionRequest

from ._measuring import Row, Side, compare
from ._server import Server
from ._vendors import Vendor, available
from ._wire import ask

__all__ = ["measure"]

_AT_MOST = 0.8
_AT_MOST_MISTRAL = 0.2  # whose SDK makes eight classes for each call


async def measure(server: Server, quick: bool) -> list[Row]:
    """Compare every vendor."""
    return [await _compared(server, vendor, quick) for vendor in available()]


async def _compared(server: Server, vendor: Vendor, quick: bool) -> Row:
    calls = 5 if quick else 10
    async with (
        vendor.client(server, "whole") as client,
        vendor.provider(server, "whole") as provider,
        vendor.bare_library.AsyncClient(timeout=60) as bare,
    ):
        sides = {
            "ours": _ours(vendor, provider, calls),
            "sdk": _sdk(vendor, client, calls),
            "bare": _bare(vendor, bare, server.url(f"{vendor.name}.whole"), calls),
        }
        times = await compare(sides, repeats=15 if quick else 100)
    at_most = _AT_MOST_MISTRAL if vendor.name == "mistral" else _AT_MOST
    return Row.ratio("whole", vendor.name, times, at_most=at_most, each=calls, unit="us")


def _ours(vendor: Vendor, provider: Any, calls: int) -> Side:
    async def turn() -> float:
        start = time.process_time()
        for _ in range(calls):
            completion = await provider.complete(CompletionRequest(**ask(vendor.name), temperature=0.4))
            assert completion.text and completion.finish_reason == "stop" and completion.usage.total_tokens
        return time.process_time() - start

    return turn


def _sdk(vendor: Vendor, client: Any, calls: int) -> Side:
    create = vendor.create(client)

    async def turn() -> float:
        start = time.process_time()
        for _ in range(calls):
            completion = await create(**ask(vendor.name), temperature=0.4)
            choice = completion.choices[0]
            assert choice.message.content and choice.finish_reason == "stop" and completion.usage.total_tokens
        return time.process_time() - start

    return turn


def _bare(vendor: Vendor, client: Any, url: str, calls: int) -> Side:
    headers = {"content-type": "application/json", "authorization": "Bearer unused"}

    async def turn() -> float:
        start = time.process_time()
        for _ in range(calls):
            content = orjson.dumps({**ask(vendor.name), "temperature": 0.4})
            response = await client.post(url, content=content, headers=headers)
            answer = orjson.loads(response.content)
            assert answer["choices"][0]["message"]["content"] and answer["usage"]["total_tokens"]
        return time.process_time() - start

    return turn
