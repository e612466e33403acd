"""What each vendor answers when it does not answer: its errors by kind, in its own words where those are known.

Recorded or seen are OpenAI's 400, 401 and 404, Groq's 400, 401 and 404, Mistral's 400 and 401, and llama.cpp's 400,
401, 404, 500 and 503. Quoted in public issues are OpenAI's context overflow, Groq's 413, 429 and context overflow,
Mistral's 429, and Together's 401, 429 and context overflow. Of the others only the form is that vendor's: the words are
ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = ["FAILURES", "RETRY_AFTER", "ErrorKind", "Failure"]

ErrorKind: TypeAlias = Literal[
    "bad_request",
    "unauthorized",
    "no_key",
    "forbidden",
    "not_found",
    "no_route",
    "too_large",
    "rate_limit",
    "rate_limit_date",
    "rate_limit_text",
    "server_error",
    "unavailable",
    "html_502",
    "context_overflow",
    "tool_use_failed",
]
"""What can be answered instead of a completion.

`unauthorized` is for a key that is wrong, `no_key` for none; `not_found` for a model, `no_route` for a path. The three
limits name the wait in seconds, as a date, in the text.
"""

RETRY_AFTER = 20
"""Seconds that each limit asks to wait."""


class Failure(NamedTuple):
    """An error in neutral words. A voice writes it in its vendor's form; `more` are fields of that form alone."""

    status: int
    message: str
    type: str | None = None
    code: str | None = None
    param: str | None = None
    more: Mapping[str, Any] = {}


_INVALID = "invalid_request_error"
_NO_MODEL = "The model `no-such-model` does not exist or you do not have access to it."

