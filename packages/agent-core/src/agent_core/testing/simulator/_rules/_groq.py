"""What Groq refuses: unknown fields, `reasoning_content` above all, a second choice, log probabilities."""

from __future__ import annotations

from collections.abc import Callable

from .._failures import Failure
from . import _fields as fields
from . import _history as history
from ._finding import Finding
from ._rule import INVALID, NAME, NUMBERS, ORPHAN, UNANSWERED, Rule, words

__all__ = ["RULES"]


def _say(template: str, code: str | None = None) -> Callable[[Finding], Failure]:
    return lambda finding: Failure(400, template.format(place=finding.path[0], what=finding.what), INVALID, code)


def _say_of_message(template: str) -> Callable[[Finding], Failure]:
    """Its words about a field of a message."""

    def say(finding: Finding) -> Failure:
        message = f"messages.{finding.path[1]}"
        inner = template.format(message=message, field=finding.path[-1])
        return Failure(
            400, f"'{message}' : for 'role:{finding.role}' the following must be satisfied[({inner})]", INVALID
        )

    return say


_FIELDS = words(
    """
    citation_options compound_custom disable_tool_validation documents exclude_domains frequency_penalty
    function_call functions include_domains include_reasoning logit_bias logprobs max_completion_tokens
    max_tokens messages metadata model n parallel_tool_calls presence_penalty reasoning_effort reasoning_format
    response_format search_settings seed service_tier stop store stream stream_options temperature tool_choice
    tools top_logprobs top_p user
    """
)
_MESSAGES = {
    "assistant": {"role", "content", "name", "tool_calls", "function_call", "reasoning"},
    "tool": {"role", "content", "name", "tool_call_id"},
    "user": {"role", "content", "name"},
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
}

RULES = (
    Rule(
        "messages and tools are lists of objects",
        "issue: ai-shifu/ChatALL 901 has the words for a wrong type",
        fields.not_a_list("messages", "tools"),
        _say("'{place}' : value must be an array"),
    ),
    Rule(
        "there are messages",
        "sdk: groq/types/chat/completion_create_params.py requires them",
        fields.no_messages,
        _say("'{place}' : minimum number of items is 1"),
    ),
    Rule(
        "fields of the body are known",
        "issue: fanenr/chatbot 21; stream_options: rec: groq/stream-text",
        fields.unknown_fields(_FIELDS),
        _say("property '{place}' is unsupported"),
    ),
    Rule(
        "fields of a message are known, reasoning_content is none of them",
        "issue: janhq/jan 8136, tashfeenahmed/freellmapi 1070",
        history.unknown_message_fields(_MESSAGES),
        _say_of_message("'{message}' : property '{field}' is unsupported"),
    ),
    Rule(
        "numbers are numbers",
        "issue: ai-shifu/ChatALL 901",
        fields.not_typed(NUMBERS),
        _say("'{place}' : value must be a number"),
    ),
    Rule(
        "one choice",
        "sdk: groq/types/chat/completion_create_params.py, text of n",
        fields.more_than("n", 1),
        _say("'{place}' : number must be at most 1"),
    ),
    Rule(
        "no log probabilities",
        "published: console.groq.com/docs/openai, features that give 400",
        fields.present("logprobs", "top_logprobs", "logit_bias"),
        _say("property '{place}' is not supported by this model"),
    ),
    Rule(
        "one way to ask for reasoning",
        "sdk: groq/types/chat/completion_create_params.py, text of reasoning_format",
        fields.fields_together("include_reasoning", "reasoning_format"),
        _say("cannot specify both `include_reasoning` and `reasoning_format`"),
    ),
    Rule(
        "no reasoning for a model that does not reason",
        "issue: vercel/ai 8057",
        fields.for_models(history.message_fields("assistant", "reasoning"), "moonshotai/kimi-k2-instruct"),
        _say("reasoning is not supported with this model"),
    ),
    Rule("names of tools", "issue: langgenius/dify 22867", history.names_not_like(NAME), _say("invalid function name")),
    Rule(
        "a result names its call",
        "issue: hackclub/ai 22",
        history.results_without_id,
        _say_of_message("'{message}.tool_call_id' : property 'tool_call_id' is missing"),
    ),
    Rule("a result has a call", "order", history.results_without_call, _say(ORPHAN)),
    Rule("calls are answered", "order", history.calls_unanswered, _say(UNANSWERED)),
)
