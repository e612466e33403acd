"""The one loop: ask the model, run the calls, append the answers, again.

Decides the order of a round and when it ends. Questions that have more than one right answer are put to a `Policy`; the
two effects, asking the model and running a tool, go through `provider` and `run_tool`, which can be wrapped. Between
rounds the state is the transcript alone: one that ends in unanswered calls is taken up by running them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from ._abort import AbortSignal, unless_aborted
from ._completion import Completion, CompletionRequest
from ._deltas import CompletionDelta
from ._door import parts_from
from ._history import unanswered_calls
from ._messages import Message
from ._parts import ContentPart, ToolCall
from ._provider import Completer, deltas_of, open_stream
from .errors import AbortedError, ConfigError, ToolUseFailedError

__all__ = [
    "Answer",
    "CompletionFinished",
    "EngineEvent",
    "PendingCall",
    "Policy",
    "RequestStarted",
    "RoundsEnded",
    "Run",
    "StopReason",
    "ToolFinished",
    "ToolStarted",
    "corrected",
    "rounds",
]

StopReason: TypeAlias = Literal["answer", "length", "limit", "early_break", "provider_error"]
Content: TypeAlias = str | Sequence[ContentPart]

_SHOWN = 4000  # characters of what the model wrote wrong, in the note that shows it


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request goes to the model; `iteration` counts the rounds of tools before it.

    A second one with the same count takes the place of the first, and of all that was streamed since: the model is
    shown that the call it wrote could not be read.
    """

    request: CompletionRequest
    iteration: int


@dataclass(frozen=True, slots=True)
class CompletionFinished:
    """The model's answer is whole and stands in the transcript."""

    completion: Completion
    iteration: int


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool begins to run."""

    call: ToolCall
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call has been answered; it ran, or something else was answered in its place."""

    call: ToolCall
    message: Message


@dataclass(frozen=True, slots=True)
class RoundsEnded:
    """The loop ended by itself."""

    reason: StopReason
    iterations: int


