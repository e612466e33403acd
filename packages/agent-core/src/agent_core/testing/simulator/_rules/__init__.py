"""What each vendor refuses: a table of rules, each with the fault, the vendor's words for it, and how it is known.

A rule is here where the vendor has been seen to refuse, or publishes that it does. What no one has seen refused is let
through, even where it looks wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._failures import Failure
from . import _groq, _local, _mistral, _openai, _together
from ._rule import INVALID, Rule

__all__ = ["RULES", "Rule", "refusal_of"]

RULES: Mapping[str, tuple[Rule, ...]] = {
    "openai": _openai.RULES,
    "groq": _groq.RULES,
    "mistral": _mistral.RULES,
    "together": _together.RULES,
    "local": _local.RULES,
}
"""The rules of each vendor, in the order in which they are tried. The first that is broken is told."""

_UNREADABLE: Mapping[str, Failure] = {
    "openai": Failure(400, "We could not parse the JSON body of your request.", INVALID),
    "groq": Failure(400, "The body of the request is not valid JSON.", INVALID),
    "mistral": Failure(400, "The body of the request is not valid JSON.", INVALID),
    "together": Failure(400, "The body of the request is not valid JSON.", INVALID),
    "local": Failure(400, "[json.exception.parse_error.101] parse error: syntax error while parsing value", INVALID),
}
"""Seen on llama.cpp. Of the others only the status is certain."""


def refusal_of(vendor: str, request: Any) -> Failure | None:
    """Give the error with which this vendor would answer a request body, or None where it takes it.

    Args:
        vendor: whose rules hold.
        request: the body, parsed; None for one that is no JSON.

    Raises:
        KeyError: there are no rules for this vendor.
    """
    if not isinstance(request, dict):
        return _UNREADABLE[vendor]
    for rule in RULES[vendor]:
        if (finding := next(rule.find(request), None)) is not None:
            return rule.say(finding)
    return None
