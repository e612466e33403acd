"""What went wrong, as this library's errors: every body vendors send, exceptions of their SDKs, and no credential."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import ssl
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import httpx
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Completion, CompletionRequest, Message, errors
from agent_core.chatwire import error_from_exception, error_from_object, error_from_response, redact
from agent_core.errors import ProviderError
from agent_core.testing import Answer, Gate, LoopbackServer
from agent_core_openai import OpenAIProvider
from openai_sdk import openai_provider

Kind = type[ProviderError]
KEY = "my-own-form-of-key-0123456789"  # no prefix by which it could be known
OVERFLOW = "This model's maximum context length is 8192 tokens."

# Every shape of an error body that the four vendors and the compatible servers are known to send, by status:
# class, code, and the message as a person is to read it.
BODIES: dict[str, tuple[int, Any, Kind, str | None, str]] = {
    "openai": (
        400,
        {"error": {"message": "Bad n.", "type": "invalid_request_error", "param": "n", "code": "unsupported_value"}},
        errors.BadRequestError, "unsupported_value", "Bad n.",
    ),
    "openai without code": (
        400,
        {"error": {"message": "Bad n.", "type": "invalid_request_error", "param": None, "code": None}},
        errors.BadRequestError, "invalid_request_error", "Bad n.",
    ),
    "openai, bad key": (
        401, {"error": {"message": "No.", "type": "invalid_request_error", "code": "invalid_api_key"}},
        errors.AuthenticationError, "invalid_api_key", "No.",
    ),
    "openai, unknown model": (
        404, {"error": {"message": "No m.", "type": "invalid_request_error", "code": "model_not_found"}},
        errors.NotFoundError, "model_not_found", "No m.",
    ),
    "openai, context": (
        400, {"error": {"message": OVERFLOW, "type": "invalid_request_error", "code": "context_length_exceeded"}},
        errors.ContextLengthError, "context_length_exceeded", OVERFLOW,
    ),
    "openai, no credit": (
        429, {"error": {"message": "Pay.", "type": "insufficient_quota", "code": "insufficient_quota"}},
        errors.RateLimitError, "insufficient_quota", "Pay.",
    ),
    "groq": (
        400, {"error": {"message": "Bad n.", "type": "invalid_request_error", "code": "bad"}},
        errors.BadRequestError, "bad", "Bad n.",
    ),
    "groq, unreadable call": (
        400,
        {"error": {"message": "Failed.", "type": "invalid_request_error", "code": "tool_use_failed",
                   "failed_generation": "<function=look>"}},
        errors.ToolUseFailedError, "tool_use_failed", "Failed.",
    ),
    "groq, too large": (
        413, {"error": {"message": "Too large.", "type": "tokens", "code": "rate_limit_exceeded"}},
        errors.RequestTooLargeError, "rate_limit_exceeded", "Too large.",
    ),
    "groq, limit": (
        429, {"error": {"message": "Slow.", "type": "tokens", "code": "rate_limit_exceeded"}},
        errors.RateLimitError, "rate_limit_exceeded", "Slow.",
    ),
    "groq, no capacity": (
        498, {"error": {"message": "Full.", "type": "capacity_exceeded"}},
        errors.ServerError, "capacity_exceeded", "Full.",
    ),
    "mistral": (
        400,
        {"object": "error", "message": "No logprobs.", "type": "invalid_request_invalid_args", "param": None,
         "code": "3051", "raw_status_code": 400},
        errors.BadRequestError, "3051", "No logprobs.",
    ),
    "mistral, unknown model": (
        400,
        {"object": "error", "message": "Invalid model: m", "type": "invalid_model", "param": None, "code": "1500"},
        errors.NotFoundError, "1500", "Invalid model: m",
    ),
    "mistral, order of messages": (
        400, {"object": "error", "message": "Order.", "type": "invalid_request_message_order", "code": "3230"},
        errors.BadRequestError, "3230", "Order.",
    ),
    "mistral, bad key": (
        401, {"detail": "Invalid API Key"}, errors.AuthenticationError, None, "Invalid API Key",
    ),
    "mistral's gateway": (
        401, {"message": "No API key found in request", "request_id": "ab53"},
        errors.AuthenticationError, None, "No API key found in request",
    ),
    "mistral, validation": (
        422,
        {"detail": [{"type": "missing", "loc": ["body", "messages", 0], "msg": "Field required", "input": {}},
                    {"type": "extra_forbidden", "loc": ["body", "x"], "msg": "Extra inputs"}]},
        errors.BadRequestError, None, "body.messages.0: Field required; body.x: Extra inputs",
    ),
    "mistral, a message that is an object": (
        422, {"object": "error", "message": {"detail": [{"loc": ["body"], "msg": "No."}]}, "type": "invalid"},
        errors.BadRequestError, "invalid", "body: No.",
    ),
    "together": (
        401, {"id": "x1", "error": {"message": "No.", "type": "invalid_request_error", "code": "invalid_api_key"}},
        errors.AuthenticationError, "invalid_api_key", "No.",
    ),
    "together, unknown model": (
        400, {"error": {"message": "No m.", "type": "invalid_request_error", "code": "model_not_available"}},
        errors.NotFoundError, "model_not_available", "No m.",
    ),
    "together, no credit": (
        429, {"error": {"message": "Pay.", "type": "credit_limit", "param": None, "code": None}},
        errors.RateLimitError, "credit_limit", "Pay.",
    ),
    "together, context with status 403": (
        403, {"error": {"message": "`inputs` tokens + `max_new_tokens` must be <= 8193.", "type": "x"}},
        errors.ContextLengthError, "x", "`inputs` tokens + `max_new_tokens` must be <= 8193.",
    ),
    "openrouter": (
        400, {"error": {"message": "m is not a valid model ID", "code": 400}, "user_id": "u"},
        errors.BadRequestError, "400", "m is not a valid model ID",
    ),
    "openrouter, what its upstream said": (
        429, {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "busy", "p": 1}}},
        errors.RateLimitError, "429", "Provider returned error: busy",
    ),
    "venice": (404, {"error": "No m."}, errors.NotFoundError, None, "No m."),
    "hugging face": (422, {"error": "Bad.", "error_type": "t"}, errors.BadRequestError, None, "Bad."),
    "doubleword": (
        400, {"code": 400, "message": "Bad.", "type": "Bad Request"}, errors.BadRequestError, "400", "Bad.",
    ),
    "hyperbolic": (400, {"object": "error", "message": "Bad."}, errors.BadRequestError, None, "Bad."),
    "llama.cpp": (
        400,
        {"error": {"code": 400, "message": "exceeds the available context size", "type": "exceed_context_size_error",
                   "n_ctx": 512, "n_prompt_tokens": 2009}},
        errors.ContextLengthError, "400", "exceeds the available context size",
    ),
    "llama.cpp, loading": (
        503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        errors.ServerError, "503", "Loading model",
    ),
    "deepseek, context": (
        400, {"error": {"message": OVERFLOW, "type": "invalid_request_error", "param": None}},
        errors.ContextLengthError, "invalid_request_error", OVERFLOW,
    ),
    "a page": (502, "<html><title>502 Bad Gateway</title></html>", errors.ServerError, None, "502 Bad Gateway"),
    "a page without title": (503, "<html>x</html>", errors.ServerError, None, "HTTP 503"),
    "plain text": (500, "upstream connect error", errors.ServerError, None, "upstream connect error"),
    "nothing": (500, "", errors.ServerError, None, "HTTP 500"),
    "null": (500, None, errors.ServerError, None, "HTTP 500"),
    "a list": (400, [{"loc": ["x"], "msg": "No."}, "Not so."], errors.BadRequestError, None, "x: No.; Not so."),
    "a number": (400, 5, errors.BadRequestError, None, "HTTP 400"),
    "an empty object": (418, {}, errors.BadRequestError, None, "HTTP 418"),
    "an error that is null": (400, {"error": None, "message": "Bad."}, errors.BadRequestError, None, "Bad."),
    "a detail that is an object": (
        400, {"detail": {"message": "Bad.", "code": "x"}}, errors.BadRequestError, "x", "Bad.",
    ),
    "forbidden": (
        403, {"error": {"message": "No.", "code": "forbidden"}}, errors.PermissionDeniedError, "forbidden", "No.",
    ),
    "timed out": (408, {"error": {"message": "Late."}}, errors.ProviderTimeoutError, None, "Late."),
    "a code that is no number, though it looks like one": (
        400, {"error": {"message": "Bad.", "code": "²"}}, errors.BadRequestError, "²", "Bad.",
    ),
    "a code of many digits": (
        400, {"error": {"message": "Bad.", "code": "9" * 5000}}, errors.BadRequestError, "9" * 5000, "Bad.",
    ),
    "a code that is an object": (
        400, {"error": {"message": "Bad.", "code": {"a": 1}, "type": ["b"]}}, errors.BadRequestError, None, "Bad.",
    ),
    "a complaint about no place": (
        422, {"detail": [{"loc": 5, "msg": {"message": "No."}}]}, errors.BadRequestError, None, "No.",
    ),
}  # fmt: skip


def text_of(body: Any) -> str:
    """A body as it is sent."""
    return body if isinstance(body, str) else json.dumps(body)


@pytest.mark.parametrize(("status", "body", "kind", "code", "message"), BODIES.values(), ids=BODIES.keys())
def test_an_http_error_is_told_apart_by_status_code_and_type(
    status: int, body: Any, kind: Kind, code: str | None, message: str
) -> None:
    """Class, code and message; the body is kept as it was sent."""
    error = error_from_response(status, {}, text_of(body), provider="p", model="m")
    assert (type(error), error.code, error.message, error.status) == (kind, code, message, status)
    assert (error.provider, error.model, error.body) == ("p", "m", body)
    assert str(error).startswith(f"p:m: {message} (status {status}")


RETRYABLE = {
    408: True,
    409: True,
    425: True,
    429: True,
    498: True,
    500: True,
    502: True,
    503: True,
    504: True,
    529: True,
}


@pytest.mark.parametrize(
    "status", [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 418, 422, 425, 429, 451, 498, 500, 502, 503, 504, 529]
)
def test_a_status_says_whether_the_same_request_may_work_later(status: int) -> None:
    """Conflicts, limits, timeouts and the server's own failures; nothing else."""
    assert error_from_response(status, {}, "").retryable is RETRYABLE.get(status, False)


