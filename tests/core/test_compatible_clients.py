"""Any OpenAI-shaped client is a provider: the SDKs, sync and async, clients of other makes, ten lines of one's own."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import groq
import huggingface_hub
import openai
import pytest
import together
from pydantic import BaseModel

from agent_core import Completion, CompletionRequest, Message, ToolCall, Usage, errors
from agent_core.chatwire import (
    ObjectTransport,
    OpenAICompatibleProvider,
    SdkTransport,
    SyncSdkTransport,
    transport_for,
)
from agent_core.testing import Answer, Gate, LoopbackServer

KEY = "my-own-form-of-key"
WAIT = 10.0  # seconds after which a wait has failed; nothing waits that long

ASYNC_SDKS: dict[str, Callable[[str], Any]] = {
    "AsyncOpenAI": lambda url: openai.AsyncOpenAI(base_url=url, api_key=KEY),
    "AsyncAzureOpenAI": lambda url: openai.AsyncAzureOpenAI(azure_endpoint=url, api_key=KEY, api_version="2024-10-21"),
    "AsyncGroq": lambda url: groq.AsyncGroq(base_url=url, api_key=KEY),
    "AsyncTogether": lambda url: together.AsyncTogether(base_url=url, api_key=KEY),
}
SYNC_SDKS: dict[str, Callable[[str], Any]] = {
    "OpenAI": lambda url: openai.OpenAI(base_url=url, api_key=KEY),
    "AzureOpenAI": lambda url: openai.AzureOpenAI(azure_endpoint=url, api_key=KEY, api_version="2024-10-21"),
    "Groq": lambda url: groq.Groq(base_url=url, api_key=KEY),
    "Together": lambda url: together.Together(base_url=url, api_key=KEY),
}
OTHERS: dict[str, Callable[[str], Any]] = {
    "AsyncInferenceClient": lambda url: huggingface_hub.AsyncInferenceClient(base_url=url, api_key=KEY),
    "InferenceClient": lambda url: huggingface_hub.InferenceClient(base_url=url, api_key=KEY),
}
CLIENTS = {**ASYNC_SDKS, **SYNC_SDKS, **OTHERS}
NAMES = {name: re.sub("^async|^azure", "", name.lower()) for name in [*ASYNC_SDKS, *SYNC_SDKS]}
NAMES |= {"AsyncAzureOpenAI": "openai", **dict.fromkeys(OTHERS, "huggingface_hub")}

LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
ASK = CompletionRequest(
    model="org/m-1",
    messages=[{"role": "user", "content": "hi"}],
    tools=[LOOK],
    tool_choice="required",
    temperature=0.5,
    max_output_tokens=7,
    extra={"vendor_field": {"a": [1]}},
)
SENT = {
    "model": "org/m-1",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    "tool_choice": "required",
    "temperature": 0.5,
    "max_tokens": 7,
    "vendor_field": {"a": [1]},
}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
CALL = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"q": "é"}'}}
WHOLE: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "m-1-2026",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Wait.", "reasoning": "hm", "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": USAGE,
    "system_fingerprint": "f1",
}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of the streamed form of the same answer."""
    head = {key: WHOLE[key] for key in ("id", "created", "model", "system_fingerprint")}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**head, "object": "chat.completion.chunk", "choices": [choice], **more}


