"""One JSON text of the wire to the pieces in it: a chunk of a stream and a whole answer are read alike.

Known keys are taken out of the parsed mapping, so what stays behind is exactly what has no field here. Which vendor
puts what where is the dialect's; putting pieces together is `Accumulator`'s.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic_core import from_json

from .._deltas import CallDelta, CompletionDelta
from .._door import thinking_fields
from .._json import compact_json, mend_text, plain_value, read_json
from .._parts import OtherPart, ReasoningPart, RefusalPart, TextPart
from ._dialect import Dialect
from ._sse import NamedPayload
from ._think import ThinkSplitter

__all__ = ["Decoder"]


class Decoder:
    """Reads the chunks of one answer, in order.

    Attributes:
        error: the error object that a chunk or body held, once there was one.
    """

    __slots__ = ("_dialect", "_halves", "_splitters", "_think", "error")

    def __init__(self, dialect: Dialect, *, think_tags: bool = False) -> None:
        self._dialect = dialect
        self._think = think_tags
        self._splitters: dict[int, ThinkSplitter] = {}
        self._halves: dict[tuple[int, str], str] | None = None  # halves of an emoji that wait for the other one
        self.error: Any = None

    def decode(self, data: bytes, *, whole: bool = False) -> list[CompletionDelta]:
        """Give the pieces in one JSON text.

        Args:
            whole: the text is a complete answer, in which every tool call is one of its own.

        Raises:
            ValueError: the text is not JSON, or no object.
        """
        try:
            wire = from_json(data)
        except ValueError:
            # pydantic-core refuses half an emoji, which a server may send when it cuts one over two chunks.
            wire = read_json(data)
            self._halves = self._halves or {}
        if type(wire) is not dict:
            raise ValueError(f"expected a JSON object, got {type(wire).__name__}")
        choices = wire.pop("choices", None)
        dialect = self._dialect
        counts = dialect.pop_usage(wire)
        if counts and type(counts) is not dict:
            wire["usage"], counts = counts, None
        if "error" in wire or choices is None or dialect.error_block in wire:
            self.error = dialect.pop_error(wire)
            if self.error is None and isinstance(data, NamedPayload) and data.event == "error":
                self.error = dict(wire)
        id, model = wire.pop("id", None), wire.pop("model", None)
        if type(id) is not str or type(model) is not str:
            id, model = _text(id), _text(model)
        if self._halves is not None:
            wire = plain_value(wire)
        deltas: list[CompletionDelta] = []
        if type(choices) is list:
            for choice in choices:
                deltas += self._choice(choice, whole)
        if not deltas:
            deltas.append(CompletionDelta(choice=None))
        # What belongs to the whole chunk goes with its first piece.
        first = deltas[0]
        first.usage = dialect.usage(counts) if counts else None
        first.id, first.model, first.extras, first.data = id, model, wire or None, data
        return deltas

    def flush(self) -> list[CompletionDelta]:
        """Give the text held back as a possible tag or as half an emoji, once the stream has ended."""
        deltas = []
        for index, splitter in self._splitters.items():
            deltas += [_piece(index, thinking, text) for thinking, text in splitter.flush()]
        for (index, field), half in (self._halves or {}).items():
            deltas.append(_piece(index, field == "reasoning", mend_text(half)))
        return deltas

    def _choice(self, choice: Any, whole: bool) -> list[CompletionDelta]:
        """Read one choice. The first piece carries what belongs to the choice as a whole."""
        if type(choice) is not dict:
            return [CompletionDelta(choice=None)]
        # Perplexity sends both: an empty delta beside the whole message, the message so far beside each delta.
        said = choice.pop("message" if whole else "delta", None)
        if said is None:
            said = choice.pop("delta" if whole else "message", None)
        if type(said) is not dict:
            said = {}
        index = choice.pop("index", 0)
        if type(index) is not int:
            index = _whole_number(index) or 0
        word = choice.pop("finish_reason", None)
        finish = None if word is None else self._dialect.finish_reason(word := str(word))
        logprobs = choice.pop("logprobs", None)
        if logprobs is not None and (read := self._dialect.logprobs(logprobs, choice, said)) is not logprobs:
            if read is None:
                choice["logprobs"] = logprobs
            logprobs = read
        content = said.pop("content", None)
        if (copy := self._dialect.content_copy) is not None and (choice.get(copy) or "") == (content or ""):
            choice.pop(copy, None)
        reasoning = refusal = ""
        field: str | None = None
        details: tuple[dict[str, Any], ...] = ()
        pieces: tuple[CallDelta, ...] = ()
        if said:
            # Few chunks say more than one thing, so after each look comes a look at whether anything is left.
            said.pop("role", None)
            if "tool_calls" in said or "function_call" in said:
                pieces = self._calls(said, whole)
            if said:
                reasoning, field, details = self._reasoning(index, said)
            if said:
                refusal = said.pop("refusal", None)
                if type(refusal) is not str:
                    refusal = compact_json(refusal) if refusal else ""
                choice.update(said)
        if self._halves is not None:
            choice, refusal = plain_value(choice), mend_text(refusal)
        head = CompletionDelta(
            "", reasoning, pieces, index, finish, word, None, field, refusal, (),
            None, details, logprobs, None, None, None, choice or None,
        )  # fmt: skip
        if type(content) is str and not self._think and self._halves is None:
            head.text = content
        elif content is not None and content != "":
            return self._with_content(head, index, content)
        return [head]

    def _with_content(self, head: CompletionDelta, index: int, content: Any) -> list[CompletionDelta]:
        """Join content that is not mere text to the first piece, and put after it what that has no room for."""
        if type(content) is list and len(content) == 1 and self._halves is None and not head.reasoning:
            thought = thinking_fields(content[0])  # the usual piece while Mistral thinks
            if thought is not None:
                head.reasoning, head.signature, head.details = thought
                head.reasoning_field = "thinking"
                return [head]
        after = self._content(index, content)
        if after and (not head.reasoning or not after[0].reasoning):
            # Reasoning comes before text in one piece, as it does in a list.
            lead = after.pop(0)
            head.text, head.parts, head.refusal = lead.text, lead.parts, lead.refusal or head.refusal
            if lead.reasoning_field is not None:
                head.reasoning, head.reasoning_field = head.reasoning or lead.reasoning, lead.reasoning_field
                head.details = head.details or lead.details
            head.signature = lead.signature
        if after:  # calls follow what was said
            after.append(CompletionDelta(calls=head.calls, choice=index))
            head.calls = ()
        return [head, *after]

    def _calls(self, said: dict[str, Any], whole: bool) -> tuple[CallDelta, ...]:
        calls = said.pop("tool_calls", None)
        if calls and type(calls) is not list:
            said["tool_calls"] = calls
            calls = None
        pieces = tuple([_call(entry, whole) for entry in calls if type(entry) is dict]) if calls else ()
        if said and type(legacy := said.pop("function_call", None)) is dict:
            # The old form has one call at most; its pieces carry neither id nor index.
            piece = _call({"function": legacy, "index": None if whole else -1}, whole)
            piece.legacy = True
            pieces = (*pieces, piece)
        return pieces

    def _reasoning(self, index: int, said: dict[str, Any]) -> tuple[str, str | None, tuple[dict[str, Any], ...]]:
        """Take reasoning out of a message. The same text may stand under several names; the first one counts."""
        text, field = "", None
        for key in self._dialect.reasoning_keys:
            if (value := said.pop(key, None)) and not text:
                text, field = value if type(value) is str else compact_json(value), key
        if self._halves is not None and text:
            text = self._joined(index, "reasoning", text)
        details = said.pop("reasoning_details", None)
        if type(details) is not list or not details:
            return text, field, ()
        entries = tuple(entry for entry in details if type(entry) is dict)
        if not entries:
            return text, field, ()
        if self._halves is not None:
            entries = tuple(plain_value(entries))
        if not text:
            text = "".join([str(entry.get("text") or entry.get("summary") or "") for entry in entries])
        return text, "reasoning_details", entries

    def _content(self, index: int, content: Any) -> list[CompletionDelta]:
        if content is None or content == "":
            return []
        if type(content) is str:
            return self._text(index, content)
        deltas: list[CompletionDelta] = []
        for item in content if type(content) is list else [content]:
            if (thought := thinking_fields(item)) is not None:
                deltas.append(self._thought(index, "thinking", *thought))
                continue
            part = self._dialect.part(item)
            if isinstance(part, TextPart):
                deltas += self._text(index, part.text)
            elif isinstance(part, ReasoningPart):
                deltas.append(self._thought(index, part.field, part.text, part.signature, part.details))
            elif isinstance(part, RefusalPart):
                deltas.append(CompletionDelta(choice=index, refusal=part.text))
            else:
                if self._halves is not None and isinstance(part, OtherPart):
                    part = OtherPart(plain_value(part.data))
                deltas.append(CompletionDelta(choice=index, parts=(part,)))
        return deltas

    def _text(self, index: int, text: str) -> list[CompletionDelta]:
        if self._halves is not None:
            text = self._joined(index, "text", text)
        if not self._think:
            return [CompletionDelta(text, choice=index)] if text else []
        splitter = self._splitters.setdefault(index, ThinkSplitter())
        return [_piece(index, thinking, piece) for thinking, piece in splitter.feed(text)]

    def _thought(
        self, index: int, field: str | None, text: str, signature: str | None, details: tuple[dict[str, Any], ...]
    ) -> CompletionDelta:
        if self._halves is not None:
            text, details = self._joined(index, "reasoning", text), tuple(plain_value(details))
        return CompletionDelta("", text, (), index, None, None, None, field, "", (), signature, details)

    def _joined(self, index: int, field: str, text: str) -> str:
        """Put half an emoji before its other half; hold one back at the end of a piece."""
        assert self._halves is not None
        text = self._halves.pop((index, field), "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[index, field] = text[-1]
            text = text[:-1]
        return mend_text(text)


def _piece(index: int, thinking: bool, text: str) -> CompletionDelta:
    if thinking:
        return CompletionDelta(reasoning=text, choice=index, reasoning_field="think_tags")
    return CompletionDelta(text, choice=index)


def _text(value: Any) -> str | None:
    return value if value is None or type(value) is str else str(value)


def _whole_number(value: Any) -> int | None:
    return int(value) if type(value) in (int, float) and math.isfinite(value) else None


def _call(entry: dict[str, Any], whole: bool) -> CallDelta:
    function = entry.pop("function", None)
    if type(function) is not dict:
        function = {}
    arguments, index = function.pop("arguments", None), entry.pop("index", None)
    if type(arguments) is not str and type(arguments) is not dict and arguments is not None:
        arguments = compact_json(arguments)
    if type(index) is not int:
        index = _whole_number(index)  # the together SDK makes it a float
    if not function and not entry:  # a piece of arguments, as most are
        return CallDelta(index, None, None, arguments, None, whole)
    name = function.pop("name", None)
    if entry.get("type") in ("function", None):
        entry.pop("type", None)
    return CallDelta(
        index,
        entry.pop("id", None),
        name if type(name) is str else None,
        arguments,
        {**entry, **function} or None,
        whole,
    )