@pytest.mark.parametrize(
    ("body", "retryable"),
    [
        ({"error": {"code": "insufficient_quota"}}, False),
        ({"error": {"code": "billing_hard_limit_reached"}}, False),
        ({"error": {"code": "rate_limit_exceeded"}}, True),
    ],
)
def test_no_credit_is_no_passing_limit(body: Any, retryable: bool) -> None:
    """OpenAI sends both with status 429."""
    error = error_from_response(429, {"retry-after": "1"}, text_of(body))
    assert (type(error), error.retryable, error.retry_after) == (
        errors.RateLimitError,
        retryable,
        1.0 if retryable else None,
    )


def test_what_the_model_wrote_is_kept_where_it_could_not_be_read() -> None:
    """As text, whatever Groq sends; asking again may well work."""
    error = error_from_object({"error": {"code": "tool_use_failed", "failed_generation": {"name": "look"}}}, status=400)
    assert isinstance(error, errors.ToolUseFailedError)
    assert (error.failed_generation, error.retryable) == ('{"name":"look"}', True)


IN_STREAM: dict[str, tuple[Any, Kind, int | None, str]] = {
    "a status as code": ({"message": "Busy.", "code": 503}, errors.ServerError, 503, "Busy."),
    "a status as text": ({"message": "Slow.", "code": "429"}, errors.RateLimitError, 429, "Slow."),
    "a status by name": ({"error": {"message": "Busy.", "status_code": 502}}, errors.ServerError, 502, "Busy."),
    "groq's": ({"message": "Bad.", "status_code": 400, "type": "x"}, errors.BadRequestError, 400, "Bad."),
    "mistral's": ({"object": "error", "message": "Bad.", "raw_status_code": 422}, errors.BadRequestError, 422, "Bad."),
    "a type": ({"message": "Busy.", "type": "server_error"}, errors.ServerError, None, "Busy."),
    "a type in capitals": ({"message": "Busy.", "type": "Overloaded_Error"}, errors.ServerError, None, "Busy."),
    "a code": ({"message": "Slow.", "code": "rate_limit_exceeded"}, errors.RateLimitError, None, "Slow."),
    "a full context": (
        {"message": OVERFLOW, "type": "invalid_request_error"},
        errors.ContextLengthError,
        None,
        OVERFLOW,
    ),
    "a full context, in words": ({"message": OVERFLOW}, errors.ContextLengthError, None, OVERFLOW),
    "a text": ("Busy.", errors.ProtocolError, None, "Busy."),
    "an unknown type": ({"message": "Hm.", "type": "odd"}, errors.ProtocolError, None, "Hm."),
    "nothing": ({}, errors.ProtocolError, None, "an error"),
    "null": (None, errors.ProtocolError, None, "an error"),
    "a number that is no status": ({"message": "Hm.", "code": 7}, errors.ProtocolError, None, "Hm."),
    "a true code": ({"message": "Hm.", "code": True}, errors.ProtocolError, None, "Hm."),
}


