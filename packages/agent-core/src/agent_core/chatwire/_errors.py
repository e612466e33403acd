"""What went wrong, as this library's errors: from an HTTP answer, from an error object, from an SDK's exception.

Decides which class an error is, whether it may be tried again, and how long to wait. Told apart by status, code and
type; the message's text is read only for what no vendor sends otherwise (waiting times, an exceeded context).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from .. import errors
from .._json import compact_json
from ..errors import ProviderError

__all__ = ["error_from_exception", "error_from_object", "error_from_response", "redact"]

_BY_STATUS: dict[int, type[ProviderError]] = {
    401: errors.AuthenticationError,
    403: errors.PermissionDeniedError,
    404: errors.NotFoundError,
    408: errors.ProviderTimeoutError,
    413: errors.RequestTooLargeError,
    429: errors.RateLimitError,
    498: errors.ServerError,  # Groq: the flex tier has no capacity left just now
}
# Codes and types as vendors write them, lower case. OpenAI, Groq, Together: `code`; DeepSeek, llama.cpp: `type`.
_BY_CODE: dict[str, type[ProviderError]] = {
    "authentication_error": errors.AuthenticationError,
    "invalid_api_key": errors.AuthenticationError,
    "permission_error": errors.PermissionDeniedError,
    "permission_denied": errors.PermissionDeniedError,
    "context_length_exceeded": errors.ContextLengthError,
    "exceed_context_size_error": errors.ContextLengthError,  # llama.cpp
    "too_many_prompt_tokens": errors.ContextLengthError,  # Perplexity
    "tool_use_failed": errors.ToolUseFailedError,  # Groq
    "model_not_found": errors.NotFoundError,
    "model_not_available": errors.NotFoundError,  # Together, with status 400
    "invalid_model": errors.NotFoundError,  # Mistral, with status 400
    "not_found_error": errors.NotFoundError,
    "rate_limit_exceeded": errors.RateLimitError,
    "rate_limit_error": errors.RateLimitError,
    "rate_limited": errors.RateLimitError,  # Mistral
    "request_too_large": errors.RequestTooLargeError,
    "invalid_request_error": errors.BadRequestError,
    "invalid_request_message_order": errors.BadRequestError,  # Mistral, code 3230
    "invalid_function_call": errors.BadRequestError,  # Mistral, code 3280: the form of a call's id
    "bad_request": errors.BadRequestError,
    "server_error": errors.ServerError,
    "internal_server_error": errors.ServerError,
    "internal_error": errors.ServerError,
    "api_error": errors.ServerError,
    "overloaded_error": errors.ServerError,
    "service_unavailable": errors.ServerError,
    "unavailable_error": errors.ServerError,  # llama.cpp while it loads
    "engine_overloaded": errors.ServerError,
    "capacity_exceeded": errors.ServerError,  # Groq, with status 498
    "timeout": errors.ProviderTimeoutError,
    "insufficient_quota": errors.RateLimitError,
}
# A code that says more than its status: 400 and 404 say less than these, whatever else stands beside them.
_MORE_THAN_STATUS = (errors.ContextLengthError, errors.ToolUseFailedError, errors.NotFoundError)
# A wait does not help: the account has no credit left (OpenAI sends it as 429).
_FINAL_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
# Only OpenAI, llama.cpp and Groq give an exceeded context a code; DeepSeek, Ollama, Together and vLLM tell it in the
# text, Together also with status 403.
_CONTEXT_TOLD = re.compile(
    r"maximum context length|context (?:length|window|size)|exceeds? the (?:available )?context|prompt is too long"
    r"|\binputs`? tokens \+ `?max_new_tokens",
    re.IGNORECASE,
)
_WAIT_TOLD = re.compile(r"(?:try again|retry) (?:in|after)\s+((?:[\d.]+\s*(?:ms|[hms])[a-z]*[\s,]*)+)", re.IGNORECASE)
_WAIT_PIECE = re.compile(r"([\d.]+)\s*(ms|h|m|s)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_CREDENTIAL = re.compile(r"(?i)(bearer\s+)[^\s'\",)]+|\b(?:sk|gsk|tgp)[-_][A-Za-z0-9_*.-]{6,}")
_REQUEST_IDS = ("x-request-id", "mistral-correlation-id", "request-id", "apim-request-id", "cf-ray")
_STATUS = re.compile("[45][0-9][0-9]")
_TEXT_LIMIT = 300

# Exceptions of SDKs and HTTP libraries by class name, so that none has to be imported. The first name found on the
# way up an exception's bases counts. OpenAI, Groq and Together share one generator; httpx and httpx2 share names.
_BY_EXCEPTION: dict[str, tuple[type[ProviderError], str]] = {
    "APITimeoutError": (errors.ProviderTimeoutError, "no answer in time"),
    "TimeoutException": (errors.ProviderTimeoutError, "no answer in time"),
    "ConnectTimeout": (errors.ProviderTimeoutError, "no connection in time"),
    "InferenceTimeoutError": (errors.ProviderTimeoutError, "no answer in time"),
    "TimeoutError": (errors.ProviderTimeoutError, "no answer in time"),
    "LocalProtocolError": (errors.ProviderConnectionError, "the request could not be written (is the API key clean?)"),
    "APIConnectionError": (errors.ProviderConnectionError, "no connection"),
    "NoResponseError": (errors.ProviderConnectionError, "no answer"),  # mistralai
    "RequestError": (errors.ProviderConnectionError, "the connection failed"),
    "SSLError": (errors.ProviderConnectionError, "the TLS connection failed"),
    "EndOfStream": (errors.ProviderConnectionError, "the connection ended"),
    "ConnectionError": (errors.ProviderConnectionError, "the connection failed"),
    "OSError": (errors.ProviderConnectionError, "the connection failed"),
    "StreamError": (errors.ProtocolError, "the answer's stream could not be read"),
    "APIResponseValidationError": (errors.ProtocolError, "the answer makes no sense"),
    "JSONDecodeError": (errors.ProtocolError, "the answer is not JSON"),
    "ValidationError": (errors.ProtocolError, "the answer makes no sense"),
}


def redact(text: str, *secrets: str | None) -> str:
    """Take credentials out of a text: the given ones, and what looks like one."""
    for secret in secrets:
        if secret and len(secret.strip()) > 3:
            text = text.replace(secret.strip(), "***")
    return _CREDENTIAL.sub(lambda found: f"{found.group(1) or ''}***", text)


def error_from_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes | str,
    *,
    provider: str | None = None,
    model: str | None = None,
    secret: str | None = None,
) -> ProviderError:
    """Make the error for an HTTP answer that is no success.

    Args:
        headers: by any spelling; looked up without regard to case.
        body: as sent: JSON, a web page, or nothing.
        secret: the key, which vendors sometimes repeat in their message.
    """
    lower = {str(key).lower(): value for key, value in headers.items()}
    text = body if isinstance(body, str) else body.decode("utf-8", "replace")
    parsed: Any = text
    with suppress(ValueError):  # a gateway's page, or nothing: the text itself is the body
        parsed = from_json(text)
    error = error_from_object(parsed, status=status, provider=provider, model=model, secret=secret)
    error.request_id = next((lower[key] for key in _REQUEST_IDS if key in lower), None)
    # Together sends retry-after on success too, so the header counts only where waiting helps.
    if error.retryable and (wait := _wait_from_headers(lower)) is not None:
        error.retry_after = wait
    return error


def error_from_object(
    body: Any,
    *,
    status: int | None = None,
    provider: str | None = None,
    model: str | None = None,
    secret: str | None = None,
) -> ProviderError:
    """Make the error for an error object, from an HTTP answer or from inside a stream.

    Without a status from HTTP the object's own counts, then its code and type; else it is a `ProtocolError`.
    """
    body = _redacted(body, secret)  # before anything is cut out of it, so that no half of a key is left
    told = _Told(body)
    status = status if status is not None and status >= 400 else told.status
    kind = _class_for(status, told)
    message = told.message or _page_title(body) or (f"HTTP {status}" if status else "an error")
    details: dict[str, Any] = {
        "provider": provider,
        "model": model,
        "status": status,
        "code": told.code,
        "body": body,
    }
    if told.code in _FINAL_CODES:
        details["retryable"] = False
    elif status in (408, 409, 425):
        details["retryable"] = True
    if kind is errors.ToolUseFailedError:
        return errors.ToolUseFailedError(message, failed_generation=told.failed_generation, **details)
    error = kind(message, **details)
    if error.retryable:
        error.retry_after = _wait_from_text(told.message)
    return error


def error_from_exception(
    exception: BaseException,
    *,
    provider: str | None = None,
    model: str | None = None,
    secret: str | None = None,
    begun: bool = False,
) -> ProviderError:
    """Make the error for an exception of an SDK or HTTP library.

    Raise it outside the `except` block: the exception holds the key, and must not be chained.

    Args:
        begun: the answer had begun, so a broken connection is an interruption.
    """
    response = getattr(exception, "response", None) or getattr(exception, "raw_response", None)  # mistralai's name
    status = getattr(response, "status_code", None) or getattr(exception, "status_code", None)
    if isinstance(status, int) and status >= 400:
        headers = dict(getattr(response, "headers", None) or {})
        return error_from_response(
            status, headers, _body_of(exception, response), provider=provider, model=model, secret=secret
        )
    for base in type(exception).__mro__:
        if base.__name__ in _BY_EXCEPTION:
            kind, words = _BY_EXCEPTION[base.__name__]
            break
    else:
        if isinstance(body := getattr(exception, "body", None), dict | str) and body:
            return error_from_object(body, provider=provider, model=model, secret=secret)
        kind, words = errors.ProviderError, _shortened(redact(str(exception), secret))
    if begun and kind is errors.ProviderConnectionError:
        kind, words = errors.StreamInterruptedError, "the connection broke in mid-answer"
    return kind(f"{words} ({_name_of(exception)})", provider=provider, model=model)


def _name_of(exception: BaseException) -> str:
    """Name the exception and what caused it, without their texts: those may hold a header's value."""
    names: list[str] = []
    cause: BaseException | None = exception
    for _ in range(10):  # a chain may lead back to itself
        if cause is None:
            break
        if type(cause).__name__ not in names[-1:]:
            names.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return ", from ".join(names[:4])


