"""The scripted provider plays replies of every form, whole and as a stream, and keeps requests as they were."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import (
    Completion,
    CompletionDelta,
    CompletionRequest,
    Message,
    Provider,
    ToolCall,
    Usage,
    errors,
)
from agent_core.testing import Reply, ScriptedProvider

FULL: dict[str, Any] = {
    "content": "Text.",
    "reasoning": "Thought.",
    "tool_calls": [{"id": "t1", "name": "add", "arguments": '{"a": 1}'}],
    "finish_reason": "stop",
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
CALL = ToolCall("t1", "add", '{"a": 1}')
REPLIES: dict[str, Reply] = {
    "mapping": FULL,
    "deltas": [CompletionDelta("Te"), CompletionDelta("xt."), CompletionDelta(raw_finish_reason="stop")],
    "completion": Completion(message=Message.assistant("Text."), raw_finish_reason="stop"),
}


def asked(text: str = "hello") -> CompletionRequest:
    """A request."""
    return CompletionRequest(model="m", messages=[Message.user(text)])


async def streamed(provider: ScriptedProvider) -> tuple[list[CompletionDelta], Completion]:
    """Ask for a stream, to its end."""
    async with provider.stream(asked()) as stream:
        return [delta async for delta in stream], stream.completion


def test_it_is_a_provider() -> None:
    """Everything above a provider takes it."""
    assert isinstance(ScriptedProvider(), Provider)


async def test_a_mapping_becomes_a_completion() -> None:
    """Reasoning, text, calls, finish reason and usage; calls that arrived decide between stop and tool_calls."""
    completion = await ScriptedProvider(FULL).complete(asked())
    assert (completion.text, completion.reasoning) == ("Text.", "Thought.")
    assert list(completion.tool_calls) == [CALL]
    assert (completion.finish_reason, completion.raw_finish_reason) == ("tool_calls", "stop")
    assert completion.usage == Usage(3, 5)
    assert (completion.provider, completion.model) == ("scripted", "m")


async def test_calls_may_be_written_in_the_openai_form() -> None:
    """With `function`, as on the wire."""
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    completion = await ScriptedProvider({"tool_calls": [call]}).complete(asked())
    assert list(completion.tool_calls) == [CALL]


async def test_a_word_nobody_knows_is_an_unknown_end() -> None:
    """As with a real provider, and no word at all likewise."""
    provider = ScriptedProvider({"content": "a", "finish_reason": "weird"}, {"content": "a"})
    assert [(await provider.complete(asked())).finish_reason for _ in range(2)] == ["unknown", "unknown"]


async def test_a_misspelled_key_is_refused() -> None:
    """A script with a typo would test something else."""
    with pytest.raises(ValueError, match="no contents"):
        await ScriptedProvider({"contents": "a"}).complete(asked())


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
async def test_a_stream_gives_what_complete_gives(reply: Reply) -> None:
    """Whatever form the reply is written in; the deltas add up to it."""
    whole = await ScriptedProvider(reply).complete(asked())
    deltas, completion = await streamed(ScriptedProvider(reply))
    assert (completion.text, completion.reasoning) == (whole.text, whole.reasoning) == ("Text.", whole.reasoning)
    assert "".join(delta.text for delta in deltas) == whole.text
    assert list(completion.tool_calls) == list(whole.tool_calls)
    assert (completion.finish_reason, completion.usage) == (whole.finish_reason, whole.usage)


async def test_replies_are_played_in_order_and_then_the_rule() -> None:
    """What is added comes after what was there; the rule sees the request."""
    provider = ScriptedProvider({"content": "1"}, rule=lambda request: {"content": request.messages[-1].text})
    provider.add({"content": "2"})
    assert [(await provider.complete(asked("3"))).text for _ in range(3)] == ["1", "2", "3"]


async def test_a_request_beyond_the_script_is_an_error() -> None:
    """One of this library's own, so that what is tested can't mistake it for a bug of its own."""
    with pytest.raises(errors.ProtocolError, match="no reply to request 1"):
        await ScriptedProvider().complete(asked())


async def test_an_exception_is_raised_in_place_of_an_answer() -> None:
    """By `complete`, and by a stream when it is entered."""
    provider = ScriptedProvider(errors.RateLimitError("slow down"), errors.RateLimitError("slow down"))
    with pytest.raises(errors.RateLimitError):
        await provider.complete(asked())
    with pytest.raises(errors.RateLimitError):
        await streamed(provider)
    assert len(provider.requests) == 2


async def test_an_exception_among_deltas_breaks_the_answer_off() -> None:
    """`partial` holds what had come, as with a real provider."""
    provider = ScriptedProvider([CompletionDelta("half"), errors.StreamInterruptedError("gone")])
    with pytest.raises(errors.StreamInterruptedError) as caught:
        await streamed(provider)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


async def test_requests_stay_as_they_were() -> None:
    """What is done to the messages after the request does not show."""
    provider = ScriptedProvider({"content": "a"})
    messages = [Message.user("first")]
    request = CompletionRequest(model="m", messages=messages)
    await provider.complete(request)
    request.messages.append(Message.user("second"))
    assert [message.text for message in provider.requests[0].messages] == ["first"]
    assert repr(provider) == "ScriptedProvider(1 requests, 0 replies left)"
