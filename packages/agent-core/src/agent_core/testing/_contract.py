"""The suite that every adapter must pass, inherited by naming a cassette folder, capabilities and a provider.

    class TestGroq(ProviderContract):
        vendor = "groq"
        cassettes = Path("cassettes/groq")
        capabilities = frozenset({"tools", "reasoning"})

        def provider(self, base_url, **options):
            return GroqProvider(api_key="unused", base_url=base_url, **options)

Tests ask for a capability, never for a vendor. A capability that is declared and has no cassette fails, and so does a
cassette whose capability is not declared. A standard test may be replaced only by a strict xfail with a reason.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from .._completion import Completion, CompletionRequest
from .._messages import Message
from ..errors import ConfigError
from ._cassettes import Cassette, Player, loopback_player, vcr_player
from ._checks import differences
from ._faults import ErrorKind, FaultTests, default_error
from ._loopback import Answer
from ._scenarios import SCENARIOS, Call, Capability, Said, Scenario, Turn
from .simulator import Simulator, voice_for

__all__ = ["ProviderContract", "run_scenario"]

Mode = Literal["whole", "streamed"]
_PLAYERS: dict[str, Player] = {
    "vcr": vcr_player,
    "loopback": loopback_player("event"),
    "bytes": loopback_player("byte"),
}
# Single bytes are tried on streams alone: a whole answer is read before anything looks at it.
_WAYS = [("whole", "vcr"), ("whole", "loopback"), ("streamed", "vcr"), ("streamed", "loopback"), ("streamed", "bytes")]


class ProviderContract(FaultTests):
    """Inherit from it, name the class `Test...`, and fill in what is declared here.

    Attributes:
        vendor: what stands in the cassettes' header.
        cassettes: the folder with `<scenario>.yaml`, one for each scenario that the capabilities allow.
        capabilities: what the vendor can do; see `agent_core.testing.Capability`.
        model: the model name to ask for.
        official_url: the vendor's own address, as its SDK takes it.
        sdk: the distribution of the vendor's SDK, for the header of a cassette.
        key_variable: the environment variable with a key for recording live.
        voice: the simulator's vendor that speaks as this one does, such as `openai`: its errors are played where the
            adapter gives none, and cassettes are recorded from it where there is no key.
        extras: names that the scenario `vendor-extras` must bring in `completion.extras` or `usage.extras`.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    official_url: ClassVar[str]
    sdk: ClassVar[str]
    key_variable: ClassVar[str] = ""
    voice: ClassVar[str] = ""
    extras: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _standard_tests():
            replaced = vars(cls).get(name, ...)
            if replaced is not ... and not _is_strict_xfail(replaced):
                raise TypeError(
                    f"{cls.__name__}.{name} replaces a standard test: it can be excused with "
                    "@pytest.mark.xfail(strict=True, reason=...), but not changed or deleted"
                )

    def cassette(self, name: str) -> Cassette:
        """Load the cassette of a scenario, once for all tests."""
        return load_cassette(self.cassettes / f"{name}.yaml")

    def options_for(self, scenario: Scenario) -> Mapping[str, Any]:
        """Give further fields of the request for a scenario: what this vendor needs to show the capability."""
        return {}

    @contextmanager
    def source(self, scenario: Scenario, wanted: str) -> Generator[tuple[str, str, dict[str, Any]]]:
        """Open what a cassette is recorded from: its address, its name for the header, options for the provider."""
        if wanted == "live":
            key = os.environ.get(self.key_variable, "")
            if not key:
                raise ConfigError(f"set {self.key_variable} to record live")
            yield self.official_url, "live", {"api_key": key}
            return
        if not self.voice:
            raise ConfigError(f"{type(self).__name__}.voice names no vendor of the simulator to record from")
        with Simulator(self.voice, scenario=scenario) as simulator:
            yield simulator.base_url, "simulator", {}

    def error_answer(self, kind: ErrorKind) -> Answer:
        """Give the vendor's answer for a kind of error: its voice's, else one in OpenAI's shape."""
        if not self.voice:
            return default_error(kind)
        status, headers, body = voice_for(self.voice).error(kind)
        return Answer(status=status, headers=headers, body=body)

    def stream_error(self) -> bytes:
        """Give the bytes of an error inside a stream: the voice's, else in OpenAI's shape."""
        return voice_for(self.voice).stream_error() if self.voice else super().stream_error()

    def test_cassettes_match_capabilities(self) -> None:
        """Every scenario that the capabilities allow is recorded, and none that they do not."""
        recorded = {path.stem for path in self.cassettes.glob("*.yaml")}
        allowed = {each.name for each in SCENARIOS if each.needs <= self.capabilities}
        unknown = recorded - {each.name for each in SCENARIOS}
        assert not unknown, f"cassettes of no known scenario: {sorted(unknown)}"
        assert not allowed - recorded, f"declared but not recorded: {sorted(allowed - recorded)}"
        assert not recorded - allowed, f"recorded but not declared: {sorted(recorded - allowed)}"

    @pytest.mark.parametrize("name", ["text", "unicode", "parallel-tools", "reasoning"])
    def test_any_cut(self, name: str) -> None:
        """Wherever a stream is cut, the same completion comes out of it."""
        from hypothesis import given, settings
        from hypothesis import strategies as st

        if not (self.cassettes / f"{name}.yaml").exists():
            pytest.skip(f"{self.vendor} has no {name}")
        scenario = next(each for each in SCENARIOS if each.name == name)
        cassette = self.cassette(name)
        turns = expected_turns(scenario, cassette)
        size = max(len(each.body) for each in cassette.interactions if each.streamed)

        @settings(max_examples=12, deadline=None)
        @given(st.lists(st.integers(1, size - 1), max_size=30, unique=True))
        def check(cuts: list[int]) -> None:
            self._play(scenario, turns, cassette, "streamed", loopback_player(cuts))

        check()

    def run_recorded(self, scenario: Scenario, mode: Mode, player: str) -> None:
        """Play a scenario and compare each completion with what was said."""
        missing = scenario.needs - self.capabilities
        if missing:
            pytest.skip(f"{self.vendor} does not declare {', '.join(sorted(missing))}")
        cassette = self.cassette(scenario.name)
        turns = expected_turns(scenario, cassette)
        completions = self._play(scenario, turns, cassette, mode, _PLAYERS[player])
        if scenario.name == "vendor-extras":
            usage = completions[0].usage
            told = {**completions[0].extras, **(usage.extras if usage else {})}
            assert not set(self.extras) - set(told), f"extras lost: {sorted(set(self.extras) - set(told))}"

    def _play(
        self, scenario: Scenario, turns: tuple[Turn, ...], cassette: Cassette, mode: Mode, player: Player
    ) -> list[Completion]:
        have = functools.partial(
            run_scenario, scenario, turns, model=self.model, mode=mode, options=self.options_for(scenario)
        )
        with player(cassette) as base_url:
            completions = self.run(have, base_url)
        # An adapter may ask for a stream where a whole answer is wanted; then there is no body to keep.
        streamed = mode == "streamed" or all(each.streamed for each in cassette.interactions)
        for turn, completion in zip(turns, completions, strict=True):
            found = differences(completion, (turn.said, *turn.more), streamed=streamed)
            assert not found, "\n".join(found)
        return completions