EngineEvent: TypeAlias = (
    RequestStarted | CompletionDelta | CompletionFinished | ToolStarted | ToolFinished | RoundsEnded
)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call before it runs: its parsed arguments, or the problem that stands against running it."""

    call: ToolCall
    arguments: dict[str, Any] | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The verdict that a call runs, with these arguments."""

    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict that a call is not run and this is its answer."""

    content: Content


class Policy(Protocol):
    """The questions of a loop that have more than one right answer."""

    max_rounds: int

    async def request(self, transcript: Sequence[Message], iteration: int) -> CompletionRequest:
        """What is asked of the model now?"""
        ...

    async def decide(self, pending: PendingCall) -> Run | Answer:
        """May this call run, with which arguments, or what is answered instead?"""
        ...

    async def ask_again(self, request: CompletionRequest, error: Exception) -> CompletionRequest | None:
        """What is asked in place of a request that failed? Put once for each; None where nothing is."""
        ...

    async def provider_failed(self, error: Exception, iteration: int) -> Message | None:
        """What stands in for the answer that failed? None raises the error."""
        ...

    async def stop_after(self, iteration: int) -> bool:
        """Does the loop end after this round?"""
        ...


def corrected(request: CompletionRequest, error: Exception) -> CompletionRequest | None:
    """Give the request once more, with what the model wrote where that was a call its vendor could not read.

    The note stands at the end of this one request, as the user's, which every vendor takes there after a question as
    after a tool's answer; the transcript never has it. Other errors give None.
    """
    if not isinstance(error, ToolUseFailedError):
        return None
    written = error.failed_generation or (error.partial.text if error.partial is not None else "")
    shown = f"\nYou wrote: {written[:_SHOWN]}" if written else ""
    note = Message.user(
        f"Your last answer could not be used: {error.message}{shown}\nAnswer again. To call a tool, use the form for "
        "tool calls, with arguments that are one valid JSON object and fit the tool's schema."
    )
    return request.model_copy(update={"messages": [*request.messages, note]})


RunTool: TypeAlias = Callable[[ToolCall, dict[str, Any]], Awaitable[Content]]


async def rounds(
    provider: Completer,
    transcript: list[Message],
    policy: Policy,
    run_tool: RunTool,
    *,
    signal: AbortSignal | None = None,
    stream: bool = False,
    grace: float = 0.2,
) -> AsyncGenerator[EngineEvent]:
    """Run the loop on a transcript, which it extends; yield an event at every step.

    Args:
        signal: ends the loop when it goes up; an answer that is whole by then and asks for no tool still counts.
        stream: ask for deltas, which are yielded as they come.
        grace: how long a tool may go on after the signal (seconds).

    Raises:
        AbortedError: the signal went up.
        Exception: whatever the provider, the policy or `run_tool` raises.
    """
    iteration = 0
    calls = unanswered_calls(transcript)
    cut_off = False
    while True:
        if not calls:
            if signal is not None:
                signal.raise_if_aborted()
            request: CompletionRequest | None = await policy.request(transcript, iteration)
            asked_again = False
            while request is not None:
                yield RequestStarted(request, iteration)
                failure: Exception | None = None
                try:
                    async with aclosing(_ask(provider, request, signal, stream)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, CompletionDelta):
                                yield piece
                            else:
                                completion = piece
                except AbortedError:
                    raise
                except Exception as error:  # a provider of the user's own may raise anything; the policy decides
                    failure = error
                if failure is None or asked_again or (signal is not None and signal.aborted):
                    break
                request, asked_again = await policy.ask_again(request, failure), True
            if failure is not None:
                if signal is not None:  # a provider may make an error of its own from being cancelled
                    signal.raise_if_aborted()
                stand_in = await policy.provider_failed(failure, iteration)
                if stand_in is None:
                    raise failure
                transcript.append(stand_in)
                yield RoundsEnded("provider_error", iteration)
                return
            transcript.append(completion.message)
            yield CompletionFinished(completion, iteration)
            calls = list(completion.tool_calls)
            cut_off = completion.finish_reason in ("length", "content_filter", "error")
            if not calls:
                yield RoundsEnded("length" if completion.finish_reason == "length" else "answer", iteration)
                return
        if iteration >= policy.max_rounds:
            yield RoundsEnded("limit", iteration)
            return
        for place, call in enumerate(calls):
            if signal is not None:
                signal.raise_if_aborted()
            pending = _pending(call, cut_off=cut_off and place == len(calls) - 1)
            verdict = await policy.decide(pending)
            if isinstance(verdict, Run):
                yield ToolStarted(call, verdict.arguments)
                run = partial(run_tool, call, verdict.arguments)
                content = await unless_aborted(signal, run, grace=grace)
            else:
                content = verdict.content
            answer = _answer(call, content)
            transcript.append(answer)
            yield ToolFinished(call, answer)
        calls = []
        iteration += 1
        if await policy.stop_after(iteration):
            yield RoundsEnded("early_break", iteration)
            return


async def _ask(
    provider: Completer, request: CompletionRequest, signal: AbortSignal | None, stream: bool
) -> AsyncGenerator[CompletionDelta | Completion]:
    """Ask the model: the deltas as they come, then the completion. No scope is open around a yield."""
    if not stream or not hasattr(provider, "stream"):
        completion = _checked(provider, await unless_aborted(signal, partial(provider.complete, request)))
        for delta in deltas_of(completion) if stream else ():
            yield delta
        yield completion
        return
    manager = open_stream(provider, request)
    opened = await unless_aborted(signal, manager.__aenter__)
    try:
        deltas = aiter(opened)
        try:
            while (delta := await unless_aborted(signal, partial(anext, deltas, None))) is not None:
                yield delta
        finally:
            if isinstance(deltas, AsyncGenerator):  # a stream of the user's own may leave its generator to us
                await deltas.aclose()
        yield _checked(provider, opened.completion)
    finally:
        await manager.__aexit__(None, None, None)


def _checked(provider: Completer, completion: Any) -> Completion:
    """Take what a provider of the user's own gave, or say what is wrong with it."""
    if not isinstance(completion, Completion):
        raise ConfigError(f"provider {provider.name!r} must give a Completion, not {type(completion).__name__}")
    if (role := completion.message.role) != "assistant":
        raise ConfigError(f"provider {provider.name!r} gave a message of role {role!r} as its answer")
    return completion


def _pending(call: ToolCall, *, cut_off: bool) -> PendingCall:
    """Parse the arguments once, just before the call would run. What was cut off is never run, nor repaired."""
    try:
        arguments = call.parse()
    except ValueError as error:
        if cut_off:
            return PendingCall(call, None, "the arguments were cut off by the token limit; the tool was not run")
        return PendingCall(call, None, f"the arguments are not valid JSON: {error}; the tool was not run")
    if cut_off and (not call.arguments or call.arguments.isspace()):
        return PendingCall(call, None, "the arguments were cut off by the token limit; the tool was not run")
    return PendingCall(call, arguments)


def _answer(call: ToolCall, content: Content) -> Message:
    # Not through the door: a call may have no id, and is answered all the same.
    if call.legacy:
        return Message.build("function", parts_from(content), name=call.name)
    return Message.build("tool", parts_from(content), tool_call_id=call.id, name=call.name)