CHUNKS: list[dict[str, Any]] = [
    chunk({"role": "assistant", "content": "", "reasoning": "hm"}),
    chunk({"content": "Wa"}),
    chunk({"content": "it."}),
    chunk({"tool_calls": [{"index": 0, **CALL, "function": {"name": "look", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"q": "é"}'}}]}),
    chunk({}, "tool_calls"),
    {**chunk({}), "choices": [], "usage": USAGE},
]


def check(completion: Completion, name: str) -> None:
    """Hold a completion against what the server said, whichever way it came."""
    assert (completion.text, completion.reasoning) == ("Wait.", "hm")
    assert completion.tool_calls == [ToolCall("t1", "look", '{"q": "é"}')]
    assert completion.finish_reason == "tool_calls"
    assert completion.usage is not None
    assert dataclasses.replace(completion.usage, extras={}) == Usage(1, 2, 3)
    assert (completion.id, completion.model, completion.provider) == ("c1", "m-1-2026", name)


async def streamed(provider: OpenAICompatibleProvider, request: CompletionRequest = ASK) -> Completion:
    """Ask for a stream, and read it to its end."""
    async with provider.stream(request) as stream:
        deltas = [delta async for delta in stream]
        assert "".join(delta.text for delta in deltas) == stream.completion.text
        return stream.completion


@pytest.fixture
async def made(anyio_backend_name: str) -> AsyncIterator[Callable[[str, str], Any]]:
    """Makes a client by its name, for a server, and closes it at the end."""
    clients: list[Any] = []

    def make(name: str, url: str) -> Any:
        clients.append(CLIENTS[name](url))
        return clients[-1]

    yield make
    for client in clients:
        if inspect.isawaitable(closing := client.close()):
            await closing


Make = Callable[[str, str], Any]
each_client = pytest.mark.parametrize("name", CLIENTS)


@each_client
async def test_a_client_answers_whole(name: str, made: Make) -> None:
    """What is sent is the request, vendor fields included; nothing of the answer is lost."""
    with LoopbackServer(Answer.json(WHOLE)) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        completion = await provider.complete(ASK)
    check(completion, NAMES[name])
    assert completion.extras["system_fingerprint"] == "f1"
    assert {key: value for key, value in server.requests[0].json().items() if key in SENT} == SENT
    assert KEY in str(server.requests[0].headers)


@each_client
@pytest.mark.parametrize("cut", ["event", 7])
async def test_a_client_answers_as_a_stream(name: str, made: Make, cut: Any) -> None:
    """It asks for usage, and gives what the whole answer gives."""
    with LoopbackServer(Answer.events(CHUNKS, cut=cut)) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        completion = await streamed(provider)
    check(completion, NAMES[name])
    sent = server.requests[0].json()
    assert {key: value for key, value in sent.items() if key in SENT} == SENT
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


@each_client
@pytest.mark.parametrize("stream", [False, True])
async def test_a_clients_failure_is_an_error_of_this_library(name: str, made: Make, stream: bool) -> None:
    """With status, wait and message, once, without the key, and without what holds it."""
    told = {"error": {"message": f"slow down, {KEY}", "type": "tokens", "code": "rate_limit_exceeded"}}
    answers = [Answer.json(told, status=429, headers={"retry-after": "7"})] * 3
    with LoopbackServer(*answers) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        with pytest.raises(errors.RateLimitError) as caught:
            await (streamed(provider) if stream else provider.complete(ASK))
    error = caught.value
    assert (error.status, error.retry_after, error.provider) == (429, 7.0, NAMES[name])
    assert "slow down, ***" in str(error)
    assert KEY not in repr(vars(error))
    assert error.__cause__ is None and error.__context__ is None
    assert len(server.requests) == 1


@each_client
async def test_a_client_that_finds_no_server_is_a_connection_error(name: str, made: Make) -> None:
    """Of whatever class its HTTP library raises."""
    with LoopbackServer() as server:
        url = server.url
    provider = OpenAICompatibleProvider(made(name, url), max_retries=0)
    with pytest.raises(errors.ProviderConnectionError):
        await provider.complete(ASK)


@each_client
async def test_a_client_that_waits_too_long_times_out(name: str, made: Make) -> None:
    """The request's own limit, before headers and between pieces."""
    hasty, patient = (ASK.model_copy(update={"timeout": timeout}) for timeout in (0.05, 0.5))
    silent = Answer(hold=Gate())
    stalled = Answer.events(CHUNKS, gates={len(json.dumps(CHUNKS[0], ensure_ascii=False).encode()) + 8: Gate()})
    with LoopbackServer(Answer.json(WHOLE), silent, stalled) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        await provider.complete(ASK)  # an SDK imports a part of itself at its first request
        with pytest.raises(errors.ProviderTimeoutError):
            await provider.complete(hasty)
        with pytest.raises(errors.ProviderTimeoutError) as caught:
            await streamed(provider, patient)
    assert caught.value.partial is not None
    assert caught.value.partial.reasoning == "hm"


@pytest.mark.parametrize("name", [*ASYNC_SDKS, *SYNC_SDKS])
async def test_leaving_a_stream_hangs_up(name: str, made: Make) -> None:
    """So that the server stops generating."""
    gate = Gate()
    with LoopbackServer(Answer.events(CHUNKS * 50, cut="event", gates={4000: gate})) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        async with provider.stream(ASK) as stream:
            async for _ in stream:
                break
        assert await anyio.to_thread.run_sync(server.requests[0].closed.wait, WAIT)


@pytest.mark.parametrize("name", [*ASYNC_SDKS, *SYNC_SDKS])
async def test_cancelling_a_stream_that_waits_hangs_up(name: str, made: Make) -> None:
    """Also where a thread waits for the next bytes: it is woken, and left behind is none."""
    gate = Gate()
    with LoopbackServer(Answer.events(CHUNKS, cut="event", gates={len(json.dumps(CHUNKS[0])) + 8: gate})) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        async with anyio.create_task_group() as group:
            group.start_soon(streamed, provider)
            assert await anyio.to_thread.run_sync(gate.reached.wait, WAIT)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(server.requests[0].closed.wait, WAIT)


@pytest.mark.parametrize("name", SYNC_SDKS)
async def test_an_answer_that_comes_after_its_caller_left_is_closed(name: str, made: Make) -> None:
    """A thread that waits for headers cannot be cancelled; what it is given then is not kept open."""
    gate = Gate()
    stream = Answer.events(CHUNKS, cut="event", hold=gate, gates={len(json.dumps(CHUNKS[0])) + 8: Gate()})
    with LoopbackServer(stream) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        async with anyio.create_task_group() as group:
            group.start_soon(streamed, provider)
            assert await anyio.to_thread.run_sync(gate.reached.wait, WAIT)
            group.cancel_scope.cancel()
        gate.open()
        assert await anyio.to_thread.run_sync(server.requests[0].closed.wait, WAIT)


@pytest.mark.parametrize("name", SYNC_SDKS)
async def test_a_sync_client_does_not_hold_up_the_event_loop(name: str, made: Make) -> None:
    """Each wait happens in a worker thread, so a second request may open the gate of the first."""
    gate = Gate()
    with LoopbackServer(Answer.json(WHOLE, hold=gate)) as server:
        provider = OpenAICompatibleProvider(made(name, server.url), max_retries=0)
        async with anyio.create_task_group() as group:
            group.start_soon(provider.complete, ASK)
            assert await anyio.to_thread.run_sync(gate.reached.wait, WAIT)
            gate.open()


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client_that_was_passed_in_stays_open(name: str, made: Make) -> None:
    """It is its maker's to close."""
    with LoopbackServer(Answer.json(WHOLE), Answer.json(WHOLE)) as server:
        client = made(name, server.url)
        for _ in range(2):
            async with OpenAICompatibleProvider(client, max_retries=0) as provider:
                await provider.complete(ASK)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[(name, SdkTransport) for name in ASYNC_SDKS],
        *[(name, SyncSdkTransport) for name in SYNC_SDKS],
        *[(name, ObjectTransport) for name in OTHERS],
    ],
)
async def test_bytes_come_through_the_raw_response_wherever_there_is_one(
    name: str, made: Make, kind: type[Any]
) -> None:
    """Only clients without one hand over objects."""
    assert type(transport_for(made(name, "http://127.0.0.1:9"), provider="p")) is kind


async def test_azures_address_has_the_model(made: Make) -> None:
    """Its deployment is part of the path, and the version is asked for."""
    with LoopbackServer(Answer.json(WHOLE)) as server:
        await OpenAICompatibleProvider(made("AsyncAzureOpenAI", server.url)).complete(ASK)
    assert server.requests[0].path == "/openai/deployments/org%2Fm-1/chat/completions?api-version=2024-10-21"


def shaped(create: Any) -> Any:
    """A client of one's own, with this method."""
    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def objects(value: Any) -> Any:
    """JSON as objects with attributes, as many fakes have it."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: objects(item) for key, item in value.items()})
    return [objects(item) for item in value] if isinstance(value, list) else value


@dataclasses.dataclass
class Reply:
    """An answer as a dataclass."""

    id: str
    model: str
    choices: list[Any]
    usage: dict[str, int] | None = None


class Model(BaseModel):
    """An answer as a pydantic model."""

    id: str
    model: str
    choices: list[Any]
    usage: dict[str, int] | None = None


class WithToDict:
    """An answer that knows how to become a dict."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        return self._fields


def fields(value: dict[str, Any]) -> dict[str, Any]:
    """Those of the classes above."""
    return {key: value[key] for key in ("id", "model", "choices", "usage") if key in value}


OPENAI_CLASSES: dict[str, type[BaseModel]] = {
    "chat.completion": openai.types.chat.ChatCompletion,
    "chat.completion.chunk": openai.types.chat.ChatCompletionChunk,
}
FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dicts": dict,
    "objects": objects,
    "dataclasses": lambda value: Reply(**fields(value)),
    "pydantic models": lambda value: Model(**fields(value)),
    "to_dict": lambda value: WithToDict(**fields(value)),
    "openai's own": lambda value: OPENAI_CLASSES[value["object"]].model_validate(value),
}


def async_fake(form: Callable[[dict[str, Any]], Any]) -> Any:
    """An async client in ten lines."""

    async def chunks() -> AsyncIterator[Any]:
        for one in CHUNKS:
            yield form(one)

    async def create(**body: Any) -> Any:
        return chunks() if body.get("stream") else form(WHOLE)

    return shaped(create)


def sync_fake(form: Callable[[dict[str, Any]], Any]) -> Any:
    """A sync client in fewer."""

    def create(**body: Any) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        return map(form, CHUNKS) if body.get("stream") else form(WHOLE)

    return shaped(create)


def lists_fake(form: Callable[[dict[str, Any]], Any]) -> Any:
    """An async client whose stream is a list."""

    async def create(**body: Any) -> Any:
        return [form(one) for one in CHUNKS] if body.get("stream") else form(WHOLE)

    return shaped(create)


def wrapped_fake(form: Callable[[dict[str, Any]], Any]) -> Any:
    """A client whose plain function gives a coroutine, as a decorator makes it."""
    inner = async_fake(form).chat.completions.create
    return shaped(lambda **body: inner(**body))


def partial_fake(form: Callable[[dict[str, Any]], Any]) -> Any:
    """A client whose method was given its first arguments before."""
    return shaped(partial(async_fake(form).chat.completions.create, user="u"))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("fake", [async_fake, sync_fake, lists_fake, wrapped_fake, partial_fake])
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_client_of_ones_own_may_give_anything_like_an_answer(
    fake: Callable[[Any], Any], form: Callable[[dict[str, Any]], Any]
) -> None:
    """Dicts, objects, dataclasses, models; async, sync or a list; whole and streamed."""
    provider = OpenAICompatibleProvider(fake(form), name="own")
    check(await provider.complete(ASK), "own")
    check(await streamed(provider), "own")


async def test_a_clients_model_that_holds_what_it_does_not_allow_is_taken_without_a_warning() -> None:
    """SDKs build what a server sends without validation; arguments may be an object there."""
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": {"q": 1}}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = openai.types.chat.ChatCompletion.construct(
        id="c1", model="m", choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    )

    async def create(**body: Any) -> Any:
        return answer

    completion = await OpenAICompatibleProvider(shaped(create)).complete(ASK)
    assert completion.tool_calls == [ToolCall("t1", "look", '{"q":1}')]


