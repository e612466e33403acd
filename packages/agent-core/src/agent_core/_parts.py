"""What is inside a message: text, images, reasoning, calls, as small frozen values in an order.

What a vendor's wire looks like is left to `chatwire`, and how the OpenAI shape is read to `_door`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from ._json import parse_object

__all__ = [
    "CONTENT_PARTS",
    "AudioPart",
    "ContentPart",
    "FilePart",
    "ImagePart",
    "OtherPart",
    "Part",
    "ReasoningPart",
    "RefusalPart",
    "Role",
    "TextPart",
    "ToolCall",
]

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool", "function"]
"""Who speaks in a message."""


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
CONTENT_PARTS = (TextPart, ImagePart, FilePart, AudioPart, OtherPart)
