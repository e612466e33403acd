"""A real model on a real llama.cpp server, through this project's two ways to it: the local adapter and the openai SDK.

The model has 135 million parameters. What it says may change with the machine, so shapes are asserted, not words; the
three tool loops held in every run of the template they are run with.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_core import (
    AbortSignal,
    CompletionRequest,
    Model,
    Provider,
    load_model,
    load_provider,
    run_tool_loop,
    stream_tool_loop,
)
from agent_core.errors import AbortedError, ContextLengthError
from agent_core_local import LlamaServer, LocalProvider
from local.helpers import LONG, WEATHER, until

pytestmark = pytest.mark.local_model

GREETING: dict[str, Any] = {"messages": [{"role": "user", "content": "Say hello."}], "max_output_tokens": 24}
EXACT: dict[str, Any] = {"temperature": 0, "seed": 1}
ENDLESS: dict[str, Any] = {"messages": LONG["messages"], "max_output_tokens": 1800, "extra": {"ignore_eos": True}}
LOOP: dict[str, Any] = {"tool_choice": "required", "temperature": 0, "settings": {"seed": 1, "max_output_tokens": 96}}


def function(name: str, description: str, **properties: str) -> dict[str, Any]:
    """Write a tool whose arguments are all required."""
    parameters = {
        "type": "object",
        "properties": {argument: {"type": kind} for argument, kind in properties.items()},
        "required": list(properties),
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TASKS = [
    ("What is the weather in Paris?", WEATHER, {"city": "Paris"}, "18 degrees and sunny"),
    (
        "Multiply 12 by 11.",
        function("multiply", "Multiply two numbers", a="number", b="number"),
        {"a": 12, "b": 11},
        "132",
    ),
    (
        "What is the price of AAPL?",
        function("get_stock_price", "Get the price of a stock", symbol="string"),
        {"symbol": "AAPL"},
        "227.5 USD",
    ),
]


@pytest.fixture(params=["local", "openai"])
async def model(
    request: pytest.FixtureRequest, llama: LlamaServer, smollm2: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Model]:
    """The small model by either way, on the one server."""
    if request.param == "local":
        monkeypatch.setattr("agent_core_local._transport.acquire", lambda path, options: llama)
        monkeypatch.setattr("agent_core_local._transport.release", lambda server: None)
        provider: Provider = LocalProvider(timeout=120)
    else:
        provider = load_provider("openai", base_url=llama.base_url, api_key=llama.api_key, timeout=120)
    async with Model(provider, str(smollm2) if request.param == "local" else llama.model) as model:
        yield model


async def test_whole_and_streamed_are_one(model: Model) -> None:
    """Text, counts and the end of an answer, in one piece and in many."""
    request = model.request(CompletionRequest(**GREETING, **EXACT))
    whole = await model.complete(request)
    async with model.stream(request) as stream:
        pieces = [delta.text async for delta in stream if delta.text]
    assert "".join(pieces) == stream.completion.text and len(pieces) > 1
    for completion in (whole, stream.completion):
        assert completion.text and completion.finish_reason in ("stop", "length")
        assert completion.usage is not None
        assert completion.usage.input_tokens and 0 < (completion.usage.output_tokens or 0) <= 24
        assert completion.extras["timings"]["predicted_n"] == completion.usage.output_tokens
    assert model.provider.name == whole.provider


@pytest.mark.parametrize(("question", "tool", "arguments", "result"), TASKS, ids=["Paris", "12 x 11", "AAPL"])
async def test_a_tool_loop_finishes(
    model: Model, question: str, tool: dict[str, Any], arguments: dict[str, Any], result: str
) -> None:
    """The model calls the tool with the right arguments, once, and then answers."""
    called: list[dict[str, Any]] = []

    def handler(given: dict[str, Any]) -> str:
        called.append(given)
        return result

    ended = await run_tool_loop(
        model=model,
        messages=[{"role": "user", "content": question}],
        tools=[tool],
        tool_handlers={tool["function"]["name"]: handler},
        **LOOP,
    )
    assert called == [arguments]
    assert (ended.stop_reason, ended.iterations) == ("answer", 1)
    assert ended.text and ended.usage is not None


async def test_a_streamed_tool_loop_finishes(model: Model) -> None:
    """The same, as it happens."""
    question, tool, arguments, result = TASKS[0]
    called: list[dict[str, Any]] = []

    def handler(given: dict[str, Any]) -> str:
        called.append(given)
        return result

    loop = stream_tool_loop(
        model=model,
        messages=[{"role": "user", "content": question}],
        tools=[tool],
        tool_handlers={"get_weather": handler},
        **LOOP,
    )
    async with loop as events:
        names = [type(event).__name__ async for event in events]
    assert called == [arguments]
    assert names.index("ToolStarted") < names.index("ToolFinished") < names.index("LoopFinished") == len(names) - 1
    assert loop.result is not None and loop.result.stop_reason == "answer"


@pytest.mark.parametrize("model", ["local"], indirect=True)
async def test_a_named_tool_is_called(model: Model) -> None:
    """A tool's name as the choice leaves the model no other; llama.cpp itself takes it for `auto`."""
    tools = [TASKS[1][1], WEATHER]
    completion = await model.complete("What is the weather in Paris?", tools=tools, tool_choice="get_weather", **EXACT)
    assert [call.name for call in completion.tool_calls] == ["get_weather"]


