"""The library's own adapters talk to the simulator: it takes their requests, and they read what it said.

The contract does the same with cassettes; here nothing is recorded, so a request that a vendor would refuse shows.
"""

from __future__ import annotations

from typing import Literal

import pytest

from agent_core.testing._checks import differences
from agent_core.testing._contract import run_scenario
from agent_core.testing._scenarios import Scenario
from agent_core.testing.simulator import Simulator
from counting import count
from simulator.asking import MODELS, PLAYED
from vendors import VENDORS, provider_of

PLAYED_BY_ADAPTERS = [(vendor, scenario) for vendor, scenario in PLAYED if vendor in VENDORS]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["whole", "streamed"])
@pytest.mark.parametrize(("vendor", "scenario"), PLAYED_BY_ADAPTERS, ids=lambda each: getattr(each, "name", each))
async def test_an_adapter_and_the_simulator_agree(
    vendor: str, scenario: Scenario, mode: Literal["whole", "streamed"]
) -> None:
    """Over the vendor's real SDK, no request is refused and nothing is read otherwise than it was said."""
    with Simulator(vendor, scenario) as simulator:
        async with provider_of(vendor, simulator.base_url) as provider:
            completions = await run_scenario(scenario, scenario.turns, provider, model=MODELS[vendor], mode=mode)
    for turn, completion in zip(scenario.turns, completions, strict=True):
        assert differences(completion, (turn.said, *turn.more), streamed=mode == "streamed") == []
    count("conversations of adapters with the simulator")
