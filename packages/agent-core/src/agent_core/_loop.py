"""`run_tool_loop` and `stream_tool_loop`: the engine with handlers and hooks.

Decides how a loop is set up, and what is told of it at its end. What hooks and handlers answer for is `_hooks`'s.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ._abort import AbortSignal
from ._completion import ToolDefinition, Usage
from ._engine import CompletionFinished, EngineEvent, RoundsEnded, StopReason, rounds
from ._hooks import HookPolicy, ToolLoopHooks
from ._messages import Message
from ._model import Model
from ._provider import Completer
from ._tools import AgentAction, ToolHandler
from .errors import AgentCoreError, ConfigError

__all__ = ["LoopFinished", "ToolLoopResult", "ToolLoopStream", "run_tool_loop", "stream_tool_loop"]


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
    messages: str | Sequence[Message | Mapping[str, Any]],
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
        model: the model's name, or a `Model`, which may stand in place of the provider as well.
        messages: the conversation so far, or the user's text; the list is not changed. Calls without an answer at its
            end are run first.
        tools: what is offered, in the OpenAI function form.
        tool_handlers: functions by tool name, sync (run in a worker thread) or async; each gets the parsed arguments
            and returns a text, any other value, a `ToolResponse` or a `ToolHandlerResult`. What it raises is told to
            the model, and logged as a warning with its traceback (logger `agent_core`).
        max_iterations: rounds of tools; after the last one the model is asked once more, without tools. With 0 the
            first answer is the last, and calls in it are left to the caller.
        allowed_tool_names: calls to other tools are refused (an empty collection refuses all); the offer stays.
        hooks: see `ToolLoopHooks`.
        temperature: None leaves it out, for models that refuse one.
        tool_choice: for the first request only; later ones leave the choice to the model.
        signal: an `AbortSignal` that ends the loop.
        settings: further fields of `CompletionRequest` for every request.

    Raises:
        AbortedError: the signal went up.
        ConfigError: no provider or no model, or a handler that is no function.
        pydantic.ValidationError: a message, tool or setting is wrong; the error names it.
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
    messages: str | Sequence[Message | Mapping[str, Any]],
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
        messages: str | Sequence[Message | Mapping[str, Any]],
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
        if isinstance(provider, str):
            raise ConfigError(f"provider={provider!r} is a name: pass load_provider({provider!r})")
        if isinstance(provider, Model):  # which answers too, and has a name and settings of its own
            model = model or provider
            model = Model(provider.provider, model, provider.settings) if isinstance(model, str) else model
            provider = provider.provider
        if isinstance(model, Model):
            provider, bound = provider or model.provider, model
        elif provider is None or not model:
            raise ConfigError("pass provider=... and model='name', or model=load_model('provider:name')")
        else:
            bound = Model(provider, model)
        if max_iterations < 0:
            raise ConfigError(f"max_iterations must not be negative, got {max_iterations}")
        own = {**({} if temperature is None else {"temperature": temperature}), **bound.settings}
        said = {**(settings or {}), **({"tools": list(tools)} if tools else {})}
        every = {**own, **said}
        if choice := tool_choice or every.get("tool_choice") or ("auto" if every.get("tools") else None):
            said["tool_choice"] = choice
        request = Model(provider, bound.name, own).request(messages, **said)
        self._policy = HookPolicy(request, tool_handlers or {}, max_iterations, allowed_tool_names, hooks)
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
