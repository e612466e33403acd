"""Bytes through the mistralai SDK: the same on both ways through it, whatever client, whatever breaks."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mistralai.azure.client import MistralAzure
from mistralai.client import Mistral
from mistralai.client import errors as sdk_errors
from mistralai.client.utils import BackoffStrategy, RetryConfig
from mistralai.extra.observability.telemetry import configure_telemetry
from opentelemetry import trace

from adapters.asking import FINE, HELLO, choice
from adapters.mistral.sdk_paths import PATHS, providers_take, way_of
from agent_core import CompletionRequest, errors, load_provider
from agent_core.chatwire import error_from_exception
from agent_core.testing import Answer, Gate, LoopbackServer
from agent_core_mistral import MistralProvider

ASKED = CompletionRequest(model="m", messages=HELLO)
CHUNKS = [choice({"role": "assistant", "content": "One "}), choice({"content": "moment."}, "stop")]
STREAM = Answer.events(CHUNKS)
WAIT = 30  # seconds for what takes milliseconds, on a machine that may be busy


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A server without answers."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each way through the SDK in turn."""
    with providers_take(request.param):
        yield request.param


@pytest.fixture
async def provider(path: str, server: LoopbackServer) -> AsyncIterator[MistralProvider]:
    """A provider that sends that way."""
    async with provider_of(server) as provider:
        assert way_of(provider) == path
        yield provider


def provider_of(server: LoopbackServer, **options: Any) -> MistralProvider:
    """A provider without retries."""
    if "client" not in options:
        options = {"api_key": "key-1", "base_url": server.url, **options}
    provider = load_provider("mistral", max_retries=0, **options)
    assert isinstance(provider, MistralProvider)
    return provider


async def ask(provider: MistralProvider, way: str) -> str:
    """The text of an answer, asked for whole or piece by piece."""
    if way == "whole":
        return (await provider.complete(ASKED)).text
    async with provider.stream(ASKED) as stream:
        return "".join([delta.text async for delta in stream])


both_ways = pytest.mark.parametrize("way", ["whole", "stream"])


# What is sent


@both_ways
async def test_a_body_goes_where_the_sdk_sends_its_own(
    way: str, provider: MistralProvider, server: LoopbackServer
) -> None:
    """Address, credentials and user agent are the SDK's; what the body says is ours, to the byte."""
    server.add(FINE if way == "whole" else STREAM)
    assert await ask(provider, way) == ("fine" if way == "whole" else "One moment.")
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer key-1"
    assert request.headers["user-agent"].startswith("mistral-client-python/")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == ("application/json" if way == "whole" else "text/event-stream")
    streamed = b',"stream":true' if way == "stream" else b""
    assert request.body == b'{"model":"m","messages":[{"role":"user","content":"hello"}]' + streamed + b"}"


async def test_the_sdks_own_call_sends_the_same_headers(server: LoopbackServer, path: str) -> None:
    """But for the length of its body, which has more in it."""
    server.add(FINE, STREAM, FINE, STREAM)
    async with provider_of(server) as provider:
        await ask(provider, "whole")
        await ask(provider, "stream")
    async with Mistral(api_key="key-1", server_url=server.url) as client:
        with pytest.raises(sdk_errors.ResponseValidationError):  # it wants fields that FINE has not
            await client.chat.complete_async(model="m", messages=HELLO)
        await client.chat.stream_async(model="m", messages=HELLO)
    ours, sdks = server.requests[:2], server.requests[2:]
    for mine, its in zip(ours, sdks, strict=True):
        assert mine.path == its.path
        assert without_length(mine.headers) == without_length(its.headers)


def without_length(headers: Any) -> dict[str, str]:
    """Headers that do not depend on the body."""
    return {name: value for name, value in headers.items() if name != "content-length"}


async def test_headers_of_ones_own_go_along(server: LoopbackServer, path: str) -> None:
    """Also a user agent without a space in it, on which a hook of the SDK breaks."""
    server.add(FINE)
    async with provider_of(server, headers={"x-team": "blue", "user-agent": "me"}) as provider:
        await ask(provider, "whole")
    assert server.requests[0].headers["x-team"] == "blue"
    assert server.requests[0].headers["user-agent"] == "me"