@pytest.mark.parametrize(("told", "kind", "status", "message"), IN_STREAM.values(), ids=IN_STREAM.keys())
def test_an_error_object_without_http_status_is_told_apart_by_what_it_says(
    told: Any, kind: Kind, status: int | None, message: str
) -> None:
    """A status inside it, then code and type; one that says nothing makes no sense."""
    error = error_from_object(told)
    assert (type(error), error.status, error.message) == (kind, status, message)


SOON = "soon"
WAITS: dict[str, tuple[dict[str, str], str, float | str | None]] = {
    "seconds": ({"retry-after": "7"}, "", 7.0),
    "parts of seconds": ({"retry-after": "0.5"}, "", 0.5),
    "no wait": ({"retry-after": "0"}, "", 0.0),
    "milliseconds before seconds": ({"retry-after-ms": "1500", "retry-after": "7"}, "", 1.5),
    "any spelling": ({"Retry-After": "7"}, "", 7.0),
    "a date": ({"retry-after": SOON}, "", SOON),
    "a date that has passed": ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0.0),
    "a date without zone": ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, "", 0.0),
    "a date beyond all calendars": ({"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}, "", None),
    "a day that never was": ({"retry-after": "Mon, 99 Jan 2024 00:00:00 GMT"}, "", None),
    "less than nothing": ({"retry-after": "-5"}, "", None),
    "not a number": ({"retry-after": "nan"}, "", None),
    "endless": ({"retry-after": "inf"}, "", None),
    "a word": ({"retry-after": "later"}, "", None),
    "nothing": ({"retry-after": ""}, "", None),
    "in the text": ({}, "Please try again in 1m26.4s.", 86.4),
    "in the text, milliseconds": ({}, "Please try again in 20ms.", 0.02),
    "in the text, hours": ({}, "try again in 1h 2m 3s", 3723.0),
    "in the text, words": ({}, "Please retry after 12 seconds.", 12.0),
    "in the text, not a number": ({}, "try again in 1.2.3s", None),
    "in the text, no time": ({}, "try again in a while", None),
    "the header before the text": ({"retry-after": "3"}, "Please try again in 20s.", 3.0),
    "a header that says nothing": ({"retry-after": "later"}, "Please try again in 20s.", 20.0),
}  # fmt: skip


@pytest.mark.parametrize(("headers", "text", "wait"), WAITS.values(), ids=WAITS.keys())
def test_the_wait_a_vendor_asks_for_is_in_seconds(headers: dict[str, str], text: str, wait: float | str | None) -> None:
    """From headers, as number or date, else from the text."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    sent = {name: date if value == SOON else value for name, value in headers.items()}
    found = error_from_response(429, sent, text_of({"error": {"message": text}})).retry_after
    if wait == SOON:
        assert found is not None and 60 < found <= 90
    else:
        assert found == (None if wait is None else pytest.approx(wait))


def test_a_wait_counts_only_where_waiting_helps() -> None:
    """Together sends the header on every answer."""
    assert error_from_response(400, {"retry-after": "7"}, "").retry_after is None
    assert error_from_response(503, {"retry-after": "7"}, "").retry_after == 7.0


@pytest.mark.parametrize(
    ("headers", "id"),
    [
        ({"X-Request-Id": "r1"}, "r1"),
        ({"mistral-correlation-id": "r2"}, "r2"),
        ({"apim-request-id": "r3"}, "r3"),
        ({"cf-ray": "r5", "x-request-id": "r4"}, "r4"),
        ({}, None),
    ],
)
def test_the_vendors_id_of_the_request_is_kept(headers: dict[str, str], id: str | None) -> None:
    """For its support."""
    error = error_from_response(500, headers, "")
    assert error.request_id == id
    assert (f"request id {id}" in str(error)) is (id is not None)


def test_a_long_message_is_shortened() -> None:
    """The body has all of it."""
    error = error_from_response(400, {}, text_of({"error": {"message": "x" * 5000}}))
    assert error.message == "x" * 300 + "..."
    assert error.body == {"error": {"message": "x" * 5000}}


REQUEST = httpx2.Request("POST", "https://example.org", headers={"authorization": f"Bearer {KEY}"})
OLD_REQUEST = httpx.Request("POST", "https://example.org", headers={"authorization": f"Bearer {KEY}"})


def answered(status: int, body: Any = None, **headers: str) -> openai.APIStatusError:
    """The SDK's exception for an answer."""
    response = httpx2.Response(status, headers=headers, text=text_of(body), request=REQUEST)
    return openai.APIStatusError("no", response=response, body=body)


class HfHubHTTPError(OSError):
    """As huggingface_hub raises it: with the answer, and an OSError by class."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.response = httpx.Response(status, text=text, request=OLD_REQUEST)


class BrokenAnswerError(Exception):
    """Its answer can't be read any more."""

    class Response:
        status_code = 500

        @property
        def content(self) -> bytes:
            raise httpx.ResponseNotRead

    response = Response()
    body = '{"error": {"message": "kept"}}'


def around(inner: Exception, outer: Exception) -> Exception:
    """An exception raised from another."""
    outer.__cause__ = inner
    return outer


def ring() -> Exception:
    """An exception that is its own cause, as `raise error from error` makes it."""
    error = RuntimeError("again")
    error.__cause__ = error
    return error


EXCEPTIONS: dict[str, tuple[Exception, Kind, str]] = {
    "an answer": (answered(404, {"error": {"message": "No m."}}), errors.NotFoundError, "No m."),
    "hugging face's answer": (HfHubHTTPError(429, '{"error": "Slow."}'), errors.RateLimitError, "Slow."),
    "an answer that can't be read": (BrokenAnswerError(), errors.ServerError, "kept"),
    "openai, timeout": (
        around(httpx2.ReadTimeout(KEY), openai.APITimeoutError(request=REQUEST)),
        errors.ProviderTimeoutError, "no answer in time (APITimeoutError, from ReadTimeout)",
    ),
    "openai, connection": (
        around(httpx2.ConnectError(KEY), openai.APIConnectionError(request=REQUEST)),
        errors.ProviderConnectionError, "no connection (APIConnectionError, from ConnectError)",
    ),
    "openai, an error event": (
        openai.APIError("no", request=REQUEST, body={"message": "Busy.", "type": "server_error"}),
        errors.ServerError, "Busy.",
    ),
    "openai, an answer of another form": (
        openai.APIResponseValidationError(httpx2.Response(200, request=REQUEST), None),
        errors.ProtocolError, "the answer makes no sense (APIResponseValidationError)",
    ),
    "httpx, no connection in time": (
        httpx.ConnectTimeout(KEY), errors.ProviderTimeoutError, "no connection in time (ConnectTimeout)",
    ),
    "httpx, no bytes in time": (httpx.ReadTimeout(KEY), errors.ProviderTimeoutError, "no answer in time (ReadTimeout)"),
    "httpx, pool": (httpx.PoolTimeout(KEY), errors.ProviderTimeoutError, "no answer in time (PoolTimeout)"),
    "httpx, refused": (httpx.ConnectError(KEY), errors.ProviderConnectionError, "the connection failed (ConnectError)"),
    "httpx, broken": (
        httpx.RemoteProtocolError(KEY), errors.ProviderConnectionError, "the connection failed (RemoteProtocolError)",
    ),
    "httpx, a key that no header holds": (
        httpx.LocalProtocolError(KEY),
        errors.ProviderConnectionError, "the request could not be written (is the API key clean?) (LocalProtocolError)",
    ),
    "httpx, used twice": (
        httpx.StreamConsumed(), errors.ProtocolError, "the answer's stream could not be read (StreamConsumed)",
    ),
    "httpx2, broken": (
        httpx2.ReadError(KEY), errors.ProviderConnectionError, "the connection failed (ReadError)",
    ),
    "anyio, ended": (anyio.EndOfStream(), errors.ProviderConnectionError, "the connection ended (EndOfStream)"),
    "tls": (ssl.SSLError(KEY), errors.ProviderConnectionError, "the TLS connection failed (SSLError)"),
    "python, timeout": (TimeoutError(KEY), errors.ProviderTimeoutError, "no answer in time (TimeoutError)"),
    "python, reset": (
        ConnectionResetError(KEY), errors.ProviderConnectionError, "the connection failed (ConnectionResetError)",
    ),
    "python, name": (OSError(KEY), errors.ProviderConnectionError, "the connection failed (OSError)"),
    "json": (json.JSONDecodeError("no", KEY, 0), errors.ProtocolError, "the answer is not JSON (JSONDecodeError)"),
    "anything": (RuntimeError("odd"), errors.ProviderError, "odd (RuntimeError)"),
    "anything, with the key": (RuntimeError(f"{KEY}!"), errors.ProviderError, "***! (RuntimeError)"),
    "its own cause": (ring(), errors.ProviderError, "again (RuntimeError)"),
}  # fmt: skip


@pytest.mark.parametrize(("exception", "kind", "message"), EXCEPTIONS.values(), ids=EXCEPTIONS.keys())
def test_an_exception_becomes_an_error_without_its_text(exception: Exception, kind: Kind, message: str) -> None:
    """By its class; the text of a transport's exception may hold a header, so only its name is told."""
    error = error_from_exception(exception, provider="p", model="m", secret=KEY)
    assert (type(error), error.message, error.provider, error.model) == (kind, message, "p", "m")
    assert KEY not in str(error) + repr(error)


@pytest.mark.parametrize(
    ("exception", "kind"),
    [
        (httpx.ReadError(""), errors.StreamInterruptedError),
        (httpx2.RemoteProtocolError(""), errors.StreamInterruptedError),
        (ConnectionResetError(), errors.StreamInterruptedError),
        (httpx.ReadTimeout(""), errors.ProviderTimeoutError),
        (answered(500), errors.ServerError),
    ],
)
def test_a_connection_that_breaks_in_an_answer_is_an_interruption(exception: Exception, kind: Kind) -> None:
    """Late bytes stay a timeout."""
    assert type(error_from_exception(exception, begun=True)) is kind


CREDENTIALS: dict[str, tuple[str, str]] = {
    "a given one": (f"key {KEY} is wrong", "key *** is wrong"),
    "openai's": ("Incorrect API key provided: sk-proj-abcdef_123456.", "Incorrect API key provided: ***"),
    "openai's, half hidden": ("provided: sk-abc*********************wxyz", "provided: ***"),
    "groq's": ("key gsk_abcdef123456", "key ***"),
    "together's": ("key tgp_v1_abcdef123456", "key ***"),
    "a header": ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
    "a header in quotes": ("{'authorization': 'bearer abc123'}", "{'authorization': 'bearer ***'}"),
    "none": ("task-force-risk sk-1", "task-force-risk sk-1"),
}


@pytest.mark.parametrize(("text", "clean"), CREDENTIALS.values(), ids=CREDENTIALS.keys())
def test_credentials_are_taken_out_of_a_text(text: str, clean: str) -> None:
    """The given one, and what looks like one."""
    assert redact(text, KEY) == clean


@pytest.mark.parametrize("cut", range(270, 305))
def test_no_part_of_a_key_is_left_where_a_message_is_cut(cut: int) -> None:
    """It is taken out before the text is shortened."""
    text = "x" * (cut - 1) + " " + KEY + " is wrong" + "y" * 300
    body = {"error": {"message": text, "metadata": {"raw": text}, "code": KEY, "failed_generation": KEY}}
    error = error_from_object(body, secret=KEY)
    other = error_from_exception(RuntimeError(text), secret=KEY)
    assert KEY[:5] not in f"{error} {error!r} {error.body} {error.code} {other} {vars(error)}"


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(KEY),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "detail", "status", "loc", "msg", "metadata", "raw"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(jsons, st.none() | st.integers(100, 999))
def test_any_error_body_becomes_an_error(body: Any, status: int | None) -> None:
    """Whatever it holds; the key is in none of its texts, and the error can be shown."""
    error = error_from_object(body, status=status, secret=KEY)
    assert isinstance(error, ProviderError)
    assert KEY not in f"{error} {error!r} {error.body!r}"


@given(st.integers(400, 599), st.text() | st.binary(), st.text() | st.sampled_from(["Mon, 1 Jan 1 00:00:00 +9999"]))
def test_any_answer_becomes_an_error(status: int, body: str | bytes, wait: str) -> None:
    """Whatever stands in body and headers."""
    error = error_from_response(status, {"retry-after": wait, "retry-after-ms": wait}, body)
    assert error.status == status
    assert error.retry_after is None or error.retry_after >= 0


def every_error() -> list[errors.AgentCoreError]:
    """One of each class, with all its fields."""
    kinds = [getattr(errors, name) for name in errors.__all__]
    details: dict[str, Any] = {
        "provider": "p", "model": "m", "status": 400, "code": "c", "request_id": "r", "retryable": True,
        "retry_after": 2.0, "body": {"a": 1}, "partial": Completion(Message.assistant("half")),
    }  # fmt: skip
    return [kind("no", **details) if issubclass(kind, ProviderError) else kind("no") for kind in kinds]


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("way", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_an_error_can_cross_a_process(error: errors.AgentCoreError, way: Callable[[Any], Any]) -> None:
    """With all it holds, the conversation too."""
    error.messages = [Message.user("hi")]
    other = way(error)
    assert type(other) is type(error)
    assert (str(other), vars(other)) == (str(error), vars(error))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.ServerError("no"), "no"),
        (errors.ServerError("no", provider="p"), "p: no"),
        (errors.ServerError("no", provider="p", model="m", status=500, code="c"), "p:m: no (status 500, code c)"),
        (errors.RateLimitError("no", retry_after=0.5, request_id="r"), "no (retry after 0.5 s, request id r)"),
        (errors.AbortedError("by user"), "by user"),
    ],
)
def test_an_error_tells_its_facts(error: Exception, text: str) -> None:
    """Those that are known."""
    assert str(error) == text


