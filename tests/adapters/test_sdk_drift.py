"""What an SDK may raise or say is known here: a new exception class or finish reason fails, and asks to be mapped.

The SDKs and the HTTP libraries under them are walked as they are installed, so this guards every version the contract
runs on.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from agent_core import OpenAICompatibleProvider, errors
from agent_core.chatwire import error_from_exception
from counting import count
from vendors import VENDORS, provider_of

SECRET = "sk-fake-0123456789"

# The three SDKs of the common generator share these.
GENERATED: dict[str, tuple[int, type[errors.ProviderError]]] = {
    "APIConnectionError": (0, errors.ProviderConnectionError),
    "APIError": (0, errors.ProviderError),
    "APIResponseValidationError": (200, errors.ProtocolError),
    "APIStatusError": (413, errors.RequestTooLargeError),
    "APITimeoutError": (0, errors.ProviderTimeoutError),
    "AuthenticationError": (401, errors.AuthenticationError),
    "BadRequestError": (400, errors.BadRequestError),
    "ConflictError": (409, errors.BadRequestError),
    "InternalServerError": (500, errors.ServerError),
    "NotFoundError": (404, errors.NotFoundError),
    "PermissionDeniedError": (403, errors.PermissionDeniedError),
    "RateLimitError": (429, errors.RateLimitError),
    "UnprocessableEntityError": (422, errors.BadRequestError),
}
# By module: each exception class it shows, the status it is made with (0: none), and what becomes of it.
RAISED: dict[str, dict[str, tuple[int, type[errors.ProviderError]]]] = {
    "openai": {
        **GENERATED,
        "OpenAIError": (0, errors.ProviderError),
        "OAuthError": (401, errors.AuthenticationError),
    },
    "groq": {**GENERATED, "GroqError": (0, errors.ProviderError)},
    "together": {**GENERATED, "TogetherError": (0, errors.ProviderError)},
    "mistralai.client.errors": {
        "HTTPValidationError": (422, errors.BadRequestError),
        "MistralError": (429, errors.RateLimitError),
        "NoResponseError": (0, errors.ProviderConnectionError),
        "ObservabilityError": (404, errors.NotFoundError),
        "ResponseValidationError": (200, errors.ProtocolError),
        "SDKError": (503, errors.ServerError),
    },
}
# Not raised by a chat completion as it is asked for here: parsing helpers, webhooks, websockets, files.
ELSEWHERE = {
    "openai": {
        "ContentFilterFinishReasonError",
        "InvalidWebhookSignatureError",
        "LengthFinishReasonError",
        "WebSocketConnectionClosedError",
        "WebSocketQueueFullError",
    },
    "together": {"DownloadError", "FileTypeError"},
}
SDK_OF = {"openai": "openai", "groq": "groq", "together": "together", "mistral": "mistralai.client.errors"}
SDKS = [SDK_OF[vendor] for vendor in VENDORS]
# Where a finish reason is typed, for a whole answer and for a chunk.
REASONS = {
    "openai": ("openai.types.chat.chat_completion", "openai.types.chat.chat_completion_chunk"),
    "groq": ("groq.types.chat.chat_completion", "groq.types.chat.chat_completion_chunk"),
    "together": ("together.types.chat.chat_completion", "together.types.chat.chat_completion_chunk"),
    "mistral": (
        "mistralai.client.models.chatcompletionchoice",
        "mistralai.client.models.completionresponsestreamchoice",
    ),
}


def exceptions_of(module: ModuleType) -> dict[str, type[Exception]]:
    """The exception classes that a module shows, lazy ones included."""
    shown = {name: getattr(module, name, None) for name in dir(module) if not name.startswith("_")}
    return {name: kind for name, kind in shown.items() if inspect.isclass(kind) and issubclass(kind, Exception)}


def pairs() -> list[Any]:
    """Every exported class of every installed SDK that a chat completion may raise."""
    found = []
    for sdk in SDKS:
        for name, kind in exceptions_of(importlib.import_module(sdk)).items():
            if name not in ELSEWHERE.get(sdk, ()):
                found.append(pytest.param(sdk, name, kind, id=f"{sdk}.{name}"))
    return found


def made(kind: type[Exception], sdk: str, status: int, body: Any) -> Exception:
    """An instance as the SDK would make it, its request with a key in it."""
    http: Any = importlib.import_module("httpx2" if sdk.startswith(("openai", "mistralai")) else "httpx")
    request = http.Request("POST", "http://127.0.0.1:9/", headers={"authorization": f"Bearer {SECRET}"})
    response = http.Response(status or 500, request=request, json=body)
    known = {
        "message": f"Something is wrong with {SECRET}.",
        "request": request,
        "response": response,
        "raw_response": response,
        "body": body if not sdk.startswith("mistralai") else response.text,
        "data": SimpleNamespace(detail=SimpleNamespace(message="wrong")),
        "cause": ValueError("wrong"),
    }
    return built(kind, known)


def built(kind: type[Exception], known: dict[str, Any]) -> Exception:
    """An instance from whichever of the known arguments its class asks for."""
    if kind.__init__ is Exception.__init__:
        return kind(known["message"])
    return kind(**{name: known[name] for name in inspect.signature(kind).parameters if name in known})


@pytest.mark.parametrize(("sdk", "name", "kind"), pairs())
def test_every_exception_of_an_sdk_has_an_error_of_ours(sdk: str, name: str, kind: type[Exception]) -> None:
    """It is in the table, and comes out as the table says, without the key that its request holds."""
    assert name in RAISED[sdk], f"{sdk} has a new exception class: say what becomes of {name}"
    status, expected = RAISED[sdk][name]
    exception = made(kind, sdk, status, None if status == 0 else {"error": {"message": "wrong"}})
    error = error_from_exception(exception, provider=sdk, model="m", secret=SECRET)
    assert type(error) is expected
    assert error.status == (status if status >= 400 else None)
    assert SECRET not in f"{error} {error!r} {error.body}"
    count("SDK exceptions")


@pytest.mark.parametrize("sdk", [sdk for sdk in SDKS if "." not in sdk])
def test_an_error_without_a_status_is_classed_by_its_body(sdk: str) -> None:
    """An SDK raises its bare `APIError` for what a stream tells."""
    kind = exceptions_of(importlib.import_module(sdk))["APIError"]
    body = {"message": "slow down", "code": "rate_limit_exceeded"}
    assert type(error_from_exception(made(kind, sdk, 0, body))) is errors.RateLimitError


def test_what_is_raised_elsewhere_is_still_there() -> None:
    """A name that went away, or that chat completions share by now, does not hide a new one."""
    for sdk, names in ELSEWHERE.items():
        assert not names & set(RAISED[sdk])
    assert {sdk for sdk in ELSEWHERE if sdk in SDKS} <= set(RAISED)


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_every_exception_of_an_http_library_has_an_error_of_ours(library: str) -> None:
    """On the raw path these come through once an answer has begun: a broken connection is then an interruption."""
    module: Any = importlib.import_module(library)
    request = module.Request("POST", "http://127.0.0.1:9/", headers={"authorization": f"Bearer {SECRET}"})
    for name, kind in exceptions_of(module).items():
        expected: type[errors.ProviderError] = errors.ProviderError
        if issubclass(kind, module.TimeoutException):
            expected = errors.ProviderTimeoutError
        elif issubclass(kind, module.RequestError):
            expected = errors.StreamInterruptedError
        elif issubclass(kind, module.StreamError):
            expected = errors.ProtocolError
        elif kind is module.HTTPStatusError:
            continue  # never raised unasked; it carries a response, which is read as from the SDKs
        else:
            assert name in {"HTTPError", "InvalidURL", "CookieConflict"}, f"{library} has a new exception: {name}"
        exception = built(kind, {"message": f"wrong {SECRET}", "request": request})
        error = error_from_exception(exception, secret=SECRET, begun=True)
        assert type(error) is expected, name
        assert SECRET not in str(error)
        count("SDK exceptions")


def words_of(annotation: Any) -> Iterator[str]:
    """The literals in an annotation, however they are nested."""
    if get_origin(annotation) is Literal:
        yield from (word for word in get_args(annotation) if isinstance(word, str))
    else:
        for argument in get_args(annotation):
            yield from words_of(argument)


def reasons_in(module: ModuleType) -> set[str]:
    """The words that a module's models type as a finish reason."""
    models = [kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, BaseModel)]
    fields = [kind.model_fields["finish_reason"] for kind in models if "finish_reason" in kind.model_fields]
    return {word for field in fields for word in words_of(field.annotation)}


