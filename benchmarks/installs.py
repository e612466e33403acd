"""How many distributions `agent-core` alone installs, itself included: what its requirements lead to, from metadata.

Counted without a network, from what is installed here; requirements of extras and of other platforms do not count.
"""

from __future__ import annotations

from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ._measuring import Row
from ._server import Server

__all__ = ["measure"]

_AT_MOST = 9


async def measure(server: Server, quick: bool) -> list[Row]:
    """Follow the requirements of agent-core."""
    found: set[str] = set()
    waiting = ["agent-core"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for line in requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(needed.name))
    print(f"agent-core alone installs: {', '.join(sorted(found))}")
    return [Row("installs", "agent-core", len(found), "", _AT_MOST)]