ASK = CompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}])
EVENT = 'data: {"choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n'
TOLD = {"error": {"message": f"wrong key {KEY}", "type": "server_error", "echo": [KEY]}}

FAILURES: dict[str, tuple[Answer, Kind]] = {
    "an http error": (Answer.json(TOLD, status=401), errors.AuthenticationError),
    "a page that shows the key": (
        Answer(status=500, body=f"<title>{KEY}</title>".encode(), headers={"content-type": "text/html"}),
        errors.ServerError,
    ),
    "an error with status 200": (Answer.json(TOLD), errors.ServerError),
    "a success that is no answer": (
        Answer(body=f"<title>{KEY}</title>".encode(), headers={"content-type": "text/html"}),
        errors.ProtocolError,
    ),
    "nothing that makes sense": (Answer.json({"key": KEY}), errors.ProtocolError),
    "no answer": (Answer(hang_up=True), errors.ProviderConnectionError),
    "a body that breaks off": (Answer.json({"key": KEY}, drop=True), errors.StreamInterruptedError),
}
IN_A_STREAM: dict[str, tuple[Answer, Kind]] = {
    **FAILURES,
    "an error event": (Answer.sse(f"{EVENT}data: {json.dumps(TOLD)}\n\n"), errors.ServerError),
    "an event that is no json": (Answer.sse(f"{EVENT}data: {KEY}\n\n"), errors.ProtocolError),
    "a stream that breaks off": (Answer.sse(EVENT, drop=True), errors.StreamInterruptedError),
    "a stream that ends in mid-answer": (Answer.sse(EVENT), errors.StreamInterruptedError),
}


