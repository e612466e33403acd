"""Counts what the tests went through: recordings replayed, cuts tried, cases held. conftest prints the sums at the end.

A green line says how many tests ran, not how many exchanges one of them went through; these numbers do.
"""

from __future__ import annotations

from collections import Counter

__all__ = ["count", "totals"]

_counted: Counter[str] = Counter()


def count(what: str, times: int = 1) -> None:
    """Add to a named sum: `count("recordings")` once the recording has been held against its expectation."""
    _counted[what] += times


def totals() -> dict[str, int]:
    """The sums so far, in the order of their first count."""
    return dict(_counted)
