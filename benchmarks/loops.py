"""A tool round, in client CPU time: `run_tool_loop`, against the loop one writes by hand over the SDK.

A question leads to one tool call and its result to the answer: two requests. The handler is an async function that
returns a dict. The loop by hand does what the SDK's guides show: it appends the SDK's own message, parses arguments
with json, and answers with json.
"""

from __future__ import annotations

import json
import time
from typing import Any

from agent_core import run_tool_loop

from ._measuring import Row, Side, compare
from ._server import Server
from ._vendors import Vendor, available
from ._wire import ask

__all__ = ["measure"]

_AT_MOST = 0.8


async def measure(server: Server, quick: bool) -> list[Row]:
    """Compare every vendor."""
    return [await _compared(server, vendor, quick) for vendor in available()]


async def _compared(server: Server, vendor: Vendor, quick: bool) -> Row:
    runs = 3 if quick else 5
    async with vendor.client(server, "round") as client, vendor.provider(server, "round") as provider:
        sides = {"ours": _ours(vendor, provider, runs), "by hand": _by_hand(vendor, client, runs)}
        times = await compare(sides, repeats=15 if quick else 100)
    return Row.ratio("loop", vendor.name, times, at_most=_AT_MOST, each=runs, unit="us")


async def _get_weather(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"city": arguments["city"], "degrees": 18, "sky": "sunny"}


def _ours(vendor: Vendor, provider: Any, runs: int) -> Side:
    async def turn() -> float:
        start = time.process_time()
        for _ in range(runs):
            result = await run_tool_loop(
                provider=provider, **ask(vendor.name, tools=True), tool_handlers={"get_weather": _get_weather}
            )
            assert result.text and result.iterations == 1
        return time.process_time() - start

    return turn


def _by_hand(vendor: Vendor, client: Any, runs: int) -> Side:
    create = vendor.create(client)
    handlers = {"get_weather": _get_weather}

    async def run() -> str:
        asked = ask(vendor.name, tools=True)
        messages = asked["messages"]
        while True:
            completion = await create(**asked, temperature=0.4, tool_choice="auto")
            message = completion.choices[0].message
            if not message.tool_calls:
                return str(message.content)
            messages.append(message)
            for call in message.tool_calls:
                result = await handlers[call.function.name](json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})

    async def turn() -> float:
        start = time.process_time()
        for _ in range(runs):
            assert await run()
        return time.process_time() - start

    return turn
