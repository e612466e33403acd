"""What tests of the tool loop share: a short way to write replies, to run a loop on them, and to read it through."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agent_core import CompletionDelta, ToolLoopResult, run_tool_loop, stream_tool_loop
from agent_core.testing import ScriptedProvider

__all__ = ["ASK", "STOP", "answers", "calling", "noting", "read_through", "run", "tools"]

ASK: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
STOP: dict[str, Any] = {"content": "done", "finish_reason": "stop"}


def tools(*names: str) -> list[dict[str, Any]]:
    """Definitions of tools with these names."""
    return [{"type": "function", "function": {"name": name}} for name in names]


def calling(*calls: str | tuple[str, str], **more: Any) -> dict[str, Any]:
    """A scripted reply with calls: names, or names with arguments. Their ids are t1, t2 and so on."""
    pairs = [(call, "{}") if isinstance(call, str) else call for call in calls]
    written = [{"id": f"t{n}", "name": name, "arguments": text} for n, (name, text) in enumerate(pairs, 1)]
    return {"tool_calls": written, "finish_reason": "tool_calls", **more}


async def run(
    *replies: Any, handlers: Mapping[str, Any] | None = None, messages: Any = ASK, **options: Any
) -> tuple[ToolLoopResult, ScriptedProvider]:
    """Run a loop on scripted replies."""
    provider = ScriptedProvider(*replies)
    handlers = handlers or {}
    result = await run_tool_loop(
        provider=provider, model="m", messages=messages, tools=tools(*handlers), tool_handlers=handlers, **options
    )
    return result, provider


def noting(log: list[Any], answer: Any = "ok") -> Callable[..., Any]:
    """A handler or hook that notes what it is told, and gives an answer."""

    def note(*told: Any) -> Any:
        log.append(told[0] if len(told) == 1 else told)
        return answer

    return note


def answers(result: ToolLoopResult) -> list[Any]:
    """What the model was told of its calls, read as JSON."""
    return [json.loads(message.text) for message in result.messages if message.role in ("tool", "function")]


async def read_through(*, at_delta: Callable[[], Any] = lambda: None, **options: Any) -> None:
    """Read a stream of events to its end, and do something at each delta."""
    async with stream_tool_loop(**options) as events:
        async for event in events:
            if isinstance(event, CompletionDelta):
                at_delta()
