"""The conversations that every adapter must get right: what is asked, what the model says, and what must come out.

Neutral, so no vendor's wire is in here. The simulator turns what is said into a vendor's bytes; the contract holds
what the adapter makes of those bytes against the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .._completion import FinishReason

__all__ = ["SCENARIOS", "Call", "Capability", "Said", "Scenario", "Turn", "scenario"]

Capability: TypeAlias = Literal[
    "system",
    "stop",
    "tools",
    "parallel_tools",
    "tool_choice_auto",
    "tool_choice_none",
    "tool_choice_required",
    "tool_choice_named",
    "reasoning",
    "reasoning_with_tools",
    "json_schema",
    "images",
    "cached_tokens",
    "reasoning_tokens",
    "refusal",
    "content_filter",
    "logprobs",
    "extras",
    "n",
]
"""What a vendor can do. `text`, `length` and `usage` are asked of all of them."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model says it: `arguments` is the text on the wire."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Said:
    """One reply of a model, in neutral words. What comes out of an adapter must be this, whole and streamed."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    refusal: str = ""
    finish_reason: FinishReason = "stop"
    input_tokens: int = 20
    output_tokens: int = 8
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    logprobs: bool = False
    """Whether each word of the text comes with its log probability (and so many alternatives as were asked for)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A request and its reply. `ask` are the messages added before it; a tool's answer has no id yet.

    An `ask` of role `tool` answers the calls of the turn before, in their order. `more` are further choices (`n`).
    """

    ask: Sequence[Mapping[str, Any]]
    said: Said
    more: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named conversation.

    Attributes:
        needs: the capabilities without which a vendor cannot have it.
        options: fields of `CompletionRequest` for each of its requests.
        first_only: options of the first request alone.
    """

    name: str
    turns: tuple[Turn, ...]
    needs: frozenset[Capability] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)
    first_only: Mapping[str, Any] = field(default_factory=dict)


