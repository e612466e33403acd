"""How long a stream may take: to begin, and to stay silent; told from the HTTP library's own timeout."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import CompletionRequest, load_provider
from agent_core.errors import ConfigError, ProviderTimeoutError
from agent_core.testing import Answer, Gate, LoopbackServer
from agent_core_openai import OpenAIProvider

REQUEST = CompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}])
CHUNKS = [
    {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
    {"choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]},
]
FIRST = Answer.events(CHUNKS).body.index(b"\n\n") + 2
SHORT = 0.2  # seconds; its size proves nothing


async def stream_with(answer: Answer, **limits: float) -> tuple[str, Any]:
    """Give the text that came and the provider's error, if there was one."""
    text = ""
    with LoopbackServer(answer) as server:
        async with OpenAIProvider(api_key="k", base_url=server.url, max_retries=0, **limits) as provider:  # type: ignore[arg-type]
            try:
                async with provider.stream(REQUEST) as stream:
                    async for delta in stream:
                        text += delta.text
            except ProviderTimeoutError as error:
                return text, error
    return text, None


async def test_no_headers_in_time() -> None:
    """The first limit runs from sending the request."""
    text, error = await stream_with(Answer.events(CHUNKS, hold=Gate()), first_chunk_timeout=SHORT)
    assert text == ""
    assert "first piece" in str(error) and error.retryable and error.partial is None


async def test_no_first_piece_in_time() -> None:
    """Headers alone are no first piece."""
    text, error = await stream_with(Answer.events(CHUNKS, gates={0: Gate()}), first_chunk_timeout=SHORT)
    assert text == ""
    assert "first piece" in str(error)


async def test_silence_after_the_first_piece() -> None:
    """The other limit runs between pieces; what had come is kept."""
    text, error = await stream_with(Answer.events(CHUNKS, gates={FIRST: Gate()}), idle_timeout=SHORT)
    assert text == "Hel"
    assert "next piece" in str(error) and error.partial.text == "Hel"


async def test_a_stream_in_time() -> None:
    """Limits that are kept change nothing."""
    assert await stream_with(Answer.events(CHUNKS), first_chunk_timeout=30, idle_timeout=30) == ("Hello", None)


@pytest.mark.parametrize("option", ["timeout", "first_chunk_timeout", "idle_timeout"])
def test_a_time_must_be_positive(option: str) -> None:
    """Zero seconds are refused at the door, by name."""
    with pytest.raises(ConfigError, match=option):
        load_provider("openai", api_key="k", **{option: 0})