async def whole(provider: OpenAIProvider) -> None:
    """Ask for a whole answer."""
    await provider.complete(ASK)


async def streamed(provider: OpenAIProvider) -> None:
    """Ask for a stream, and read it to its end."""
    async with provider.stream(ASK) as stream:
        async for _ in stream:
            pass


def assert_no_key(error: BaseException, logged: str) -> None:
    """The key is neither in the error, nor in what it chains, nor in what was logged."""
    assert error.__cause__ is None and error.__context__ is None
    shown = "".join(traceback.format_exception(error))
    assert KEY not in f"{shown} {error!r} {vars(error)!r} {logged}"


@pytest.mark.parametrize(
    ("ask", "answer", "kind"),
    [
        *[pytest.param(whole, *case, id=f"whole-{name}") for name, case in FAILURES.items()],
        *[pytest.param(streamed, *case, id=f"streamed-{name}") for name, case in IN_A_STREAM.items()],
    ],
)
async def test_no_failure_shows_the_key_or_chains_what_holds_it(
    ask: Callable[[OpenAIProvider], Any], answer: Answer, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the vendor repeats it, and at the most talkative level of logging."""
    caplog.set_level(logging.DEBUG)
    with LoopbackServer(answer) as server:
        async with openai_provider(server.url, api_key=KEY) as provider:
            with pytest.raises(ProviderError) as caught:
                await ask(provider)
    assert type(caught.value) is kind
    assert_no_key(caught.value, "".join(record.getMessage() for record in caplog.records))
    assert (caught.value.provider, caught.value.model) == ("openai", "m")


@pytest.mark.parametrize("ask", [whole, streamed])
async def test_no_answer_in_time_and_no_server_at_all_chain_nothing(ask: Callable[[OpenAIProvider], Any]) -> None:
    """The SDK's exception holds the request, and the request the key."""
    gate = Gate()
    with LoopbackServer(Answer(hold=gate)) as server:
        async with openai_provider(server.url, api_key=KEY, timeout=0.05) as provider:
            with pytest.raises(errors.ProviderTimeoutError) as late:
                await ask(provider)
        url = server.url
    async with openai_provider(url, api_key=KEY) as provider:
        with pytest.raises(errors.ProviderConnectionError) as refused:
            await ask(provider)
    assert_no_key(late.value, "")
    assert_no_key(refused.value, "")