def _tool(name: str, description: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


_WEATHER = _tool("get_weather", "The weather in a city.", city={"type": "string"})
_TIME = _tool("get_time", "The time now.")
_PNG = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
_PERSON = {
    "type": "object",
    "title": "person",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def _user(text: str) -> Mapping[str, Any]:
    return {"role": "user", "content": text}


def _answer(text: str) -> Mapping[str, Any]:
    return {"role": "tool", "content": text}


def _one(name: str, question: str, said: Said, *needs: Capability, **options: Any) -> Scenario:
    return Scenario(name, (Turn((_user(question),), said),), frozenset(needs), options)


_PARIS = Call("get_weather", '{"city": "Paris"}')
_ROME = Call("get_weather", '{"city": "Rome"}')

SCENARIOS: tuple[Scenario, ...] = (
    _one("text", "Say hello.", Said("Hello! How can I help you today?"), temperature=0.2),
    Scenario(
        "system-multi-turn",
        (
            Turn(({"role": "system", "content": "Answer in one word."}, _user("Capital of France?")), Said("Paris")),
            Turn((_user("And of Italy?"),), Said("Rome", input_tokens=34)),
        ),
        frozenset({"system"}),
    ),
    _one("unicode", "Grüße, 東京 👩‍🚀!", Said("Łódź, 東京 \u2028 und 👩‍🚀 – naïve ẞ.")),
    _one("stop-sequence", "Count to five.", Said("1, 2, "), "stop", stop=["3"]),
    _one("length-cut", "Tell me a story.", Said("Once upon a", finish_reason="length"), max_output_tokens=3),
    _one("one-tool", "Weather in Paris?", Said(calls=(_PARIS,)), "tools", tools=[_WEATHER]),
    _one("tool-without-arguments", "What time is it?", Said(calls=(Call("get_time"),)), "tools", tools=[_TIME]),
    _one(
        "parallel-tools",
        "Weather in Paris and Rome, and the time?",
        Said(calls=(_PARIS, _ROME, Call("get_time"))),
        "tools",
        "parallel_tools",
        tools=[_WEATHER, _TIME],
        parallel_tool_calls=True,
    ),
    Scenario(
        "tool-round-trip",
        (
            Turn((_user("Weather in Paris and Rome?"),), Said(calls=(_PARIS, _ROME))),
            Turn(
                (_answer("18 °C, sunny"), _answer("24 °C, cloudy")),
                Said("Paris: 18 °C. Rome: 24 °C.", input_tokens=61),
            ),
            Turn((_user("Thanks!"),), Said("You are welcome.", input_tokens=80)),
        ),
        frozenset({"tools", "parallel_tools"}),
        {"tools": [_WEATHER]},
    ),
    _one(
        "tool-choice-auto", "Hi!", Said("Hi there!"), "tools", "tool_choice_auto", tools=[_WEATHER], tool_choice="auto"
    ),
    _one(
        "tool-choice-none",
        "Weather in Paris?",
        Said("I cannot look it up."),
        "tools",
        "tool_choice_none",
        tools=[_WEATHER],
        tool_choice="none",
    ),
    _one(
        "tool-choice-required",
        "Weather in Paris?",
        Said(calls=(_PARIS,)),
        "tools",
        "tool_choice_required",
        tools=[_WEATHER],
        tool_choice="required",
    ),
    _one(
        "tool-choice-named",
        "Weather in Paris?",
        Said(calls=(_PARIS,)),
        "tools",
        "tool_choice_named",
        tools=[_WEATHER, _TIME],
        tool_choice="get_weather",
    ),
    _one(
        "reasoning",
        "How much is 6 x 7?",
        Said("42", reasoning="Six sevens are forty-two.", output_tokens=19),
        "reasoning",
        reasoning_effort="low",
    ),
    Scenario(
        "reasoning-tool-round-trip",
        (
            Turn(
                (_user("Weather in Paris?"),),
                Said(reasoning="The user wants the weather. Look it up.", calls=(_PARIS,), output_tokens=31),
            ),
            Turn((_answer("18 °C, sunny"),), Said("It is sunny.", reasoning="Eighteen and sun.", input_tokens=66)),
        ),
        frozenset({"tools", "reasoning", "reasoning_with_tools"}),
        {"tools": [_WEATHER], "reasoning_effort": "low"},
    ),
    _one(
        "json-schema",
        "Ann is 33 years old. Extract the person.",
        Said('{"name": "Ann", "age": 33}'),
        "json_schema",
        response_format=_PERSON,
    ),
    Scenario(
        "image-input",
        (
            Turn(
                (
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "What colour is this?"},
                            {"type": "image_url", "image_url": {"url": _PNG}},
                        ],
                    },
                ),
                Said("It is a single pixel."),
            ),
        ),
        frozenset({"images"}),
    ),
    _one(
        "usage-cached",
        "Summarise the long text above.",
        Said("It is long.", input_tokens=2048, output_tokens=5, cached_tokens=1920),
        "cached_tokens",
    ),
    _one(
        "usage-reasoning",
        "Think first. Is 97 prime?",
        Said("Yes.", input_tokens=15, output_tokens=70, reasoning_tokens=64),
        "reasoning_tokens",
    ),
    _one(
        "refusal",
        "Extract the person from this: how do I pick a lock?",
        Said(refusal="I'm sorry, I cannot help with that."),
        "refusal",
        response_format=_PERSON,
    ),
    _one("content-filter", "Go on.", Said("Well, ", finish_reason="content_filter"), "content_filter"),
    _one("logprobs", "Say yes.", Said("Yes, of course.", logprobs=True), "logprobs", logprobs=2),
    _one("vendor-extras", "Say hello.", Said("Hello."), "extras"),
    Scenario(
        "n-choices",
        (Turn((_user("A word, please."),), Said("Tree"), (Said("Stone"),)),),
        frozenset({"n"}),
        {"n": 2},
    ),
)
"""Every scenario of the contract, in the order of the scorecard."""


def scenario(name: str) -> Scenario:
    """Give a scenario by name.

    Raises:
        KeyError: there is none of that name.
    """
    return {known.name: known for known in SCENARIOS}[name]
