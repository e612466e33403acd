"""What a conversation is made of: messages, and the ordered parts inside them.

Decides how a message in the OpenAI shape becomes parts, and which of the parts a reader sees. What a vendor's wire
looks like is left to `chatwire`; what may be sent to whom, to `_history`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ._json import compact_json, mend_text, parse_object

__all__ = [
    "AudioPart",
    "ContentPart",
    "FilePart",
    "ImagePart",
    "Message",
    "OtherPart",
    "Part",
    "ReasoningPart",
    "RefusalPart",
    "Role",
    "Status",
    "TextPart",
    "ToolCall",
]

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool", "function"]
Status: TypeAlias = Literal["pending", "writing", "completed", "error", "aborted"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text. `extras` holds fields a vendor adds to a text part, such as `cache_control`."""

    text: str
    extras: dict[str, Any] | None = None
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: an http(s) or `data:` URL; detail is `low`, `high`, `original` or `auto` where the vendor takes one."""

    url: str
    detail: str | None = None
    extras: dict[str, Any] | None = None
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file: uploaded before (`file_id`), or inline as a `data:` URL (`data`) with its `filename`."""

    file_id: str | None = None
    data: str | None = None
    filename: str | None = None
    extras: dict[str, Any] | None = None
    type: Literal["file"] = "file"


@dataclass(frozen=True, slots=True)
class AudioPart:
    """Sound: base64 `data` and its `format`, such as `wav` or `mp3`."""

    data: str
    format: str
    type: Literal["audio"] = "audio"


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """What the model thought, and where it came from: only its origin may be sent it back.

    `field` is the wire's name for it (`reasoning`, `reasoning_content`, `reasoning_details`, `thinking`,
    `think_tags`); `signature` and `details` are the vendor's own data, kept as sent.
    """

    text: str
    provider: str | None = None
    model: str | None = None
    field: str | None = None
    signature: str | None = None
    details: tuple[dict[str, Any], ...] = ()
    type: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model asks for. `arguments` is the text as the model wrote it; it may be cut off or no JSON at all.

    `legacy` marks the old `function_call` form, answered by a message of role `function`.
    """

    id: str
    name: str
    arguments: str = ""
    legacy: bool = False
    extras: dict[str, Any] | None = None
    type: Literal["tool_call"] = "tool_call"

    def parse(self) -> dict[str, Any]:
        """Read the arguments; nothing, blanks and `null` are `{}`.

        Raises:
            ValueError: the text is no JSON object, or holds a number that JSON cannot hold.
        """
        return parse_object(self.arguments)


@dataclass(frozen=True, slots=True)
class RefusalPart:
    """The model's refusal, where the vendor tells it apart from text."""

    text: str
    type: Literal["refusal"] = "refusal"


@dataclass(frozen=True, slots=True)
class OtherPart:
    """A part with a type of the vendor's own (citations, documents), kept as sent."""

    data: dict[str, Any] = field(default_factory=dict)
    type: Literal["other"] = "other"


Part: TypeAlias = Annotated[
    TextPart | ImagePart | FilePart | AudioPart | ReasoningPart | ToolCall | RefusalPart | OtherPart,
    Field(discriminator="type"),
]
ContentPart: TypeAlias = TextPart | ImagePart | FilePart | AudioPart | OtherPart
_CONTENT = (TextPart, ImagePart, FilePart, AudioPart, OtherPart)

# Keys of a message in the OpenAI shape that have a place of their own here; any other one is an extra.
_REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
_OPENAI_KEYS = {"role", "content", "tool_calls", "function_call", "refusal", *_REASONING_KEYS}
_NEEDS_CONTENT = {"system", "developer", "user", "tool", "function"}


