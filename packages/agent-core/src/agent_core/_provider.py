"""What a provider is: something that turns a request into a completion, at once or piece by piece.

Decides the protocol and the stream object. A provider that has only `complete` works everywhere a stream is wanted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, Self, runtime_checkable

from ._completion import Completion, CompletionRequest, Usage
from ._deltas import Accumulator, CallDelta, CompletionDelta
from ._parts import ReasoningPart, RefusalPart, TextPart, ToolCall

__all__ = ["Completer", "CompletionStream", "Provider", "deltas_of", "open_stream"]


class CompletionStream(Protocol):
    """An answer on its way: iterate over its deltas, once; `completion` is what has come so far, whole at the end."""

    def __aiter__(self) -> AsyncIterator[CompletionDelta]: ...

    @property
    def completion(self) -> Completion: ...


class Completer(Protocol):
    """The least that can answer: a name and one method. It is taken wherever a provider is, streams included."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: CompletionRequest, /) -> Completion: ...


@runtime_checkable
class Provider(Completer, Protocol):
    """A backend that answers requests. Raises nothing but errors of `agent_core.errors`.

    `stream` gives an async context manager; leaving its block, by the end, a break or an error, closes the connection.
    A provider is closed by `aclose`, or at the end of `async with provider`.
    """

    def stream(self, request: CompletionRequest, /) -> AbstractAsyncContextManager[CompletionStream]: ...

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exception: object) -> None: ...


def open_stream(provider: Completer, request: CompletionRequest) -> AbstractAsyncContextManager[CompletionStream]:
    """Stream from a provider, or play its whole completion as a stream where it can only `complete`."""
    if (stream := getattr(provider, "stream", None)) is not None:
        opened: AbstractAsyncContextManager[CompletionStream] = stream(request)
        return opened
    return _whole_as_stream(provider, request)


@asynccontextmanager
async def _whole_as_stream(provider: Completer, request: CompletionRequest) -> AsyncGenerator[CompletionStream]:
    yield _Played(await provider.complete(request))


class _Played:
    """A whole completion, handed out in pieces."""

    def __init__(self, completion: Completion) -> None:
        self._whole = completion
        self._left = iter(deltas_of(completion))
        self._accumulator = Accumulator(provider=completion.provider, model=completion.model)
        self._ended = False

    def __aiter__(self) -> AsyncIterator[CompletionDelta]:
        return self

    async def __anext__(self) -> CompletionDelta:
        # No generator: one that is left early has to be closed, and nobody would.
        for delta in self._left:
            self._accumulator.add(delta)
            return delta
        self._ended = True
        raise StopAsyncIteration

    @property
    def completion(self) -> Completion:
        return self._whole if self._ended else self._accumulator.completion()


def deltas_of(completion: Completion) -> list[CompletionDelta]:
    """Take a completion apart again: one piece for each part, then the finish reasons and usage."""
    deltas: list[CompletionDelta] = []
    for choice in completion.choices:
        for part in choice.message.parts:
            match part:
                case TextPart():
                    deltas.append(CompletionDelta(part.text, choice=choice.index))
                case ReasoningPart():
                    deltas.append(
                        CompletionDelta(
                            reasoning=part.text,
                            choice=choice.index,
                            reasoning_field=part.field,
                            signature=part.signature,
                            details=part.details,
                        )
                    )
                case RefusalPart():
                    deltas.append(CompletionDelta(choice=choice.index, refusal=part.text))
                case ToolCall():
                    piece = CallDelta(None, part.id, part.name, part.arguments, part.extras, True, part.legacy)
                    deltas.append(CompletionDelta(choice=choice.index, calls=(piece,)))
                case _:
                    deltas.append(CompletionDelta(choice=choice.index, parts=(part,)))
        deltas.append(
            CompletionDelta(
                choice=choice.index,
                finish_reason=choice.finish_reason,
                raw_finish_reason=choice.raw_finish_reason or choice.finish_reason,
                logprobs=choice.logprobs,
                choice_extras=choice.extras or None,
            )
        )
    usage: Usage | None = completion.usage
    deltas.append(
        CompletionDelta(choice=None, usage=usage, id=completion.id, model=completion.model, extras=completion.extras)
    )
    return deltas