class _Told:
    """What an error body says, whatever its nesting: under `error` or `detail`, as an object or a text, or flat."""

    def __init__(self, body: Any) -> None:
        inner = body
        if isinstance(body, Mapping):
            inner = next((body[key] for key in ("error", "detail") if body.get(key)), body)
        facts = inner if isinstance(inner, Mapping) else {}
        outer = body if isinstance(body, Mapping) else {}
        self.message = _text_of(inner) if not facts else _text_of(facts.get("message") or facts.get("detail") or "")
        metadata = facts.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
            self.message = f"{self.message}: {_shortened(metadata['raw'])}"  # OpenRouter: what its upstream said
        said = [facts.get(key) for key in ("code", "type")] + [outer.get(key) for key in ("code", "type")]
        codes = [str(code) for code in said if type(code) in (str, int) and code != ""]
        self.words = [code.lower() for code in codes]
        self.code = next((code for code in codes if code != "error"), None)
        numbers = [facts.get("status_code"), facts.get("status"), outer.get("raw_status_code"), *codes]
        self.status = next((int(str(number)) for number in numbers if _STATUS.fullmatch(str(number))), None)
        failed = facts.get("failed_generation", outer.get("failed_generation"))
        self.failed_generation = failed if failed is None or isinstance(failed, str) else compact_json(failed)


