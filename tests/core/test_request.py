"""The door for requests: what a `CompletionRequest` takes, and how it names what it refuses."""

from __future__ import annotations

import math
import pickle
from typing import Any, Generic, TypeVar

import pytest
from openai.types.shared_params import FunctionDefinition as OpenAIFunction
from pydantic import BaseModel, ValidationError

from agent_core import CompletionRequest, FunctionDefinition, Message, Model, ToolDefinition
from agent_core.chatwire import Dialect
from agent_core.chatwire._encode import encode_request
from agent_core.testing import ScriptedProvider

HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
SAVE: dict[str, Any] = {"type": "function", "function": {"name": "save"}}
T = TypeVar("T")


class Answer(BaseModel):
    """An answer with a place for each fact."""

    fact: str


class Many(BaseModel, Generic[T]):
    """Several of a kind."""

    items: list[T]


def asked(**fields: Any) -> CompletionRequest:
    """A request with these fields."""
    return CompletionRequest(**{"messages": HI, **fields})


def written(request: CompletionRequest) -> dict[str, Any]:
    """Its body on the common wire."""
    return encode_request(request.model_copy(update={"model": "m"}), Dialect(), provider="p", stream=False)


TAKEN: dict[str, tuple[dict[str, Any], str, Any]] = {
    "no stop": ({}, "stop", None),
    "one stop": ({"stop": "END"}, "stop", ["END"]),
    "stops as a tuple": ({"stop": ("a", "b")}, "stop", ["a", "b"]),
    "tool_choice auto": ({"tool_choice": "auto"}, "tool_choice", "auto"),
    "tool_choice none without tools": ({"tool_choice": "none"}, "tool_choice", "none"),
    "tool_choice required": ({"tools": [LOOK], "tool_choice": "required"}, "tool_choice", "required"),
    "tool_choice by name": ({"tools": [LOOK, SAVE], "tool_choice": "save"}, "tool_choice", "save"),
    "tool_choice in OpenAI's form": (
        {"tools": [LOOK], "tool_choice": {"type": "function", "function": {"name": "look"}}},
        "tool_choice",
        "look",
    ),
    "tools as a tuple": (
        {"tools": (LOOK,)},
        "tools",
        [ToolDefinition(function=FunctionDefinition(name="look", parameters={"type": "object"}))],
    ),
    "a schema": ({"response_format": {"type": "object"}}, "response_format", {"type": "object"}),
    "a pydantic class": ({"response_format": Answer}, "response_format", Answer),
    "no alternatives": ({"logprobs": 0}, "logprobs", 0),
    "an int as temperature": ({"temperature": 0}, "temperature", 0.0),
}


