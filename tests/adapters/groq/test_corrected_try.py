"""c29 through the real groq SDK: a call that Groq could not read is shown to the model, and asked for once more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core import CompletionRequest, errors, load_provider, run_tool_loop, stream_tool_loop
from agent_core.testing import Answer, LoopbackServer
from counting import count
from vendors import provider_of

CASE: dict[str, Any] = json.loads(
    next((Path(__file__).parents[2] / "cases").glob("c29-*.json")).read_text(encoding="utf-8")
)
FAILED, REPLY = CASE["input"]["script"]
SEEN = CASE["expected"]["error_seen"]
ASK: list[Any] = [{"role": "user", "content": "How many dollars are 20 euros?"}]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "convert", "parameters": {"type": "object"}}}]
HANDLERS: Any = {"convert": lambda arguments: CASE["input"]["tools"]["convert"]["returns"]}

failed = Answer.json(FAILED["http"]["body"], status=FAILED["http"]["status"])


def replied(way: str) -> Answer:
    """The script's second turn, in the form that was asked for."""
    said = {"role": "assistant", "content": REPLY["content"]}
    if way == "whole":
        return Answer.json({"choices": [{"index": 0, "message": said, "finish_reason": REPLY["finish_reason"]}]})
    return Answer.events([{"choices": [{"index": 0, "delta": said, "finish_reason": REPLY["finish_reason"]}]}])


async def run(server: LoopbackServer, way: str) -> str:
    """Run the loop on the real provider and give its last text."""
    settings: Any = {"model": "m", "messages": ASK, "tools": TOOLS, "tool_handlers": HANDLERS}
    async with provider_of("groq", server.url) as provider:
        if way == "whole":
            return (await run_tool_loop(provider=provider, **settings)).text
        async with stream_tool_loop(provider=provider, **settings) as events:
            async for _ in events:
                pass
        assert events.result is not None
        return events.result.text


@pytest.mark.parametrize("way", ["whole", "streamed"])
async def test_the_loop_asks_once_more_with_the_failed_text(way: str) -> None:
    """Two requests; the second shows what was written, and what comes back is the answer."""
    with LoopbackServer(failed, replied(way)) as server:
        assert await run(server, way) == CASE["expected"]["any_of"][0]["loop"]["final_content"]
        first, second = [request.json() for request in server.requests]
    assert second["messages"][:-1] == first["messages"]
    assert SEEN["detail_contains"] in second["messages"][-1]["content"]
    assert {**second, "messages": None} == {**first, "messages": None}
    if way == "whole":
        count("cases")


@pytest.mark.parametrize("way", ["whole", "streamed"])
async def test_it_does_not_go_on_without_limit(way: str) -> None:
    """After the second failure the error is raised, as the case says it is to be seen."""
    with LoopbackServer(failed, failed, failed) as server:
        with pytest.raises(errors.ToolUseFailedError) as caught:
            await run(server, way)
        assert len(server.requests) == 2
    assert caught.value.status == SEEN["status"]
    assert caught.value.retryable is SEEN["retryable"]
    assert SEEN["detail_contains"] in (caught.value.failed_generation or "")


async def test_the_retry_policy_leaves_it_alone() -> None:
    """The same request again would only fail again, so a call without the loop raises at once."""
    with LoopbackServer(failed, replied("whole")) as server:
        async with load_provider("groq", api_key="unused", base_url=server.url) as provider:  # with its usual retries
            with pytest.raises(errors.ToolUseFailedError):
                await provider.complete(CompletionRequest(model="m", messages=ASK))
        assert len(server.requests) == 1
