"""Recorded exchanges: vcrpy's YAML, with a header that says what was recorded, from what, and when.

Decides how a cassette is read, played in two ways, and what may not stand in one. Making one is `_record`'s.

    vcr_player       vcrpy hands the answers to the SDK's own HTTP library; nothing listens anywhere
    loopback_player  a real server on loopback gives the same answers, cut as one likes

Both find the answer to a request by its method, path and JSON body, and refuse any other request with what differs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import yaml

from ._loopback import Answer, Cut, LoopbackServer, ReceivedRequest

__all__ = ["Cassette", "Interaction", "Player", "credentials_in", "loopback_player", "vcr_player"]

HEADER = "agent_core"
# Headers that a test may need; all others are dropped when a cassette is written, credentials with them.
KEPT_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-request-id", "mistral-correlation-id"})
_CREDENTIAL = re.compile(
    r"\b(?:sk|gsk|tgp|pk|rk)[-_][A-Za-z0-9_-]{12,}|\bBearer\s+[A-Za-z0-9._-]{8,}|\bauthorization\b|\bapi[-_]key\b"
    r"|\bcookie\b|\beyJ[A-Za-z0-9_-]{20,}",
    re.IGNORECASE,
)

Player: TypeAlias = Callable[["Cassette"], AbstractContextManager[str]]
"""Gives, for a cassette, the base URL under which its answers are played while the block lasts."""


@dataclass(slots=True)
class Interaction:
    """One request and its answer. `played` says whether a test has used it."""

    method: str
    uri: str
    request: Any
    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)
    played: bool = False

    @property
    def path(self) -> str:
        """The path of the request, with its query."""
        return _path_of(self.uri)

    @property
    def streamed(self) -> bool:
        """Whether the answer is an event stream."""
        return self.headers.get("content-type", "").startswith("text/event-stream")


@dataclass(slots=True)
class Cassette:
    """A recorded scenario.

    Attributes:
        header: `scenario`, `vendor`, `recorded_from` (`live`, `local` or `simulator`), `sdk`, `date`, `base_url`, and
            `expected` where the words came from a real model.
        interactions: the exchanges, in the order in which they were recorded.
    """

    path: Path
    header: dict[str, Any]
    interactions: list[Interaction]

    @classmethod
    def load(cls, path: Path) -> Cassette:
        """Read a cassette.

        Raises:
            ValueError: it is no cassette of this kind; the text names the file.
        """
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if not isinstance(data, dict) or HEADER not in data or "interactions" not in data:
            raise ValueError(f"{path} is no cassette of agent-core: it has no '{HEADER}' header")
        return cls(path, data[HEADER], [_interaction(entry) for entry in data["interactions"]])

    def save(self) -> None:
        """Write the cassette, in the form that vcrpy reads.

        Raises:
            ValueError: it holds something like a credential; the text says where.
        """
        data = {
            HEADER: self.header,
            "interactions": [
                {
                    "request": {
                        "method": each.method,
                        "uri": each.uri,
                        "body": json.dumps(each.request, ensure_ascii=False),
                        "headers": {},
                    },
                    "response": {
                        "status": {"code": each.status, "message": ""},
                        "headers": {name: [value] for name, value in each.headers.items() if name in KEPT_HEADERS},
                        "body": {"string": _text(each.body)},
                    },
                }
                for each in self.interactions
            ],
            "version": 1,
        }
        text = yaml.dump(data, allow_unicode=True, sort_keys=False, width=120)
        if found := credentials_in(text):
            raise ValueError(f"{self.path.name} is not written: it holds something like a credential ({found[0]})")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(text, encoding="utf-8")

    def answer_to(self, method: str, path: str, body: Any) -> Interaction | None:
        """Find the exchange of a request: the first that no test has used yet, else the first of all."""
        same = [each for each in self.interactions if (each.method, each.path, each.request) == (method, path, body)]
        found = next((each for each in same if not each.played), same[0] if same else None)
        if found is not None:
            found.played = True
        return found

    def difference(self, method: str, path: str, body: Any) -> str:
        """Say how a request that is not on the cassette differs from the nearest one that is."""
        told = []
        for each in self.interactions:
            keys = _differing(each.request, body)
            if (each.method, each.path) != (method, path):
                keys.insert(0, f"{each.method} {each.path} instead of {method} {path}")
            told.append(keys)
        nearest = min(told, key=len, default=["the cassette is empty"])
        return f"{self.path.name} has no such request; nearest differs in: {'; '.join(nearest)}"


def credentials_in(text: str) -> list[str]:
    """Give what looks like a credential in a text, shortened so that it may be shown."""
    return [f"{found.group()[:6]}..." for found in _CREDENTIAL.finditer(text)]


@contextmanager
def vcr_player(cassette: Cassette) -> Generator[str]:
    """Let vcrpy answer inside the SDK's HTTP library. A stream arrives in one piece."""
    import vcr

    def same_exchange(asked: Any, recorded: Any) -> None:
        body = _parsed(asked.body)
        if (asked.method, asked.uri, body) != (recorded.method, recorded.uri, _parsed(recorded.body)):
            raise AssertionError(cassette.difference(asked.method, _path_of(asked.uri), body))

    recorder = vcr.VCR(record_mode="none")
    recorder.register_matcher("exchange", same_exchange)
    options = {"match_on": ["exchange"], "allow_playback_repeats": True}
    with recorder.use_cassette(str(cassette.path), **options) as tape:
        try:
            yield str(cassette.header["base_url"])
        finally:
            for place, times in tape.play_counts.items():
                cassette.interactions[place].played |= times > 0


def _path_of(uri: str) -> str:
    parts = urlsplit(uri)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def loopback_player(cut: Cut = "whole") -> Player:
    """Serve a cassette on loopback, its streams in the given cuts."""

    @contextmanager
    def player(cassette: Cassette) -> Generator[str]:
        def answer(request: ReceivedRequest) -> Answer:
            body = _parsed(request.body)
            found = cassette.answer_to(request.method, request.path, body)
            if found is None:
                told = {"error": {"message": cassette.difference(request.method, request.path, body)}}
                return Answer.json(told, status=400)
            here = cut if found.streamed else "whole"
            return Answer(status=found.status, headers=found.headers, body=found.body, cut=here)

        with LoopbackServer(handler=answer) as server:
            recorded = urlsplit(str(cassette.header["base_url"]))
            yield server.url + recorded.path

    return player


def _interaction(entry: Mapping[str, Any]) -> Interaction:
    request, response = entry["request"], entry["response"]
    headers = {name.lower(): values[0] for name, values in response["headers"].items()}
    content = response["body"]["string"]
    body = content if isinstance(content, bytes) else content.encode()
    return Interaction(
        request["method"], request["uri"], _parsed(request["body"]), response["status"]["code"], headers, body
    )


def _parsed(body: bytes | str | None) -> Any:
    return json.loads(body) if body else None


def _text(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _differing(recorded: Any, asked: Any, where: str = "") -> list[str]:
    """Give the places in which two bodies differ."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        keys = [*recorded, *(key for key in asked if key not in recorded)]
        return [
            told
            for key in keys
            for told in _differing(recorded.get(key), asked.get(key), f"{where}.{key}" if where else key)
        ]
    if isinstance(recorded, list) and isinstance(asked, list) and len(recorded) == len(asked):
        pairs = enumerate(zip(recorded, asked, strict=True))
        return [told for place, (old, new) in pairs for told in _differing(old, new, f"{where}.{place}")]
    return [] if recorded == asked else [f"{where or 'body'} ({_short(recorded)} instead of {_short(asked)})"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "..."
