"""A provider for GGUF files: which file is meant, what is asked of its server, and how a failure is told.

The servers here are scripted ones; the real one is in test_real_model.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from agent_core import CompletionRequest, load_model, load_provider
from agent_core.errors import (
    BadRequestError,
    ConfigError,
    ContextLengthError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    ServerError,
    StreamInterruptedError,
    ToolUseFailedError,
)
from agent_core.testing import Answer, Gate, LoopbackServer
from agent_core_local import LocalProvider, _transport
from local.helpers import WEATHER

KEY = "the-key-of-this-server"
PATH = "/models/tiny.gguf"
HELLO = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}], "model": "tiny"},
    {"choices": [{"index": 0, "delta": {"content": "Hello"}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}},
]
UNREADABLE = "The model produced output that does not match the expected peg-native format"
TEMPLATE_ERROR = {"error": {"code": 500, "message": "bad template", "type": "server_error"}}


@dataclass(frozen=True)
class FakeLlama:
    """What the transport asks of a server."""

    base_url: str
    model: str = "tiny"
    api_key: str = KEY


class Scripted:
    """A loopback server in place of llama.cpp's, and who started and released it."""

    def __init__(self, loopback: LoopbackServer) -> None:
        self.loopback = loopback
        self.acquired: list[tuple[str, dict[str, Any]]] = []
        self.released = 0

    def acquire(self, path: str, options: dict[str, Any]) -> FakeLlama:
        self.acquired.append((path, options))
        return FakeLlama(f"{self.loopback.url}/v1")

    def release(self, server: FakeLlama) -> None:
        self.released += 1

    def sent(self) -> dict[str, Any]:
        body: dict[str, Any] = self.loopback.requests[-1].json()
        return body


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    with LoopbackServer() as loopback:
        script = Scripted(loopback)
        monkeypatch.setattr(_transport, "acquire", script.acquire)
        monkeypatch.setattr(_transport, "release", script.release)
        yield script


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops that anyio knows."""
    return str(request.param)


def request(**fields: Any) -> CompletionRequest:
    """Make a request, for the model at `PATH` unless told otherwise."""
    return CompletionRequest(**{"model": PATH, "messages": [{"role": "user", "content": "Hi"}], **fields})


# Which file is meant


async def test_the_model_is_the_path(scripted: Scripted) -> None:
    """The file's server is started with the first request, told of, and used by the later ones."""
    told: list[str] = []
    scripted.loopback.add(Answer.events(HELLO), Answer.events(HELLO))
    async with load_model(f"local:{PATH}", on_load=told.append, threads=3) as model:
        assert not scripted.acquired
        completion = await model.complete("Hi", max_output_tokens=5, seed=1)
        assert completion.text == "Hello" and completion.finish_reason == "stop"
        assert completion.usage is not None and completion.usage.total_tokens == 4
        async with model.stream("Hi") as stream:
            assert [delta.text async for delta in stream if delta.text] == ["Hello"]
    assert [path for path, _ in scripted.acquired] == [PATH]
    assert scripted.acquired[0][1]["threads"] == 3
    assert told[0] == "loading tiny.gguf" and told[1].startswith("tiny is ready after ") and len(told) == 2
    assert scripted.released == 1
    first = scripted.loopback.requests[0]
    assert first.path == "/v1/chat/completions" and first.headers["authorization"] == f"Bearer {KEY}"
    assert first.json() == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 5,
        "seed": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("option", "variable", "named", "meant"),
    [
        ("/a.gguf", "/b.gguf", "any name", "/a.gguf"),
        (Path("/a.gguf"), "", "", "/a.gguf"),
        (None, " /b.gguf ", "", "/b.gguf"),
        (None, "/b.gguf", "/c.gguf", "/c.gguf"),
    ],
)
async def test_a_file_is_named_in_three_ways(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, option: Any, variable: str, named: str, meant: str
) -> None:
    """By `model_path`, which serves every request; by the request; else by the environment."""
    monkeypatch.setenv("AGENT_CORE_LOCAL_MODEL", variable)
    scripted.loopback.add(Answer.events(HELLO))
    async with load_provider("local", model_path=option) as provider:
        await provider.complete(request(model=named))
    assert [path for path, _ in scripted.acquired] == [meant]