@pytest.mark.parametrize("given", ["", "/"])
async def test_the_address_goes_without_v1(given: str, server: LoopbackServer, path: str) -> None:
    """As the SDK's own `server_url`, a slash at its end or not, a path before it or not."""
    server.add(FINE, FINE)
    async with provider_of(server, base_url=f" {server.url}{given}\n") as provider:
        await ask(provider, "whole")
    async with provider_of(server, base_url=f"{server.url}/proxy{given}") as provider:
        await ask(provider, "whole")
    assert [request.path for request in server.requests] == ["/v1/chat/completions", "/proxy/v1/chat/completions"]


class Sent(httpx2.AsyncBaseTransport):
    """Keeps what would leave, and answers."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=FINE.body)


async def test_the_usual_address_is_the_sdks_own(path: str) -> None:
    """Where nobody says another."""
    sent = Sent()
    async with httpx2.AsyncClient(transport=sent) as http:
        async with load_provider("mistral", client=Mistral(api_key="k", async_client=http)) as provider:
            await provider.complete(ASKED)
        async with load_provider("mistral", client=Mistral(api_key="k", async_client=http, server="eu")) as provider:
            await provider.complete(ASKED)
    assert [request.url.host for request in sent.requests] == ["api.mistral.ai", "api.eu.mistral.ai"]


@pytest.mark.parametrize(
    ("client", "provider", "request_", "seconds"),
    [
        (None, None, None, 600.0),
        (None, 7.5, None, 7.5),
        (None, 7.5, 90.0, 90.0),
        (20_000, None, None, 20.0),
        (20_000, 7.5, None, 7.5),
        (None, 0.25, None, 0.25),
    ],
)
async def test_timeouts_are_as_everywhere(
    client: int | None, provider: float | None, request_: float | None, seconds: float, path: str
) -> None:
    """Not the SDK's 300 seconds for everything: a connection has five, each next piece ten minutes or what is said."""
    sent = Sent()
    async with httpx2.AsyncClient(transport=sent) as http:
        mistral = Mistral(api_key="k", async_client=http, timeout_ms=client)
        async with load_provider("mistral", client=mistral, timeout=provider) as loaded:
            await loaded.complete(ASKED.model_copy(update={"timeout": request_}))
    waits = {"connect": min(5.0, seconds), "read": seconds, "write": seconds, "pool": seconds}
    assert sent.requests[0].extensions["timeout"] == waits


async def test_a_timeout_reaches_the_client_that_is_made(server: LoopbackServer, path: str) -> None:
    """In its unit, milliseconds."""
    async with provider_of(server, timeout=7.5) as provider:
        assert provider._owned.sdk_configuration.timeout_ms == 7500


# Whose client it is


@both_ways
async def test_a_client_of_ones_own_is_used_and_left_open(way: str, server: LoopbackServer, path: str) -> None:
    """Its retries, its HTTP client and the rest of it stay as they are."""
    retries = RetryConfig("backoff", BackoffStrategy(1, 2, 1.0, 1000), True)
    server.add(FINE if way == "whole" else STREAM, Answer.json({"message": "m"}, status=503), FINE)
    async with httpx2.AsyncClient() as http:
        client = Mistral(api_key="key-2", server_url=server.url, async_client=http, retry_config=retries)
        async with provider_of(server, client=client) as provider:
            await ask(provider, way)
            with pytest.raises(errors.ServerError):
                await ask(provider, way)
        assert len(server.requests) == 2
        assert client.sdk_configuration.async_client is http
        assert not http.is_closed
        async with provider_of(server, client=client) as provider:
            await ask(provider, "whole")
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer key-2"}


async def test_a_key_may_be_a_function(server: LoopbackServer, path: str) -> None:
    """The SDK asks it before each request; it is kept out of errors too."""
    keys = iter(["key-3", "key-4"])
    refused = Answer.json({"detail": "Unknown key key-4"}, status=401)
    server.add(FINE, refused)
    async with Mistral(api_key=lambda: next(keys), server_url=server.url) as client:
        provider = provider_of(server, client=client)
        await ask(provider, "whole")
        with pytest.raises(errors.AuthenticationError) as caught:
            await ask(provider, "whole")
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer key-3", "Bearer key-4"]
    assert "key-4" not in f"{caught.value} {vars(caught.value)}"


