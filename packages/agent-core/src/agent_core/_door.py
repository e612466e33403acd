"""The door: messages in the OpenAI shape become ordered parts, and what is wrong with one is named.

Decides which keys are known, what is refused, and that everything else is kept as sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

from ._json import compact_json, mend_text
from ._parts import (
    CONTENT_PARTS,
    AudioPart,
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    ReasoningPart,
    RefusalPart,
    Role,
    TextPart,
    ToolCall,
)

__all__ = ["call_from", "message_fields", "part_from", "parts_from", "thinking_fields"]

# Keys of a message in the OpenAI shape that have a place of their own here; any other one is an extra.
_REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
_OPENAI_KEYS = {"role", "content", "tool_calls", "function_call", "refusal", *_REASONING_KEYS}
_NEEDS_CONTENT = {"system", "developer", "user", "tool", "function"}


def message_fields(data: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Split a message in the OpenAI shape into fields of `Message`, whose names are `fields`; other keys are extras.

    Raises:
        ValueError: a key is missing or has the wrong type; the text names it.
    """
    role = data.get("role")
    content = data.get("content")
    if not isinstance(role, str):
        raise ValueError(f"a message needs 'role', one of {', '.join(get_args(Role))}; got {role!r}")
    if content is None and role in _NEEDS_CONTENT:
        raise ValueError(f"a {role} message needs 'content' (a text or a list of parts)")
    if role == "tool" and not data.get("tool_call_id"):
        raise ValueError("a tool message needs 'tool_call_id', the id of the call it answers")
    parts: list[Part] = [*_reasoning_from(data), *parts_from(content)]
    if refusal := _text_at(data.get("refusal"), "refusal"):
        parts.append(RefusalPart(refusal))
    calls = _list_at(data.get("tool_calls"), "tool_calls")
    parts += [
        call if isinstance(call, ToolCall) else call_from(call, f"tool_calls.{place}")
        for place, call in enumerate(calls)
    ]
    if function := data.get("function_call"):
        parts.append(call_from({"id": "", "function": function}, "function_call", legacy=True))
    known = {key: value for key, value in data.items() if key in fields and value is not None}
    unknown = {
        key: value for key, value in data.items() if key not in _OPENAI_KEYS and key not in fields and value is not None
    }
    extras = known.get("extras", {})
    if not isinstance(extras, Mapping):
        raise ValueError(f"'extras' must be an object, not {type(extras).__name__}")
    return {**known, "role": role, "parts": tuple(parts), "extras": {**unknown, **extras}}


def _text_at(value: Any, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"'{where}' must be a text, not {type(value).__name__}")


def _list_at(value: Any, where: str) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return value
    raise ValueError(f"'{where}' must be a list, not {type(value).__name__}")


def _reasoning_from(data: Mapping[str, Any]) -> list[ReasoningPart]:
    details = tuple(_list_at(data.get("reasoning_details"), "reasoning_details"))
    for place, item in enumerate(details):
        if not isinstance(item, Mapping):
            raise ValueError(f"'reasoning_details.{place}' must be an object, not {type(item).__name__}")
    for key in _REASONING_KEYS[:2]:
        if text := _text_at(data.get(key), key):
            return [ReasoningPart(text, field=key, details=details)]
    if details:
        text = "".join([str(item.get("text") or item.get("summary") or "") for item in details])
        return [ReasoningPart(text, field="reasoning_details", details=details)]
    return []


def parts_from(content: Any) -> list[Part]:
    """Read the content of a message: a text, a list of parts, or nothing.

    Raises:
        ValueError: it is none of these, or an entry is no part; the text says where and why.
    """
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [TextPart(mend_text(content))]
    if not isinstance(content, Sequence) or isinstance(content, bytes | bytearray):
        raise ValueError(f"'content' must be a text or a list of parts, not {type(content).__name__}")
    return [part_from(item, f"content.{place}") for place, item in enumerate(content)]


