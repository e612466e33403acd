"""What tests need that stand above a provider or below one: a provider that plays a script, a server that does.

Shipped, because authors of adapters outside this repository need it too.
"""

from __future__ import annotations

from ._loopback import Answer, Cut, Gate, LoopbackServer, ReceivedRequest, cut_body
from ._scripted import Reply, ScriptedProvider

__all__ = [
    "Answer",
    "Cut",
    "Gate",
    "LoopbackServer",
    "ReceivedRequest",
    "Reply",
    "ScriptedProvider",
    "cut_body",
]
