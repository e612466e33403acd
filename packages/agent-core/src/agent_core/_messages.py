"""A message of a conversation.

Decides which of its parts a reader sees, and what makes it complete. How a dict in the OpenAI shape becomes one is left
to `_door`; what may be sent to whom, to `_history`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ._door import call_from, message_fields
from ._parts import CONTENT_PARTS, ContentPart, Part, ReasoningPart, RefusalPart, Role, TextPart, ToolCall

__all__ = ["Message", "Status"]

Status: TypeAlias = Literal["pending", "writing", "completed", "error", "aborted"]


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
        return message_fields(data, cls.model_fields)

    @property
    def content(self) -> str | list[ContentPart]:
        """What a reader sees: the text, or the list of parts where there is more than text."""
        seen = [part for part in self.parts if isinstance(part, CONTENT_PARTS)]
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
        answered = call if isinstance(call, ToolCall) else call_from(call, "tool")
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
        answered = call if isinstance(call, ToolCall) else call_from({"function": call}, "function")
        return cls(role="function", content=result, name=answered.name, status=status or _status_of(result))


def _status_of(content: object) -> Status:
    return "completed" if content else "pending"
