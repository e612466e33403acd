"""A wire literal in, a completion out: what the tests of the adapters ask with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_core import Completion, CompletionDelta, CompletionRequest, OpenAICompatibleProvider
from agent_core.testing import Answer, LoopbackServer

__all__ = ["FINE", "HELLO", "Wire", "choice", "tool"]

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
FINE = Answer.json({"choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}}]})


def choice(delta: dict[str, Any], finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one choice; further fields are the choice's own."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, **fields}]}


def tool(name: str) -> dict[str, Any]:
    """A tool on offer, without parameters."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


@dataclass(slots=True)
class Wire:
    """A provider and the server it asks."""

    provider: OpenAICompatibleProvider
    server: LoopbackServer

    async def whole(self, body: dict[str, Any], **request: Any) -> Completion:
        """What the provider makes of a whole answer."""
        self.server.add(Answer.json(body))
        return await self.provider.complete(CompletionRequest(**{"model": "m", "messages": HELLO, **request}))

    async def message(self, message: dict[str, Any], finish_reason: str = "stop", **fields: Any) -> Completion:
        """What it makes of a whole answer with one choice; further fields are the choice's own."""
        one = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason, **fields}
        return await self.whole({"id": "c", "choices": [one]})

    async def answer(self, answer: Answer, **request: Any) -> Completion:
        """What it makes of an answer to a whole request, however that travels."""
        self.server.add(answer)
        return await self.provider.complete(CompletionRequest(**{"model": "m", "messages": HELLO, **request}))

    async def stream(self, *chunks: dict[str, Any], **request: Any) -> tuple[list[CompletionDelta], Completion]:
        """What it makes of a stream of these chunks, closed by [DONE]."""
        return await self.events(Answer.events(chunks), **request)

    async def events(self, answer: Answer, **request: Any) -> tuple[list[CompletionDelta], Completion]:
        """What it makes of an answer to a streamed request, however that travels."""
        self.server.add(answer)
        asked = CompletionRequest(**{"model": "m", "messages": HELLO, **request})
        async with self.provider.stream(asked) as stream:
            return [delta async for delta in stream], stream.completion

    async def sent(self, *, stream: bool = False, **request: Any) -> dict[str, Any]:
        """The body that leaves for a request, through the SDK."""
        asked = CompletionRequest(**{"model": "m", "messages": HELLO, **request})
        self.server.add(FINE)
        if stream:
            async with self.provider.stream(asked) as opened:
                async for _ in opened:
                    pass
        else:
            await self.provider.complete(asked)
        body: dict[str, Any] = self.server.requests[-1].json()
        return body