@functools.cache
def load_cassette(path: Path) -> Cassette:
    """Load a cassette once, so that what was played of it is known at the end of the run."""
    return Cassette.load(path)


def expected_turns(scenario: Scenario, cassette: Cassette) -> tuple[Turn, ...]:
    """Give the turns with what was really said: a real model's words stand in the cassette's header."""
    expected = cassette.header.get("expected")
    if not expected:
        return scenario.turns
    return tuple(
        Turn(turn.ask, _said(choices[0]), tuple(_said(words) for words in choices[1:]))
        for turn, choices in zip(scenario.turns, expected, strict=True)
    )


def _said(words: Mapping[str, Any]) -> Said:
    calls = tuple(Call(**call) for call in words.get("calls", ()))
    return Said(**{**words, "calls": calls})


async def run_scenario(
    scenario: Scenario,
    turns: tuple[Turn, ...],
    provider: Any,
    *,
    model: str,
    mode: Mode,
    options: Mapping[str, Any] = {},
) -> list[Completion]:
    """Have the conversation of a scenario with a provider; give the completion of each turn."""
    messages: list[Message] = []
    completions: list[Completion] = []
    for place, turn in enumerate(turns):
        messages += _asked(turn, completions[-1] if completions else None)
        settings = {**scenario.options, **(scenario.first_only if place == 0 else {}), **options}
        request = CompletionRequest(model=model, messages=messages, **settings)
        if mode == "whole":
            completion = await provider.complete(request)
        else:
            async with provider.stream(request) as stream:
                pieces = [delta async for delta in stream]
            completion = stream.completion
            first = [delta for delta in pieces if delta.choice == 0]
            assert "".join(delta.text for delta in first) == completion.text, "joined deltas differ from the text"
            assert "".join(delta.reasoning for delta in first) == completion.reasoning
        completions.append(completion)
        messages.append(completion.message)
    return completions


def _asked(turn: Turn, before: Completion | None) -> list[Message]:
    """Make the messages of a turn; answers of tools get the ids of the calls before, in their order."""
    calls = iter(before.tool_calls if before else ())
    return [
        Message.tool(next(calls), ask["content"]) if ask["role"] == "tool" else Message.model_validate(ask)
        for ask in turn.ask
    ]


def _scenario_test(scenario: Scenario) -> Callable[..., None]:
    @pytest.mark.parametrize(("mode", "player"), _WAYS)
    def test(self: ProviderContract, mode: Mode, player: str) -> None:
        self.run_recorded(scenario, mode, player)

    test.__doc__ = f"The scenario {scenario.name!r} comes out as it was said, whole and streamed, in every player."
    test.__name__ = f"test_{scenario.name.replace('-', '_')}"
    test.__qualname__ = f"ProviderContract.{test.__name__}"
    return test


for _scenario in SCENARIOS:
    _made = _scenario_test(_scenario)
    setattr(ProviderContract, _made.__name__, _made)


def _standard_tests() -> list[str]:
    return [name for name in dir(ProviderContract) if name.startswith("test_")]


def _is_strict_xfail(test: Any) -> bool:
    marks = getattr(test, "pytestmark", [])
    return any(mark.name == "xfail" and mark.kwargs.get("strict") and mark.kwargs.get("reason") for mark in marks)
