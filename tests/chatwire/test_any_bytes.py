"""Bytes that no server ever sent, in any cut: the provider gives an answer or an error of this library."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Completion, CompletionDelta, CompletionRequest, RetryPolicy, accumulate, errors
from agent_core.chatwire import OpenAICompatibleProvider, Reply

ASK = CompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}])


class Pieces:
    """A reply that comes in these pieces, and may break off after them."""

    request_id: str | None = None
    secret: str | None = None

    def __init__(self, pieces: list[bytes], content_type: str, broken: bool) -> None:
        self.pieces, self.content_type, self.broken = pieces, content_type, broken

    async def read(self) -> bytes:
        """All pieces."""
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncGenerator[bytes]:
        """One by one."""
        for piece in self.pieces:
            yield piece
        if self.broken:
            raise errors.StreamInterruptedError("broken off")


class Wire:
    """A transport that gives the same reply to every request."""

    def __init__(self, *reply: Any) -> None:
        self.reply = Pieces(*reply)

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        """Give it."""
        yield self.reply

    async def aclose(self) -> None:
        """Nothing is open."""


def provider_for(*reply: Any, think: bool = False) -> OpenAICompatibleProvider:
    """A provider that gets this reply."""
    return OpenAICompatibleProvider(
        transport=Wire(*reply), name="p", retry=RetryPolicy(max_retries=0), think_tags=think
    )


async def whole(provider: OpenAICompatibleProvider) -> Completion:
    """Ask for a whole answer."""
    return await provider.complete(ASK)


async def streamed(provider: OpenAICompatibleProvider) -> Completion:
    """Ask for a stream; its pieces add up to what it says has come."""
    deltas: list[CompletionDelta] = []
    async with provider.stream(ASK) as stream:
        async for delta in stream:
            deltas.append(delta)
            assert stream.completion.text == accumulate(deltas, provider="p", model="m").text
        return stream.completion


async def outcome_of(ask: Any, provider: OpenAICompatibleProvider) -> Completion | errors.ProviderError:
    """What comes of it; an error of any other kind is raised."""
    try:
        completion: Completion = await ask(provider)
    except errors.ProviderError as error:
        return error
    return completion


WORDS = [
    *("data: ", "data:", "event: error\n", ": note\n", "\n", "\n\n", "\r\n\r\n", "\r", "[DONE]", "data: [DONE]\n\n"),
    *(
        "{",
        "}",
        "[",
        "]",
        '"',
        "\\ud83d",
        "\\ude00",
        "é",
        "\ufeff",
        "<html>",
        "null",
        "NaN",
        "1e999",
        "id: 1\nretry: 5\n",
    ),
    *("<think>", "</think>", "<thi", '{"error": {"message": "busy", "code": 503}}', '{"error": ""}'),
]
DELTAS: list[dict[str, Any]] = [
    {"content": "a"},
    {"content": "<think>b"},
    {"content": "</think> c"},
    {"reasoning": "d"},
    {"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "f", "arguments": "{"}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]},
    {},
]


def event(delta: dict[str, Any], finish: str | None) -> str:
    """One event of a stream."""
    return "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + "\n\n"


events = st.builds(event, st.sampled_from(DELTAS), st.sampled_from([None, None, None, "stop", "length"]))
bodies = st.lists(events | st.sampled_from(WORDS), max_size=10).map(lambda words: "".join(words).encode())
answers = st.builds(
    lambda message, finish: json.dumps({"choices": [{"message": message, "finish_reason": finish}]}).encode(),
    st.sampled_from(DELTAS),
    st.sampled_from([None, "stop"]),
)
anything = bodies | answers | st.binary(max_size=40)
kinds = st.sampled_from(["text/event-stream", "application/json", "text/html", "", "application/x-ndjson"])


def cut(body: bytes, places: list[int]) -> list[bytes]:
    """A body in pieces."""
    marks = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[start:end] for start, end in pairwise(marks)]


@given(anything, st.lists(st.integers(0, 500), max_size=6), kinds, st.booleans(), st.booleans())
@pytest.mark.parametrize("ask", [whole, streamed])
def test_any_bytes_are_an_answer_or_an_error(
    ask: Any, body: bytes, places: list[int], kind: str, broken: bool, think: bool
) -> None:
    """Nothing else leaves a provider, and the error chains nothing."""

    pieces = cut(body, places)
    outcome = anyio.run(outcome_of, ask, provider_for(pieces, kind, broken, think=think))
    if isinstance(outcome, Completion):
        assert not broken or b"[DONE]" in body
    else:
        assert outcome.__cause__ is None and outcome.__context__ is None
        assert (outcome.provider, outcome.model) == ("p", "m") or broken


@given(bodies, st.lists(st.integers(0, 500), max_size=8), st.booleans())
def test_the_cuts_of_a_stream_change_nothing(body: bytes, places: list[int], think: bool) -> None:
    """Neither the answer nor the error, nor what had come before it."""

    outcomes: list[Any] = []
    for pieces in ([body], cut(body, places)):
        outcome = anyio.run(outcome_of, streamed, provider_for(pieces, "text/event-stream", False, think=think))
        if isinstance(outcome, errors.ProviderError):
            outcomes.append((type(outcome), str(outcome), outcome.partial))
        else:
            outcomes.append(outcome)
    assert outcomes[0] == outcomes[1]
