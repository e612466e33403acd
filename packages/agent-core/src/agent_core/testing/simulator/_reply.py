"""One reply to one request, in neutral words, and what every voice cuts or draws from it.

Nothing here is random: a reply has a seed, and each id, each padding and each figure follows from the seed and from
what it is for. So the whole and the streamed form of a reply carry the same ids, and a recording can be made again.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._scenarios import Said

__all__ = [
    "ALPHANUMERIC",
    "HEX",
    "LOWER",
    "Reply",
    "alternating",
    "argument_pieces",
    "event",
    "logprobs_of",
    "seed_of",
    "text_pieces",
]

ALPHANUMERIC = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"

_EPOCH = 1_790_000_000


@dataclass(frozen=True, slots=True)
class Reply:
    """What is said to a request: one `Said` for each choice. The request is the body as it came."""

    said: Sequence[Said]
    request: Mapping[str, Any]
    seed: str

    def token(self, alphabet: str, length: int, *what: object) -> str:
        """Draw a string that is always the same for this reply and this purpose."""
        drawn = random.Random("|".join([self.seed, *map(str, what)]))
        return "".join(drawn.choices(alphabet, k=length))

    def number(self, below: int, *what: object) -> int:
        """Draw a number that is always the same for this reply and this purpose."""
        return random.Random("|".join([self.seed, *map(str, what)])).randrange(below)

    def uuid(self, *what: object) -> str:
        """Draw something in the form of a UUID."""
        digits = self.token(HEX, 32, "uuid", *what)
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    @property
    def model(self) -> str:
        """The model asked for; the answer names the same."""
        return str(self.request.get("model", ""))

    @property
    def created(self) -> int:
        """A moment in 2026."""
        return _EPOCH + self.number(1_000_000, "created")

    @property
    def wants_usage(self) -> bool:
        """Whether the request says `stream_options.include_usage`."""
        return bool((self.request.get("stream_options") or {}).get("include_usage"))

    @property
    def names_a_tool(self) -> bool:
        """Whether `tool_choice` is one tool by name."""
        return isinstance(self.request.get("tool_choice"), Mapping)

    @property
    def input_tokens(self) -> int:
        """The prompt is counted once, whatever the number of choices."""
        return self.said[0].input_tokens

    @property
    def output_tokens(self) -> int:
        """The tokens of all choices."""
        return sum(said.output_tokens for said in self.said)


def seed_of(request: Mapping[str, Any]) -> str:
    """Give the seed for a reply that has none of its own: the same for the same conversation, whole or streamed."""
    return json.dumps([request.get("model"), request.get("messages")], sort_keys=True, default=str)


def text_pieces(text: str) -> list[str]:
    """Cut a text before its spaces, much as tokens are. Joined, the pieces are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def argument_pieces(arguments: str) -> list[str]:
    """Cut arguments between words and signs. Joined, the pieces are the arguments."""
    return re.findall(r"\w+|\W+", arguments)


def alternating(*tracks: Sequence[Any]) -> Iterator[Any]:
    """Take one of each track in turn, until all are used up: the choices of a stream come so."""
    for position in range(max(map(len, tracks))):
        yield from (track[position] for track in tracks if position < len(track))


def logprobs_of(pieces: Iterable[str], alternatives: int) -> list[dict[str, Any]]:
    """Make a log probability for each piece, with the likeliest alternatives, itself the first of them."""
    return [
        {
            **_logprob(piece, -0.0125 * (at + 1)),
            "top_logprobs": [
                _logprob(piece if not rank else f"{piece}{'~' * rank}", -0.0125 * (at + 1) - 4.5 * rank)
                for rank in range(alternatives)
            ],
        }
        for at, piece in enumerate(pieces)
    ]


def _logprob(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def event(value: object, name: str = "") -> bytes:
    """Write a value as one event, in UTF-8 and without spaces, as all five vendors do."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()