FAILURES: Mapping[str, Mapping[ErrorKind, Failure]] = {
    "openai": {
        "bad_request": Failure(
            400,
            "Unsupported parameter: 'stop' is not supported with this model.",
            _INVALID,
            "unsupported_parameter",
            "stop",
        ),
        "unauthorized": Failure(
            401,
            "Incorrect API key provided: sk-unuse*****used. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            _INVALID,
            "invalid_api_key",
        ),
        "no_key": Failure(
            401,
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer "
            "auth (i.e. Authorization: Bearer YOUR_KEY).",
            _INVALID,
        ),
        "no_route": Failure(404, "Invalid URL (POST /v1/nothing)", _INVALID),
        "forbidden": Failure(
            403,
            "Country, region, or territory not supported",
            "request_forbidden",
            "unsupported_country_region_territory",
        ),
        "not_found": Failure(404, _NO_MODEL, _INVALID, "model_not_found"),
        "too_large": Failure(413, "Request entity too large: the request exceeds the maximum size.", _INVALID),
        "rate_limit": Failure(
            429,
            "Rate limit reached for gpt-5.1 in organization org-unused on tokens per min (TPM): Limit 30000, "
            "Used 29800, Requested 10200. Please try again in 20s.",
            "tokens",
            "rate_limit_exceeded",
        ),
        "server_error": Failure(
            500, "The server had an error while processing your request. Sorry about that!", "server_error"
        ),
        "unavailable": Failure(
            503, "The engine is currently overloaded, please try again later.", "server_error", "service_unavailable"
        ),
        "context_overflow": Failure(
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 131214 tokens. "
            "Please reduce the length of the messages.",
            _INVALID,
            "context_length_exceeded",
            "messages",
        ),
    },
    "groq": {
        "bad_request": Failure(400, "'temperature' : value must be at most 2", _INVALID),
        "unauthorized": Failure(401, "Invalid API Key", _INVALID, "invalid_api_key"),
        "no_key": Failure(401, "Invalid API Key", _INVALID, "invalid_api_key"),
        "no_route": Failure(
            404, "Unknown request URL: POST /nothing. Please check the URL for typos.", _INVALID, "unknown_url"
        ),
        "forbidden": Failure(
            403,
            "The model `no-such-model` is blocked at the project level. Please have a project admin enable this "
            "model in the project settings.",
            "permissions_error",
            "model_permission_blocked_project",
        ),
        "not_found": Failure(404, _NO_MODEL, _INVALID, "model_not_found"),
        "too_large": Failure(
            413,
            "Request too large for model `llama-3.3-70b-versatile` in organization `org_unused` service tier "
            "`on_demand` on tokens per minute (TPM): Limit 12000, Requested 20482, please reduce your message size "
            "and try again.",
            "tokens",
            "rate_limit_exceeded",
        ),
        "rate_limit": Failure(
            429,
            "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_unused` service tier "
            "`on_demand` on tokens per minute (TPM): Limit 12000, Used 11800, Requested 4200. "
            "Please try again in 20s.",
            "tokens",
            "rate_limit_exceeded",
        ),
        "server_error": Failure(500, "Internal Server Error", "internal_server_error"),
        "unavailable": Failure(503, "Service unavailable: the model is over capacity.", "internal_server_error"),
        "context_overflow": Failure(
            400,
            "Please reduce the length of the messages or completion.",
            _INVALID,
            "context_length_exceeded",
            "messages",
        ),
        "tool_use_failed": Failure(
            400,
            "Tool choice is required, but model did not call a tool",
            _INVALID,
            "tool_use_failed",
            more={"failed_generation": "maybe"},
        ),
    },
    "mistral": {
        "bad_request": Failure(400, "Logprobs are not enabled for this model", "invalid_request_invalid_args", "3051"),
        "unauthorized": Failure(401, "Invalid API Key"),
        "no_key": Failure(401, "No API key found in request"),
        "no_route": Failure(404, "no Route matched with those values"),
        "forbidden": Failure(403, "You are not allowed to access this model.", "forbidden"),
        "not_found": Failure(404, "no Route matched with those values"),
        "too_large": Failure(413, "Request size limit exceeded"),
        "rate_limit": Failure(429, "Rate limit exceeded. Please try again in 20s.", "rate_limited", "1300"),
        "server_error": Failure(500, "Internal server error", "internal_server_error"),
        "unavailable": Failure(503, "Service unavailable.", "unreachable_backend"),
        "context_overflow": Failure(
            400,
            "Prompt contains 131214 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
            _INVALID,
        ),
    },
    "together": {
        "bad_request": Failure(
            400, "Input validation error: `temperature` must be positive", _INVALID, None, "temperature"
        ),
        "unauthorized": Failure(
            401,
            "Invalid API key provided. You can find your API key at https://api.together.ai/settings/api-keys.",
            _INVALID,
            "invalid_api_key",
        ),
        "no_key": Failure(401, "Missing API key", _INVALID, "missing_api_key"),
        "no_route": Failure(404, "Not found", _INVALID, "not_found"),
        "forbidden": Failure(403, "You do not have permission to access this model.", _INVALID, "forbidden"),
        "not_found": Failure(404, _NO_MODEL, _INVALID, "model_not_found"),
        "too_large": Failure(413, "Request entity too large", _INVALID),
        "rate_limit": Failure(
            429, "You have reached the rate limit specific to this model. Please try again in 20s.", "credit_limit"
        ),
        "server_error": Failure(500, "Internal server error", "server_error", "internal_error"),
        "unavailable": Failure(503, "The server is overloaded or not ready yet.", "service_unavailable"),
        "context_overflow": Failure(
            400,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 131073. Given: 131214 `inputs` "
            "tokens and 512 `max_new_tokens`",
            _INVALID,
            None,
            "max_tokens",
        ),
    },
    "local": {
        "bad_request": Failure(
            400, "Field 'temperature': [json.exception.type_error.302] type must be number, but is string", _INVALID
        ),
        "unauthorized": Failure(401, "Invalid API Key", "authentication_error"),
        "no_key": Failure(401, "Invalid API Key", "authentication_error"),
        "no_route": Failure(404, "File Not Found", "not_found_error"),
        "forbidden": Failure(403, "Access denied", "permission_error"),
        "not_found": Failure(404, "File Not Found", "not_found_error"),
        "too_large": Failure(413, "Payload Too Large", _INVALID),
        "rate_limit": Failure(429, "Too many requests. Please try again in 20s.", "rate_limit_error"),
        "server_error": Failure(
            500, "The model produced output that does not match the expected peg-native format", "server_error"
        ),
        "unavailable": Failure(503, "Loading model", "unavailable_error"),
        "context_overflow": Failure(
            400,
            "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
            "exceed_context_size_error",
            more={"n_prompt_tokens": 2009, "n_ctx": 512},
        ),
    },
}
"""The form of `html_502` is nobody's own, and the limits differ by their headers alone."""
