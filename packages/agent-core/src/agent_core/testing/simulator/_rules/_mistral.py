"""What Mistral refuses: other call ids than its own, roles out of order, every field it does not know."""

from __future__ import annotations

from collections.abc import Callable

from .._failures import Failure
from . import _fields as fields
from . import _history as history
from ._finding import Finding
from ._rule import INVALID, NAME, NUMBERS, Rule, words

__all__ = ["RULES"]


def _say(
    template: str, type_: str = "invalid_request_message_order", code: str | None = "3230"
) -> Callable[[Finding], Failure]:
    return lambda finding: Failure(400, template.format(what=finding.what, role=finding.role), type_, code)


def _say_422(kind: str, words: str) -> Callable[[Finding], Failure]:
    """A 422, which tells the place in the form of its validator."""

    def say(finding: Finding) -> Failure:
        first, *rest = finding.path
        place = ["body", first, *rest[:1], *([finding.role] if finding.role else []), *rest[1:]]
        return Failure(422, words, more={"type": kind, "loc": place, "msg": words, "input": finding.what})

    return say


_FIELDS = words(
    """
    frequency_penalty guardrails logprobs max_tokens messages metadata min_tokens model n parallel_tool_calls
    prediction presence_penalty prompt_cache_key prompt_logprobs prompt_mode random_seed reasoning_effort
    repetition_penalty response_format safe_prompt service_tier stop stream temperature tool_choice tools top_k
    top_logprobs top_p top_prompt_logprobs
    """
)
_MESSAGES = {
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "tool_call_id", "name"},
    "user": {"role", "content"},
    "system": {"role", "content"},
}
_ORDER = {
    "system": {"user", "assistant", "system"},
    "user": {"assistant", "system", "user"},
    "assistant": {"assistant", "user", "tool"},
    "tool": {"assistant", "tool"},
}
_VALIDATOR = "published: mistralai/mistral-common, protocol/instruct/validator.py"

RULES = (
    Rule(
        "messages and tools are lists of objects",
        "sdk: mistralai/client/models/chatcompletionrequest.py, httpvalidationerror.py",
        fields.not_a_list("messages", "tools"),
        _say_422("list_type", "Input should be a valid list"),
    ),
    Rule("there are messages", _VALIDATOR, fields.no_messages, _say("Conversation must have at least one message")),
    Rule(
        "fields of the body are known",
        "issue: Gitlawb/openclaude 739",
        fields.unknown_fields(_FIELDS),
        _say_422("extra_forbidden", "Extra inputs are not permitted"),
    ),
    Rule(
        "fields of a message are known, reasoning is none of them",
        "issue: charmbracelet/crush 1590, BerriAI/litellm 30835",
        history.unknown_message_fields(_MESSAGES),
        _say_422("extra_forbidden", "Extra inputs are not permitted"),
    ),
    Rule(
        "roles are known, developer is none of them",
        "sdk: mistralai/client/models/chatcompletionrequest.py",
        history.unknown_roles(_MESSAGES),
        _say_422("union_tag_invalid", "Input tag does not match any of the expected tags"),
    ),
    Rule(
        "numbers are numbers",
        "sdk: mistralai/client/models/chatcompletionrequest.py",
        fields.not_typed(NUMBERS),
        _say_422("float_parsing", "Input should be a valid number"),
    ),
    Rule(
        "no log probabilities from these models",
        "rec: mistral/error-400-logprobs-unsupported, mistral/error-400-logprobs-unsupported-2",
        fields.for_models(fields.present("logprobs"), "ministral-3b-latest", "mistral-small-latest"),
        _say("Logprobs are not enabled for this model", "invalid_request_invalid_args", "3051"),
    ),
    Rule(
        "the last message is not the assistant's",
        f"{_VALIDATOR}; issue: huggingface/smolagents 757",
        history.last_is_assistant,
        _say("Expected last role User or Tool (or Assistant with prefix True) for serving but got {role}"),
    ),
    Rule(
        "order of roles, user after tool above all",
        f"{_VALIDATOR}; issue: datapizza-labs/datapizza-ai 98",
        history.order_broken(_ORDER),
        _say("Unexpected role '{role}' after role '{what}'"),
    ),
    Rule(
        "as many results as calls",
        f"{_VALIDATOR}; issue: mistralai/client-ts 106",
        history.calls_and_results_differ,
        _say("Not the same number of function calls and responses"),
    ),
    Rule(
        "call ids of nine letters and digits",
        f"{_VALIDATOR}; issue: karthink/gptel 1203, nearai/ironclaw 1241",
        history.ids_not_like(r"[a-zA-Z0-9]{9}"),
        _say("Tool call id was {what} but must be a-z, A-Z, 0-9, with a length of 9.", "invalid_function_call", "3280"),
    ),
    Rule(
        "names of tools",
        f"{_VALIDATOR}; issue: Kochava-Studios/witsy 164",
        history.names_not_like(NAME),
        _say(
            "Function name was {what} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum "
            "length of 64.",
            "invalid_function_call",
            "3280",
        ),
    ),
    Rule(
        "the assistant says something",
        f"{_VALIDATOR}; issue: Mobile-Artificial-Intelligence/maid 672",
        history.empty_assistant,
        _say("Assistant message must have either content or tool_calls, but not both.", INVALID, None),
    ),
    Rule(
        "a prefix is last",
        _VALIDATOR,
        history.prefix_not_last,
        _say("Assistant message with prefix True must be last message", INVALID, None),
    ),
)