async def test_a_clients_own_arguments_are_kept_to() -> None:
    """What its method has no argument for goes into `extra_body`; usage is not asked for where it can't be."""
    seen: dict[str, Any] = {}

    async def create(*, model: str, messages: list[Any], stream: bool = False, extra_body: Any = None) -> Any:
        seen.update(model=model, messages=messages, extra_body=extra_body)
        return WHOLE

    await OpenAICompatibleProvider(shaped(create)).complete(ASK)
    assert (seen["model"], seen["messages"]) == ("org/m-1", SENT["messages"])
    assert seen["extra_body"] == {key: value for key, value in SENT.items() if key not in ("model", "messages")}


async def test_a_client_that_takes_less_than_is_asked_says_so() -> None:
    """By the names of what it does not take; usage alone is left out."""

    async def create(model: str, messages: list[Any], stream: bool = False) -> Any:
        return [*CHUNKS] if stream else WHOLE

    provider = OpenAICompatibleProvider(shaped(create))
    with pytest.raises(errors.ConfigError, match="takes no max_tokens, temperature, tool_choice, tools, vendor_field"):
        await provider.complete(ASK)
    plain = CompletionRequest(model="m", messages=[Message.user("hi")])
    assert (await provider.complete(plain)).text == (await streamed(provider, plain)).text == "Wait."


