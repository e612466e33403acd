"""From pieces to an answer: the one place that puts text, reasoning, calls, usage and finish reason together.

Decides which call a piece belongs to, what a repeated figure means, and how the end of an answer is named. Pure: it
reads no bytes and knows no vendor. A whole answer is a stream of one piece, so both forms agree by construction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ._completion import Choice, Completion, FinishReason, Usage
from ._json import compact_json, mend_text, read_json
from ._messages import Message
from ._parts import Part, ReasoningPart, RefusalPart, TextPart, ToolCall

__all__ = ["Accumulator", "CallDelta", "CompletionDelta", "accumulate", "usable_id"]

# Each chunk of a stream makes one or two of these. A NamedTuple is as quick to make but three times as slow to read, a
# frozen class is three times as slow to make.


@dataclass(slots=True)
class CallDelta:
    """A piece of a tool call. An index that was not on the wire is None; an object as arguments replaces text.

    `whole` says that the piece is a call of its own, as every entry of an answer that was not streamed.
    """

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    extras: dict[str, Any] | None = None
    whole: bool = False
    legacy: bool = False


@dataclass(slots=True)
class CompletionDelta:
    """A piece of an answer, its fields in the order in which they apply: reasoning, text, refusal, parts, calls.

    Attributes:
        text, reasoning, refusal: text that is new with this piece.
        calls: pieces of tool calls.
        parts: complete parts of other kinds.
        choice: which of `n` answers it belongs to; None for a piece that belongs to none, such as usage.
        finish_reason: why the answer ended, once that is said; `raw_finish_reason` is the vendor's word.
        usage: token counts so far; a later one replaces an earlier one.
        reasoning_field, signature, details: where reasoning came from, and the vendor's own data about it.
        extras, choice_extras: what the wire had that has no field here, at the top and in the choice.
        data: the wire's own bytes (JSON) where this is the first piece made from them.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()
    choice: int | None = 0
    finish_reason: FinishReason | None = None
    raw_finish_reason: str | None = None
    usage: Usage | None = None
    reasoning_field: str | None = None
    refusal: str = ""
    parts: tuple[Part, ...] = ()
    signature: str | None = None
    details: tuple[dict[str, Any], ...] = ()
    logprobs: dict[str, Any] | None = None
    id: str | None = None
    model: str | None = None
    extras: dict[str, Any] | None = None
    choice_extras: dict[str, Any] | None = None
    data: bytes = b""

    @property
    def raw(self) -> Any:
        """The chunk as sent (parsed JSON), or None where it did not come from a wire."""
        return read_json(self.data) if self.data else None


def usable_id(value: Any) -> str | None:
    """Tell a call id from its absence: empty text, None and the text `null` (mistralai's placeholder) are none."""
    return None if value is None or value == "" or value == "null" else mend_text(str(value))


def accumulate(deltas: Iterable[CompletionDelta], *, provider: str = "", model: str = "") -> Completion:
    """Put the pieces of one answer together."""
    whole = Accumulator(provider=provider, model=model)
    for delta in deltas:
        whole.add(delta)
    return whole.completion()


class _CallBuilder:
    __slots__ = ("arguments", "extras", "id", "legacy", "name")

    def __init__(self, legacy: bool) -> None:
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []
        self.extras: dict[str, Any] = {}
        self.legacy = legacy