class Person(BaseModel):
    name: str
    age: int


async def test_a_schema_is_kept(model: Model) -> None:
    """The answer is held to the schema token by token, so even this model keeps it."""
    question = "Ann is 33 years old. Give her name and age as JSON."
    completion = await model.complete(question, response_format=Person, max_output_tokens=60, **EXACT)
    assert completion.finish_reason == "stop"
    assert Person.model_validate_json(completion.text).name


async def test_a_conversation_that_is_too_long_is_told(model: Model) -> None:
    """llama.cpp says so before it begins, and says how many tokens there are."""
    with pytest.raises(ContextLengthError) as caught:
        await model.complete("word " * 3000)
    assert caught.value.status == 400 and caught.value.body["error"]["n_ctx"] == 2048


async def test_leaving_a_stream_ends_the_answer(model: Model, llama: LlamaServer) -> None:
    """The server stops to generate once nobody reads, and takes the next request."""
    before = llama.metrics()["tokens_predicted_total"]
    async with model.stream(CompletionRequest(**ENDLESS)) as stream:
        async for delta in stream:
            if delta.text and len(stream.completion.text) > 20:
                break
    assert stream.completion.finish_reason == "unknown"
    await until(lambda: llama.requests_running() == 0)
    assert llama.metrics()["tokens_predicted_total"] - before < 1800
    assert (await model.complete(CompletionRequest(**GREETING))).text


@pytest.mark.parametrize("model", ["local"], indirect=True)
@pytest.mark.parametrize("way", ["cancelled", "aborted"])
async def test_a_caller_who_goes_ends_the_answer(model: Model, llama: LlamaServer, way: str) -> None:
    """Also where a whole answer was asked for. llama.cpp would go on with it, so the local adapter streams it."""
    before = llama.metrics()["tokens_predicted_total"]
    signal = AbortSignal()
    ended = anyio.Event()

    async def ask() -> None:
        loop = run_tool_loop(
            model=Model(model.provider, model.name, {"max_output_tokens": 1800, "ignore_eos": True}),
            messages=ENDLESS["messages"],
            signal=signal,
        )
        try:
            if way == "aborted":
                with pytest.raises(AbortedError, match="enough"):
                    await loop
            else:
                await loop
        finally:
            ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await until(lambda: llama.requests_running() == 1)
        signal.abort("enough") if way == "aborted" else tasks.cancel_scope.cancel()
    assert ended.is_set()
    await until(lambda: llama.requests_running() == 0)
    assert llama.metrics()["tokens_predicted_total"] - before < 1800


@pytest.mark.parametrize("model", ["local"], indirect=True)
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_trio_does_as_well(model: Model) -> None:
    """Whole, streamed, and left in the midst."""
    assert (await model.complete(CompletionRequest(**GREETING))).text
    async with model.stream(CompletionRequest(**GREETING)) as stream:
        async for delta in stream:
            if delta.text:
                break


async def test_providers_of_one_file_share_a_server(smollm2: Path) -> None:
    """It starts with the first request, and stops with the last provider that used it."""
    told: list[str] = []
    one = load_model(f"local:{smollm2}", threads=1, context=512, on_load=told.append)
    two = load_model(f"local:{smollm2}", threads=1, context=512)
    assert isinstance(one.provider, LocalProvider) and isinstance(two.provider, LocalProvider)
    assert (await one.complete(CompletionRequest(**GREETING))).text
    assert [line.partition(" ")[0] for line in told] == ["loading", smollm2.stem]
    server = two.provider.preload(two.name)
    assert one.provider.preload(one.name) is server
    await one.aclose()
    assert (await two.complete(CompletionRequest(**GREETING))).text
    await two.aclose()
    assert repr(server).endswith("stopped>")
