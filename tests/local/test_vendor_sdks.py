"""The SDKs of Groq, Mistral and Together on a real llama.cpp server: whole, streamed, a call, leaving."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import groq
import httpx
import pytest

from agent_core import Model, Provider, load_provider
from agent_core_groq import GroqProvider
from agent_core_local import LlamaServer
from local.helpers import LONG, WEATHER, until

pytestmark = pytest.mark.local_model


async def _without_prefix(request: httpx.Request) -> None:
    """Groq's SDK puts `/openai` before every path; llama.cpp has no such path."""
    request.url = request.url.copy_with(path=request.url.path.removeprefix("/openai"))


@pytest.fixture(params=["groq", "mistral", "together"])
async def model(request: pytest.FixtureRequest, llama: LlamaServer) -> AsyncGenerator[Model]:
    """The small model through a vendor's own SDK."""
    client: groq.AsyncGroq | None = None
    if request.param == "groq":
        http = groq.DefaultAsyncHttpxClient(event_hooks={"request": [_without_prefix]})
        client = groq.AsyncGroq(api_key=llama.api_key, base_url=llama.url, http_client=http, max_retries=0)
        provider: Provider = GroqProvider(client, timeout=120)
    else:
        provider = load_provider(request.param, base_url=llama.url, api_key=llama.api_key, timeout=120)
    # llama.cpp knows `required` and not Mistral's word for it; what stands in `extra` is sent as it is.
    extra = {"tool_choice": "required"} if request.param == "mistral" else {}
    async with provider:
        yield Model(provider, llama.model, {"temperature": 0, "extra": extra})
    if client is not None:
        await client.close()


async def test_whole_and_streamed_are_one(model: Model) -> None:
    """A greedy answer has the same text, whole and streamed, and its tokens are counted."""
    whole = await model.complete("Say hello.", max_output_tokens=16, extra={})
    async with model.stream("Say hello.", max_output_tokens=16, extra={}) as stream:
        pieces = [delta.text async for delta in stream]
    assert whole.text
    assert "".join(pieces) == stream.completion.text == whole.text
    assert whole.usage is not None and whole.usage.output_tokens


async def test_a_tool_is_called(model: Model) -> None:
    """The model calls the tool that it must call, with arguments of its schema."""
    tools: Any = [WEATHER]
    completion = await model.complete(
        "What is the weather in Paris?", tools=tools, tool_choice="required", max_output_tokens=48
    )
    (call,) = completion.tool_calls
    assert call.name == "get_weather"
    assert call.parse() == {"city": "Paris"}
    assert completion.finish_reason == "tool_calls"


async def test_leaving_a_stream_ends_the_answer(model: Model, llama: LlamaServer) -> None:
    """The server stops when its caller has gone, long before the answer would end."""
    messages: Any = LONG["messages"]
    async with model.stream(messages, max_output_tokens=1800, extra={"ignore_eos": True}) as stream:
        async for delta in stream:
            if delta.text:
                break
    await until(lambda: llama.requests_running() == 0)
    assert stream.completion.finish_reason == "unknown"
