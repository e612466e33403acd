"""What is asked of a model and what comes back: one request type, one completion type, for every vendor.

Decides their fields and what is refused at the door. How a vendor's wire spells them is left to `chatwire`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ._messages import Message
from ._parts import ToolCall

__all__ = [
    "Choice",
    "Completion",
    "CompletionRequest",
    "FinishReason",
    "FunctionDefinition",
    "ToolDefinition",
    "Usage",
]

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error", "unknown"]

# OpenAI documents this form for function names, and the other vendors check the same one.
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class FunctionDefinition(BaseModel):
    """A function the model may call: name, what it is for, and its parameters as a JSON schema of type object."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _none_is_left_out(cls, data: Any) -> Any:
        if isinstance(data, Mapping):  # as SDKs dump their own definitions
            return {key: value for key, value in data.items() if value is not None}
        return data

    @field_validator("name")
    @classmethod
    def _name_is_sendable(cls, name: str) -> str:
        if not _TOOL_NAME.fullmatch(name):
            raise ValueError(f"tool name {name!r} must be 1 to 64 letters, digits, '_' or '-': vendors refuse others")
        return name

    @field_validator("parameters")
    @classmethod
    def _parameters_are_an_object(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        if parameters and parameters.get("type", "object") != "object":
            raise ValueError(f"must be a JSON schema of type 'object', not {parameters['type']!r}")
        return parameters


class ToolDefinition(BaseModel):
    """A tool on offer, in the OpenAI function form: `{"type": "function", "function": {"name": ...}}`."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    type: Literal["function"] = "function"
    function: FunctionDefinition

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name


class CompletionRequest(BaseModel):
    """One request to a model, the same for every vendor. Fields left at None are not sent.

    Attributes:
        model: the vendor's model name; may be empty where a `Model` fills it in.
        messages: the conversation; dicts in the OpenAI shape are taken too.
        tools: tools on offer, in the OpenAI function form.
        tool_choice: `"auto"`, `"none"`, `"required"`, or the name of one of `tools`.
        max_output_tokens: upper limit of the answer, reasoning included (tokens).
        stop: texts that end the answer.
        logprobs: log probabilities of each token, with so many alternatives.
        response_format: a pydantic class or a JSON schema that the answer follows; `{"type": "json_object"}` for any.
        timeout: how long to wait for the connection and for each next piece of the answer (seconds).
        extra: fields of the vendor's own, sent as they are, over all others.

    Raises:
        pydantic.ValidationError: a field is wrong; the error names it.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True, arbitrary_types_allowed=True, allow_inf_nan=False)

    model: str = ""
    messages: list[Message] = Field(min_length=1)
    tools: list[ToolDefinition] | None = None
    tool_choice: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = Field(default=None, gt=0)
    stop: list[str] | None = None
    seed: int | None = None
    n: int | None = Field(default=None, ge=1)
    logprobs: int | None = Field(default=None, ge=0)
    parallel_tool_calls: bool | None = None
    response_format: type[BaseModel] | dict[str, Any] | None = None
    reasoning_effort: str | None = None
    timeout: float | None = Field(default=None, gt=0)
    extra: dict[str, Any] = Field(default_factory=dict)

    if TYPE_CHECKING:  # what is taken at the door is more than what is kept

        def __init__(
            self,
            *,
            model: str = ...,
            messages: Sequence[Message | Mapping[str, Any]],
            tools: Sequence[ToolDefinition | Mapping[str, Any]] | None = None,
            tool_choice: str | Mapping[str, Any] | None = None,
            temperature: float | None = None,
            top_p: float | None = None,
            max_output_tokens: int | None = None,
            stop: str | Sequence[str] | None = None,
            seed: int | None = None,
            n: int | None = None,
            logprobs: int | None = None,
            parallel_tool_calls: bool | None = None,
            response_format: type[BaseModel] | Mapping[str, Any] | None = None,
            reasoning_effort: str | None = None,
            timeout: float | None = None,
            extra: Mapping[str, Any] = ...,
        ) -> None: ...

    @field_validator("stop", mode="before")
    @classmethod
    def _one_stop_is_a_list(cls, stop: Any) -> Any:
        return [stop] if isinstance(stop, str) else stop

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _choice_by_name(cls, choice: Any) -> Any:
        if isinstance(choice, Mapping) and isinstance(function := choice.get("function"), Mapping):
            return function.get("name")
        return choice

    @model_validator(mode="after")
    def _choice_is_on_offer(self) -> CompletionRequest:
        if self.tool_choice in (None, "auto", "none"):
            return self
        offered = [tool.name for tool in self.tools or ()]
        if self.tool_choice == "required":
            if not offered:
                raise ValueError("tool_choice 'required' needs 'tools'")
        elif self.tool_choice not in offered:
            known = ", ".join(offered) or "no tools"
            raise ValueError(f"tool_choice {self.tool_choice!r} is not 'auto', 'none', 'required' or one of: {known}")
        return self


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one completion. None where the vendor did not say, which is not 0.

    `input_tokens` includes `cached_tokens`, `output_tokens` includes `reasoning_tokens`. `extras` holds every other
    count or figure the vendor sent, in its own words.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    extras: dict[str, Any] = field(default_factory=dict)

    def __add__(self, other: Usage) -> Usage:
        """Add the counts of two completions. Unknown plus known is known; extras are not added up."""
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.total_tokens, other.total_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
        )


def _sum(mine: int | None, theirs: int | None) -> int | None:
    return None if mine is None and theirs is None else (mine or 0) + (theirs or 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers to a request that asked for `n` of them."""

    message: Message
    finish_reason: FinishReason = "stop"
    raw_finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    index: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer, the same for every vendor.

    Attributes:
        message: the answer, its parts in the order of the wire.
        finish_reason: why it ended, in six words; `raw_finish_reason` is the vendor's word, None where it gave none.
        usage: token counts, None where the vendor sent none.
        logprobs: `{"content": [{"token", "logprob", ...}]}`, as OpenAI spells them.
        choices: all answers where `n` was more than 1; the fields above are those of the first.
        extras: everything the wire had that has no field here.
        raw: the body of a whole answer as it was sent (parsed JSON); None after a stream.
        attempts: how many requests it took, retries included.
    """

    message: Message
    finish_reason: FinishReason = "stop"
    raw_finish_reason: str | None = None
    usage: Usage | None = None
    id: str = ""
    model: str = ""
    provider: str = ""
    logprobs: dict[str, Any] | None = None
    choices: tuple[Choice, ...] = field(default=(), repr=False)
    extras: dict[str, Any] = field(default_factory=dict)
    raw: Any = field(default=None, repr=False)
    attempts: int = 1

    def __post_init__(self) -> None:
        if not self.choices:
            only = Choice(self.message, self.finish_reason, self.raw_finish_reason, self.logprobs)
            object.__setattr__(self, "choices", (only,))

    @property
    def text(self) -> str:
        """The answer's text."""
        return self.message.text

    @property
    def reasoning(self) -> str:
        """What the model thought, where the vendor shows it."""
        return self.message.reasoning

    @property
    def refusal(self) -> str:
        """The refusal, where the vendor tells it apart from text."""
        return self.message.refusal

    @property
    def tool_calls(self) -> Sequence[ToolCall]:
        """The tools the model asks for, in order."""
        return self.message.tool_calls
