"""A second reader of recorded answers, against which the library's own reader is held.

It knows nothing of the library: it takes a recording apart with `json` alone, in the plainest way that gives what a
careful person would read there. It decides what is expected; how the two are compared is left to the tests.

What it rests on: which field carries reasoning, where usage stands, and that the last usage and finish reason count.
Calls are joined by the rule in `tests/cases/README.md`. It is slow and simple on purpose.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "ANY_ID",
    "Call",
    "ExpectedAnswer",
    "ExpectedChoice",
    "ExpectedUsage",
    "Recording",
    "chunks_of",
    "join_details",
    "read_recordings",
    "read_stream",
    "read_whole",
    "recordings_folder",
]

ANY_ID = "*"
"""Stands for the id of a call that came without one: any text that is not empty, distinct within the message."""

_FINISH = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "model_length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
}


@dataclass(slots=True)
class Call:
    """A tool call as expected: `arguments` is the text the model wrote."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class ExpectedChoice:
    """One answer of a completion as expected."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[Call] = field(default_factory=list)
    raw_finish_reason: str | None = None
    logprobs: dict[str, list[Any]] = field(default_factory=dict)
    details: list[dict[str, Any]] = field(default_factory=list)

    @property
    def finish_reason(self) -> str:
        """Calls that arrived decide between stop and tool_calls; other words stay."""
        raw = self.raw_finish_reason
        named = None if raw is None else _FINISH.get(raw, "unknown")
        if named in (None, "stop", "tool_calls"):
            if self.calls:
                return "tool_calls"
            return "unknown" if named is None else "stop"
        return named or "unknown"


@dataclass(slots=True)
class ExpectedUsage:
    """Counts as expected, None where the wire has none."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(slots=True)
class ExpectedAnswer:
    """A completion as expected: its choices by their index on the wire, and the usage, if there is any."""

    id: str = ""
    model: str = ""
    choices: dict[int, ExpectedChoice] = field(default_factory=dict)
    usage: ExpectedUsage | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded exchange. `name` is vendor and scenario, as in `openai/stream-text`."""

    name: str
    data: dict[str, Any] = field(repr=False)

    @property
    def vendor(self) -> str:
        """The folder's name."""
        return self.name.partition("/")[0]

    @property
    def request(self) -> dict[str, Any]:
        """The body of the request."""
        body: dict[str, Any] = self.data["request"]["body"]
        return body

    @property
    def status(self) -> int:
        """HTTP status of the answer."""
        status: int = self.data["response"]["status"]
        return status

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer, as far as the recording kept them."""
        headers: dict[str, str] = self.data["response"]["headers"]
        return headers

    @property
    def is_stream(self) -> bool:
        """Whether the answer is an event stream."""
        return "sse" in self.data["response"]

    @property
    def body(self) -> Any:
        """The answer's parsed body; only for one that is not a stream."""
        return self.data["response"]["body"]

    @property
    def sse(self) -> str:
        """The answer's event stream."""
        text: str = self.data["response"]["sse"]
        return text


def recordings_folder() -> Path | None:
    """The folder with the recordings, from the environment; None where there is none."""
    named = os.environ.get("AGENT_CORE_RECORDINGS")
    folder = Path(named) if named else None
    return folder if folder is not None and folder.is_dir() else None


def read_recordings(folder: Path, *, without: frozenset[str] = frozenset()) -> list[Recording]:
    """Read every recording in the folder but those of the vendors in `without`, sorted by name."""
    return [
        Recording(f"{file.parent.name}/{file.stem}", json.loads(file.read_text(encoding="utf-8")))
        for file in sorted(folder.glob("*/*.json"))
        if file.parent.name not in without
    ]


def chunks_of(sse: str) -> Iterator[dict[str, Any]]:
    """Give the JSON values of an event stream in order. Every recorded event is one `data:` line."""
    for line in sse.replace("\r\n", "\n").split("\n"):
        if line.startswith("data:"):
            payload = line.removeprefix("data:").strip()
            if payload and payload != "[DONE]":
                yield json.loads(payload)


def read_whole(body: dict[str, Any]) -> ExpectedAnswer:
    """Read an answer that was sent whole."""
    answer = ExpectedAnswer(id=body.get("id") or "", model=body.get("model") or "", usage=_usage(body.get("usage")))
    for choice in body.get("choices") or []:
        message = choice.get("message") or {}
        read = answer.choices.setdefault(choice.get("index") or 0, ExpectedChoice())
        _add_texts(read, message)
        for call in message.get("tool_calls") or []:
            read.calls.append(_whole_call(call))
        if message.get("function_call"):
            read.calls.append(_whole_call({"function": message["function_call"]}))
        read.raw_finish_reason = choice.get("finish_reason")
        _add_logprobs(read, choice.get("logprobs"))
    return answer


