"""What the contracts of the project's own adapters have in common: a simulated vendor tells capabilities and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_core.testing import Answer, ErrorKind, ProviderContract
from agent_core.testing.simulator import voice_for

CASSETTES = Path(__file__).parents[1] / "cassettes"


class SimulatedContract(ProviderContract):
    """Fills in what follows from the vendor's name."""

    def __init_subclass__(cls, **options: Any) -> None:
        cls.cassettes = CASSETTES / cls.vendor
        cls.capabilities = voice_for(cls.vendor).supports
        super().__init_subclass__(**options)

    def error_answer(self, kind: ErrorKind) -> Answer:
        status, headers, body = voice_for(self.vendor).error(kind)
        return Answer(status=status, headers=headers, body=body)

    def stream_error(self) -> bytes:
        return voice_for(self.vendor).stream_error()