NO_ANSWERS: dict[str, Any] = {
    "nothing": None,
    "a number": 5,
    "a page": "<html>Sign in</html>",
    "bytes": b"Sign in",
    "an object of nothing": object(),
    "an empty object": SimpleNamespace(),
    "a list of nothing": [],
    "a stream of numbers": [1, 2],
    "a stream of text": ["a"],
    "an error": {"error": {"message": "busy", "code": 503}},
    "itself": {},
}
NO_ANSWERS["itself"]["choices"] = NO_ANSWERS["itself"]


@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_no_answer_is_an_error_of_this_library(answer: Any, stream: bool) -> None:
    """Whatever a client gives."""

    async def create(**body: Any) -> Any:
        return answer

    provider = OpenAICompatibleProvider(shaped(create), max_retries=0)
    with pytest.raises((errors.ProtocolError, errors.ServerError)) as caught:
        await (streamed(provider) if stream else provider.complete(ASK))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert caught.value.model == "org/m-1"


class BrokenError(Exception):
    """An error of a client's own."""


def failing_stream() -> Iterator[Any]:
    """A stream that breaks after its second chunk."""
    yield from CHUNKS[:2]
    raise BrokenError("in mid-answer")


async def failing_async_stream() -> AsyncIterator[Any]:
    """The same, async."""
    for one in failing_stream():
        yield one


