"""Hooks and handlers of a tool loop, told to the engine as a policy.

Decides which call runs, what a refused or failed one is told, and which tools the next request offers.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from ._completion import CompletionRequest
from ._engine import Answer, PendingCall, Run, corrected
from ._json import plain_value
from ._messages import Message
from ._parts import ToolCall
from ._tools import (
    AgentAction,
    ToolHandler,
    ToolResponse,
    call_function,
    cancelled_by_itself,
    response_text,
    tool_named,
    tool_result,
)
from .errors import ConfigError

__all__ = ["HookPolicy", "ToolLoopHooks"]

_log = logging.getLogger("agent_core")
_Answer: TypeAlias = Any | Awaitable[Any]


@dataclass(slots=True)
class ToolLoopHooks:
    """Callbacks of a tool loop, each sync or async, each optional. One that raises ends the loop with its error.

    Attributes:
        before_tool_call: (name, arguments): False refuses the call, a dict replaces the arguments, anything else
            leaves them as they are, changed in place or not.
        after_tool_call: (name, response): follows every handler that ran.
        decide_followup_tool_choice: (iteration, max_iterations): `"auto"` or `"none"` for the next request; None for
            the usual rule, which is `"none"` once the limit is reached.
        should_break_early: (iteration) or (iteration, max_iterations): true ends the loop after this round.
        on_provider_error: (error, iteration): a message stands in for the answer and ends the loop; None raises. A
            `ToolUseFailedError` comes here only when the model, shown what it wrote, did no better.
    """

    before_tool_call: Callable[[str, dict[str, Any]], _Answer] | None = None
    after_tool_call: Callable[[str, ToolResponse], _Answer] | None = None
    decide_followup_tool_choice: Callable[[int, int], _Answer] | None = None
    should_break_early: Callable[..., _Answer] | None = None
    on_provider_error: Callable[[Exception, int], _Answer] | None = None


@dataclass
class HookPolicy:
    """The engine's questions, answered by handlers and hooks."""

    first: CompletionRequest
    handlers: Mapping[str, ToolHandler]
    max_rounds: int
    allowed: Collection[str] | None
    hooks: ToolLoopHooks | None
    actions: list[AgentAction] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.allowed is not None:
            self.allowed = (self.allowed,) if isinstance(self.allowed, str) else tuple(self.allowed)
        if not isinstance(self.hooks, ToolLoopHooks | None):
            raise ConfigError(f"hooks must be ToolLoopHooks, got {type(self.hooks).__name__}")
        if not isinstance(self.handlers, Mapping):
            raise ConfigError(f"tool_handlers must map names to functions, got {type(self.handlers).__name__}")
        for name, handler in self.handlers.items():
            if not callable(handler):
                raise ConfigError(f"the handler of tool {name!r} is no function: {type(handler).__name__}")
        for tool in self.first.tools or ():
            if tool.name not in self.handlers:
                known = ", ".join(self.handlers) or "none"
                _log.warning("tool %r is offered but has no handler; there are handlers for: %s", tool.name, known)

    async def request(self, transcript: Sequence[Message], iteration: int) -> CompletionRequest:
        update: dict[str, Any] = {"messages": list(transcript)}
        if iteration > 0:
            choice = await self._followup_choice(iteration)
            if self.first.tools:
                update["tool_choice"] = choice
        return self.first.model_copy(update=update)

    async def _followup_choice(self, iteration: int) -> Literal["auto", "none"]:
        usual: Literal["auto", "none"] = "none" if iteration >= self.max_rounds else "auto"
        if self.hooks is None or self.hooks.decide_followup_tool_choice is None:
            return usual
        choice = await _answered(self.hooks.decide_followup_tool_choice(iteration, self.max_rounds))
        if choice not in ("auto", "none", None):
            raise ConfigError(f"decide_followup_tool_choice must return 'auto', 'none' or None, got {choice!r}")
        return choice or usual

    async def decide(self, pending: PendingCall) -> Run | Answer:
        call = pending.call
        name = tool_named(call.name, self.handlers)
        if self.allowed is not None:  # the name that would run counts, or the one that is meant where none would
            meant = tool_named(call.name, self.allowed) if name is None else name
            if meant not in self.allowed:
                return _refusal(f"tool {call.name!r} is not allowed now. {_callable_names(self.allowed)}")
            name = meant
        name = name or call.name
        if pending.arguments is None:
            return _refusal(f"tool {call.name!r}: {pending.problem}")
        arguments = pending.arguments
        if self.hooks is not None and self.hooks.before_tool_call is not None:
            answer = await _answered(self.hooks.before_tool_call(name, arguments))
            if answer is False:
                return _refusal(f"tool {name!r} was refused; do not call it again")
            if isinstance(answer, dict):
                arguments = answer
        if name not in self.handlers:
            known = [name for name in self.handlers if self.allowed is None or name in self.allowed]
            return _refusal(f"there is no tool {call.name!r}. {_callable_names(known)}")
        return Run(arguments)

    async def run(self, call: ToolCall, arguments: dict[str, Any]) -> str:
        """Run a handler. Whatever goes wrong in it becomes an answer that says so."""
        name = tool_named(call.name, self.handlers) or call.name
        try:
            result = tool_result(await call_function(self.handlers[name], arguments))
            text, response = response_text(result.tool_response), result.tool_response
            self.actions += result.actions
        except BaseException as error:  # a handler may raise anything: the model is told, and whoever reads the log
            if not isinstance(error, Exception) and not cancelled_by_itself(error):
                raise
            _log.warning("tool %r failed; the model is told", name, exc_info=True)
            # The text of a KeyError is the key alone.
            told = f"KeyError: {error}" if isinstance(error, KeyError) else plain_value(error)
            response = ToolResponse(status="error", message=told)
            text = response_text(response)
        if self.hooks is not None and self.hooks.after_tool_call is not None:
            await _answered(self.hooks.after_tool_call(name, response))
        return text

    async def ask_again(self, request: CompletionRequest, error: Exception) -> CompletionRequest | None:
        return corrected(request, error)

    async def provider_failed(self, error: Exception, iteration: int) -> Message | None:
        if self.hooks is None or self.hooks.on_provider_error is None:
            return None
        answer = await _answered(self.hooks.on_provider_error(error, iteration))
        if answer is None:
            return None
        with suppress(ValidationError):
            message = Message.model_validate(answer)
            if message.role == "assistant":
                return message
        raise ConfigError(f"on_provider_error must return an assistant message or None, got {answer!r}")

    async def stop_after(self, iteration: int) -> bool:
        if self.hooks is None or self.hooks.should_break_early is None:
            return False
        hook = self.hooks.should_break_early
        both = _takes_two(hook)
        return bool(await _answered(hook(iteration, self.max_rounds) if both else hook(iteration)))


async def _answered(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _takes_two(hook: Callable[..., Any]) -> bool:
    try:
        inspect.signature(hook).bind(0, 0)
    except (TypeError, ValueError):  # it takes one, or shows none, as a builtin
        return False
    return True


def _refusal(message: str) -> Answer:
    return Answer(response_text(ToolResponse(status="error", message=message)))


def _callable_names(names: Collection[str]) -> str:
    return f"Tools that may be called: {', '.join(names)}" if names else "No tool may be called"
