"""One request to the body that goes on the wire.

Decides the common form; names and shapes that differ are the dialect's. The history is fitted to its target first.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from .._completion import CompletionRequest, ToolDefinition
from .._history import fit_history
from .._json import mend_text, plain_value
from .._messages import Message
from .._parts import Part, ReasoningPart, TextPart, ToolCall
from ._dialect import Dialect

__all__ = ["encode_message", "encode_request"]

_UNSENDABLE = re.compile(r"[^A-Za-z0-9_-]")  # in the name of a schema, such as that of a generic class


def encode_request(request: CompletionRequest, dialect: Dialect, *, provider: str, stream: bool) -> dict[str, Any]:
    """Write the body of one call. Keys are in the order in which vendors document them; `extra` wins."""
    history = fit_history(
        request.messages, provider=provider, model=request.model, call_id_form=dialect.call_id_form
    ).messages
    messages = dialect.messages([encode_message(message, dialect) for message in history])
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = dialect.tool_choice(request.tool_choice)
    body |= dialect.parameters(request)
    if request.logprobs is not None:
        body |= dialect.logprobs_parameters(request.logprobs)
    if request.response_format is not None:
        body["response_format"] = _response_format(request.response_format)
    if stream:
        body["stream"] = True
        body |= dialect.stream_parameters
    body |= request.extra
    return body


def encode_message(message: Message, dialect: Dialect) -> dict[str, Any]:
    """Write one message. `content` is left out beside calls without text, which most services accept."""
    wire: dict[str, Any] = {"role": message.role}
    content = _content(message, dialect)
    calls = message.tool_calls
    if content != "" or not calls:
        wire["content"] = content
    if message.role == "assistant":
        if refusal := mend_text(message.refusal):
            if dialect.knows_refusal:
                wire["refusal"] = refusal
            else:
                said = [{"type": "text", "text": refusal}]
                wire["content"] = content + refusal if isinstance(content, str) else content + said
        wire |= dialect.reasoning_fields([part for part in message.parts if isinstance(part, ReasoningPart)])
        if tools := [call for call in calls if not call.legacy]:
            wire["tool_calls"] = [
                {"id": call.id, "type": "function", "function": _function(call, dialect), **(call.extras or {})}
                for call in tools
            ]
        for call in calls:
            if call.legacy:
                wire["function_call"] = _function(call, dialect)
    elif message.role == "tool":
        wire["tool_call_id"] = message.tool_call_id
    elif message.name:
        wire["name"] = dialect.tool_name(message.name) if message.role == "function" else mend_text(message.name)
    wire |= message.extras
    return dialect.message(message, wire)


def _content(message: Message, dialect: Dialect) -> str | list[dict[str, Any]]:
    content = message.content
    if isinstance(content, str) and not any(_needs_a_list(part, dialect) for part in message.parts):
        return mend_text(content)
    parts = [dialect.content_part(_mended(part)) for part in message.parts]
    return [part for part in parts if part is not None]


def _mended(part: Part) -> Part:
    return replace(part, text=mend_text(part.text)) if isinstance(part, ReasoningPart) else part


def _needs_a_list(part: Part, dialect: Dialect) -> bool:
    """Tell a part that text alone cannot say: text with a vendor's own fields, reasoning that is content (Mistral)."""
    if isinstance(part, ReasoningPart):
        return dialect.content_part(part) is not None
    return isinstance(part, TextPart) and bool(part.extras)


def _function(call: ToolCall, dialect: Dialect) -> dict[str, str]:
    """Write a call's name and arguments. Text that is no object is not sent again: llama.cpp answers it with 500."""
    arguments = call.arguments
    try:
        if not call.parse():
            arguments = "{}"
    except ValueError:
        arguments = "{}"
    return {"name": dialect.tool_name(call.name), "arguments": mend_text(arguments)}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = tool.function
    wire: dict[str, Any] = {"name": function.name}
    if function.description:
        wire["description"] = function.description
    wire["parameters"] = function.parameters
    if function.strict is not None:
        wire["strict"] = function.strict
    return {"type": tool.type, "function": {**wire, **(function.model_extra or {})}, **(tool.model_extra or {})}


def _response_format(wanted: type[BaseModel] | dict[str, Any]) -> dict[str, Any]:
    if isinstance(wanted, dict):
        if wanted.get("type") in ("json_object", "json_schema", "text"):
            return wanted
        name, schema = str(wanted.get("title", "answer")), wanted
    else:
        name, schema = wanted.__name__, wanted.model_json_schema()
    return {
        "type": "json_schema",
        "json_schema": {
            "name": _UNSENDABLE.sub("_", name)[:64],
            "schema": plain_value(schema),
            "strict": _is_strict(schema),
        },
    }


def _is_strict(schema: Any) -> bool:
    """Tell whether OpenAI would take a schema as strict: every object closed, every property required."""
    if isinstance(schema, list):
        return all(_is_strict(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
        return all(_is_strict(item) for item in properties.values()) and _is_strict(
            list(schema.get("$defs", {}).values())
        )
    return all(_is_strict(item) for key, item in schema.items() if key not in ("default", "enum", "const", "examples"))
