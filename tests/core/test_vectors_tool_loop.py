"""The tool loop against tests/vectors/tool_loop.json: every request, answer, handler call and hook call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core import (
    AbortSignal,
    AgentAction,
    Completion,
    CompletionRequest,
    Message,
    ToolHandlerResult,
    ToolLoopHooks,
    ToolLoopResult,
    ToolResponse,
    run_tool_loop,
    stream_tool_loop,
)
from agent_core._loop import LoopFinished
from agent_core.chatwire import Dialect
from agent_core.chatwire._encode import encode_message
from agent_core.errors import ProtocolError
from counting import count

_CASES = json.loads((Path(__file__).parents[1] / "vectors" / "tool_loop.json").read_text(encoding="utf-8"))["cases"]


def matches(found: Any, wanted: Any) -> bool:
    """Compare with a value that may hold the matchers of tests/vectors/README.md."""
    if isinstance(wanted, dict) and any(key.startswith("$") for key in wanted):
        if "$any" in wanted:
            return any(matches(found, one) for one in wanted["$any"])
        if "$error" in wanted:
            told = json.loads(found)
            return (
                told["status"] == "error"
                and bool(told["message"])
                and all(text in told["message"] for text in wanted["$contains"])
            )
        if "$nonempty" in wanted:
            return isinstance(found, str) and found != ""
        return isinstance(found, str) and all(text in found for text in wanted["$contains"])
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            matches(found.get(key) or None, value or None) for key, value in {**dict.fromkeys(found), **wanted}.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(matches, found, wanted))
    return bool(found == wanted)


def openai_form(message: Message) -> dict[str, Any]:
    """Write a message in the words of the vectors, arguments as the model wrote them."""
    form = encode_message(message, Dialect())
    for call, written in zip(message.tool_calls, form.get("tool_calls", ()), strict=False):
        written["function"]["arguments"] = call.arguments
        written["function"]["name"] = call.name
    form.pop("name", None)
    return form


class VectorProvider:
    """Plays the answers of a vector and notes each request as it was when sent."""

    name = "scripted"

    def __init__(self, answers: list[dict[str, Any]], on_answer: Callable[[int], None]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self._on_answer = on_answer

    async def complete(self, request: CompletionRequest) -> Completion:
        offered = [tool.name for tool in request.tools or ()] if request.tool_choice != "none" else []
        self.requests.append(
            {
                "model": request.model,
                "messages": [openai_form(message) for message in request.messages],
                "tools": offered or None,
                "tool_choice": request.tool_choice if offered else None,
                "temperature": request.temperature,
            }
        )
        answer = self.answers.pop(0)
        self._on_answer(len(self.requests))
        if "error" in answer:
            raise RuntimeError(answer["error"])
        if "message" not in answer:
            raise ProtocolError("the answer holds no choices")
        return Completion(Message.model_validate(answer["message"]))


def handler_from(name: str, spec: dict[str, Any], log: list[dict[str, Any]], on_call: Callable[[], None]) -> Any:
    """Build the handler a vector describes."""

    async def handle(arguments: dict[str, Any]) -> Any:
        log.append({"tool": name, "args": json.loads(json.dumps(arguments))})
        on_call()
        match spec["kind"]:
            case "return":
                response = ToolResponse(**spec["result"]["toolResponse"])
                action = spec["result"].get("action")
                if action is None:
                    return ToolHandlerResult(tool_response=response)
                actions = [action_from(one) for one in action] if isinstance(action, list) else action_from(action)
                return ToolHandlerResult(tool_response=response, action=actions)
            case "echo":
                return ToolResponse(message=json.dumps(arguments, separators=(",", ":"), ensure_ascii=False))
            case "raise":
                raise RuntimeError(spec["message"])
            case "circular":
                loop: dict[str, Any] = {}
                loop["self"] = loop
                return ToolResponse(message="ok", data=loop)
            case "return_nothing":
                return None
        raise AssertionError(spec["kind"])

    return handle


def action_from(data: dict[str, Any]) -> AgentAction:
    errors = data.get("validationErrors")
    return AgentAction(type=data["type"], status=data["status"], payload=data["payload"], validation_errors=errors)


def action_form(action: AgentAction) -> dict[str, Any]:
    form = action.model_dump(exclude_none=True)
    if "validation_errors" in form:
        form["validationErrors"] = form.pop("validation_errors")
    return form


def hooks_from(spec: dict[str, Any], log: list[dict[str, Any]]) -> ToolLoopHooks:
    """Build the hooks a vector describes; each notes its call before it acts."""

    def before(name: str, args: dict[str, Any]) -> Any:
        log.append({"hook": "before_tool_call", "tool": name, "args": json.loads(json.dumps(args))})
        act = spec["before_tool_call"].get(name)
        match act and act["do"]:
            case "block":
                return False
            case "replace":
                return act["args"]
            case "mutate":
                args.clear()
                args.update(act["args"])
                return None
            case "raise":
                raise RuntimeError(act["message"])
            case "nothing":
                return None
        return args

    def after(name: str, response: ToolResponse) -> None:
        told = {"status": response.status, "message": response.message}
        log.append({"hook": "after_tool_call", "tool": name, "response": told})
        if "raise" in spec["after_tool_call"]:
            raise RuntimeError(spec["after_tool_call"]["raise"])

    def break_early(iteration: int) -> bool:
        log.append({"hook": "should_break_early", "iteration": iteration})
        return bool(iteration >= spec["should_break_early"]["at"])

    async def followup(iteration: int, max_iterations: int) -> Any:
        log.append({"hook": "decide_followup_tool_choice", "iteration": iteration, "max_iterations": max_iterations})
        return spec["decide_followup_tool_choice"].get(str(iteration))

    async def failed(error: Exception, iteration: int) -> Any:
        log.append({"hook": "on_provider_error", "error": str(error), "iteration": iteration})
        return spec["on_provider_error"].get("return")

    known: dict[str, Any] = {
        "before_tool_call": before,
        "after_tool_call": after,
        "should_break_early": break_early,
        "decide_followup_tool_choice": followup,
        "on_provider_error": failed,
    }
    return ToolLoopHooks(**{name: known[name] for name in spec})


@pytest.mark.anyio
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", _CASES, ids=[case["name"] for case in _CASES])
async def test_tool_loop_vector(case: dict[str, Any], streamed: bool) -> None:
    """The loop sends, runs, answers and returns what the vector says, and leaves the caller's messages alone."""
    given, expected = case["input"], case["expected"]
    signal = AbortSignal()
    when = given.get("abort")

    def raise_signal() -> None:
        signal.abort("stopped by user")

    if when == "before_start":
        raise_signal()
    provider = VectorProvider(
        given["provider"], lambda number: raise_signal() if when == f"after_response_{number}" else None
    )
    handler_log: list[dict[str, Any]] = []
    hook_log: list[dict[str, Any]] = []
    handlers = {
        name: handler_from(name, spec, handler_log, raise_signal if when == "in_handler" else lambda: None)
        for name, spec in given["handlers"].items()
    }
    tools = [{"type": "function", "function": {"name": name}} for name in given["tools"]]
    before = json.dumps(given["messages"])
    options = {key: given[key] for key in ("max_iterations", "temperature") if key in given}
    if "allowed_tool_names" in given:
        options["allowed_tool_names"] = set(given["allowed_tool_names"])
    if "hooks" in given:
        options["hooks"] = hooks_from(given["hooks"], hook_log)
    options |= {
        "provider": provider,
        "model": given.get("model", "m1"),
        "messages": given["messages"],
        "tools": tools,
        "tool_handlers": handlers,
        "signal": signal,
    }

    result: ToolLoopResult | None = None
    error: Exception | None = None
    try:
        if streamed:
            async with stream_tool_loop(**options) as events:
                async for event in events:
                    if isinstance(event, LoopFinished):
                        result = event.result
        else:
            result = await run_tool_loop(**options)
    except Exception as raised:
        error = raised

    assert json.dumps(given["messages"]) == before
    if "error" in expected:
        assert error is not None and matches(str(error), expected["error"])
    else:
        assert error is None and result is not None, error
        assert matches(openai_form(result.response_message), expected["result"]["response_message"])
        assert [action_form(action) for action in result.actions] == expected["result"]["actions"]
        assert result.iterations == expected["result"]["iterations"]
        if "conversation" in expected:
            assert matches([openai_form(message) for message in result.messages], expected["conversation"])
    assert matches(provider.requests, expected["requests"])
    assert handler_log == expected["handler_log"]
    if "hook_log" in expected:
        assert matches(hook_log, expected["hook_log"])
    count("vectors")
