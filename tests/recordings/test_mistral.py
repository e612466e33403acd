"""Every recorded exchange of Mistral, through the real mistralai SDK, on both ways through it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from adapters.mistral.sdk_paths import PATHS, providers_take, way_of
from agent_core import CompletionRequest, Message, Provider, errors
from agent_core.testing import LoopbackServer
from agent_core_mistral import MistralProvider
from counting import count
from recordings.oracle import Recording, chunks_of
from recordings.replay import RecordedExchanges, completion_of, meaning, oracle_of, requested_model, sent_body, streamed
from vendors import provider_of

BRIDGES = [{"role": "assistant", "content": "OK."}]


class TestMistral(RecordedExchanges):
    """Mistral's own models, and one hosted there that sends its calls in fragments."""

    vendor = "mistral"
    path: ClassVar[str] = PATHS[0]
    request_id_header = "mistral-correlation-id"
    refusals: ClassVar[dict[str, tuple[type[errors.ProviderError], str | None]]] = {
        "mistral/error-400-logprobs-unsupported": (errors.BadRequestError, "3051"),
        "mistral/error-400-logprobs-unsupported-2": (errors.BadRequestError, "3051"),
        "mistral/error-400-model": (errors.NotFoundError, "1500"),
        "mistral/error-400-model-2": (errors.NotFoundError, "1500"),
        "mistral/error-401-auth": (errors.AuthenticationError, None),
        "mistral/error-401-auth-2": (errors.AuthenticationError, None),
    }

    @pytest.fixture(scope="class")
    async def provider(self, server: LoopbackServer) -> AsyncIterator[Provider]:
        """The real provider, sending the way that the class is for."""
        with providers_take(self.path):
            provider = provider_of("mistral", server.url)
        assert isinstance(provider, MistralProvider)
        assert way_of(provider) == self.path
        async with provider:
            yield provider

    @classmethod
    def groups(cls) -> dict[str, list[Recording]]:
        """Those of the suite, and what these tests need besides."""
        groups = super().groups()
        answered = groups["whole"] + groups["stream"]
        return groups | {"thoughtful": [one for one in answered if oracle_of(one).choices[0].reasoning]}

    async def test_the_messages_of_a_request_leave_with_their_meaning(
        self, recording: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """As everywhere, but that ids are nine letters or digits there; which call an answer is for stays.

        Two requests have a user directly after a result, which these models took and older ones refuse.
        """
        messages = recording.request["messages"]
        body = await sent_body(provider, server, CompletionRequest(model="m", messages=messages))
        sent = [message for message in body["messages"] if message not in BRIDGES or message in messages]
        assert meanings(sent) == meanings(messages)
        for message in body["messages"]:
            ids = [call["id"] for call in message.get("tool_calls", [])] + [message.get("tool_call_id", "a" * 9)]
            assert all(len(id) == 9 and id.isascii() and id.isalnum() for id in ids)
        count("round trips")

    async def test_an_answer_goes_back_as_it_came(
        self, replayable: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Text, thinking in its place before it, and calls; a user who speaks after results is let in by an answer."""
        ask = streamed if replayable.is_stream else completion_of
        answer = await ask(provider, server, replayable)
        message = (answer[1] if isinstance(answer, tuple) else answer).message
        results = [Message.tool(call, "done") for call in message.tool_calls]
        request = CompletionRequest(
            model=requested_model(replayable),
            messages=[Message.user("hello"), message, *results, Message.user("go on")],
        )
        sent = (await sent_body(provider, server, request))["messages"]
        expected = oracle_of(replayable).choices[0]
        bridge = ["assistant"] if results else []
        assert [one["role"] for one in sent] == ["user", "assistant", *["tool"] * len(results), *bridge, "user"]
        content = sent[1].get("content") or []
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        assert "".join(part["text"] for part in parts if part["type"] == "text") == expected.text
        thoughts = [part["thinking"] for part in parts if part["type"] == "thinking"]
        assert thoughts == ([[{"type": "text", "text": expected.reasoning}]] if expected.reasoning else [])
        calls = sent[1].get("tool_calls", [])
        assert [(call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
            (call.name, call.arguments or "{}") for call in expected.calls
        ]
        assert [one["tool_call_id"] for one in sent if one["role"] == "tool"] == [call["id"] for call in calls]

    async def test_thinking_and_text_are_parts_in_the_order_of_the_wire(
        self, thoughtful: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """A content list is thinking first, then text; in a stream the text goes on as a plain string."""
        if thoughtful.is_stream:
            _, completion = await streamed(provider, server, thoughtful)
        else:
            completion = await completion_of(provider, server, thoughtful)
        assert [part.type for part in completion.message.parts] == ["reasoning", "text"]

    async def test_a_hosted_models_fragments_become_one_call(self, provider: Provider, server: LoopbackServer) -> None:
        """The second fragment has neither id nor name; the SDK's own models make an id `null` of it."""
        (recording,) = [one for one in self.groups()["stream"] if one.name.endswith("stream-incremental-tool-call")]
        assert [
            piece.get("id")
            for chunk in chunks_of(recording.sse)
            for piece in chunk["choices"][0]["delta"].get("tool_calls", [])
        ] == ["chatcmpl-tool-9f149c74c42f265b", None]
        _, completion = await streamed(provider, server, recording)
        (call,) = completion.tool_calls
        assert (call.id, call.parse()) == ("chatcmpl-tool-9f149c74c42f265b", {"query": "current Berlin weather"})


class TestMistralByDocumentedCalls(TestMistral):
    """The same through the SDK's documented calls, which serve where its request methods have changed."""

    path = PATHS[1]


def meanings(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What messages say, with calls numbered in place of their ids, and Mistral's two spellings of a part as one."""
    numbers: dict[Any, int] = {}
    told: list[dict[str, Any]] = []
    for message in map(meaning, messages):
        for place, (id, name, arguments) in enumerate(message["calls"]):
            numbers[id] = len(told) * 100 + place
            message["calls"][place] = (numbers[id], name, arguments)
        message["answers"] = numbers.get(message["answers"])
        message["content"] = [_spelled(part) for part in message["content"]]
        told.append(message)
    return told


def _spelled(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "image_url" and isinstance(part["image_url"], str):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if part["type"] == "input_audio" and isinstance(part["input_audio"], dict):
        return {"type": "input_audio", "input_audio": part["input_audio"]["data"]}
    return part