async def test_no_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the three ways."""
    monkeypatch.delenv("AGENT_CORE_LOCAL_MODEL", raising=False)
    async with LocalProvider() as provider:
        with pytest.raises(ConfigError, match=r"no model file: name it, as in .* pass model_path=.*LOCAL_MODEL"):
            await provider.complete(request(model=""))


@pytest.mark.parametrize("content", [None, b"not a model"])
async def test_a_wrong_file_is_told(tmp_path: Path, content: bytes | None) -> None:
    """What is wrong with a file comes as it is, from a whole answer, a stream and `preload` alike."""
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    says = "no model file at" if content is None else "is no GGUF file"
    async with load_model(f"local:{path}") as model:
        with pytest.raises(ConfigError, match=says):
            await model.complete("Hi")
        with pytest.raises(ConfigError, match=says):
            async with model.stream("Hi"):
                pass
        assert isinstance(model.provider, LocalProvider)
        with pytest.raises(ConfigError, match=says):
            model.provider.preload(str(path))


async def test_a_server_that_runs_already_is_used(scripted: Scripted) -> None:
    """By its `base_url`: nothing is started, the model's name is passed on, and the key is in no error."""
    scripted.loopback.add(Answer.events(HELLO))
    async with LocalProvider(base_url=f"{scripted.loopback.url}/v1/", api_key=KEY) as provider:
        assert (await provider.complete(request(model="theirs"))).text == "Hello"
        with pytest.raises(ConfigError, match="nothing to load: the server at"):
            provider.preload("theirs")
    assert scripted.loopback.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert scripted.sent()["model"] == "theirs" and not scripted.acquired
    for wrong in ({"api_key": "the-kéy"}, {"base_url": "http://[half"}):
        given: dict[str, Any] = {"base_url": scripted.loopback.url, "api_key": KEY, **wrong}
        async with LocalProvider(max_retries=0, **given) as provider:
            with pytest.raises(ProviderError) as caught:
                await provider.complete(request())
        assert not {"the-kéy", KEY} & set(str(caught.value).split()) and caught.value.__context__ is None


async def test_a_closed_provider_starts_nothing(scripted: Scripted) -> None:
    """It would never be stopped."""
    provider = LocalProvider()
    await provider.aclose()
    await provider.aclose()
    with pytest.raises(ConfigError, match="was closed: build a new one"):
        await provider.complete(request())
    assert not scripted.acquired


async def test_requests_at_once_start_one_server(scripted: Scripted) -> None:
    """The others wait for the first one's server, and it is told of once."""
    told: list[str] = []
    scripted.loopback.add(*[Answer.events(HELLO)] * 4)
    async with LocalProvider(on_load=told.append) as provider, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(provider.complete, request())
    assert len(scripted.acquired) == scripted.released == 1
    assert len(told) == 2


def test_one_provider_serves_one_event_loop_after_another(scripted: Scripted) -> None:
    """As in a script that calls `asyncio.run` more than once."""
    scripted.loopback.add(Answer.events(HELLO), Answer.events(HELLO))
    provider = LocalProvider()
    for _ in range(2):
        assert anyio.run(provider.complete, request()).text == "Hello"
    anyio.run(provider.aclose)


# What is asked of the server


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("required", {"tools": ["get_weather", "other"], "tool_choice": "required"}),
        ("auto", {"tools": ["get_weather", "other"], "tool_choice": "auto"}),
        ("other", {"tools": ["other"], "tool_choice": "required"}),
        ("none", {"tools": None, "tool_choice": None}),
    ],
)
async def test_a_tool_choice_is_told_in_words_the_server_heeds(
    scripted: Scripted, choice: str, sent: dict[str, Any]
) -> None:
    """llama.cpp makes `auto` of a tool's name, and with `none` still shows the tools to the model."""
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
    scripted.loopback.add(Answer.events(HELLO))
    async with LocalProvider() as provider:
        await provider.complete(request(tools=[WEATHER, other], tool_choice=choice))
    body = scripted.sent()
    tools = body.get("tools") and [tool["function"]["name"] for tool in body["tools"]]
    assert {"tools": tools, "tool_choice": body.get("tool_choice")} == sent


async def test_arguments_that_do_not_parse_are_not_sent_again(scripted: Scripted) -> None:
    """llama.cpp answers a history with half an object with 500."""
    call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Pa'}}
    history = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "?"},
    ]
    scripted.loopback.add(Answer.events(HELLO))
    async with LocalProvider() as provider:
        await provider.complete(request(messages=history))
    assert scripted.sent()["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_reasoning_is_read(scripted: Scripted) -> None:
    """llama.cpp writes it into `reasoning_content`."""
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]}
    scripted.loopback.add(Answer.events([HELLO[0], thought, *HELLO[1:]]))
    async with LocalProvider() as provider:
        completion = await provider.complete(request())
    assert (completion.reasoning, completion.text) == ("Hm.", "Hello")


