"""What a rule is, and what several vendors' rules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .._failures import Failure
from ._finding import Find, Finding

__all__ = ["INVALID", "NAME", "NUMBERS", "ORPHAN", "UNANSWERED", "Rule", "words"]

INVALID = "invalid_request_error"
NAME = r"[a-zA-Z0-9_-]{1,64}"
NUMBERS: Mapping[str, type | tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "max_tokens": int,
    "n": int,
}
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {what}"
)
ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that a vendor refuses.

    Attributes:
        name: what holds, in a few words.
        source: how it is known: `rec` a recorded exchange, `sdk` a type or text in the vendor's SDK, `seen` tried on
            the real server, `issue` an answer of the vendor's quoted in a public issue of that repository, `published`
            code or documentation of the vendor's own, `order` that each call is answered before the next user turn,
            which all services that keep to OpenAI's wire say.
        find: finds the faults in a request; the first is told.
        say: puts a fault in the vendor's words.
    """

    name: str
    source: str
    find: Find
    say: Callable[[Finding], Failure]


def words(text: str) -> frozenset[str]:
    """Give the words of a text: the fields that a vendor knows are more legible so."""
    return frozenset(text.split())
