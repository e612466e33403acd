"""What llama.cpp's server refuses.

It takes much that others refuse: unknown fields and roles, no messages at all, calls without results, results without
calls, any name, and a tool's name as a choice, which it then ignores (all seen).
"""

from __future__ import annotations

from collections.abc import Callable

from .._failures import Failure
from . import _fields as fields
from . import _history as history
from ._finding import Finding
from ._rule import INVALID, Rule

__all__ = ["RULES"]


def _say(template: str, status: int = 400) -> Callable[[Finding], Failure]:
    kind = INVALID if status == 400 else "server_error"
    return lambda finding: Failure(status, template.format(place=finding.path[0], what=finding.what), kind)


RULES = (
    Rule(
        "messages are a list",
        "seen",
        fields.messages_missing,
        _say("'messages' is required"),
    ),
    Rule(
        "tools are a list",
        "seen",
        fields.not_a_list("messages", "tools"),
        _say("Failed to parse tools: Expected 'tools' to be an array, got {what}; tools = {what}", 500),
    ),
    Rule(
        "numbers are numbers",
        "rec: llamacpp/error-400-invalid-request",
        fields.not_typed({"temperature": (int, float), "top_p": (int, float)}),
        _say("Field '{place}': [json.exception.type_error.302] type must be number, but is string"),
    ),
    Rule(
        "a choice is auto, none or required",
        "seen",
        fields.choice_not_in("auto", "none", "required"),
        _say("Invalid tool_choice: {what}"),
    ),
    Rule(
        "alternatives need log probabilities",
        "seen",
        fields.field_alone("top_logprobs", "logprobs"),
        _say("top_logprobs requires logprobs to be set to true"),
    ),
    Rule(
        "the assistant says something",
        "seen",
        history.bare_assistant,
        _say("Assistant message must contain either 'content' or 'tool_calls'!"),
    ),
    Rule(
        "arguments are JSON",
        "seen",
        history.json_arguments,
        _say("Failed to parse tool call arguments as JSON: {what}", 500),
    ),
    Rule(
        "one message of the assistant's is last",
        "seen",
        history.two_assistants_last,
        _say("Cannot have 2 or more assistant messages at the end of the list."),
    ),
)
