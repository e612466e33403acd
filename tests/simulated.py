"""What the contracts of the project's own adapters have in common: the vendor's name tells folder and capabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_core.testing import ProviderContract
from agent_core.testing.simulator import voice_for

CASSETTES = Path(__file__).parents[1] / "cassettes"


class SimulatedContract(ProviderContract):
    """Fills in what follows from the vendor's name."""

    def __init_subclass__(cls, **options: Any) -> None:
        cls.voice = cls.vendor
        cls.cassettes = CASSETTES / cls.vendor
        cls.capabilities = voice_for(cls.vendor).supports
        super().__init_subclass__(**options)