def read_stream(sse: str) -> ExpectedAnswer:
    """Read an answer that was streamed, joining what its chunks say."""
    answer = ExpectedAnswer()
    joiners: dict[int, _CallJoiner] = {}
    for chunk in chunks_of(sse):
        answer.id = answer.id or chunk.get("id") or ""
        answer.model = answer.model or chunk.get("model") or ""
        # Groq's streams have it in a block of their own, and since 2026 beside that too.
        if usage := chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage"):
            answer.usage = _usage(usage)
        for choice in chunk.get("choices") or []:
            index = choice.get("index") or 0
            delta = choice.get("delta") or {}
            read = answer.choices.setdefault(index, ExpectedChoice())
            _add_texts(read, delta)
            joiner = joiners.setdefault(index, _CallJoiner(read.calls))
            for piece in delta.get("tool_calls") or []:
                joiner.add(piece)
            if choice.get("finish_reason") is not None:
                read.raw_finish_reason = choice["finish_reason"]
            _add_logprobs(read, choice.get("logprobs"))
    for read in answer.choices.values():
        for call in read.calls:
            call.id = call.id or ANY_ID
    return answer


def join_details(pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join streamed `reasoning_details`: a piece of the same type and index as the one before it goes on with it."""
    joined: list[dict[str, Any]] = []
    for piece in pieces:
        same = joined and all(joined[-1].get(key) == piece.get(key) for key in ("type", "index"))
        if not same or "index" not in piece:
            joined.append(dict(piece))
            continue
        whole = joined[-1]
        for key, value in piece.items():
            if key in ("text", "summary", "data") and isinstance(whole.get(key), str) and isinstance(value, str):
                whole[key] += value
            elif value is not None or key not in whole:
                whole[key] = value
    return joined


def _add_texts(read: ExpectedChoice, message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if part.get("type") == "text")
    read.text += content or ""
    read.refusal += message.get("refusal") or ""
    read.reasoning += _reasoning(message)
    read.details += message.get("reasoning_details") or []


def _reasoning(message: dict[str, Any]) -> str:
    """One text may stand under several names; it is taken once. In a content list it is the text of `thinking`."""
    if isinstance(content := message.get("content"), list):
        thoughts = [part["thinking"] for part in content if part.get("type") == "thinking"]
        return "".join(thought.get("text", "") for texts in thoughts for thought in texts)
    for name in ("reasoning_content", "reasoning"):
        if message.get(name):
            return str(message[name])
    details = message.get("reasoning_details") or []
    return "".join(part.get("text") or part.get("summary") or "" for part in details)


def _add_logprobs(read: ExpectedChoice, logprobs: dict[str, Any] | None) -> None:
    for name, tokens in (logprobs or {}).items():
        if tokens:
            read.logprobs.setdefault(name, []).extend(tokens)


def _whole_call(call: dict[str, Any]) -> Call:
    function = call.get("function") or {}
    return Call(call.get("id") or ANY_ID, function.get("name") or "", function.get("arguments") or "")


class _CallJoiner:
    """Joins the pieces of one choice's calls: known id, then id with a name, then the index, then the latest call."""

    def __init__(self, calls: list[Call]) -> None:
        self._calls = calls
        self._of_id: dict[str, Call] = {}
        self._of_index: dict[int, Call] = {}

    def add(self, piece: dict[str, Any]) -> None:
        id = piece.get("id") or ""
        index = piece.get("index")
        function = piece.get("function") or {}
        name = function.get("name") or ""
        if id in self._of_id:
            call = self._of_id[id]
        elif name and (id or index is None):
            call = self._open()
        elif index is not None:
            call = self._of_index[index] if index in self._of_index else self._open()
        else:
            call = self._calls[-1] if self._calls else self._open()
        if id:
            self._of_id.setdefault(id, call)
            call.id = call.id or id
        if index is not None:
            self._of_index[index] = call
        if name != call.name:
            call.name += name
        call.arguments += function.get("arguments") or ""

    def _open(self) -> Call:
        self._calls.append(Call())
        return self._calls[-1]


def _usage(usage: dict[str, Any] | None) -> ExpectedUsage | None:
    if not usage:
        return None
    prompt = usage.get("prompt_tokens_details") or {}
    output = usage.get("completion_tokens_details") or {}
    cached = [
        prompt.get("cached_tokens"),
        usage.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("num_cached_tokens"),
    ]
    return ExpectedUsage(
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        total_tokens=usage.get("total_tokens"),
        cached_tokens=next((count for count in cached if count is not None), None),
        reasoning_tokens=output.get("reasoning_tokens"),
    )
