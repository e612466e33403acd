"""What each vendor's voice cannot do, and how that is known. What is not listed, it can.

A voice does what its vendor has been recorded to do: every field that it sends has been seen in a real answer of that
vendor. So a capability is missing here for one of two reasons: the vendor has no such thing, or nobody has recorded it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from .._scenarios import Capability

__all__ = ["UNSUPPORTED", "supported_by"]

_NO_REFUSAL = "its messages have no such field"
_NO_FILTER = "in no recording, and no finish reason of its SDK"
_NOT_APART = "its usage does not count them apart"

UNSUPPORTED: Mapping[str, Mapping[Capability, str]] = {
    "openai": {
        "reasoning": "its chat completions never carry reasoning text, only the number of its tokens",
        "reasoning_with_tools": "as reasoning",
    },
    "groq": {
        "n": "more than one choice is refused with 400",
        "logprobs": "no model supports them, says its SDK; null in every recording",
        "refusal": _NO_REFUSAL,
        "content_filter": _NO_FILTER,
    },
    "mistral": {
        "logprobs": "two models refuse them with code 3051; no recording has any",
        "refusal": _NO_REFUSAL,
        "content_filter": _NO_FILTER,
        "reasoning_tokens": _NOT_APART,
    },
    "together": {
        "logprobs": "null in every recording; its SDK types them in a form of their own",
        "refusal": _NO_REFUSAL,
        "content_filter": _NO_FILTER,
        "reasoning_tokens": _NOT_APART,
    },
    "local": {
        "refusal": _NO_REFUSAL,
        "content_filter": "it filters nothing",
        "reasoning_tokens": _NOT_APART,
    },
}


def supported_by(vendor: str) -> frozenset[Capability]:
    """Give what the vendor's voice can do."""
    return frozenset(get_args(Capability)) - UNSUPPORTED[vendor].keys()