class Message(BaseModel):
    """One message of a conversation, its parts in the order in which they were written.

    Made from `Message(role="user", content="...")`, a factory such as `Message.user("...")`, or a dict in the OpenAI
    shape (`content`, `tool_calls`, `reasoning_content`, `refusal` and so on become parts).

    Attributes:
        parts: everything, in order. `content`, `text`, `reasoning`, `tool_calls`, `refusal` are views of it.
        status: only a `completed` message is sent to a model.
        name: the tool or function that a `tool` or `function` message answers for.
        tool_call_id: the call that a `tool` message answers.
        provider, model: who wrote it, where a model did.
        extras: fields of the vendor's own, sent back only to whom they came from.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True, validate_default=False)

    role: Role
    parts: tuple[Part, ...] = ()
    status: Status = "completed"
    name: str | None = None
    tool_call_id: str | None = None
    provider: str | None = None
    model: str | None = None
    extras: dict[str, Any] = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            role: Role,
            content: str | Sequence[ContentPart | Mapping[str, Any]] | None = None,
            parts: Sequence[Part] = ...,
            status: Status = ...,
            name: str | None = None,
            tool_call_id: str | None = None,
            provider: str | None = None,
            model: str | None = None,
            extras: dict[str, Any] = ...,
            tool_calls: Sequence[ToolCall | Mapping[str, Any]] | None = None,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _from_openai(cls, data: Any) -> Any:
        if isinstance(data, Message):
            return data
        if isinstance(data, BaseModel):
            # A vendor SDK's own message, which may hold what its types do not allow: SDKs do not validate answers.
            data = data.model_dump(exclude_none=True, warnings=False)
        if not isinstance(data, Mapping) or "parts" in data:
            return data
        return _fields_of(data)

    @property
    def content(self) -> str | list[ContentPart]:
        """What a reader sees: the text, or the list of parts where there is more than text."""
        seen = [part for part in self.parts if isinstance(part, _CONTENT)]
        if (len(seen) < 2 or self.role == "assistant") and all(isinstance(part, TextPart) for part in seen):
            return self.text
        return seen

    @property
    def text(self) -> str:
        """All text, joined."""
        return "".join([part.text for part in self.parts if isinstance(part, TextPart)])

    @property
    def reasoning(self) -> str:
        """All reasoning text, joined."""
        return "".join([part.text for part in self.parts if isinstance(part, ReasoningPart)])

    @property
    def refusal(self) -> str:
        """The refusal, or empty text."""
        return "".join([part.text for part in self.parts if isinstance(part, RefusalPart)])

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls, in order."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @classmethod
    def build(cls, role: Role, parts: Sequence[Part], **fields: Any) -> Message:
        """Make a message from parts known to be right, without validating them again."""
        # Said here, as pydantic looks at the signature of a default factory every time it is used (40 us).
        fields.setdefault("extras", {})
        return cls.model_construct(role=role, parts=tuple(parts), **fields)

    @classmethod
    def system(cls, text: str = "") -> Message:
        """Make a system message."""
        return cls(role="system", content=text)

    @classmethod
    def user(cls, content: str | Sequence[ContentPart | Mapping[str, Any]]) -> Message:
        """Make a user message from text or parts."""
        return cls(role="user", content=content)

    @classmethod
    def assistant(cls, text: str = "", *, status: Status | None = None) -> Message:
        """Make an assistant message: pending while it has no text, completed when made with it."""
        return cls(role="assistant", content=text, status=status or _status_of(text))

    @classmethod
    def tool(
        cls,
        call: ToolCall | Mapping[str, Any],
        result: str | Sequence[ContentPart | Mapping[str, Any]] = "",
        *,
        status: Status | None = None,
    ) -> Message:
        """Make the answer to a call: pending while it has no result, completed when made with it."""
        answered = call if isinstance(call, ToolCall) else _call_from(call, "tool")
        return cls(
            role="tool",
            content=result,
            tool_call_id=answered.id,
            name=answered.name,
            status=status or _status_of(result),
        )

    @classmethod
    def function(cls, call: ToolCall | Mapping[str, Any], result: str = "", *, status: Status | None = None) -> Message:
        """Make the answer to a legacy `function_call`: pending without a result, completed with it."""
        answered = call if isinstance(call, ToolCall) else _call_from({"function": call}, "function")
        return cls(role="function", content=result, name=answered.name, status=status or _status_of(result))


def _status_of(content: object) -> Status:
    return "completed" if content else "pending"


def _fields_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Split a message in the OpenAI shape into this library's fields.

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
        call if isinstance(call, ToolCall) else _call_from(call, f"tool_calls.{place}")
        for place, call in enumerate(calls)
    ]
    if function := data.get("function_call"):
        parts.append(_call_from({"id": "", "function": function}, "function_call", legacy=True))
    known = {key: value for key, value in data.items() if key in Message.model_fields and value is not None}
    unknown = {
        key: value
        for key, value in data.items()
        if key not in _OPENAI_KEYS and key not in Message.model_fields and value is not None
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
    if isinstance(item, (*_CONTENT, ReasoningPart, RefusalPart, ToolCall)):
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
    """Read a `thinking` part of a content list (Mistral); None for any other part.

    What it holds besides text and signature (`closed`, references between the texts) is kept as its one detail.
    """
    if item.get("type") != "thinking" or not isinstance(thoughts := item.get("thinking"), list | str):
        return None
    texts, others = [], []
    for thought in [{"type": "text", "text": thoughts}] if isinstance(thoughts, str) else thoughts:
        if isinstance(thought, Mapping) and thought.get("type") == "text" and isinstance(thought.get("text"), str):
            texts.append(thought["text"])
        else:
            others.append(thought)
    signature = item.get("signature")
    known = ("thinking", "signature") if isinstance(signature, str | None) else ("thinking",)
    detail = {key: value for key, value in item.items() if key not in known}
    if others:
        detail["thinking"] = others
    return ReasoningPart(
        "".join(texts),
        field="thinking",
        signature=signature or None if isinstance(signature, str) else None,
        details=(detail,) if len(detail) > 1 else (),
    )


def _call_from(data: Any, where: str, *, legacy: bool = False) -> ToolCall:
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
