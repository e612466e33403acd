"""What a tool gives back, and which tool a model means.

Decides how any value of a handler becomes a tool's answer, and how a decorated name is read. Running tools is left to
the engine and its front doors.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ._json import compact_json

__all__ = [
    "AgentAction",
    "ToolHandler",
    "ToolHandlerResult",
    "ToolResponse",
    "call_function",
    "cancelled_by_itself",
    "response_text",
    "tool_named",
    "tool_result",
]

ToolHandler: TypeAlias = Callable[[dict[str, Any]], Any]
"""A handler gets the parsed arguments; it may be async. What it may return is told at `ToolHandlerResult`."""


class ToolResponse(BaseModel):
    """What the model is told about a call. It is sent as compact JSON; `data` is left out where it is None."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    status: Literal["success", "error"] = "success"
    message: str
    data: Any = None


class AgentAction(BaseModel):
    """Something for the application to do or to show, gathered from the handlers of a run."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    type: str
    status: Literal["proposed", "confirmed", "rejected", "executed", "failed"] = "proposed"
    payload: dict[str, Any] = Field(default_factory=dict)
    validation_errors: list[str] | None = None


class ToolHandlerResult(BaseModel):
    """What a handler gives back: the answer for the model, and actions for the application.

    A handler may also return a `ToolResponse`, a text (taken as the message of a success), or any other value but
    None (taken as its data).
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    tool_response: ToolResponse
    action: AgentAction | list[AgentAction] | None = None

    @property
    def actions(self) -> list[AgentAction]:
        """The actions as a list."""
        if self.action is None:
            return []
        return self.action if isinstance(self.action, list) else [self.action]


def tool_result(value: Any) -> ToolHandlerResult:
    """Read what a handler returned.

    Raises:
        ValueError: it returned None, or a `ToolHandlerResult` as a dict with a wrong field.
    """
    if isinstance(value, ToolHandlerResult):
        return value
    if isinstance(value, ToolResponse):
        return ToolHandlerResult(tool_response=value)
    if value is None:
        raise ValueError("the tool returned nothing")
    if isinstance(value, str):
        return ToolHandlerResult(tool_response=ToolResponse(message=value))
    if isinstance(value, Mapping):
        if "tool_response" in value:
            return ToolHandlerResult.model_validate(value)
        if _is_response(value):
            return ToolHandlerResult(tool_response=ToolResponse.model_validate(value))
    return ToolHandlerResult(tool_response=ToolResponse(message="ok", data=value))


def _is_response(value: Mapping[Any, Any]) -> bool:
    """Tell a `ToolResponse` as a dict from data that happens to have a status and a message, as many services send."""
    told = value.get("status") in ("success", "error") and isinstance(value.get("message"), str)
    return told and set(value) <= {"status", "message", "data"}


def response_text(response: ToolResponse) -> str:
    """Write a tool response as the model reads it.

    Raises:
        ValueError: the data refers to itself, or is nested too deep.
    """
    told = {"status": response.status, "message": response.message}
    return compact_json(told if response.data is None else {**told, "data": response.data})


def tool_named(name: str, known: Collection[str]) -> str | None:
    """Give the known tool that a model means, or None. Decoration is taken off; nothing is guessed.

    Models of the gpt-oss family write `functions.lookup`, or run on with `lookup<|channel|>commentary`.
    """
    if name in known:
        return name
    bare = name.partition("<|")[0].strip().removeprefix("functions.")
    return bare if bare in known else None


def cancelled_by_itself(error: BaseException) -> bool:
    """Tell asyncio's `CancelledError` that a function raised by itself, as of a task it waited for, from a real one."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # another event loop runs
        return False
    return task is not None and task.cancelling() == 0


async def call_function(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a sync or async function: a sync one in a worker thread, so that it does not hold up the event loop."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments)
    from anyio.to_thread import run_sync

    # In a list, as trio refuses a coroutine from a thread.
    (value,) = await run_sync(lambda: [function(*arguments)], abandon_on_cancel=True)
    return await value if inspect.isawaitable(value) else value
