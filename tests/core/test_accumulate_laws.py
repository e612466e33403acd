"""The laws of putting an answer together, for any answer and any cuts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_core import Completion, Usage, accumulate
from agent_core._deltas import CallDelta, CompletionDelta
from agent_core._provider import deltas_of

texts = st.text(max_size=12)
names = st.sampled_from(["look", "save", "get_weather"])
arguments = st.sampled_from(["{}", '{"q": "x"}', '{"q": "é👩‍🚀"}', '{"q": [1, 2', ""])
usages = st.builds(Usage, st.integers(0, 99), st.integers(0, 99), st.none(), st.none(), st.none())
reasons = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])


@st.composite
def pieces(draw: st.DrawFn) -> CompletionDelta:
    """Any piece of an answer, with at most one thing that has an order within it."""
    kind = draw(st.sampled_from(["text", "reasoning", "call", "refusal", "usage", "finish", "nothing"]))
    choice = draw(st.integers(0, 1))
    match kind:
        case "text":
            return CompletionDelta(draw(texts), choice=choice)
        case "reasoning":
            return CompletionDelta(reasoning=draw(texts), choice=choice, reasoning_field="reasoning")
        case "refusal":
            return CompletionDelta(refusal=draw(texts), choice=choice)
        case "call":
            index = draw(st.integers(0, 2))
            call = CallDelta(index, f"id{draw(st.integers(0, 3))}", draw(names), draw(arguments))
            return CompletionDelta(calls=(call,), choice=choice)
        case "usage":
            return CompletionDelta(choice=None, usage=draw(usages))
        case "finish":
            reason: Any = draw(reasons)
            return CompletionDelta(choice=choice, finish_reason=reason, raw_finish_reason=reason)
    return CompletionDelta(choice=None)


answers = st.lists(pieces(), max_size=12)


def cut(delta: CompletionDelta, at: int) -> list[CompletionDelta]:
    """Cut a piece in two: its text, reasoning, refusal or arguments."""
    if delta.text:
        return [replace(delta, text=delta.text[:at]), replace(delta, text=delta.text[at:])]
    if delta.reasoning:
        return [replace(delta, reasoning=delta.reasoning[:at]), replace(delta, reasoning=delta.reasoning[at:])]
    if delta.refusal:
        return [replace(delta, refusal=delta.refusal[:at]), replace(delta, refusal=delta.refusal[at:])]
    if delta.calls:
        (call,) = delta.calls
        assert isinstance(call.arguments, str)
        first, rest = call.arguments[:at], call.arguments[at:]
        later = CallDelta(call.index, call.id, None, rest)
        return [replace(delta, calls=(replace(call, arguments=first),)), replace(delta, calls=(later,))]
    return [delta]


@given(answers, st.lists(st.integers(0, 12), min_size=12, max_size=12))
def test_cutting_pieces_changes_nothing(deltas: list[CompletionDelta], places: list[int]) -> None:
    """Text, reasoning, refusals and arguments may arrive in any pieces."""
    finer = [part for delta, at in zip(deltas, places, strict=False) for part in cut(delta, at)]
    assert accumulate(finer) == accumulate(deltas[: len(places)])


@given(answers, st.lists(st.integers(0, 12), max_size=6))
def test_empty_pieces_change_nothing(deltas: list[CompletionDelta], places: list[int]) -> None:
    """A piece that carries nothing may come anywhere."""
    padded = list(deltas)
    for place in places:
        padded.insert(place, CompletionDelta(choice=None))
    assert accumulate(padded) == accumulate(deltas)


@given(answers, st.lists(usages, min_size=1, max_size=4))
def test_usage_is_the_last_one_said(deltas: list[CompletionDelta], counts: list[Usage]) -> None:
    """Token counts within one answer are running totals; they are never added up."""
    told = [CompletionDelta(choice=None, usage=usage) for usage in counts]
    assert accumulate([*deltas, *told]).usage == counts[-1]


@given(answers, st.lists(reasons, min_size=1, max_size=3))
def test_finish_reason_is_the_last_one_said(deltas: list[CompletionDelta], said: list[Any]) -> None:
    """A finish reason may be said twice, and does not end the choice."""
    ends = [CompletionDelta(finish_reason=reason, raw_finish_reason=reason) for reason in said]
    assert accumulate([*deltas, *ends]).raw_finish_reason == said[-1]


@given(answers)
def test_ids_are_there_and_distinct(deltas: list[CompletionDelta]) -> None:
    """Every call of a message has an id of its own, whatever came on the wire, and each time the same one."""
    for choice in accumulate(deltas).choices:
        ids = [call.id for call in choice.message.tool_calls]
        assert all(ids) and len(set(ids)) == len(ids)
    assert accumulate(deltas) == accumulate(deltas)


@given(answers)
def test_a_completion_taken_apart_comes_together_again(deltas: list[CompletionDelta]) -> None:
    """`deltas_of` loses nothing that a completion holds, but its raw body."""
    whole = accumulate([*deltas, CompletionDelta(finish_reason="stop", raw_finish_reason="stop")])
    again = accumulate(deltas_of(whole), model=whole.model)
    assert _comparable(again) == _comparable(whole)


def _comparable(completion: Completion) -> Any:
    told = {field.name: getattr(completion, field.name) for field in fields(completion)}
    told["choices"] = [
        (choice.index, choice.message.parts, choice.finish_reason, choice.logprobs) for choice in completion.choices
    ]
    for derived in ("message", "raw_finish_reason"):
        del told[derived]
    return told