def _class_for(status: int | None, told: _Told) -> type[ProviderError]:
    by_code = next((_BY_CODE[word] for word in told.words if word in _BY_CODE), None)
    specific = next((_BY_CODE[word] for word in told.words if _BY_CODE.get(word) in _MORE_THAN_STATUS), None)
    if status in (400, 422, None) and specific is not None:
        return specific
    refused = status in (400, 403, 413, 422) or (status is None and by_code in (None, errors.BadRequestError))
    if refused and _CONTEXT_TOLD.search(told.message):
        return errors.ContextLengthError
    if status is None:
        return by_code or errors.ProtocolError
    if status >= 500:
        return errors.ServerError
    return _BY_STATUS.get(status, errors.BadRequestError)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return "" if _is_page(value) else _shortened(value)
    if isinstance(value, list):  # FastAPI's 422: [{"loc": [...], "msg": "..."}]
        return _shortened("; ".join(filter(None, map(_complaint, value))))
    if isinstance(value, Mapping):
        return _text_of(value.get("message") or value.get("detail") or "")
    return ""


def _complaint(item: Any) -> str:
    if not isinstance(item, Mapping):
        return _text_of(item)
    place = item.get("loc")
    where = ".".join(map(str, place)) if isinstance(place, list) else ""
    return ": ".join(filter(None, (where, _text_of(item.get("msg")) or _text_of(item))))


def _is_page(text: str) -> bool:
    return text.lstrip()[:1] == "<"


def _page_title(body: Any) -> str:
    if not isinstance(body, str):
        return ""
    found = re.search(r"<title>([^<]{1,200})</title>", body, re.IGNORECASE)
    return found.group(1).strip() if found else ""


def _shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "..."


def _redacted(body: Any, secret: str | None) -> Any:
    if isinstance(body, str):
        return redact(body, secret)
    if isinstance(body, Mapping):
        return {key: _redacted(value, secret) for key, value in body.items()}
    if isinstance(body, list):
        return [_redacted(value, secret) for value in body]
    return body


def _body_of(exception: BaseException, response: Any) -> bytes | str:
    try:
        content = response.content  # the bytes, where the SDK has read them
    except Exception:  # an unread or broken body: httpx raises one of several classes
        content = getattr(exception, "body", None)
    return content if isinstance(content, bytes | str) else ""


def _wait_from_headers(headers: Mapping[str, str]) -> float | None:
    """Read `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110), as seconds from now."""
    if (wait := _number(headers.get("retry-after-ms"))) is not None:
        return wait / 1000
    told = headers.get("retry-after")
    if told is None:
        return None
    if (wait := _number(told)) is not None:
        return wait
    from datetime import UTC, datetime  # with email.utils a fifth of this package's import time, for a rare header
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(told)
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e9 else None


def _wait_from_text(message: str) -> float | None:
    """Read a wait such as `try again in 1m26.4s`, as Groq and OpenAI write it (seconds)."""
    found = _WAIT_TOLD.search(message)
    if found is None:
        return None
    pieces = _WAIT_PIECE.findall(found.group(1))
    try:
        return sum(float(number) * _SECONDS[unit.lower()] for number, unit in pieces) if pieces else None
    except ValueError:
        return None