# How a failure is told


def json_error(status: int, kind: str, message: str = "no") -> Answer:
    """Write an error as llama.cpp does."""
    return Answer.json({"error": {"code": status, "message": message, "type": kind}}, status=status)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (json_error(400, "invalid_request_error"), BadRequestError),
        (json_error(400, "exceed_context_size_error"), ContextLengthError),
        (json_error(500, "server_error"), ServerError),
        (json_error(503, "unavailable_error", "Loading model"), ServerError),
        (Answer(hang_up=True), ProviderConnectionError),
        (Answer.events([HELLO[0], TEMPLATE_ERROR], done=False), ServerError),
        (Answer.events([HELLO[0], {"error": {"code": 500, "message": UNREADABLE}}], done=False), ToolUseFailedError),
        (Answer.events(HELLO[:2], done=False, drop=True), StreamInterruptedError),
        (Answer.events(HELLO[:2], done=False), StreamInterruptedError),
    ],
)
async def test_a_failure_is_one_of_ours(scripted: Scripted, answer: Answer, kind: type[ProviderError]) -> None:
    """Whole and streamed alike, by class and with the provider's name; what had arrived is in `partial`."""
    scripted.loopback.add(answer, answer)
    async with LocalProvider(max_retries=0) as provider:
        with pytest.raises(kind) as whole:
            await provider.complete(request())
        with pytest.raises(kind) as streamed:
            await read_stream(provider)
    for error in (whole.value, streamed.value):
        assert type(error) is kind
        assert (error.provider, error.model) == ("local", PATH)
        assert error.__cause__ is None
        if kind is StreamInterruptedError:
            assert error.partial is not None and error.partial.text == "Hello"


async def test_silence_is_a_timeout(scripted: Scripted) -> None:
    """Before the headers and within the answer."""
    before, within = Gate(), Gate()
    scripted.loopback.add(Answer.events(HELLO, hold=before), Answer.events(HELLO, gates={40: within}))
    async with LocalProvider(max_retries=0, timeout=0.2) as provider:
        for _ in range(2):
            with pytest.raises(ProviderTimeoutError):
                await provider.complete(request())
    before.open()
    within.open()


async def read_stream(provider: LocalProvider) -> None:
    async with provider.stream(request()) as stream:
        async for _ in stream:
            pass


async def read_reply(transport: _transport.LocalTransport) -> None:
    async with transport.open({"model": PATH, "messages": []}, timeout=None) as reply:
        async for _ in reply.chunks():
            pass


def httpx_exceptions() -> list[Exception]:
    """One of each exception that httpx shows."""
    message = httpx.Request("POST", "http://127.0.0.1/", headers={"authorization": f"Bearer {KEY}"})
    response = httpx.Response(418, request=message)
    known: dict[str, Any] = {"message": KEY, "request": message, "response": response}
    kinds = [kind for kind in vars(httpx).values() if inspect.isclass(kind) and issubclass(kind, Exception)]
    made = []
    for kind in kinds:
        wanted = {name: known[name] for name in inspect.signature(kind).parameters if name in known}
        made.append(kind(**wanted))
    assert len(made) > 25
    return made


@pytest.mark.parametrize("exception", httpx_exceptions(), ids=lambda exception: type(exception).__name__)
async def test_every_exception_of_httpx_is_one_of_ours(scripted: Scripted, exception: Exception) -> None:
    """Raised on sending or on reading, nothing of httpx leaves, and the key is nowhere in what does."""

    class Raising(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.headers["x-when"] == "sending":
                raise exception
            return httpx.Response(200, stream=Broken())

    class Broken(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            yield b"data: {}\n\n"
            raise exception

    for when in ("sending", "reading"):
        transport = _transport.LocalTransport({})
        await transport._client.aclose()
        transport._client = httpx.AsyncClient(transport=Raising(), headers={"x-when": when})
        with pytest.raises(ProviderError) as caught:
            await read_reply(transport)
        assert caught.value.provider == "local"
        assert KEY not in repr(caught.value) and KEY not in str(caught.value)
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        await transport.aclose()