async def test_a_closed_client_is_said_to_be_closed(server: LoopbackServer, path: str) -> None:
    """As after its own `async with` block, or after the provider's."""
    async with Mistral(api_key="k", server_url=server.url) as client:
        theirs = provider_of(server, client=client)
    async with provider_of(server) as ours:
        pass
    for provider in (theirs, ours):
        with pytest.raises(errors.ConfigError, match="closed"):
            await ask(provider, "whole")


@pytest.mark.parametrize("client", [object(), Mistral, httpx2.Client])
def test_another_kind_of_client_is_refused(client: Any) -> None:
    """Also the class in place of a client."""
    with pytest.raises(errors.ConfigError, match="mistralai"):
        load_provider("mistral", client=client)


def test_a_client_and_options_for_one_exclude_each_other() -> None:
    """A client brings its own key, address and headers."""
    for option in ({"api_key": "k"}, {"base_url": "http://127.0.0.1:9"}, {"headers": {"a": "b"}}):
        with pytest.raises(errors.ConfigError, match="client"):
            load_provider("mistral", client=Mistral(api_key="k"), **option)


@pytest.mark.parametrize("given", [None, "", "  \n"])
def test_a_missing_key_names_its_variable(given: str | None) -> None:
    """A blank one is none."""
    with pytest.raises(errors.ConfigError, match="MISTRAL_API_KEY"):
        load_provider("mistral", api_key=given)


