"""What a tool loop says of wrong arguments before it asks anything, and what it logs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agent_core import ToolLoopResult, run_tool_loop
from agent_core.errors import ConfigError
from agent_core.testing import ScriptedProvider

ASK: Any = {"model": "m", "messages": "hi"}
TOOL: Any = {"type": "function", "function": {"name": "look"}}
CALL = {"tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}], "finish_reason": "tool_calls"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"provider": "groq"}, "load_provider('groq')"),
        ({"tool_handlers": [print]}, "tool_handlers must map names to functions, got list"),
        ({"tool_handlers": {"look": "not me"}}, "the handler of tool 'look' is no function: str"),
        ({"max_iterations": -1}, "max_iterations must not be negative, got -1"),
        ({"model": ""}, "pass provider=... and model='name'"),
    ],
)
async def test_wrong_arguments_are_refused_at_the_door(options: dict[str, Any], told: str) -> None:
    """Each is named, and the fix with it; nothing is asked of the model."""
    provider = ScriptedProvider()
    with pytest.raises(ConfigError) as caught:
        await run_tool_loop(**{"provider": provider, **ASK, **options})
    assert told in str(caught.value)
    assert provider.requests == []


async def run(handlers: dict[str, Any]) -> ToolLoopResult:
    """Have the model call `look` once."""
    provider = ScriptedProvider(CALL, {"content": "done"})
    return await run_tool_loop(provider=provider, **ASK, tools=[TOOL], tool_handlers=handlers)


async def test_a_tool_without_a_handler_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The model is told when it calls it; whoever reads the log, before that."""
    with caplog.at_level(logging.WARNING, "agent_core"):
        await run({"loook": lambda arguments: "x"})
    assert "tool 'look' is offered but has no handler; there are handlers for: loook" in caplog.text


async def test_a_failing_handler_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """The model reads what went wrong, the log where."""
    with caplog.at_level(logging.WARNING, "agent_core"):
        result = await run({"look": lambda arguments: arguments["ciyt"]})
    assert "KeyError: 'ciyt'" in result.messages[-2].text
    assert "test_loop_door.py" in caplog.text and "Traceback" in caplog.text