@pytest.mark.parametrize(("vendor", "place"), [(vendor, place) for vendor in VENDORS for place in REASONS[vendor]])
def test_every_finish_reason_of_an_sdk_has_a_word_of_ours(vendor: str, place: str) -> None:
    """No word that the SDK types comes out as `unknown`."""
    provider: OpenAICompatibleProvider = provider_of(vendor, "http://127.0.0.1:9")
    module = importlib.import_module(place)
    words = reasons_in(module)
    assert {"stop", "length", "tool_calls"} <= words, f"{place} types its finish reasons in another way now"
    assert [word for word in sorted(words) if provider.dialect.finish_reason(word) == "unknown"] == []
    count("finish reasons", len(words))


@pytest.mark.parametrize("vendor", [vendor for vendor in VENDORS if vendor != "mistral"])
def test_the_raw_interface_of_an_sdk_is_where_it_was(vendor: str) -> None:
    """Without it the answer's bytes would be read from the SDK's models, at several times the cost."""
    provider = provider_of(vendor, "http://127.0.0.1:9")
    completions: Any = provider._transport._client.chat.completions  # type: ignore[attr-defined]
    create = completions.with_streaming_response.create
    assert {"model", "messages", "extra_body", "timeout"} <= set(inspect.signature(create).parameters)
