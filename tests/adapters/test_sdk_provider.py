"""What the adapters over SDKs of the common generator have in common: how a client is made, and whose it is."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from adapters.asking import FINE, HELLO
from agent_core import CompletionRequest, OpenAICompatibleProvider, errors, load_provider
from agent_core.chatwire import SdkProvider
from agent_core.testing import Answer, LoopbackServer
from vendors import provider_of

# SDK, path of a call, environment variables, and where the SDK goes when nobody says: chat has a host of its own at
# Together.
FACTS = {
    "openai": ("OpenAI", "/chat/completions", "https://api.openai.com/v1/chat/completions"),
    "groq": ("Groq", "/openai/v1/chat/completions", "https://api.groq.com/openai/v1/chat/completions"),
    "together": ("Together", "/v1/chat/completions", "https://api-inference.together.ai/v1/chat/completions"),
}
ASKED = CompletionRequest(model="m", messages=HELLO)

every_vendor = pytest.mark.parametrize("vendor", FACTS)


def sdk_client(vendor: str, *, sync: bool = False) -> Any:
    """The class of the vendor's own client."""
    return getattr(importlib.import_module(vendor), ("" if sync else "Async") + FACTS[vendor][0])


def client_of(provider: OpenAICompatibleProvider) -> Any:
    """The SDK's client inside a provider that made it."""
    assert isinstance(provider, SdkProvider)
    return provider._owned


def test_every_adapter_takes_the_same_options() -> None:
    """What is written for one vendor works for the others."""
    taken = {
        vendor: dict(inspect.signature(type(provider_of(vendor, "http://127.0.0.1:9"))).parameters) for vendor in FACTS
    }
    assert taken["groq"] == taken["together"] == taken["openai"]
    options = {"client", "api_key", "base_url", "timeout", "retry", "max_retries", "think_tags", "headers", "name"}
    assert options <= set(taken["groq"])


@every_vendor
async def test_a_call_goes_where_the_sdk_puts_it(vendor: str) -> None:
    """The base URL is as that SDK takes it; key and headers go along."""
    with LoopbackServer(FINE) as server:
        async with provider_of(vendor, server.url, api_key="  key-1\n", headers={"x-team": "blue"}) as provider:
            completion = await provider.complete(ASKED)
    assert (completion.text, completion.provider) == ("fine", vendor)
    request = server.requests[0]
    assert request.path == FACTS[vendor][1]
    assert request.headers["authorization"] == "Bearer key-1"
    assert request.headers["x-team"] == "blue"


@every_vendor
async def test_key_and_address_may_come_from_the_environment(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the names that the SDK reads too."""
    with LoopbackServer(FINE) as server:
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "key-2\r\n")
        monkeypatch.setenv(f"{vendor.upper()}_BASE_URL", server.url)
        async with load_provider(vendor) as provider:
            await provider.complete(ASKED)
    assert server.requests[0].headers["authorization"] == "Bearer key-2"


@every_vendor
@pytest.mark.parametrize("given", [None, "", "  \n"])
def test_a_missing_key_names_its_variable(vendor: str, given: str | None) -> None:
    """A blank one is none."""
    with pytest.raises(errors.ConfigError, match=f"{vendor.upper()}_API_KEY"):
        load_provider(vendor, api_key=given)


@every_vendor
async def test_the_usual_address_is_the_sdks_own(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With retries off by a copy of the client too: Together's chat host is told apart by how the client was made."""
    sent: list[Any] = []

    async def send(request: Any, **options: Any) -> Any:
        sent.append(request)
        raise OSError("no network in tests")

    async with load_provider(vendor, api_key="unused", max_retries=0) as provider:
        http = client_of(provider)._client  # type: ignore[arg-type]
        monkeypatch.setattr(http, "send", send)
        with pytest.raises(errors.ProviderConnectionError):
            await provider.complete(ASKED)
    assert str(sent[0].url) == FACTS[vendor][2]
    assert len(sent) == 1


@every_vendor
@pytest.mark.parametrize(("given", "read"), [(None, 600.0), (7.5, 7.5)])
async def test_timeouts_are_alike_for_all(vendor: str, given: float | None, read: float) -> None:
    """The SDKs' own differ (600 and 60 seconds); a connection has five seconds everywhere."""
    async with provider_of(vendor, "http://127.0.0.1:9", timeout=given) as provider:
        timeout = client_of(provider).timeout
    assert (timeout.connect, timeout.read, timeout.write, timeout.pool) == (5.0, read, read, read)


@every_vendor
async def test_the_sdks_own_retries_are_off(vendor: str) -> None:
    """Whatever the answer says: how often to ask is the retry policy's to decide."""
    failure = Answer.json({"error": {"message": "m"}}, status=500, headers={"x-should-retry": "true"})
    with LoopbackServer(failure, failure, failure) as server:
        async with provider_of(vendor, server.url) as provider:
            with pytest.raises(errors.ServerError):
                await provider.complete(ASKED)
        client = sdk_client(vendor)(api_key="unused", base_url=server.url, max_retries=5)
        async with client, OpenAICompatibleProvider(client, max_retries=0) as provider:
            with pytest.raises(errors.ServerError):
                await provider.complete(ASKED)
        assert len(server.requests) == 2


@every_vendor
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("way", ["complete", "stream"])
async def test_a_client_of_ones_own_is_used_and_left_open(vendor: str, sync: bool, way: str) -> None:
    """Both kinds of client; the provider's dialect is the vendor's all the same."""
    answer = {"message": {"content": "<think>Hm.</think>4"}, "delta": {"content": "<think>Hm.</think>4"}, "index": 0}
    form = Answer.json({"choices": [answer]}) if way == "complete" else Answer.events([{"choices": [answer]}])
    request = ASKED.model_copy(update={"model": "deepseek-r1"})
    with LoopbackServer(form) as server:
        client = sdk_client(vendor, sync=sync)(api_key="unused", base_url=server.url)
        async with load_provider(vendor, client=client) as provider:
            if way == "complete":
                completion = await provider.complete(request)
            else:
                async with provider.stream(request) as stream:
                    async for _ in stream:
                        pass
                    completion = stream.completion
        assert client.is_closed() is False
        closing = client.close()
        if not sync:
            await closing
    told = (completion.reasoning, completion.text)
    assert told == (("", "<think>Hm.</think>4") if vendor == "openai" else ("Hm.", "4"))


@every_vendor
def test_a_client_and_options_for_one_exclude_each_other(vendor: str) -> None:
    """A client brings its own key, address and headers."""
    client = sdk_client(vendor, sync=True)(api_key="unused")
    for option in ({"api_key": "k"}, {"base_url": "http://127.0.0.1:9"}, {"headers": {"a": "b"}}):
        with pytest.raises(errors.ConfigError, match="client"):
            load_provider(vendor, client=client, **option)
    client.close()


@every_vendor
def test_an_unknown_option_is_named(vendor: str) -> None:
    """With those that there are."""
    with pytest.raises(errors.ConfigError, match=r"no option organisation.*timeout"):
        load_provider(vendor, api_key="unused", organisation="x")


@every_vendor
async def test_it_may_be_called_otherwise(vendor: str) -> None:
    """As where two providers of one vendor are used side by side."""
    with LoopbackServer(FINE) as server:
        async with provider_of(vendor, server.url, name="second") as provider:
            assert (await provider.complete(ASKED)).provider == "second"
