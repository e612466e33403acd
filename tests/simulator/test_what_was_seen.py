"""What a voice sends, its vendor was recorded to send: each answer and chunk has the paths and types of a real one."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from agent_core.testing._scenarios import SCENARIOS, Scenario
from agent_core.testing.simulator import VENDORS, voice_for
from agent_core.testing.simulator._failures import FAILURES
from agent_core.testing.simulator._support import UNSUPPORTED
from counting import count
from recordings.oracle import chunks_of, recordings_folder
from simulator.asking import PLAYED, body_for, conversation
from simulator.seen import Shape, recordings_of, seen_of, strange_in

if recordings_folder() is None:
    pytest.skip("AGENT_CORE_RECORDINGS names no folder with recordings", allow_module_level=True)

_LOGPROBS = {
    "$.choices[].logprobs: object",
    "$.choices[].logprobs.content: list",
    "$.choices[].logprobs.content[]: object",
    "$.choices[].logprobs.content[].top_logprobs: list",
    "$.choices[].logprobs.content[].top_logprobs[]: object",
    *(
        f"$.choices[].logprobs.content[]{of}.{field}"
        for of in ("", ".top_logprobs[]")
        for field in ("id: int", "token: str", "logprob: float", "bytes: list", "bytes[]: int")
    ),
}
KNOWN_OTHERWISE: dict[tuple[str, str], set[str]] = {
    # recorded in a stream: groq/stream-reasoning-length
    ("groq", "whole"): {"$.usage.prompt_tokens_details: object", "$.usage.prompt_tokens_details.cached_tokens: int"},
    # tried on a real llama.cpp server
    ("local", "whole"): _LOGPROBS,
    ("local", "chunks"): _LOGPROBS,
}
"""Paths that are in no recording, and how they are known all the same."""

NEVER_TOGETHER = {
    # reasoning and calls, each of which was recorded, in one answer
    ("mistral", "whole", "reasoning-tool-round-trip"),
    ("together", "whole", "reasoning-tool-round-trip"),
    ("local", "whole", "reasoning-tool-round-trip"),
    # the end of a choice that is not the last
    ("together", "chunks", "n-choices"),
}
"""Where all paths of a value were recorded, but no recorded value has them all."""


def differences(vendor: str, scenario: Scenario) -> Iterator[tuple[str, Shape, Shape]]:
    """Hold every turn, whole and per chunk, against what was recorded.

    Give each value's kind, what no single recorded value has of it, and what none has.
    """
    voice, seen = voice_for(vendor), seen_of(vendor)
    for turn, (_, messages) in zip(scenario.turns, conversation(scenario), strict=True):
        said = (turn.said, *turn.more)
        whole = voice.body(said, body_for(vendor, scenario, messages, stream=False))
        chunks = voice.chunks(said, body_for(vendor, scenario, messages, stream=True))
        for kind, values, shapes in (("whole", [whole], seen.whole), ("chunks", chunks, seen.chunks)):
            for value in values:
                strange = strange_in(value, shapes)
                yield kind, strange, strange - frozenset().union(*shapes)


@pytest.mark.parametrize(("vendor", "scenario"), PLAYED, ids=lambda each: getattr(each, "name", each))
def test_every_answer_and_chunk_is_like_a_recorded_one(vendor: str, scenario: Scenario) -> None:
    """All its paths, with the types of their values, are in one recorded answer or chunk of the vendor."""
    for kind, strange, never in differences(vendor, scenario):
        assert never <= KNOWN_OTHERWISE.get((vendor, kind), set())
        assert never == strange or (vendor, kind, scenario.name) in NEVER_TOGETHER, sorted(strange)
        count(f"simulated {'answers' if kind == 'whole' else kind}")


def test_nothing_is_excused_that_is_not_sent() -> None:
    """The two tables hold only what is needed."""
    never: dict[tuple[str, str], set[str]] = defaultdict(set)
    combined = set()
    for vendor, scenario in PLAYED:
        for kind, strange, unseen in differences(vendor, scenario):
            never[vendor, kind] |= unseen
            combined |= {(vendor, kind, scenario.name)} if strange != unseen else set()
    assert {place: paths for place, paths in never.items() if paths} == KNOWN_OTHERWISE
    assert combined == NEVER_TOGETHER


QUOTED_ERRORS = {
    # issue: huggingface/smolagents 757 and others quote a null code
    "mistral": {"$.code: NoneType"},
    # issue: thepersonalaicompany/amurex-backend 51 quotes a param
    "groq": {"$.error.param: str"},
}
"""Paths in errors that are in no recording, and who quotes them."""


@pytest.mark.parametrize("vendor", [vendor for vendor in VENDORS if vendor != "together"])
def test_every_error_is_like_a_recorded_one(vendor: str) -> None:
    """Errors have a form, too. Together has no recorded error."""
    voice, seen = voice_for(vendor), seen_of(vendor)
    told = [json.loads(voice.error(kind).body) for kind in FAILURES[vendor]]
    for error in [*told, *chunks_of(voice.stream_error().decode())]:
        assert strange_in(error, seen.errors) <= QUOTED_ERRORS.get(vendor, set())
        count("simulated errors")


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_stream_ends_as_the_vendor_ends_it(vendor: str) -> None:
    """With `[DONE]`, as every recorded stream of the vendor that did not fail."""
    endings = Counter(
        recording.sse.rstrip().endswith("data: [DONE]")
        for recording in recordings_of(vendor)
        if recording.is_stream and "stream-error" not in recording.name
    )
    assert set(endings) == {True}
    (scenario,) = (scenario for scenario in SCENARIOS if scenario.name == "text")
    ((said, messages),) = conversation(scenario)
    events = voice_for(vendor).events((said,), body_for(vendor, scenario, messages, stream=True))
    assert events.endswith(b"\n\ndata: [DONE]\n\n")


@pytest.mark.parametrize("vendor", VENDORS)
def test_content_types_were_seen(vendor: str) -> None:
    """The content type of an answer is one that the vendor was recorded to send."""
    voice = voice_for(vendor)
    for stream in (False, True):
        recorded = {each.headers.get("content-type") for each in recordings_of(vendor) if each.is_stream is stream}
        assert voice.headers(stream=stream)["content-type"] in recorded


def test_each_capability_is_there_or_has_a_reason() -> None:
    """One table says what each voice cannot do, and why; it names every vendor there is a voice for."""
    assert set(UNSUPPORTED) == set(VENDORS)
    for vendor, reasons in UNSUPPORTED.items():
        assert voice_for(vendor).supports.isdisjoint(reasons)
        assert all(reasons.values())
