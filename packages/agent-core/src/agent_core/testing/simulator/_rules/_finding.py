"""What a fault in a request is: where it is, and what was found there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Find", "Finding", "Request"]

Request: TypeAlias = Mapping[str, Any]


class Finding(NamedTuple):
    """A fault: where in the body it is, and what was found there. `role` is that of the message it is in."""

    path: tuple[str | int, ...]
    what: Any = None
    role: str = ""

    @property
    def dotted(self) -> str:
        """The place as `messages[1].content`."""
        first, *rest = self.path
        return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)


Find: TypeAlias = Callable[[Request], Iterator[Finding]]