@pytest.mark.parametrize(("fields", "name", "value"), TAKEN.values(), ids=TAKEN.keys())
def test_a_field_is_taken_in_each_of_its_forms(fields: dict[str, Any], name: str, value: Any) -> None:
    """And kept in one."""
    assert getattr(asked(**fields), name) == value


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no messages": ({"messages": []}, "messages", "at least 1 item"),
    "messages that are a text": ({"messages": "hi"}, "messages", "valid list"),
    "one message, not in a list": ({"messages": HI[0]}, "messages", "valid list"),
    "a misspelled field": ({"max_tokens": 5}, "max_tokens", "Extra inputs are not permitted"),
    "a model that is no text": ({"model": 5}, "model", "valid string"),
    "tool_choice of no tool": ({"tools": [LOOK], "tool_choice": "lok"}, "", "'lok' is not 'auto', .* one of: look"),
    "tool_choice of a tool without tools": ({"tool_choice": "look"}, "", "one of: no tools"),
    "tool_choice required without tools": ({"tool_choice": "required"}, "", "'required' needs 'tools'"),
    "tool_choice required with no tools": ({"tools": [], "tool_choice": "required"}, "", "'required' needs 'tools'"),
    "tool_choice that is true": ({"tool_choice": True}, "tool_choice", "valid string"),
    "tool_choice in a form nobody knows": ({"tool_choice": {"type": "any"}}, "tool_choice", "valid string"),
    "a tool without function": ({"tools": [{"name": "look"}]}, "tools", "Field required"),
    "a tool of another type": ({"tools": [{**LOOK, "type": "web_search"}]}, "tools", "'function'"),
    "a tool that is a text": ({"tools": ["look"]}, "tools", "valid dictionary"),
    "parameters that are no object": (
        {"tools": [{"function": {"name": "look", "parameters": {"type": "array"}}}]},
        "tools",
        "schema of type 'object', not 'array'",
    ),
    "no tokens": ({"max_output_tokens": 0}, "max_output_tokens", "greater than 0"),
    "half a token": ({"max_output_tokens": 1.5}, "max_output_tokens", "valid integer"),
    "no answers": ({"n": 0}, "n", "greater than or equal to 1"),
    "fewer than no alternatives": ({"logprobs": -1}, "logprobs", "greater than or equal to 0"),
    "no time": ({"timeout": 0}, "timeout", "greater than 0"),
    "endless time": ({"timeout": math.inf}, "timeout", "finite number"),
    "a temperature that is no number": ({"temperature": math.nan}, "temperature", "finite number"),
    "an endless temperature": ({"temperature": math.inf}, "temperature", "finite number"),
    "a stop that is a number": ({"stop": [5]}, "stop", "valid string"),
    "a response format that is another class": ({"response_format": dict}, "response_format", "BaseModel"),
    "a response format that is an instance": ({"response_format": Answer(fact="a")}, "response_format", "valid"),
    "extra that is a list": ({"extra": ["a"]}, "extra", "valid dictionary"),
}


