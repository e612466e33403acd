"""The loop's one corrected try: a call that its vendor could not read is shown to the model, once."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import (
    CompletionDelta,
    CompletionFinished,
    RequestStarted,
    ToolLoopHooks,
    ToolLoopResult,
    run_tool_loop,
    stream_tool_loop,
)
from agent_core.errors import BadRequestError, ToolUseFailedError
from agent_core.testing import ScriptedProvider

ASK: list[Any] = [{"role": "user", "content": "How many dollars are 20 euros?"}]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "convert", "parameters": {"type": "object"}}}]
WRITTEN = '<function=convert>{"eur": 20, }</function>'
CALL = {"tool_calls": [{"id": "t1", "name": "convert", "arguments": '{"eur": 20}'}], "finish_reason": "tool_calls"}
DONE = {"content": "About 21 dollars.", "finish_reason": "stop"}


def failed(text: str | None = WRITTEN) -> ToolUseFailedError:
    """What Groq says of a call that it could not read."""
    return ToolUseFailedError("Failed to call a function.", failed_generation=text, status=400, code="tool_use_failed")


async def run(provider: ScriptedProvider, way: str, **options: Any) -> ToolLoopResult:
    """Run the loop to its end, whole or streamed."""
    handlers: Any = {"convert": lambda arguments: "21"}
    settings: dict[str, Any] = {"messages": ASK, "tools": TOOLS, "tool_handlers": handlers, **options}
    if way == "whole":
        return await run_tool_loop(provider=provider, model="m", **settings)
    async with stream_tool_loop(provider=provider, model="m", **settings) as events:
        async for _ in events:
            pass
    assert events.result is not None
    return events.result


ways = pytest.mark.parametrize("way", ["whole", "streamed"])


@ways
async def test_the_model_is_shown_what_it_wrote_and_asked_once_more(way: str) -> None:
    """The second request ends in a note with the error and the text; all else in it is as it was."""
    provider = ScriptedProvider(failed(), DONE)
    result = await run(provider, way)
    first, second = provider.requests
    assert result.text == "About 21 dollars."
    assert second.messages[:-1] == first.messages
    assert second.model_copy(update={"messages": first.messages}) == first
    note = second.messages[-1]
    assert note.role == "user"
    assert "Failed to call a function." in note.text
    assert WRITTEN in note.text


@ways
async def test_the_note_never_stands_in_the_conversation(way: str) -> None:
    """The transcript is that of a run in which nothing went wrong, and so is every later request."""
    provider = ScriptedProvider(failed(), CALL, DONE)
    result = await run(provider, way)
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert [message.role for message in provider.requests[2].messages] == ["user", "assistant", "tool"]
    assert result.iterations == 1


@ways
async def test_each_request_of_a_run_has_a_try_of_its_own(way: str) -> None:
    """After a tool's answer the model may stumble again."""
    provider = ScriptedProvider(failed(), CALL, failed(), DONE)
    result = await run(provider, way)
    assert result.text == "About 21 dollars."
    assert [message.role for message in provider.requests[3].messages] == ["user", "assistant", "tool", "user"]


@ways
async def test_a_second_failure_is_raised(way: str) -> None:
    """At most one corrected try for a request: two requests, then the second error, with nothing chained."""
    second = failed("worse")
    provider = ScriptedProvider(failed(), second, DONE)
    with pytest.raises(ToolUseFailedError) as caught:
        await run(provider, way)
    assert caught.value is second
    assert caught.value.__context__ is None
    assert len(provider.requests) == 2
    assert [message.role for message in caught.value.messages or ()] == ["user"]


@ways
async def test_the_hook_is_asked_after_the_corrected_try(way: str) -> None:
    """`on_provider_error` sees the failure that is left, once."""
    seen: list[Exception] = []

    def stand_in(error: Exception, iteration: int) -> dict[str, str]:
        seen.append(error)
        return {"role": "assistant", "content": "Sorry."}

    second = failed("worse")
    hooks = ToolLoopHooks(on_provider_error=stand_in)
    result = await run(ScriptedProvider(failed(), second), way, hooks=hooks)
    assert seen == [second]
    assert (result.text, result.stop_reason) == ("Sorry.", "provider_error")


@ways
async def test_other_errors_get_no_second_request(way: str) -> None:
    """A request that is wrong stays wrong."""
    provider = ScriptedProvider(BadRequestError("no such parameter"), DONE)
    with pytest.raises(BadRequestError, match="no such parameter"):
        await run(provider, way)
    assert len(provider.requests) == 1


async def test_text_that_had_arrived_stands_for_what_the_vendor_did_not_tell() -> None:
    """Groq's stream gives an empty failed_generation after the text itself has been streamed."""
    provider = ScriptedProvider([CompletionDelta("may"), CompletionDelta("be"), failed("")], DONE)
    await run(provider, "streamed")
    assert "You wrote: maybe" in provider.requests[1].messages[-1].text


async def test_nothing_is_quoted_where_nothing_is_known() -> None:
    """The error alone is told."""
    provider = ScriptedProvider(failed(None), DONE)
    await run(provider, "whole")
    assert "You wrote" not in provider.requests[1].messages[-1].text


async def test_a_long_text_is_cut_in_the_note() -> None:
    """What a model wrote in a loop of its own does not fill the context a second time."""
    provider = ScriptedProvider(failed("x" * 100_000), DONE)
    await run(provider, "whole")
    assert len(provider.requests[1].messages[-1].text) < 5000


async def test_the_second_request_is_an_event_too() -> None:
    """A reader of the stream sees that what came since the first request is void."""
    provider = ScriptedProvider([CompletionDelta("may"), failed("")], DONE)
    async with stream_tool_loop(provider=provider, model="m", messages=ASK, tools=TOOLS, tool_handlers={}) as events:
        seen = [event async for event in events if isinstance(event, RequestStarted | CompletionFinished)]
    assert [type(event) for event in seen] == [RequestStarted, RequestStarted, CompletionFinished]
    assert [event.iteration for event in seen] == [0, 0, 0]
    assert isinstance(seen[1], RequestStarted)
    assert seen[1].request == provider.requests[1]
