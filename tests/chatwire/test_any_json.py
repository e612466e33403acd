"""Answers that no vendor ever gave: whatever JSON a server sends is read, or refused as no answer, by every dialect."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Accumulator, Completion, CompletionDelta
from agent_core.chatwire import Dialect
from agent_core.chatwire._decode import Decoder
from agent_core_groq import GroqDialect
from agent_core_mistral import MistralDialect
from agent_core_openai import OpenAIDialect
from agent_core_together import TogetherDialect

DIALECTS = [Dialect, OpenAIDialect, GroqDialect, MistralDialect, TogetherDialect]

CALL = {"index": 0, "id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
SAID: dict[str, Any] = {
    "role": "assistant",
    "content": "a",
    "refusal": "no",
    "reasoning": "hm",
    "reasoning_content": "hm",
    "reasoning_details": [{"type": "text", "index": 0, "text": "hm"}],
    "tool_calls": [CALL],
    "function_call": {"name": "look", "arguments": "{}"},
    "executed_tools": [{"index": 0, "type": "x", "arguments": "{}"}],
}
BODY: dict[str, Any] = {
    "id": "c1",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "delta": SAID,
            "message": SAID,
            "text": "a",
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": "a", "logprob": -1}], "tokens": ["a"], "token_logprobs": [-1]},
        }
    ],
    "usage": {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1},
        "cached_tokens": 1,
    },
    "x_groq": {"id": "r1", "usage": {"prompt_tokens": 1}, "error": None},
    "warnings": [{"message": "w"}],
    "object": "chat.completion",
}
CONTENTS: list[Any] = [
    [
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s"},
    ],
    [{"type": "refusal", "refusal": "no"}, {"type": "reference", "reference_ids": [1]}, "a", 5, None],
]


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in paths_in(item, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The same value with something else in one place, where that place is still there."""
    if not path:
        return new
    if isinstance(value, dict) and path[0] in value:
        return {**value, path[0]: changed(value[path[0]], path[1:], new)}
    if isinstance(value, list) and isinstance(path[0], int) and path[0] < len(value):
        return [*value[: path[0]], changed(value[path[0]], path[1:], new), *value[path[0] + 1 :]]
    return value


BODIES = [BODY, *(changed(BODY, ("choices", 0, kind, "content"), c) for c in CONTENTS for kind in ("delta", "message"))]
JUNK: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 10**30, float("inf"), float("-inf"), float("nan")),
    *("", "a", "null", "\ud83d", "9" * 50, [], [None], [5], ["a"], [[]], [{}], {}, {"a": 1}, {"type": []}),
    *({"index": []}, {"message": {}}, {"error": {}}, {"type": "text"}, {"type": "thinking"}, {"function": 5}),
]


@st.composite
def wires(draw: st.DrawFn) -> bytes:
    """A body with something odd in a few places."""
    body = copy.deepcopy(draw(st.sampled_from(BODIES)))
    for _ in range(draw(st.integers(1, 3))):
        body = changed(body, draw(st.sampled_from(paths_in(body))), draw(st.sampled_from(JUNK)))
    return json.dumps(body).replace("Infinity", "1e999").encode()


def read(dialect: Dialect, chunks: list[bytes], *, whole: bool, think: bool) -> Completion | None:
    """Read chunks as the provider does; None where one of them is no answer."""
    decoder, accumulator = Decoder(dialect, think_tags=think), Accumulator(provider="p", model="m")
    deltas: list[CompletionDelta] = []
    for chunk in chunks:
        try:
            found = decoder.decode(chunk, whole=whole)
        except ValueError:
            return None
        deltas += found
        for delta in found:
            accumulator.add(delta)
            assert delta.raw is None or isinstance(delta.raw, dict)
    for delta in decoder.flush():
        accumulator.add(delta)
    return accumulator.completion()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.__name__)
@given(chunks=st.lists(wires(), min_size=1, max_size=3), whole=st.booleans(), think=st.booleans())
def test_any_json_is_read_or_refused(dialect: type[Dialect], chunks: list[bytes], whole: bool, think: bool) -> None:
    """ValueError says that it is no answer; nothing else is raised, and what was read has the types it promises."""
    completion = read(dialect(), chunks, whole=whole, think=think)
    if completion is None:
        return
    texts = [completion.id, completion.model, completion.text, completion.reasoning, completion.refusal]
    texts += [text for call in completion.tool_calls for text in (call.id, call.name, call.arguments)]
    assert all(type(text) is str for text in texts)
    assert json.dumps(completion.message.model_dump(mode="json"))
    if completion.usage is not None:
        counts = (completion.usage.input_tokens, completion.usage.output_tokens, completion.usage.total_tokens)
        assert all(count is None or type(count) is int for count in counts)


DEEP: dict[str, bytes] = {
    "a list": b"[" * 100_000,
    "an object": b'{"a":' * 100_000,
    "an object that ends": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "after half an emoji": b'{"a": "\\ud83d", "b": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
}


@pytest.mark.parametrize("data", DEEP.values(), ids=DEEP.keys())
def test_what_is_nested_too_deep_is_no_answer(data: bytes) -> None:
    """It is refused before the stack ends."""
    with pytest.raises(ValueError):
        Decoder(Dialect()).decode(data)


def test_arguments_are_read_as_deep_as_the_parser_goes() -> None:
    """An object as arguments is written as text again."""
    arguments = '{"a":' * 150 + "1" + "}" * 150
    wire = '{"choices": [{"message": {"tool_calls": [{"id": "t1", "function": {"name": "f", "arguments": %s}}]}}]}'
    completion = read(Dialect(), [(wire % arguments).encode()], whole=True, think=False)
    assert completion is not None
    assert completion.tool_calls[0].arguments == arguments