def part_from(item: Any, where: str = "content") -> Part:
    """Turn one content part in the OpenAI shape (or this library's) into a part. A type nobody knows is kept as sent.

    Raises:
        ValueError: it is no part; the text says where and why.
    """
    if isinstance(item, str):
        return TextPart(mend_text(item))
    if isinstance(item, (*CONTENT_PARTS, ReasoningPart, RefusalPart, ToolCall)):
        return item
    if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
        raise ValueError(f"'{where}' must be an object with a 'type', such as {{'type': 'text', 'text': '...'}}")
    rest = {key: value for key, value in item.items() if key != "type"}
    kind = item["type"]
    if kind == "text" and isinstance(rest.get("text"), str):
        rest.pop("index", None)  # the place of a streamed part, which its order says too
        return TextPart(mend_text(rest.pop("text")), rest or None)
    if kind in ("image_url", "image") and (image := rest.pop("image_url", None) or rest.pop("url", None)):
        if isinstance(image, str):
            return ImagePart(image, _text_at(rest.pop("detail", None), f"{where}.detail"), rest or None)
        if isinstance(image, Mapping) and isinstance(image.get("url"), str):
            more = {key: value for key, value in image.items() if key not in ("url", "detail")}
            detail = _text_at(image.get("detail"), f"{where}.image_url.detail")
            return ImagePart(image["url"], detail, {**rest, **more} or None)
        raise ValueError(f"'{where}.image_url' needs a 'url'")
    if kind == "file":
        nested = rest.pop("file", None)
        told = {**rest, **nested} if isinstance(nested, Mapping) else rest
        data = _text_at(told.pop("file_data", None) or told.pop("data", None), f"{where}.file_data")
        file_id, filename = (_text_at(told.pop(key, None), f"{where}.{key}") for key in ("file_id", "filename"))
        if file_id or data:
            return FilePart(file_id, data, filename, told or None)
        raise ValueError(f"'{where}' needs a 'file_id', or 'file_data' with a 'filename'")
    if kind == "input_audio" and isinstance(audio := rest.get("input_audio"), Mapping):
        data, format = (_text_at(audio.get(key), f"{where}.input_audio.{key}") for key in ("data", "format"))
        if data and format:
            return AudioPart(data, format)
        raise ValueError(f"'{where}.input_audio' needs 'data' (base64) and 'format'")
    if kind == "refusal" and isinstance(rest.get("refusal"), str):
        return RefusalPart(rest["refusal"])
    if (thinking := thinking_part(item)) is not None:
        return thinking
    if kind == "input_audio" and isinstance(rest.get("input_audio"), str):  # Mistral: base64 or an address
        return OtherPart(dict(item))
    if kind in ("text", "image_url", "input_audio"):
        raise ValueError(f"'{where}' is a {kind} part without its '{kind}'")
    return OtherPart(dict(item))


def thinking_part(item: Mapping[str, Any]) -> ReasoningPart | None:
    """Read a `thinking` part of a content list (Mistral); None for any other part."""
    fields = thinking_fields(item)
    return None if fields is None else ReasoningPart(fields[0], None, None, "thinking", *fields[1:])


def thinking_fields(item: Any) -> tuple[str, str | None, tuple[dict[str, Any], ...]] | None:
    """Give text, signature and details of a `thinking` part; None for any other part.

    What it holds besides (`closed`, references between the texts) is kept as its one detail.
    """
    if not isinstance(item, dict) or item.get("type") != "thinking":
        return None
    thoughts = item.get("thinking")
    if type(thoughts) is str:
        thoughts = ({"type": "text", "text": thoughts},)
    elif type(thoughts) is not list:
        return None
    texts, others = [], []
    for thought in thoughts:
        if isinstance(thought, dict) and thought.get("type") == "text" and type(text := thought.get("text")) is str:
            texts.append(text)
        else:
            others.append(thought)
    if len(item) == 2 and not others:
        return "".join(texts), None, ()
    detail = dict(item)
    del detail["thinking"]
    signature = detail.pop("signature", None)
    if signature is not None and type(signature) is not str:
        detail["signature"], signature = signature, None
    if others:
        detail["thinking"] = others
    return "".join(texts), signature or None, (detail,) if len(detail) > 1 else ()


def call_from(data: Any, where: str, *, legacy: bool = False) -> ToolCall:
    if not isinstance(data, Mapping):
        raise ValueError(f"'{where}' must be an object with 'id' and 'function'")
    function = data.get("function", data)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ValueError(f"'{where}' has no function name")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else compact_json(arguments)
    arguments = mend_text(arguments)
    known = {"id", "type", "function", "index", "name", "arguments"}
    extras = {key: value for key, value in data.items() if key not in known and value is not None}
    return ToolCall(str(data.get("id") or ""), name, arguments, legacy, extras or None)
