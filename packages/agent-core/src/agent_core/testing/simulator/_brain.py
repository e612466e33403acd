"""What the simulator says when nobody wrote a script: enough of a model to try an agent against, without a model.

It calls the first tool it is offered where it must or where the user names it, says what a tool has answered, fills a
JSON schema with the least that satisfies it, and otherwise repeats the user. The same request gets the same reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from .._scenarios import Call, Said
from ._instances import instance_of
from ._reply import text_pieces

__all__ = ["Brain"]


class Brain:
    """Replies to requests by a few fixed rules. A subclass may override `say` for what it says in words."""

    def reply(self, request: Mapping[str, Any]) -> tuple[Said, ...]:
        """Give one reply for each choice that is asked for."""
        said = self._said(request)
        return (said,) * max(int(request.get("n") or 1), 1)

    def say(self, request: Mapping[str, Any]) -> str:
        """Give the words of an answer that calls no tool and follows no schema."""
        if results := _results(request):
            return f"The tool says: {'; '.join(map(_words_of, results))}"
        text = _words_of(_last(request))
        return f"You said: {text}" if text else "Hello."

    def _said(self, request: Mapping[str, Any]) -> Said:
        input_tokens = sum(len(text_pieces(_text_of(message))) + 3 for message in request.get("messages") or ())
        if call := self._call(request):
            tokens = len(call.name) + len(call.arguments)
            return Said(calls=(call,), input_tokens=input_tokens, output_tokens=tokens // 4 + 1)
        schema = _schema_of(request.get("response_format"))
        text = self.say(request) if schema is None else json.dumps(instance_of(schema), ensure_ascii=False)
        text = _before_stop(text, request.get("stop"))
        pieces = text_pieces(text)
        most = request.get("max_completion_tokens") or request.get("max_tokens")
        cut = isinstance(most, int) and most < len(pieces)
        if cut:
            pieces = pieces[:most]
        return Said(
            "".join(pieces),
            finish_reason="length" if cut else "stop",
            input_tokens=input_tokens,
            output_tokens=len(pieces),
            logprobs=bool(request.get("logprobs")),
        )

    @staticmethod
    def _call(request: Mapping[str, Any]) -> Call | None:
        functions = [tool["function"] for tool in request.get("tools") or () if tool.get("function")]
        choice = request.get("tool_choice") or "auto"
        last = _last(request)
        if isinstance(choice, Mapping):
            name = (choice.get("function") or {}).get("name")
            functions = [function for function in functions if function["name"] == name]
        elif choice == "none" or (choice == "auto" and last.get("role") != "user"):
            functions = []
        elif choice == "auto":
            words = set(re.findall(r"[\w-]+", _text_of(last)))
            functions = [function for function in functions if function["name"] in words]
        if not functions:
            return None
        arguments = instance_of(functions[0].get("parameters") or {"type": "object"})
        return Call(functions[0]["name"], json.dumps(arguments, ensure_ascii=False))


def _schema_of(response_format: Any) -> Mapping[str, Any] | None:
    """The schema that an answer must satisfy; an empty object where only JSON is asked for."""
    if not isinstance(response_format, Mapping):
        return None
    if response_format.get("type") == "json_object":
        return {"type": "object"}
    named = response_format.get("json_schema")
    schema = named.get("schema") if isinstance(named, Mapping) else response_format.get("schema")
    return schema if isinstance(schema, Mapping) else None


def _before_stop(text: str, stop: str | Sequence[str] | None) -> str:
    words = [stop] if isinstance(stop, str) else stop or ()
    ends = [text.find(word) for word in words if word and word in text]
    return text[: min(ends)] if ends else text


def _last(request: Mapping[str, Any]) -> Mapping[str, Any]:
    messages: Sequence[Mapping[str, Any]] = request.get("messages") or ({},)
    return messages[-1]


def _results(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tools' messages at the end, in their order; none where somebody else has spoken since."""
    messages: Sequence[Mapping[str, Any]] = request.get("messages") or ()
    return list(takewhile(lambda message: message.get("role") == "tool", reversed(messages)))[::-1]


def _words_of(message: Mapping[str, Any]) -> str:
    return " ".join(_text_of(message).split())


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping)).strip()
