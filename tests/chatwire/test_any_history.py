"""Any conversation and any request make a body that can be sent: valid JSON, valid UTF-8, by every dialect."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import (
    AudioPart,
    CompletionRequest,
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
)
from agent_core.chatwire import Dialect
from agent_core.chatwire._encode import encode_request
from agent_core_groq import GroqDialect
from agent_core_mistral import MistralDialect
from agent_core_openai import OpenAIDialect
from agent_core_together import TogetherDialect

DIALECTS = [Dialect, OpenAIDialect, GroqDialect, MistralDialect, TogetherDialect]

words = st.text(max_size=6)
# What people and models write may hold half an emoji: a part made by hand is not mended at the door.
texts = words | st.sampled_from(["\ud83d", "a\udc00", "look", "a b", "<|x|>", '{"q": 1}', "{", "null"])
ids = st.sampled_from(["", "t1", "t2", "abcdefghi", "call_x"])
plain = st.dictionaries(st.sampled_from(["x", "index", "signature"]), st.none() | st.integers(0, 9) | words, max_size=2)
origins = st.sampled_from([None, "p", "q"])
parts = st.one_of(
    st.builds(TextPart, texts, st.none() | plain),
    st.builds(ImagePart, words, st.none() | words, st.none() | plain),
    st.builds(FilePart, st.none() | words, st.none() | words, st.none() | words),
    st.builds(AudioPart, words, words),
    st.builds(
        ReasoningPart,
        texts,
        origins,
        st.sampled_from([None, "m"]),
        st.sampled_from([None, "reasoning", "reasoning_content", "reasoning_details", "thinking", "think_tags"]),
        st.none() | words,
        st.lists(plain, max_size=2).map(tuple),
    ),
    st.builds(ToolCall, ids, texts, texts, st.booleans(), st.none() | plain),
    st.builds(RefusalPart, texts),
    st.builds(OtherPart, plain.map(lambda fields: {"type": "other", **fields})),
)
messages = st.builds(
    Message.build,
    st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]),
    st.lists(parts, max_size=4),
    status=st.sampled_from(["completed", "completed", "completed", "pending", "aborted"]),
    name=st.none() | texts,
    tool_call_id=st.none() | ids,
    provider=origins,
    extras=plain,
)
requests = st.builds(
    CompletionRequest,
    model=st.just("m"),
    messages=st.lists(messages, min_size=1, max_size=6),
    tools=st.sampled_from([None, [{"type": "function", "function": {"name": "look"}}]]),
    tool_choice=st.sampled_from([None, "auto", "none"]),
    temperature=st.none() | st.floats(0, 2),
    stop=st.none() | st.just("END"),
    n=st.none() | st.integers(1, 3),
    logprobs=st.none() | st.integers(0, 5),
    response_format=st.sampled_from([None, {"type": "json_object"}, {"type": "object", "properties": {}}]),
)


def refuse(word: str) -> Any:
    """Refuse what is no JSON."""
    raise AssertionError(f"{word} is not JSON")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.__name__)
@given(request=requests, stream=st.booleans())
def test_any_request_makes_a_body_that_can_be_sent(
    dialect: type[Dialect], request: CompletionRequest, stream: bool
) -> None:
    """Every call has its answer, names and arguments are what vendors take, and the request stays as it was."""
    before = copy.deepcopy(request)
    body = encode_request(request, dialect(), provider="p", stream=stream)
    assert request == before
    text = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert json.loads(text, parse_constant=refuse) == body
    waiting: list[str] = []
    for message in body["messages"]:
        assert message.get("content") is not None or message.get("tool_calls") or message.get("function_call")
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        for call in message.get("tool_calls", ()):
            assert call["type"] == "function"
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert set(call["function"]["name"]) <= set(LETTERS) and call["function"]["name"]
            waiting.append(call["id"])
    assert waiting == []


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.__name__)
@pytest.mark.parametrize("field", ["reasoning", "thinking"])
def test_half_an_emoji_in_a_thought_is_replaced(dialect: type[Dialect], field: str) -> None:
    """In whatever field or content it is written, as everywhere else."""
    thought = ReasoningPart("hm\ud83d", field=field)
    asked = CompletionRequest(model="m", messages=[Message(role="assistant", parts=[thought, TextPart("a")])])
    body = encode_request(asked, dialect(), provider="p", stream=False)
    assert json.dumps(body, ensure_ascii=False).encode("utf-8")