class _Extras:
    """What the wire said without a field for it, merged by one of the two rules below.

    Several at a time: one by one, in between all else that a chunk asks for, they cost three times as much.
    """

    __slots__ = ("_known", "_rule", "_waiting")

    def __init__(self, rule: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
        self._known: dict[str, Any] = {}
        self._rule = rule
        self._waiting: list[dict[str, Any]] = []

    def add(self, said: dict[str, Any]) -> None:
        self._waiting.append(said)
        if len(self._waiting) == 16:
            self.merged()

    def merged(self) -> dict[str, Any]:
        for said in self._waiting:
            self._rule(self._known, said)
        self._waiting.clear()
        return self._known


class _ReasoningBuilder:
    __slots__ = ("details", "field", "pieces", "signature")

    def __init__(self, field: str | None) -> None:
        self.field = field
        self.pieces: list[str] = []
        self.signature: str | None = None
        self.details: list[tuple[dict[str, Any], ...]] = []


class _ChoiceBuilder:
    """One answer on its way. `entries` has the builders and ready parts in order; `tail` is the open text, if any."""

    __slots__ = ("by_id", "by_index", "calls", "entries", "extras", "finish", "logprobs", "raw_finish", "tail")

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.tail: list[str] | None = None
        self.calls: list[_CallBuilder] = []
        self.by_index: dict[int, _CallBuilder] = {}
        self.by_id: dict[str, _CallBuilder] = {}
        self.finish: FinishReason | None = None
        self.raw_finish: str | None = None
        self.logprobs: dict[str, Any] | None = None
        self.extras = _Extras(merge_extras)

    def open(self, entry: Any, tail: list[str] | None = None) -> None:
        self.entries.append(entry)
        self.tail = tail

    def add_reasoning(self, delta: CompletionDelta) -> None:
        last = self.entries[-1] if self.entries else None
        if (
            not isinstance(last, _ReasoningBuilder)
            or last.field != delta.reasoning_field
            or (last.signature and delta.reasoning)  # a signature ends what it signs
        ):
            last = _ReasoningBuilder(delta.reasoning_field)
            self.open(last)
        if delta.reasoning:
            last.pieces.append(delta.reasoning)
        if delta.signature:
            last.signature = (last.signature or "") + delta.signature
        if delta.details:
            last.details.append(delta.details)

    def add_call(self, piece: CallDelta) -> None:
        """Find the call this piece belongs to, by the rule in tests/cases/README.md, and add it there."""
        id, index = usable_id(piece.id) if piece.id else None, piece.index
        if piece.whole:
            call = self.new_call(piece)
        elif id is not None and id in self.by_id:
            call = self.by_id[id]
        elif piece.name and (id is not None or index is None):
            call = self.new_call(piece)
        elif index is None:
            call = self.calls[-1] if self.calls else self.new_call(piece)
        else:
            call = self.by_index.get(index) or self.new_call(piece)
        if index is not None:
            self.by_index[index] = call
        if id is not None:
            self.by_id.setdefault(id, call)
            call.id = call.id or id
        arguments = piece.arguments
        if type(arguments) is str:
            call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments = [compact_json(arguments)]
        if piece.name and piece.name != call.name:  # the same name again is a repeat
            call.name += mend_text(piece.name)
        if piece.extras:
            merge_extras(call.extras, piece.extras)

    def new_call(self, piece: CallDelta) -> _CallBuilder:
        call = _CallBuilder(piece.legacy)
        self.calls.append(call)
        self.open(call)
        return call

    def ended(self) -> FinishReason:
        """Name the end: calls that arrived decide between `stop` and `tool_calls`; other words stay."""
        if self.finish is None:
            return "tool_calls" if self.calls else "unknown"
        if self.finish in ("stop", "tool_calls"):
            return "tool_calls" if self.calls else "stop"
        return self.finish


class Accumulator:
    """Takes the pieces of one answer and gives the completion, at the end or at any time before.

    Args:
        provider, model: who was asked, noted on the message and its reasoning.
    """

    __slots__ = ("_choices", "_extras", "_id", "_model", "_provider", "_requested", "_usage")

    def __init__(self, *, provider: str = "", model: str = "") -> None:
        self._provider = provider
        self._requested = model
        self._id = ""
        self._model = ""
        self._usage: Usage | None = None
        self._extras = _Extras(_overlay)
        self._choices: dict[int, _ChoiceBuilder] = {}

    def add(self, delta: CompletionDelta) -> None:
        """Take one piece."""
        # The order of the tests is the order of parts within a piece; the rare fields come last.
        index = delta.choice
        if index is not None:
            choice = self._choices.get(index)
            if choice is None:
                choice = self._choices[index] = _ChoiceBuilder()
            if delta.reasoning or delta.details or delta.signature:
                choice.add_reasoning(delta)
            if text := delta.text:
                if choice.tail is None:
                    choice.open(pieces := [text], pieces)
                else:
                    choice.tail.append(text)
            if delta.refusal:
                choice.open(RefusalPart(delta.refusal))
            for part in delta.parts:
                choice.open(part)
            for piece in delta.calls:
                choice.add_call(piece)
            if delta.raw_finish_reason is not None:
                choice.finish, choice.raw_finish = delta.finish_reason, delta.raw_finish_reason
            if delta.logprobs is not None:
                choice.logprobs = choice.logprobs or {}
                merge_extras(choice.logprobs, delta.logprobs)
            if delta.choice_extras:
                choice.extras.add(delta.choice_extras)
        if delta.usage is not None:
            self._usage = delta.usage
        if delta.extras:
            self._extras.add(delta.extras)
        if delta.id and not self._id:
            self._id = delta.id
        if delta.model and not self._model:
            self._model = delta.model

    @property
    def started(self) -> bool:
        """Whether an answer has begun."""
        return bool(self._choices)

    @property
    def finished(self) -> bool:
        """Whether every answer that began has been given a finish reason."""
        return bool(self._choices) and all(choice.raw_finish is not None for choice in self._choices.values())

    def completion(self, *, raw: Any = None, attempts: int = 1) -> Completion:
        """Give what has arrived so far as a completion. Missing call ids are filled in, the same way every time."""
        choices = tuple(self._choice(index, self._choices[index]) for index in sorted(self._choices))
        first = choices[0] if choices else Choice(self._message(()), "unknown")
        return Completion(
            message=first.message,
            finish_reason=first.finish_reason,
            raw_finish_reason=first.raw_finish_reason,
            usage=self._usage,
            id=self._id,
            model=self._model or self._requested,
            provider=self._provider,
            logprobs=first.logprobs,
            choices=choices,
            extras={**first.extras, **self._extras.merged()},
            raw=raw,
            attempts=attempts,
        )

    def _message(self, parts: Iterable[Part]) -> Message:
        return Message.build("assistant", tuple(parts), provider=self._provider or None, model=self._requested or None)

    def _choice(self, index: int, choice: _ChoiceBuilder) -> Choice:
        taken: set[str] = set()
        parts: list[Part] = []
        for entry in choice.entries:
            if type(entry) is list:
                parts.append(TextPart(mend_text("".join(entry))))
            elif type(entry) is _CallBuilder:
                parts.append(self._call(index, len(taken), entry, taken))
            elif type(entry) is _ReasoningBuilder:
                parts.append(self._reasoning(entry))
            elif type(entry) is RefusalPart and parts and type(parts[-1]) is RefusalPart:
                parts[-1] = RefusalPart(parts[-1].text + entry.text)
            else:
                parts.append(entry)
        extras = choice.extras.merged()
        return Choice(self._message(parts), choice.ended(), choice.raw_finish, choice.logprobs, extras, index)

    def _reasoning(self, built: _ReasoningBuilder) -> ReasoningPart:
        return ReasoningPart(
            text=mend_text("".join(built.pieces)),
            provider=self._provider or None,
            model=self._requested or None,
            field=built.field,
            signature=None if built.signature is None else mend_text(built.signature),
            details=_joined_details(built.details),
        )

    def _call(self, choice: int, place: int, built: _CallBuilder, taken: set[str]) -> ToolCall:
        id = built.id
        if id is None and built.legacy:
            id = ""
        elif id is None or id in taken:
            id = _made_id(self._id, choice, place, built.name)
        taken.add(id or str(place))
        return ToolCall(id, built.name, mend_text("".join(built.arguments)), built.legacy, built.extras or None)


def _made_id(answer: str, choice: int, place: int, name: str) -> str:
    """Make an id for a call that came without one: the same input gives the same id, and places differ."""
    seed = f"{answer}\n{choice}\n{place}\n{name}".encode("utf-8", "replace")
    return "call_" + hashlib.blake2b(seed, digest_size=12).hexdigest()


def _overlay(known: dict[str, Any], new: dict[str, Any]) -> None:
    """Take in what a chunk said at its top: the last word counts, objects merge (Groq), None takes nothing back."""
    for key, value in new.items():
        if value is None or type(value) is dict:
            old = known.get(key)
            if value is None and old is not None:
                continue
            if type(old) is dict and value is not None:
                _overlay(merged := dict(old), value)
                value = merged
        known[key] = value


def merge_extras(known: dict[str, Any], new: dict[str, Any]) -> None:
    """Take in what a choice said without a field for it: objects merge, lists grow, else the last word counts."""
    for key, value in new.items():
        old = known.get(key)
        if old is None:
            known[key] = value
        elif value is None:
            continue
        elif type(old) is dict and type(value) is dict:
            known[key] = merged = dict(old)
            merge_extras(merged, value)
        elif type(old) is list and type(value) is list:
            known[key] = old + value
        else:
            known[key] = value


def _joined_details(batches: list[tuple[dict[str, Any], ...]]) -> tuple[dict[str, Any], ...]:
    """Join streamed `reasoning_details` (OpenRouter): entries of one type and index in later chunks are its pieces.

    Entries of one chunk, and so those of a whole answer, stay apart.
    """
    joined: list[dict[str, Any]] = []
    for batch in batches:
        known = {_place_of(entry): entry for entry in joined}
        for piece in batch:
            entry = known.get(_place_of(piece))
            if entry is None:
                joined.append(dict(piece))
                continue
            for key, value in piece.items():
                if key in ("text", "summary", "data") and isinstance(value, str) and isinstance(entry.get(key), str):
                    entry[key] += value
                elif isinstance(value, list) and isinstance(entry.get(key), list):
                    entry[key] = entry[key] + value
                elif value not in (None, ""):
                    entry[key] = value
    return tuple(joined)


def _place_of(entry: dict[str, Any]) -> str:
    return f"{entry.get('type')}\n{entry.get('index')}"
