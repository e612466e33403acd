"""What tests need that stand above a provider or below one: fakes, a loopback server, and the contract of adapters.

Shipped, because authors of adapters outside this repository need it too. `ScriptedProvider` and `LoopbackServer` need
nothing but agent-core; the contract and the cassettes need the extra `testing` (pytest, vcrpy, hypothesis).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._loopback import Answer, Cut, Gate, LoopbackServer, ReceivedRequest, cut_body
from ._scenarios import SCENARIOS, Call, Capability, Said, Scenario, Turn, scenario
from ._scripted import Reply, ScriptedProvider

if TYPE_CHECKING:
    from ._cassettes import Cassette, Interaction, loopback_player, vcr_player
    from ._contract import ProviderContract
    from ._faults import ErrorKind, default_error

__all__ = [
    "SCENARIOS",
    "Answer",
    "Call",
    "Capability",
    "Cassette",
    "Cut",
    "ErrorKind",
    "Gate",
    "Interaction",
    "LoopbackServer",
    "ProviderContract",
    "ReceivedRequest",
    "Reply",
    "Said",
    "Scenario",
    "ScriptedProvider",
    "Turn",
    "cut_body",
    "default_error",
    "loopback_player",
    "scenario",
    "vcr_player",
]

# Imported at first use: they need pytest and PyYAML, which only the extra brings.
_LAZY = {
    "Cassette": "_cassettes",
    "ErrorKind": "_faults",
    "Interaction": "_cassettes",
    "ProviderContract": "_contract",
    "default_error": "_faults",
    "loopback_player": "_cassettes",
    "vcr_player": "_cassettes",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
