"""What OpenAI refuses: what it has no name for, calls without results, and reasoning, which it never takes back."""

from __future__ import annotations

from collections.abc import Callable

from .._failures import Failure
from . import _fields as fields
from . import _history as history
from ._finding import Finding
from ._rule import INVALID, NAME, NUMBERS, ORPHAN, UNANSWERED, Rule, words

__all__ = ["RULES"]


def _say(template: str, code: str | None = None, *, old_place: bool = False) -> Callable[[Finding], Failure]:
    """Its words, with the place as param. Older checks write a place as `messages.[1].role`."""

    def say(finding: Finding) -> Failure:
        place = finding.dotted.replace("[", ".[") if old_place else finding.dotted
        return Failure(400, template.format(place=finding.dotted, what=finding.what), INVALID, code, place)

    return say


_FIELDS = words(
    """
    audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
    messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty
    prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format
    safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
    top_logprobs top_p user verbosity web_search_options
    """
)
_MESSAGES = {
    "assistant": {"role", "content", "name", "refusal", "audio", "tool_calls", "function_call", "annotations"},
    "tool": {"role", "content", "tool_call_id"},
    "user": {"role", "content", "name"},
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
}

RULES = (
    Rule(
        "there is a model",
        "rec: openai/error-400-model",
        fields.absent("model"),
        lambda finding: Failure(400, "you must provide a model parameter", INVALID),
    ),
    Rule(
        "messages and tools are lists of objects",
        "sdk: openai/types/chat/completion_create_params.py",
        fields.not_a_list("messages", "tools"),
        _say("Invalid type for '{place}': expected an array of objects.", "invalid_type"),
    ),
    Rule(
        "there are messages",
        "sdk: openai/types/chat/completion_create_params.py requires them",
        fields.no_messages,
        _say("Invalid '{place}': empty array. Expected an array with minimum length 1.", "empty_array"),
    ),
    Rule(
        "fields of the body are known",
        "issue: teabranch/open-responses-server 41",
        fields.unknown_fields(_FIELDS),
        _say("Unknown parameter: '{place}'.", "unknown_parameter"),
    ),
    Rule(
        "fields of a message are known, reasoning is none of them",
        "sdk: openai/types/chat/*_message_param.py; annotations: rec: openai/document-tool-result",
        history.unknown_message_fields(_MESSAGES),
        _say("Unknown parameter: '{place}'.", "unknown_parameter"),
    ),
    Rule(
        "numbers are numbers",
        "sdk: openai/types/chat/completion_create_params.py",
        fields.not_typed(NUMBERS),
        _say("Invalid type for '{place}'.", "invalid_type"),
    ),
    Rule(
        "names of tools",
        "issue: brekkylab/ailoy 109",
        history.names_not_like(NAME),
        _say(
            "Invalid '{place}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            "invalid_value",
        ),
    ),
    Rule(
        "a choice needs tools",
        "issue: openai/swarm 30",
        fields.choice_without_tools,
        _say("Invalid value for '{place}': '{place}' is only allowed when 'tools' are specified."),
    ),
    Rule(
        "at most four stop sequences",
        "sdk: openai/types/chat/completion_create_params.py",
        fields.more_than("stop", 4),
        _say(
            "Invalid '{place}': array too long. Expected an array with maximum length 4, but got an array with length "
            "{what} instead.",
            "array_above_max_length",
        ),
    ),
    Rule(
        "no stop sequence for models that reason",
        "rec: openai/error-400-invalid-request",
        fields.for_models(fields.present("stop"), "gpt-5-mini"),
        _say("Unsupported parameter: '{place}' is not supported with this model.", "unsupported_parameter"),
    ),
    Rule(
        "no developer for o1-mini",
        "rec: openai/error-400-unsupported-role",
        fields.for_models(history.roles("developer"), "o1-mini"),
        _say("Unsupported value: '{place}' does not support '{what}' with this model.", "unsupported_value"),
    ),
    Rule(
        "a result names its call",
        "issue: MadcowD/ell 325",
        history.results_without_id,
        _say("Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.", old_place=True),
    ),
    Rule(
        "a result has a call", "issue: miurla/morphic 136", history.results_without_call, _say(ORPHAN, old_place=True)
    ),
    Rule(
        "calls are answered",
        "issue: RamiAwar/dataline 172",
        history.calls_unanswered,
        _say(UNANSWERED, old_place=True),
    ),
    Rule(
        "only calls go without content",
        "issue: run-llama/llama_index 17921",
        history.content_missing,
        _say("Invalid value for 'content': expected a string, got null.", old_place=True),
    ),
)