async def test_the_key_may_come_from_the_environment(
    server: LoopbackServer, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trimmed."""
    server.add(FINE)
    monkeypatch.setenv("MISTRAL_API_KEY", "key-5\r\n")
    async with provider_of(server, api_key=None) as provider:
        await ask(provider, "whole")
    assert server.requests[0].headers["authorization"] == "Bearer key-5"


async def test_a_service_accounts_token_is_read_before_each_request(
    server: LoopbackServer, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the SDK, where no key is given; it comes before a key in the environment."""
    server.add(FINE, FINE, FINE)
    monkeypatch.setenv("MISTRAL_API_KEY", "key-5")
    monkeypatch.setenv("MISTRAL_SA_TOKEN_PATH", str(tmp_path / "token"))
    async with provider_of(server, api_key=None) as provider:
        for token in ("token-1", "token-2"):
            (tmp_path / "token").write_text(f"{token}\n")
            await ask(provider, "whole")
    async with provider_of(server, api_key="key-6") as provider:
        await ask(provider, "whole")
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer token-1", "Bearer token-2", "Bearer key-6"]


@both_ways
async def test_the_sdks_client_for_azure_goes_its_own_way(way: str, server: LoopbackServer) -> None:
    """To its own address, so by the documented calls."""
    server.add(FINE if way == "whole" else STREAM)
    async with MistralAzure(api_key="key-7", server_url=server.url) as client:
        provider = provider_of(server, client=client)
        assert way_of(provider) == "documented calls"
        assert await ask(provider, way) == ("fine" if way == "whole" else "One moment.")
    assert server.requests[0].path == "/models/chat/completions?api-version=2024-05-01-preview"
    assert server.requests[0].headers["authorization"] == "Bearer key-7"


# Which way is taken


@pytest.mark.parametrize("method", ["_build_request_async", "do_request_async"])
def test_the_sdks_request_methods_are_taken_only_as_they_are_known(
    method: str, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another argument, or away, the documented calls serve."""
    assert way_of(provider_of(server)) == "request methods"
    chat = type(Mistral(api_key="k").chat)

    def changed(self: Any, something: Any, /, *, another: Any) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr(chat, method, changed)
        assert way_of(provider_of(server)) == "documented calls"
    with monkeypatch.context() as patch:
        patch.setattr(chat, method, None)
        assert way_of(provider_of(server)) == "documented calls"


def test_the_sdks_hook_contexts_are_taken_only_as_they_are_known(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class comes from a private module, which may go away."""
    import mistralai.client._hooks

    monkeypatch.delattr(mistralai.client._hooks, "HookContext")
    assert way_of(provider_of(server)) == "documented calls"


# What breaks


@both_ways
async def test_a_refused_connection_chains_nothing(way: str, path: str) -> None:
    """The HTTP library's exception holds the request, and so the key."""
    with LoopbackServer() as closed:
        pass
    provider = provider_of(closed)
    with pytest.raises(errors.ProviderConnectionError, match="ConnectError") as caught:
        await ask(provider, way)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert (caught.value.provider, caught.value.model) == ("mistral", "m")
    await provider.aclose()


@both_ways
async def test_no_answer_at_all_is_a_connection_error(
    way: str, provider: MistralProvider, server: LoopbackServer
) -> None:
    """The server closed the connection before the first byte."""
    server.add(Answer(hang_up=True))
    with pytest.raises(errors.ProviderConnectionError) as caught:
        await ask(provider, way)
    assert caught.value.__context__ is None


@both_ways
async def test_an_answer_that_breaks_off_is_interrupted(
    way: str, provider: MistralProvider, server: LoopbackServer
) -> None:
    """With what had come."""
    body = FINE.body[:40] if way == "whole" else STREAM.body[:-60]
    kind = "application/json" if way == "whole" else "text/event-stream"
    server.add(Answer(headers={"content-type": kind}, body=body, drop=True))
    with pytest.raises(errors.StreamInterruptedError) as caught:
        await ask(provider, way)
    assert caught.value.__cause__ is caught.value.__context__ is None
    if way == "stream":
        assert caught.value.partial is not None
        assert caught.value.partial.text == "One "


@both_ways
@pytest.mark.parametrize("when", ["before the first byte", "between two pieces"])
async def test_a_stall_is_a_timeout(way: str, when: str, server: LoopbackServer, path: str) -> None:
    """Before the headers, and in the middle of the body."""
    answer = FINE if way == "whole" else STREAM
    gate = Gate()
    stalled = {"hold": gate} if when == "before the first byte" else {"gates": {20: gate}}
    server.add(Answer(headers=answer.headers, body=answer.body, **stalled))
    async with provider_of(server, timeout=0.1) as provider:
        with pytest.raises(errors.ProviderTimeoutError) as caught:
            await ask(provider, way)
    assert caught.value.__cause__ is caught.value.__context__ is None
    gate.open()


@both_ways
@pytest.mark.parametrize("broken", [False, True], ids=["whole page", "page that breaks off"])
async def test_a_refusal_keeps_its_status(
    way: str, broken: bool, provider: MistralProvider, server: LoopbackServer
) -> None:
    """The SDK hands it over like any other answer, and loses the status where the page breaks off."""
    page = b"<html><head><title>502 Bad Gateway</title></head></html>"
    server.add(Answer(status=502, headers={"content-type": "text/html"}, body=page, drop=broken))
    with pytest.raises(errors.ServerError) as caught:
        await ask(provider, way)
    assert caught.value.status == 502
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert ("Bad Gateway" in str(caught.value)) is not broken


@both_ways
async def test_a_refusal_tells_its_wait_and_its_id(way: str, provider: MistralProvider, server: LoopbackServer) -> None:
    """From the headers, which the SDK's stream call would have shown disguised."""
    headers = {"retry-after": "12", "mistral-correlation-id": "c-1"}
    server.add(Answer.json({"message": "m", "type": "rate_limited"}, status=429, headers=headers))
    with pytest.raises(errors.RateLimitError) as caught:
        await ask(provider, way)
    assert (caught.value.status, caught.value.retry_after, caught.value.request_id) == (429, 12.0, "c-1")


async def test_a_whole_answer_where_a_stream_was_asked_is_read(
    provider: MistralProvider, server: LoopbackServer
) -> None:
    """By its own content type, whatever the SDK was shown."""
    server.add(FINE)
    assert await ask(provider, "stream") == "fine"


@both_ways
async def test_a_page_with_status_200_is_no_answer(way: str, provider: MistralProvider, server: LoopbackServer) -> None:
    """A captive portal, say."""
    server.add(Answer(headers={"content-type": "text/html"}, body=b"<html>Sign in</html>"))
    with pytest.raises(errors.ProtocolError, match="text/html"):
        await ask(provider, way)


async def test_a_value_that_json_cannot_hold_is_no_foreign_exception(
    provider: MistralProvider, server: LoopbackServer
) -> None:
    """It is found when the body is written, inside the SDK."""
    with pytest.raises(errors.ProviderError, match="PydanticSerializationError"):
        await provider.complete(ASKED.model_copy(update={"extra": {"metadata": object()}}))
    assert server.requests == []


# Connections


@pytest.mark.parametrize("leaving", ["break", "error", "cancel"])
async def test_leaving_a_stream_closes_its_connection(
    leaving: str, provider: MistralProvider, server: LoopbackServer
) -> None:
    """At once, seen by the server."""
    gate = Gate()
    server.add(Answer(headers=STREAM.headers, body=STREAM.body, gates={STREAM.body.index(b"\n\n") + 2: gate}))
    begun = asyncio.Event()

    async def read() -> None:
        async with provider.stream(ASKED) as stream:
            async for _ in stream:
                begun.set()
                if leaving == "break":
                    break
                if leaving == "error":
                    raise LookupError

    task = asyncio.create_task(read())
    await begun.wait()
    if leaving == "cancel":
        task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    assert type(outcome) is {"break": type(None), "error": LookupError, "cancel": asyncio.CancelledError}[leaving]
    assert await asyncio.to_thread(server.requests[0].closed.wait, WAIT)
    gate.open()


async def test_cancelling_a_call_that_waits_closes_its_connection(
    provider: MistralProvider, server: LoopbackServer
) -> None:
    """Also before the headers have come."""
    gate = Gate()
    server.add(Answer(headers=FINE.headers, body=FINE.body, hold=gate))
    task = asyncio.create_task(provider.complete(ASKED))
    assert await asyncio.to_thread(gate.reached.wait, WAIT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.requests[0].closed.wait, WAIT)
    gate.open()


async def test_answers_that_were_read_to_the_end_share_a_connection(
    provider: MistralProvider, server: LoopbackServer
) -> None:
    """Whole ones, streams and refusals."""
    refused = Answer.json({"message": "m"}, status=400)
    server.add(FINE, STREAM, refused, STREAM, FINE)
    for way in ("whole", "stream", "refused", "stream", "whole"):
        if way == "refused":
            with pytest.raises(errors.BadRequestError):
                await ask(provider, "whole")
        else:
            await ask(provider, way)
        assert server.open_connections == 1


async def test_a_stream_outlives_the_names_it_was_opened_by(server: LoopbackServer, path: str) -> None:
    """The SDK closes the connections of a client that is collected; the stream holds it."""
    gate = Gate()
    server.add(Answer(headers=STREAM.headers, body=STREAM.body, gates={STREAM.body.index(b"\n\n") + 2: gate}))
    async with provider_of(server).stream(ASKED) as stream:
        said = ""
        async for delta in stream:
            said += delta.text
            gc.collect()
            gate.open()
        assert said == "One moment."
        await stream._provider.aclose()


# What the SDK adds on its way


class Span(trace.NonRecordingSpan):
    """Counts its ends."""

    def __init__(self) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.ends = 0
        self.attributes: dict[str, Any] = {}

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_attributes(self, attributes: Any) -> None:
        self.attributes |= attributes

    def end(self, end_time: int | None = None) -> None:
        self.ends += 1


class Tracing(trace.TracerProvider, trace.Tracer):
    """Gives one span for each call."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def get_tracer(self, *names: Any, **more: Any) -> trace.Tracer:
        return self

    def start_span(self, name: str, *more: Any, **others: Any) -> Span:
        self.spans.append(Span())
        return self.spans[-1]

    def start_as_current_span(self, *names: Any, **more: Any) -> Any:
        raise NotImplementedError


@both_ways
async def test_a_traced_answer_reads_the_same_and_ends_its_span(way: str, server: LoopbackServer, path: str) -> None:
    """With OpenTelemetry on, the SDK puts a response of its own in the place of the HTTP library's."""
    server.add(FINE if way == "whole" else STREAM)
    tracing = Tracing()
    async with Mistral(api_key="k", server_url=server.url) as client:
        configure_telemetry(client, provider=tracing)
        provider = provider_of(server, client=client)
        assert await ask(provider, way) == ("fine" if way == "whole" else "One moment.")
    (span,) = tracing.spans
    assert span.ends == 1
    assert span.attributes["gen_ai.request.model"] == "m"


@both_ways
@pytest.mark.parametrize("status", [200, 429], ids=["answered", "refused"])
async def test_tracing_sees_what_the_sdks_own_calls_would_show_it(
    way: str, status: int, server: LoopbackServer, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Usage of an answer; the code of a refusal, but where the SDK's stream call was shown a stream in its place."""
    usage = {"prompt_tokens": 7, "completion_tokens": 6, "total_tokens": 13}
    refused = Answer.json({"object": "error", "message": "m", "type": "t", "code": "1300"}, status=429)
    whole = Answer.json({**json.loads(FINE.body), "id": "c", "model": "m", "usage": usage})
    streamed = Answer.events([{**chunk, "id": "c", "model": "m", "usage": usage} for chunk in CHUNKS])
    server.add(refused if status == 429 else whole if way == "whole" else streamed)
    tracing = Tracing()
    async with Mistral(api_key="k", server_url=server.url) as client:
        configure_telemetry(client, provider=tracing)
        caplog.clear()  # a note on what is not redacted
        with suppress(errors.RateLimitError):
            await ask(provider_of(server, client=client), way)
    (span,) = tracing.spans
    assert span.ends == 1
    assert caplog.messages == []
    if status == 200:
        assert span.attributes["gen_ai.usage.input_tokens"] == 7
    elif path == PATHS[0]:
        assert span.attributes["mistral_ai.error.code"] == "1300"


@both_ways
async def test_a_model_that_will_be_removed_answers_and_is_told(
    way: str, provider: MistralProvider, server: LoopbackServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The SDK's own hook for it reads the body, and so raises on every stream of such a model."""
    headers = {"x-model-deprecation-timestamp": "2030-01-01T00:00:00Z"}
    form = FINE if way == "whole" else STREAM
    server.add(Answer(headers={**form.headers, **headers}, body=form.body))
    with caplog.at_level(logging.WARNING):
        assert await ask(provider, way) == ("fine" if way == "whole" else "One moment.")
    (told,) = caplog.messages
    assert "model m" in told
    assert "2030-01-01" in told


def test_every_exception_of_the_sdk_has_a_class_of_ours() -> None:
    """None of them leaves the library; a new one is to be thought of."""
    response = httpx2.Response(429, request=httpx2.Request("POST", "http://127.0.0.1"), text='{"message": "m"}')
    response.headers["retry-after"] = "7"
    fine = httpx2.Response(200, request=response.request, text="{}")
    complaint = sdk_errors.ObservabilityErrorData.model_construct(detail=SimpleNamespace(message="m"))
    named = {name: getattr(sdk_errors, name) for name in sdk_errors.__all__}
    classes = {name: each for name, each in named.items() if inspect.isclass(each) and issubclass(each, Exception)}
    made: dict[str, Exception] = {
        "MistralError": sdk_errors.MistralError("m", response),
        "SDKError": sdk_errors.SDKError("m", response),
        "HTTPValidationError": sdk_errors.HTTPValidationError(sdk_errors.HTTPValidationErrorData(), response),
        "ObservabilityError": sdk_errors.ObservabilityError(complaint, response),
        "ResponseValidationError": sdk_errors.ResponseValidationError("m", fine, ValueError("m")),
        "NoResponseError": sdk_errors.NoResponseError("m"),
    }
    assert classes.keys() == made.keys()
    for name, exception in made.items():
        error = error_from_exception(exception, provider="mistral", model="m")
        if name == "NoResponseError":
            assert type(error) is errors.ProviderConnectionError
        elif name == "ResponseValidationError":
            assert type(error) is errors.ProtocolError
        else:
            assert type(error) is errors.RateLimitError
            assert error.retry_after == 7.0
