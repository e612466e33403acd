"""What Together refuses. Little is known, as no refusal of it was recorded."""

from __future__ import annotations

from collections.abc import Callable

from .._failures import Failure
from . import _fields as fields
from . import _history as history
from ._finding import Finding
from ._rule import INVALID, NAME, NUMBERS, ORPHAN, UNANSWERED, Rule

__all__ = ["RULES"]


def _say(template: str) -> Callable[[Finding], Failure]:
    return lambda finding: Failure(
        400, template.format(place=finding.dotted, what=finding.what), INVALID, None, finding.dotted
    )


RULES = (
    Rule(
        "messages and tools are lists of objects",
        "issue: mozilla-ai/any-llm 714 has the words",
        fields.not_a_list("messages", "tools"),
        _say("Input validation error: `{place}` must be a list"),
    ),
    Rule(
        "there are messages",
        "sdk: together/types/chat/completion_create_params.py requires them",
        fields.no_messages,
        _say("Input validation error: `{place}` must not be empty"),
    ),
    Rule(
        "numbers are numbers",
        "sdk: together/types/chat/completion_create_params.py",
        fields.not_typed(NUMBERS),
        _say("Input validation error: `{place}` must be a number"),
    ),
    Rule(
        "roles are known, developer is none of them",
        "sdk: together/types/chat/chat_completion_message_param.py",
        history.unknown_roles({"system", "user", "assistant", "tool", "function"}),
        _say("Input validation error: `{place}` is unknown"),
    ),
    Rule(
        "names of tools",
        "sdk: none checks it; the servers of open models follow OpenAI",
        history.names_not_like(NAME),
        _say("Input validation error: `{place}` is no valid name"),
    ),
    Rule("a result has a call", "order", history.results_without_call, _say(ORPHAN)),
    Rule("calls are answered", "order", history.calls_unanswered, _say(UNANSWERED)),
    Rule(
        "arguments are JSON",
        "issue: local-inference-lab/vllm 684, sgl-project/sglang 28035: open models' servers read them",
        history.json_arguments,
        _say("Input validation error: `{place}`: {what}"),
    ),
)