@pytest.mark.parametrize(("fields", "name", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_field_is_refused_by_name(fields: dict[str, Any], name: str, told: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ValidationError, match=told) as caught:
        asked(**fields)
    assert [str(error["loc"][0]) for error in caught.value.errors() if error["loc"]][:1] == ([name] if name else [])


@pytest.mark.parametrize("name", ["look", "Look_2", "a-b", "x" * 64, "_", "-"])
def test_a_tool_name_of_letters_digits_and_dashes_is_taken(name: str) -> None:
    """1 to 64 of them."""
    assert FunctionDefinition(name=name).name == name


@pytest.mark.parametrize("name", ["", "x" * 65, "look up", "functions.look", "lööк", "look\n", "a/b", "look<|x|>"])
def test_a_tool_name_that_vendors_refuse_is_refused_here(name: str) -> None:
    """With what is right, and before a model is asked."""
    with pytest.raises(ValidationError, match="must be 1 to 64 letters, digits, '_' or '-'"):
        asked(tools=[{"function": {"name": name}}])


def test_fields_of_a_tool_that_nobody_knows_are_sent() -> None:
    """In the function and beside it; what is not said is not sent."""
    tool = {"type": "function", "function": {"name": "look", "description": "d", "x": 1}, "cache_control": {"y": 2}}
    sent = {"name": "look", "description": "d", "parameters": {"type": "object", "properties": {}}, "x": 1}
    assert written(asked(tools=[tool]))["tools"] == [{"type": "function", "function": sent, "cache_control": {"y": 2}}]
    assert asked(tools=[LOOK]).tools[0].name == "look"  # type: ignore[index]


def test_none_in_a_tool_is_as_good_as_nothing() -> None:
    """SDKs dump their own definitions so."""
    function: OpenAIFunction = {"name": "look"}
    dumped = {**function, "description": None, "parameters": None, "strict": None}
    assert asked(tools=[{"function": dumped}]) == asked(tools=[{"function": function}])


@pytest.mark.parametrize(
    ("wanted", "name", "strict"),
    [
        (Answer, "Answer", False),
        (Many[Answer], "Many_Answer_", False),
        ({"type": "object", "properties": {}, "additionalProperties": False}, "answer", True),
        ({"title": "My answer: it's é", "type": "object"}, "My_answer__it_s__", False),
        ({"title": "x" * 100, "type": "object"}, "x" * 64, False),
    ],
)
def test_the_name_of_a_response_format_is_one_that_vendors_take(wanted: Any, name: str, strict: bool) -> None:
    """Letters, digits, `_` and `-`, whatever the class or title is called."""
    body = written(asked(response_format=wanted))["response_format"]
    assert body["type"] == "json_schema"
    assert (body["json_schema"]["name"], body["json_schema"]["strict"]) == (name, strict)


@pytest.mark.parametrize("kind", ["json_object", "text", "json_schema"])
def test_a_response_format_in_openais_form_is_sent_as_it_is(kind: str) -> None:
    """Whoever writes it knows the wire."""
    assert written(asked(response_format={"type": kind}))["response_format"] == {"type": kind}


def test_extra_is_sent_over_all_others() -> None:
    """As it is."""
    body = written(asked(temperature=0.5, extra={"temperature": None, "x": {"y": [1]}}))
    assert (body["temperature"], body["x"]) == (None, {"y": [1]})


def test_a_request_can_be_pickled_and_dumped() -> None:
    """A run may go on in another process."""
    request = asked(model="m", tools=[LOOK], tool_choice="look", stop="END", response_format=Answer)
    assert pickle.loads(pickle.dumps(request)) == request
    plain = asked(model="m", tools=[LOOK], tool_choice="look", stop="END")
    assert CompletionRequest.model_validate_json(plain.model_dump_json()) == plain


def model(**settings: Any) -> Model:
    """A model with settings."""
    return Model(ScriptedProvider(), "m", settings)


@pytest.mark.parametrize(
    "prompt", ["hi", Message.user("hi"), HI, (Message.user("hi"),), CompletionRequest(messages=HI)],
    ids=["text", "message", "dicts", "tuple", "request"],
)  # fmt: skip
def test_a_model_is_asked_with_a_text_messages_or_a_request(prompt: Any) -> None:
    """All of them become the same request."""
    assert model().request(prompt) == asked(model="m")


def test_what_a_request_says_counts_before_settings() -> None:
    """Then what is said with the call, then the model's own."""
    made = model(temperature=0.1, top_p=0.1, seed=1).request(asked(seed=3), top_p=0.2, seed=2)
    assert (made.temperature, made.top_p, made.seed) == (0.1, 0.2, 3)
    assert model().request(asked(model="other")).model == "other"
    assert model().request(asked(model="")).model == "m"


def test_settings_that_are_no_fields_are_the_vendors() -> None:
    """They join `extra`, which counts before them."""
    made = model(top_k=5, extra={"min_p": 0.1}).request("hi", service_tier="flex")
    assert made.extra == {"top_k": 5, "service_tier": "flex", "min_p": 0.1}
    assert model(top_k=5).request(asked(extra={"top_k": 7})).extra == {"top_k": 7}
    assert model(top_k=5, extra={"min_p": 0.1}).request("hi", extra={"min_p": 0.2}).extra == {"top_k": 5, "min_p": 0.2}


@pytest.mark.parametrize("settings", [{"max_output_tokens": -1}, {"extra": None}, {"extra": ["a"], "top_k": 5}])
def test_a_wrong_setting_is_refused_by_name(settings: dict[str, Any]) -> None:
    """When a request is made of it."""
    with pytest.raises(ValidationError, match=next(iter(settings))):
        model(**settings).request("hi")


@pytest.mark.parametrize("prompt", [5, None, HI[0], b"hi"])
def test_what_is_no_prompt_is_refused(prompt: Any) -> None:
    """One dict is not a list of them, and bytes are no text."""
    with pytest.raises(ValidationError, match="messages"):
        model().request(prompt)
