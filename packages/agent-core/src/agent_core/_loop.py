"""`run_tool_loop` and `stream_tool_loop`: the engine with handlers and hooks.

Decides what hooks answer for: which call runs, what a refused one is told, which tools the next request offers.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from ._abort import AbortSignal
from ._completion import CompletionRequest, ToolDefinition, Usage
from ._engine import (
    Answer,
    CompletionFinished,
    EngineEvent,
    PendingCall,
    RoundsEnded,
    Run,
    StopReason,
    corrected,
    rounds,
)
from ._messages import Message
from ._model import Model
from ._parts import ToolCall
from ._provider import Completer
from ._tools import (
    AgentAction,
    ToolHandler,
    ToolResponse,
    call_function,
    response_text,
    tool_named,
    tool_result,
)
from .errors import AgentCoreError, ConfigError

__all__ = ["LoopFinished", "ToolLoopHooks", "ToolLoopResult", "ToolLoopStream", "run_tool_loop", "stream_tool_loop"]

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


@dataclass(frozen=True, slots=True)
class ToolLoopResult:
    """How a tool loop ended.

    Attributes:
        response_message: the last assistant message.
        actions: what the handlers asked the application to do, in order.
        iterations: rounds of tools that ran.
        stop_reason: `answer`, `length` (the answer was cut), `limit` (of rounds), `early_break`, `provider_error`.
        messages: the whole conversation, the messages passed in included.
        usage: token counts of all requests, added up; None where no answer told any.
    """

    response_message: Message
    actions: list[AgentAction]
    iterations: int
    stop_reason: StopReason
    messages: list[Message]
    usage: Usage | None = None

    @property
    def text(self) -> str:
        """The text of the last assistant message."""
        return self.response_message.text


@dataclass(frozen=True, slots=True)
class LoopFinished:
    """The last event of `stream_tool_loop`."""

    result: ToolLoopResult


async def run_tool_loop(
    *,
    provider: Completer | None = None,
    model: str | Model = "",
    messages: Sequence[Message | Mapping[str, Any]],
    tools: Sequence[ToolDefinition | Mapping[str, Any]] = (),
    tool_handlers: Mapping[str, ToolHandler] | None = None,
    max_iterations: int = 5,
    allowed_tool_names: Collection[str] | None = None,
    hooks: ToolLoopHooks | None = None,
    temperature: float | None = 0.4,
    tool_choice: str | None = None,
    signal: AbortSignal | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ToolLoopResult:
    """Ask a model, run the tools it calls, give it their answers, until it answers or the limit is reached.

    Args:
        provider: what answers; not needed where `model` is a `Model`. One method, `complete`, is enough.
        model: the model's name, or a `Model`.
        messages: the conversation so far; the list is not changed. Calls without an answer at its end are run first.
        tools: what is offered, in the OpenAI function form.
        tool_handlers: functions by tool name, sync (run in a worker thread) or async; each gets the parsed arguments.
        max_iterations: rounds of tools; after the last one the model is asked once more, without tools.
        allowed_tool_names: calls to other tools are refused (an empty collection refuses all); the offer stays.
        hooks: see `ToolLoopHooks`.
        temperature: None leaves it out, for models that refuse one.
        tool_choice: for the first request only; later ones leave the choice to the model.
        signal: an `AbortSignal` that ends the loop.
        settings: further fields of `CompletionRequest` for every request.

    Raises:
        AbortedError: the signal went up.
        ConfigError: no provider or no model.
        ProviderError: the model could not be asked, and no hook stood in for it. The conversation up to then stands
            in the error's `messages`, as for every error of this library that ends a loop.
    """
    loop = ToolLoopStream(
        provider, model, messages, tools, tool_handlers, max_iterations, allowed_tool_names, hooks, temperature,
        tool_choice, signal, settings, stream=False,
    )  # fmt: skip
    async with loop:
        async for _ in loop:
            pass
    assert loop.result is not None
    return loop.result


def stream_tool_loop(
    *,
    provider: Completer | None = None,
    model: str | Model = "",
    messages: Sequence[Message | Mapping[str, Any]],
    tools: Sequence[ToolDefinition | Mapping[str, Any]] = (),
    tool_handlers: Mapping[str, ToolHandler] | None = None,
    max_iterations: int = 5,
    allowed_tool_names: Collection[str] | None = None,
    hooks: ToolLoopHooks | None = None,
    temperature: float | None = 0.4,
    tool_choice: str | None = None,
    signal: AbortSignal | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ToolLoopStream:
    """Run the same loop and give its events as they happen: requests, deltas, tools, and at last `LoopFinished`.

    Use it as `async with stream_tool_loop(...) as events: async for event in events`; leaving the block ends the loop
    and closes its connection. The arguments and errors are those of `run_tool_loop`.
    """
    return ToolLoopStream(
        provider, model, messages, tools, tool_handlers, max_iterations, allowed_tool_names, hooks, temperature,
        tool_choice, signal, settings, stream=True,
    )  # fmt: skip


class ToolLoopStream:
    """A running tool loop: iterate over its events, once. `result` is there after the last one."""

    def __init__(
        self,
        provider: Completer | None,
        model: str | Model,
        messages: Sequence[Message | Mapping[str, Any]],
        tools: Sequence[ToolDefinition | Mapping[str, Any]],
        tool_handlers: Mapping[str, ToolHandler] | None,
        max_iterations: int,
        allowed_tool_names: Collection[str] | None,
        hooks: ToolLoopHooks | None,
        temperature: float | None,
        tool_choice: str | None,
        signal: AbortSignal | None,
        settings: Mapping[str, Any] | None,
        *,
        stream: bool,
    ) -> None:
        if isinstance(model, Model):
            provider, bound = provider or model.provider, model
        elif provider is None or not model:
            raise ConfigError("pass provider=... and model='name', or model=load_model('provider:name')")
        else:
            bound = Model(provider, model)
        if max_iterations < 0:
            raise ConfigError(f"max_iterations must not be negative, got {max_iterations}")
        first = {
            **bound.settings,
            **({} if temperature is None or "temperature" in bound.settings else {"temperature": temperature}),
            **(settings or {}),
            **({"tools": list(tools)} if tools else {}),
            **({"tool_choice": tool_choice or "auto"} if tools else {}),
        }
        request = Model(provider, bound.name, first).request(messages)
        self._policy = _HookPolicy(request, tool_handlers or {}, max_iterations, allowed_tool_names, hooks)
        self._transcript = list(request.messages)
        self._events = self._run(provider, signal, stream)
        self.result: ToolLoopResult | None = None

    def __aiter__(self) -> AsyncIterator[EngineEvent | LoopFinished]:
        return self._events

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._events.aclose()

    async def _run(
        self, provider: Completer, signal: AbortSignal | None, stream: bool
    ) -> AsyncGenerator[EngineEvent | LoopFinished]:
        usage: Usage | None = None
        policy = self._policy
        engine = rounds(provider, self._transcript, policy, policy.run, signal=signal, stream=stream)
        try:
            async for event in engine:
                if isinstance(event, CompletionFinished) and event.completion.usage is not None:
                    usage = event.completion.usage if usage is None else usage + event.completion.usage
                if not isinstance(event, RoundsEnded):
                    yield event
                    continue
                replies = [message for message in self._transcript if message.role == "assistant"]
                self.result = ToolLoopResult(
                    replies[-1], policy.actions, event.iterations, event.reason, self._transcript, usage
                )
                yield LoopFinished(self.result)
        except AgentCoreError as error:
            error.messages = list(self._transcript)
            raise
        finally:
            await engine.aclose()


@dataclass
class _HookPolicy:
    """The engine's questions, answered by handlers and hooks."""

    first: CompletionRequest
    handlers: Mapping[str, ToolHandler]
    max_rounds: int
    allowed: Collection[str] | None
    hooks: ToolLoopHooks | None
    actions: list[AgentAction] = field(default_factory=list)

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
        name = tool_named(call.name, self.allowed) if self.allowed is not None else call.name
        if name is None:
            return _refusal(f"tool {call.name!r} is not allowed now. {_callable_names(self.allowed or ())}")
        if pending.arguments is None:
            return _refusal(f"tool {call.name!r}: {pending.problem}")
        name = tool_named(call.name, self.handlers) or name
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
        except Exception as error:  # a handler may raise anything, and the model is told
            response = ToolResponse(status="error", message=str(error) or type(error).__name__)
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
        if answer is None or isinstance(answer, Message):
            return answer
        return Message.model_validate(answer)

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
    except TypeError:
        return False
    return True


def _refusal(message: str) -> Answer:
    return Answer(response_text(ToolResponse(status="error", message=message)))


def _callable_names(names: Collection[str]) -> str:
    return f"Tools that may be called: {', '.join(names)}" if names else "No tool may be called"
