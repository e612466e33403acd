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

    __slots__ = ("_dialect", "_halves", "_plain", "_splitters", "_think", "error")

    def __init__(self, dialect: Dialect, *, think_tags: bool = False) -> None:
        self._dialect = dialect
        self._think = think_tags
        self._plain = not think_tags  # text is handed on as it is
        self._splitters: dict[int | None, ThinkSplitter] = {}
        self._halves: dict[tuple[int | None, str], str] | None = None  # halves of an emoji that wait for the other one
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
            self._halves, self._plain = self._halves or {}, False
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
        if not choices or type(choices) is not list:
            deltas = [CompletionDelta(choice=None)]
        else:
            deltas = self._choice(choices[0], whole)
            for choice in choices[1:]:
                deltas += self._choice(choice, whole)
        # What belongs to the whole chunk goes with its first piece.
        first = deltas[0]
        if counts:
            first.usage = dialect.usage(counts)
        first.id = id
        first.model = model
        first.extras = wire or None
        first.data = data
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
        head = CompletionDelta()
        if type(choice) is not dict:
            head.choice = None
            return [head]
        # Perplexity sends both: an empty delta beside the whole message, the message so far beside each delta.
        said = choice.pop("message" if whole else "delta", None)
        if said is None:
            said = choice.pop("delta" if whole else "message", None)
        if type(said) is not dict:
            said = {}
        index = choice.pop("index", 0)
        head.choice = index if type(index) is int else _whole_number(index) or 0
        word = choice.pop("finish_reason", None)
        if word is not None:
            head.raw_finish_reason = str(word)
            head.finish_reason = self._dialect.finish_reason(head.raw_finish_reason)
        logprobs = choice.pop("logprobs", None)
        if logprobs is not None:
            head.logprobs = self._dialect.logprobs(logprobs, choice, said)
            if head.logprobs is None:
                choice["logprobs"] = logprobs
        content = said.pop("content", None)
        if (copy := self._dialect.content_copy) is not None and (choice.get(copy) or "") == (content or ""):
            choice.pop(copy, None)
        if said:
            # Few chunks say more than one thing, so after each look comes a look at whether anything is left.
            said.pop("role", None)
            if "tool_calls" in said or "function_call" in said:
                head.calls = _calls(said, whole)
            if said:
                self._reasoning(head, said)
            if said:
                refusal = said.pop("refusal", None)
                if refusal:
                    head.refusal = mend_text(refusal if type(refusal) is str else compact_json(refusal))
                choice.update(said)
        if choice:
            head.choice_extras = choice if self._halves is None else plain_value(choice)
        if type(content) is str and self._plain:
            head.text = content
        elif content is not None and content != "":
            return self._with_content(head, content)
        return [head]

    def _with_content(self, head: CompletionDelta, content: Any) -> list[CompletionDelta]:
        """Join content that is not mere text to the first piece, and put after it what that has no room for."""
        if type(content) is list and len(content) == 1 and self._halves is None and not head.reasoning:
            thought = thinking_fields(content[0])  # the usual piece while Mistral thinks
            if thought is not None:
                head.reasoning, head.signature, head.details = thought
                head.reasoning_field = "thinking"
                return [head]
        after = self._content(head.choice, content)
        if after and (not head.reasoning or not after[0].reasoning):
            # Reasoning comes before text in one piece, as it does in a list.
            lead = after.pop(0)
            head.text, head.parts, head.refusal = lead.text, lead.parts, lead.refusal or head.refusal
            if lead.reasoning_field is not None:
                head.reasoning, head.reasoning_field = head.reasoning or lead.reasoning, lead.reasoning_field
                head.details = head.details or lead.details
            head.signature = lead.signature
        if after:  # calls follow what was said
            after.append(CompletionDelta(calls=head.calls, choice=head.choice))
            head.calls = ()
        return [head, *after]

    def _reasoning(self, head: CompletionDelta, said: dict[str, Any]) -> None:
        """Take reasoning out of a message. The same text may stand under several names; the first one counts."""
        for key in self._dialect.reasoning_keys:
            value = said.pop(key, None)
            if value and not head.reasoning:
                head.reasoning = value if type(value) is str else compact_json(value)
                head.reasoning_field = key
        if self._halves is not None and head.reasoning:
            head.reasoning = self._joined(head.choice, "reasoning", head.reasoning)
        if said and (details := said.pop("reasoning_details", None)) and type(details) is list:
            entries = tuple(entry for entry in details if type(entry) is dict)
            if not entries:
                return
            head.details = entries if self._halves is None else tuple(plain_value(entries))
            head.reasoning_field = "reasoning_details"
            if not head.reasoning:
                head.reasoning = "".join([str(it.get("text") or it.get("summary") or "") for it in head.details])

    def _content(self, index: int | None, content: Any) -> list[CompletionDelta]:
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

    def _text(self, index: int | None, text: str) -> list[CompletionDelta]:
        if self._halves is not None:
            text = self._joined(index, "text", text)
        if not self._think:
            return [CompletionDelta(text, choice=index)] if text else []
        splitter = self._splitters.setdefault(index, ThinkSplitter())
        return [_piece(index, thinking, piece) for thinking, piece in splitter.feed(text)]

    def _thought(
        self,
        index: int | None,
        field: str | None,
        text: str,
        signature: str | None,
        details: tuple[dict[str, Any], ...],
    ) -> CompletionDelta:
        if self._halves is not None:
            text, details = self._joined(index, "reasoning", text), tuple(plain_value(details))
        return CompletionDelta("", text, (), index, None, None, None, field, "", (), signature, details)

    def _joined(self, index: int | None, field: str, text: str) -> str:
        """Put half an emoji before its other half; hold one back at the end of a piece."""
        assert self._halves is not None
        text = self._halves.pop((index, field), "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[index, field] = text[-1]
            text = text[:-1]
        return mend_text(text)


def _piece(index: int | None, thinking: bool, text: str) -> CompletionDelta:
    if thinking:
        return CompletionDelta(reasoning=text, choice=index, reasoning_field="think_tags")
    return CompletionDelta(text, choice=index)


def _calls(said: dict[str, Any], whole: bool) -> tuple[CallDelta, ...]:
    calls = said.pop("tool_calls", None)
    pieces: tuple[CallDelta, ...] = ()
    if type(calls) is list:
        pieces = tuple([_call(entry, whole) for entry in calls if type(entry) is dict])
    elif calls:
        said["tool_calls"] = calls
    if said and type(legacy := said.pop("function_call", None)) is dict:
        # The old form has one call at most; its pieces carry neither id nor index.
        piece = _call({"function": legacy, "index": None if whole else -1}, whole)
        piece.legacy = True
        pieces = (*pieces, piece)
    return pieces


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