@pytest.mark.parametrize("make", [failing_stream, failing_async_stream])
async def test_a_clients_stream_that_breaks_keeps_what_had_come(make: Callable[[], Any]) -> None:
    """The client's own exception is told by its name."""

    async def create(**body: Any) -> Any:
        return make()

    with pytest.raises(errors.ProviderError, match=r"in mid-answer \(BrokenError\)") as caught:
        await streamed(OpenAICompatibleProvider(shaped(create)))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Wa"


class Noting:
    """A stream that notes whether it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._chunks()  # a generator of its own, which nobody else closes

    async def _chunks(self) -> AsyncIterator[Any]:
        for one in CHUNKS:
            yield one

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_clients_stream_that_is_left_is_closed() -> None:
    """And so is the generator inside it, of which trio would warn."""
    given = Noting()

    async def create(**body: Any) -> Any:
        return given

    async with OpenAICompatibleProvider(shaped(create)).stream(ASK) as stream:
        async for _ in stream:
            break
    assert given.closed == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_clients_stream_that_hangs_can_be_left() -> None:
    """A sync one is closed by its own thread, once that comes back."""
    waits, goes_on, closed = threading.Event(), threading.Event(), threading.Event()

    def chunks() -> Iterator[Any]:
        try:
            yield CHUNKS[0]
            waits.set()
            goes_on.wait(WAIT)
            yield CHUNKS[1]
        finally:
            closed.set()

    provider = OpenAICompatibleProvider(shaped(lambda **body: chunks()))
    async with anyio.create_task_group() as group:
        group.start_soon(streamed, provider)
        assert await anyio.to_thread.run_sync(waits.wait, WAIT)
        group.cancel_scope.cancel()
    goes_on.set()
    assert await anyio.to_thread.run_sync(closed.wait, WAIT)


@pytest.mark.parametrize(
    "client", [object(), SimpleNamespace(chat=None), shaped("no method"), openai.AsyncOpenAI, 5, "gpt", Message]
)
def test_what_is_no_client_is_refused(client: Any) -> None:
    """When the provider is made, with what would do."""
    with pytest.raises(errors.ConfigError, match=r"no OpenAI-shaped client: it has no chat\.completions\.create"):
        OpenAICompatibleProvider(client)


def test_a_provider_without_client_is_refused() -> None:
    """There is nothing to ask."""
    with pytest.raises(errors.ConfigError, match="pass a client"):
        OpenAICompatibleProvider()


async def test_a_request_without_model_is_refused_before_it_is_sent() -> None:
    """Whole and streamed."""
    provider = OpenAICompatibleProvider(async_fake(dict))
    nameless = CompletionRequest(messages=[Message.user("hi")])
    with pytest.raises(errors.ConfigError, match="names no model"):
        await provider.complete(nameless)
    with pytest.raises(errors.ConfigError, match="names no model"):
        provider.stream(nameless)


async def test_a_stream_is_read_inside_its_block() -> None:
    """Before it there is no connection."""
    stream = OpenAICompatibleProvider(async_fake(dict)).stream(ASK)
    with pytest.raises(RuntimeError, match="open the stream first"):
        aiter(stream)
