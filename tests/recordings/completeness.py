"""Nothing lost: what stands in a recorded answer and is found neither in a field of the completion nor in its extras.

Each function gives the paths that are missing, so a test compares with an empty list and a failure names the field.

Not looked for, as it says nothing or is said by the shape of the completion itself: the tags `object`, `role` and
`type: function`; the `index` of a tool call, which its place tells; empty objects and lists; the `text` of a choice
that repeats the delta's content (Together).

In a stream the last value of a path counts; null is not a value once another one has been seen. Lists in a delta
grow, so every item is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_core import Choice, Completion, ToolCall
from recordings.oracle import chunks_of, join_details

__all__ = ["missing_from_stream", "missing_from_whole"]

Path = tuple[str, ...]

_TOP = {"id", "model", "object", "choices", "usage"}
_CHOICE = {"index", "finish_reason", "logprobs", "message", "delta"}
_MESSAGE = {"role", "content", "refusal", "reasoning", "reasoning_content", "reasoning_details", "tool_calls"}
_MESSAGE |= {"function_call"}
_COUNTS: dict[Path, str] = {
    ("prompt_tokens",): "input_tokens",
    ("completion_tokens",): "output_tokens",
    ("total_tokens",): "total_tokens",
    ("prompt_tokens_details", "cached_tokens"): "cached_tokens",
    ("num_cached_tokens",): "cached_tokens",
    ("cached_tokens",): "cached_tokens",
    ("completion_tokens_details", "reasoning_tokens"): "reasoning_tokens",
}


def missing_from_whole(body: Mapping[str, Any], completion: Completion) -> list[str]:
    """Name what an answer sent whole has and the completion has not."""
    missing = _fields(_flat(body, without=_TOP), completion.extras)
    missing += _identity(body, completion) + _usage(body.get("usage"), completion)
    choices = {choice.index: choice for choice in completion.choices}
    for sent in body.get("choices") or []:
        place = f"choices.{sent.get('index', 0)}"
        read = choices.get(sent.get("index", 0))
        if read is None:
            missing.append(place)
            continue
        message = sent.get("message") or {}
        fields = _flat(sent, without=_CHOICE) | _flat(message, without=_MESSAGE)
        if "delta" in sent:  # Perplexity repeats the message under this name
            fields |= _flat({"delta": sent["delta"]})
        missing += _fields(fields, read.extras, f"{place}.")
        missing += _reasoning([message], read, f"{place}.message.")
        missing += _content([message], read, f"{place}.message.")
        calls = [call for call in read.message.tool_calls if not call.legacy]
        missing += _calls(message.get("tool_calls") or [], calls, f"{place}.message.")
        missing += _logprobs([sent.get("logprobs")], read, f"{place}.")
    return missing


def missing_from_stream(sse: str, completion: Completion) -> list[str]:
    """Name what the chunks of a streamed answer have and the completion has not."""
    missing: list[str] = []
    top: dict[Path, Any] = {}
    fields: dict[int, dict[Path, Any]] = {}
    deltas: dict[int, list[Mapping[str, Any]]] = {}
    logprobs: dict[int, list[Any]] = {}
    usage: Mapping[str, Any] | None = None
    for chunk in chunks_of(sse):
        _overlay(top, _flat(chunk, without=_TOP))
        usage = chunk.get("usage") or usage
        missing += [] if chunk.get("id") in (None, "", completion.id) else ["id"]
        missing += [] if chunk.get("model") in (None, "", completion.model) else ["model"]
        for sent in chunk.get("choices") or []:
            index = sent.get("index", 0)
            delta = sent.get("delta") or {}
            if sent.get("text") == (delta.get("content") or ""):
                sent = {key: value for key, value in sent.items() if key != "text"}
            seen = fields.setdefault(index, {})
            _overlay(seen, _flat(sent, without=_CHOICE), grow=True)
            _overlay(seen, _flat(delta, without=_MESSAGE), grow=True)
            deltas.setdefault(index, []).append(delta)
            logprobs.setdefault(index, []).append(sent.get("logprobs"))
    missing += _fields(top, completion.extras) + _usage(usage, completion)
    choices = {choice.index: choice for choice in completion.choices}
    for index, seen in fields.items():
        place = f"choices.{index}"
        read = choices.get(index)
        if read is None:
            missing.append(place)
            continue
        missing += _fields(seen, read.extras, f"{place}.")
        missing += _reasoning(deltas[index], read, f"{place}.delta.")
        missing += _content(deltas[index], read, f"{place}.delta.")
        missing += _logprobs(logprobs[index], read, f"{place}.")
        told = [piece for delta in deltas[index] for piece in delta.get("tool_calls") or []]
        for key in sorted({key for piece in told for key in piece} - {"index", "id", "type", "function"}):
            if not any(key in (call.extras or {}) for call in read.message.tool_calls):
                missing.append(f"{place}.delta.tool_calls.{key}")
    return missing


def _flat(value: Mapping[str, Any], *, without: Iterable[str] = (), path: Path = ()) -> dict[Path, Any]:
    """Every path through nested objects and the value at its end. A list is a value; an empty one is nothing."""
    found: dict[Path, Any] = {}
    for key, item in value.items():
        if not path and key in without:
            continue
        if isinstance(item, Mapping):
            found |= _flat(item, path=(*path, key))
        elif item != []:
            found[(*path, key)] = item
    return found


def _overlay(known: dict[Path, Any], new: Mapping[Path, Any], *, grow: bool = False) -> None:
    for path, value in new.items():
        if value is None:
            known.setdefault(path, None)
        elif grow and isinstance(value, list) and isinstance(known.get(path), list):
            known[path] = known[path] + value
        else:
            known[path] = value


_ABSENT = object()


def _fields(wanted: Mapping[Path, Any], extras: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = _flat(extras)
    return [prefix + ".".join(path) for path, value in wanted.items() if found.get(path, _ABSENT) != value]


def _identity(body: Mapping[str, Any], completion: Completion) -> list[str]:
    return [key for key in ("id", "model") if (body.get(key) or "") != getattr(completion, key)]


def _usage(sent: Mapping[str, Any] | None, completion: Completion) -> list[str]:
    if not sent:
        return []
    if completion.usage is None:
        return ["usage"]
    missing = []
    rest = {}
    for path, value in _flat(sent).items():
        if path not in _COUNTS:
            rest[path] = value
        elif getattr(completion.usage, _COUNTS[path]) != value:
            missing.append("usage." + ".".join(path))
    return missing + _fields(rest, completion.usage.extras, "usage.")


def _reasoning(sent: list[Mapping[str, Any]], read: Choice, prefix: str) -> list[str]:
    """Each name that carries reasoning must give the text that was read, or stand in the extras."""
    missing = []
    for name in ("reasoning", "reasoning_content"):
        text = "".join(message.get(name) or "" for message in sent)
        if text and text != read.message.reasoning and read.extras.get(name) != text:
            missing.append(prefix + name)
    details = join_details([item for message in sent for item in message.get("reasoning_details") or []])
    parts = [part for part in read.message.parts if part.type == "reasoning" and part.field != "thinking"]
    kept = [item for part in parts for item in part.details]
    return missing if join_details(kept) == details else [*missing, prefix + "reasoning_details"]


def _content(sent: list[Mapping[str, Any]], read: Choice, prefix: str) -> list[str]:
    """What the parts of content lists hold besides text: each key of a thinking part, and every other part whole."""
    lists = [message["content"] for message in sent if isinstance(message.get("content"), list)]
    parts = [part for content in lists for part in content]
    kept = [part for part in read.message.parts if part.type == "reasoning"]
    told = {key for part in kept for detail in part.details for key in detail}
    if any(part.signature for part in kept):
        told.add("signature")
    wanted = {key for part in parts if part["type"] == "thinking" for key in part} - {"type", "thinking"}
    missing = [f"{prefix}content.thinking.{key}" for key in sorted(wanted - told)]
    others = [part.data for part in read.message.parts if part.type == "other"]
    sent_others = [part for part in parts if part["type"] not in ("thinking", "text")]
    return missing if others == sent_others else [*missing, f"{prefix}content"]


def _calls(sent: list[Mapping[str, Any]], read: list[ToolCall], prefix: str) -> list[str]:
    if len(sent) != len(read):
        return [prefix + "tool_calls"]
    missing = []
    for place, (call, got) in enumerate(zip(sent, read, strict=True)):
        fields = _flat(call, without={"id", "type", "function", "index"})
        fields |= _flat(call.get("function") or {}, without={"name", "arguments"})
        missing += _fields(fields, got.extras or {}, f"{prefix}tool_calls.{place}.")
    return missing


def _logprobs(sent: list[Any], read: Choice, prefix: str) -> list[str]:
    joined: dict[str, list[Any]] = {}
    for logprobs in sent:
        for name, tokens in (logprobs or {}).items():
            joined.setdefault(name, []).extend(tokens or [])
    kept = read.logprobs or {}
    return [f"{prefix}logprobs.{name}" for name, tokens in joined.items() if tokens and kept.get(name) != tokens]
