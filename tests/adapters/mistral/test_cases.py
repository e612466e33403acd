"""The wire cases once more, through the SDK's documented calls; `tests/chatwire` has them by its request methods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.mistral.sdk_paths import PATHS, providers_take, way_of
from agent_core.testing import LoopbackServer
from agent_core_mistral import MistralProvider
from chatwire.test_cases import WIRE_CASES, Bench, check, is_right_for
from counting import count

CASES = [case for case in WIRE_CASES if is_right_for("mistral", case)]
PLAYED = [(case, cut) for case in CASES for cut in (None, "byte") if cut is None or case["input"]["stream"]]


@pytest.fixture(scope="module")
async def bench() -> AsyncIterator[Bench]:
    """A server, and providers that take the documented calls."""
    with LoopbackServer() as server, providers_take(PATHS[1]):
        bench = Bench(server)
        provider = bench.provider_for(CASES[0], "mistral")
        assert isinstance(provider, MistralProvider)
        assert way_of(provider) == PATHS[1]
        yield bench
        await bench.close()


@pytest.mark.parametrize(("case", "cut"), PLAYED, ids=[f"{case['id']} {cut or 'as it is'}" for case, cut in PLAYED])
async def test_a_case_comes_out_the_same(case: dict[str, Any], cut: str | None, bench: Bench) -> None:
    """Completion or error are what the case calls right."""
    check(case["expected"], await bench.play(case, "mistral", cut=cut))
    count("cuts" if cut else "cases")
