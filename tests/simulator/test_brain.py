"""Without a script the simulator replies by a few rules, so that an agent can be tried without a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.testing._scenarios import Call
from agent_core.testing.simulator import Brain, instance_of

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 3}},
            "required": ["city", "days"],
        },
    },
}
ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}


def asked(content: Any, **fields: Any) -> dict[str, Any]:
    """A request with one message of the user's."""
    return {"model": "m", "messages": [{"role": "user", "content": content}], **fields}


def test_it_repeats_the_user() -> None:
    """Where nothing else is asked for, in one short sentence."""
    (said,) = Brain().reply(asked("Hello  there."))
    assert (said.text, said.finish_reason, said.output_tokens) == ("You said: Hello there.", "stop", 4)


def test_it_reads_text_parts() -> None:
    """A message of parts is read as its text."""
    parts = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "What is this?"}]
    assert Brain().reply(asked(parts))[0].text == "You said: What is this?"


@pytest.mark.parametrize(
    ("text", "choice", "called"),
    [
        ("Use get_weather, please.", None, "get_weather"),
        ("Use get_weather, please.", "auto", "get_weather"),
        ("Use add or get_weather.", "auto", "get_weather"),
        ("Use get_weather, please.", "none", None),
        ("What about the address?", "auto", None),
        ("Hello.", "auto", None),
        ("Hello.", "required", "get_weather"),
        ("Hello.", "any", "get_weather"),
        ("Hello.", {"type": "function", "function": {"name": "add"}}, "add"),
    ],
)
def test_it_calls_a_tool(text: str, choice: Any, called: str | None) -> None:
    """The first that is offered where it must, the first that the user names where it may."""
    fields = {} if choice is None else {"tool_choice": choice}
    (said,) = Brain().reply(asked(text, tools=[WEATHER, ADD], **fields))
    assert [call.name for call in said.calls] == ([called] if called else [])


def test_arguments_satisfy_the_schema_of_the_tool() -> None:
    """What is required is there."""
    (said,) = Brain().reply(asked("Call get_weather.", tools=[WEATHER]))
    assert said.calls == (Call("get_weather", '{"city": "example", "days": 3}'),)


def test_it_says_what_the_tools_answered() -> None:
    """All of the last results, in their order; it does not call again."""
    messages = [
        {"role": "user", "content": "Use get_weather."},
        {"role": "tool", "content": "of an earlier turn"},
        {"role": "assistant", "tool_calls": [{"id": "1"}, {"id": "2"}]},
        {"role": "tool", "tool_call_id": "1", "content": "18 °C"},
        {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "24 °C"}]},
    ]
    (said,) = Brain().reply({"messages": messages, "tools": [WEATHER]})
    assert (said.text, said.calls) == ("The tool says: 18 °C; 24 °C", ())


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {"properties": {}}}}, "{}"),
        ({"type": "json_schema", "schema": {"enum": ["a", "b"]}}, '"a"'),
        ({"type": "json_object"}, "{}"),
        ({"type": "text"}, "You said: Hello."),
    ],
)
def test_it_answers_in_the_form_asked_for(form: dict[str, Any], text: str) -> None:
    """A schema is filled, JSON is an object."""
    assert Brain().reply(asked("Hello.", response_format=form))[0].text == text


def test_it_stops_and_is_cut() -> None:
    """At the first stop sequence, and at the token limit under either name."""
    assert Brain().reply(asked("one two three", stop=["three", "two"]))[0].text == "You said: one "
    assert Brain().reply(asked("one two three", stop="two"))[0].text == "You said: one "
    for limit in ("max_tokens", "max_completion_tokens"):
        (said,) = Brain().reply(asked("one two three", **{limit: 3}))
        assert (said.text, said.finish_reason) == ("You said: one", "length")


def test_it_gives_as_many_choices_as_asked_for() -> None:
    """And log probabilities where they are asked for."""
    said = Brain().reply(asked("Hello.", n=3, logprobs=True))
    assert len(said) == 3
    assert all(each.logprobs for each in said)


def test_what_it_says_may_be_overridden() -> None:
    """A subclass says something else and leaves the rest."""

    class Parrot(Brain):
        def say(self, request: Any) -> str:
            return "Squawk."

    assert Parrot().reply(asked("Hello."))[0].text == "Squawk."
    assert Parrot().reply(asked("get_weather", tools=[WEATHER]))[0].calls


SCHEMAS: list[tuple[dict[str, Any], Any]] = [
    ({}, "example"),
    ({"type": "string", "minLength": 9}, "examplexx"),
    ({"type": "string", "maxLength": 2}, "ex"),
    ({"type": "string", "format": "date"}, "2026-01-01"),
    ({"type": ["null", "string"]}, None),
    ({"type": "integer"}, 1),
    ({"type": "integer", "maximum": -4}, -4),
    ({"type": "number", "exclusiveMinimum": 7}, 8),
    ({"type": "boolean"}, True),
    ({"type": "array", "items": {"type": "integer"}}, []),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
    ({"type": "array", "prefixItems": [{"const": "a"}], "items": {"type": "null"}, "minItems": 2}, ["a", None]),
    ({"const": 5}, 5),
    ({"default": "d", "type": "string"}, "d"),
    ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
    (
        {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["b"]}], "$defs": {"A": {"properties": {"b": {"const": 1}}}}},
        {"b": 1},
    ),
    ({"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": {"A": {"enum": [3]}}}, {"a": 3}),
    ({"type": "object", "properties": {"a": {}}}, {}),
]


@pytest.mark.parametrize(("schema", "value"), SCHEMAS, ids=[str(at) for at in range(len(SCHEMAS))])
def test_the_least_value_of_a_schema(schema: dict[str, Any], value: Any) -> None:
    """What is required, and no more."""
    assert instance_of(schema) == value


def test_a_schema_that_contains_itself_ends() -> None:
    """With null, where it is deep enough."""
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    value = instance_of(node)
    depth = 0
    while value is not None:
        value, depth = value["next"], depth + 1
    assert 1 < depth < 50


@given(st.text(), st.lists(st.text(max_size=3), max_size=3))
def test_no_stop_sequence_is_left(text: str, stop: list[str]) -> None:
    """Whatever is said and however it is to be stopped."""
    (said,) = Brain().reply(asked(text, stop=stop))
    assert not any(word in said.text for word in stop if word)
