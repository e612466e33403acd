"""A provider that plays a script: for tests of what stands above a provider, without a vendor, a key or a network.

    provider = ScriptedProvider(
        {"tool_calls": [{"id": "t1", "name": "add", "arguments": "{}"}], "finish_reason": "tool_calls"},
        {"content": "Done.", "finish_reason": "stop"},
    )

It decides how a reply in short form becomes a completion. What follows from a reply is left to what is tested; so a
script says nothing about requests, which are kept as they were when they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias, get_args

from .._completion import Completion, CompletionRequest, FinishReason, Usage
from .._deltas import Accumulator, CallDelta, CompletionDelta
from .._provider import CompletionStream, deltas_of
from ..errors import ProtocolError, ProviderError

__all__ = ["Reply", "ScriptedProvider"]

Step: TypeAlias = CompletionDelta | BaseException
Reply: TypeAlias = Mapping[str, Any] | Completion | Sequence[Step] | BaseException
"""What a script holds for one request:

- a mapping: `content`, `reasoning`, `refusal`, `tool_calls` (each `id`, `name`, `arguments` as written, or the OpenAI
  form with `function`), `finish_reason`, `usage` (fields of `Usage`), all optional;
- a completion;
- a list of deltas, in which an exception breaks the answer off;
- an exception, raised instead of an answer.
"""


class ScriptedProvider:
    """Plays replies in order, one for each request, or those that a rule makes from the request.

    Args:
        replies: what is played; a request beyond them raises `ProtocolError`.
        rule: gives the reply to a request, once the replies are used up.
        name: the provider's name, on completions and errors.

    `requests` has every request as it was when it came: what is done to its messages later does not show.
    """

    def __init__(
        self, *replies: Reply, rule: Callable[[CompletionRequest], Reply] | None = None, name: str = "scripted"
    ) -> None:
        self.name = name
        self.requests: list[CompletionRequest] = []
        self._replies = deque(replies)
        self._rule = rule

    def __repr__(self) -> str:
        return f"ScriptedProvider({len(self.requests)} requests, {len(self._replies)} replies left)"

    def add(self, *replies: Reply) -> None:
        """Append replies to those still to be played."""
        self._replies.extend(replies)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Play the next reply as a whole."""
        reply = self._reply_to(request)
        if isinstance(reply, Completion):
            return reply
        answer = _Playing(_steps_of(reply), self.name, request.model)
        async for _ in answer:
            pass
        return answer.completion

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncGenerator[CompletionStream]:
        """Play the next reply piece by piece. A reply that is an exception is raised on entering the block."""
        reply = self._reply_to(request)
        yield _Playing(_steps_of(reply), self.name, request.model)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def _reply_to(self, request: CompletionRequest) -> Mapping[str, Any] | Completion | Sequence[Step]:
        self.requests.append(request.model_copy(deep=True))
        if self._replies:
            reply = self._replies.popleft()
        elif self._rule is not None:
            reply = self._rule(request)
        else:
            raise ProtocolError(
                f"the script has no reply to request {len(self.requests)}", provider=self.name, model=request.model
            )
        if isinstance(reply, BaseException):
            raise reply
        return reply


class _Playing:
    """One answer while it is played: gives the deltas and puts them together, like a provider's own stream."""

    def __init__(self, steps: Sequence[Step], provider: str, model: str) -> None:
        self._steps = iter(steps)
        self._accumulator = Accumulator(provider=provider, model=model)

    @property
    def completion(self) -> Completion:
        """What has been played so far."""
        return self._accumulator.completion()

    def __aiter__(self) -> AsyncIterator[CompletionDelta]:
        return self

    async def __anext__(self) -> CompletionDelta:
        for step in self._steps:
            if isinstance(step, BaseException):
                if isinstance(step, ProviderError) and step.partial is None and self._accumulator.started:
                    step.partial = self.completion
                raise step
            self._accumulator.add(step)
            return step
        raise StopAsyncIteration


def _steps_of(reply: Mapping[str, Any] | Completion | Sequence[Step]) -> Sequence[Step]:
    if isinstance(reply, Completion):
        return deltas_of(reply)
    return _deltas_from(reply) if isinstance(reply, Mapping) else reply


def _deltas_from(reply: Mapping[str, Any]) -> list[CompletionDelta]:
    unknown = set(reply) - {"content", "reasoning", "refusal", "tool_calls", "finish_reason", "usage"}
    if unknown:
        raise ValueError(f"a scripted reply has no {', '.join(sorted(unknown))}")
    deltas = [
        CompletionDelta(**{field: reply[name]})
        for name, field in (("reasoning", "reasoning"), ("content", "text"), ("refusal", "refusal"))
        if reply.get(name)
    ]
    deltas += [CompletionDelta(calls=(_call_from(call),)) for call in reply.get("tool_calls") or ()]
    raw = reply.get("finish_reason")
    usage = reply.get("usage")
    reason: FinishReason | None = None
    if raw is not None:
        reason = raw if raw in get_args(FinishReason) else "unknown"
    end = CompletionDelta(finish_reason=reason, raw_finish_reason=raw, usage=Usage(**usage) if usage else None)
    return [*deltas, end]


def _call_from(call: Mapping[str, Any]) -> CallDelta:
    function = call.get("function", call)
    return CallDelta(id=call.get("id"), name=function["name"], arguments=function.get("arguments"), whole=True)
