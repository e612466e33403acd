"""The vendors' real SDKs read what the voices send: every scenario, whole and streamed, and every error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import groq
import openai
import pytest
import together
from mistralai.client import Mistral
from mistralai.client.errors import SDKError

from agent_core.testing._scenarios import Call, Said, Scenario
from agent_core.testing.simulator import VENDORS, Simulator, voice_for
from agent_core.testing.simulator._failures import FAILURES
from simulator.asking import PLAYED, body_for, conversation


@dataclass
class Read:
    """What an SDK made of one choice."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    finish_reason: str | None = None

    def add(self, message: Any) -> None:
        """Take in a message or a delta, as the SDK's object."""
        content = message.content
        for part in content if isinstance(content, list) else ():
            if part.type == "thinking":
                self.reasoning += "".join(thought.text for thought in part.thinking)
            else:
                self.text += part.text
        self.text += content if isinstance(content, str) else ""
        self.reasoning += getattr(message, "reasoning", None) or getattr(message, "reasoning_content", None) or ""
        self.refusal += getattr(message, "refusal", None) or ""
        for position, call in enumerate(message.tool_calls or ()):
            index = getattr(call, "index", None)
            mine = self.calls.setdefault(position if index is None else int(index), ["", "", ""])
            for at, piece in enumerate((call.id, call.function.name, call.function.arguments)):
                mine[at] += piece or ""

    def without_tags(self) -> Read:
        """Put thoughts apart that were written into the text."""
        if self.text.startswith("<think>"):
            thought, _, self.text = self.text.removeprefix("<think>\n").partition("\n</think>\n")
            self.reasoning += thought
        return self


@dataclass
class Answered:
    """What an SDK made of an answer."""

    choices: dict[int, Read] = field(default_factory=dict)
    usage: Any = None
    logprobs: list[Any] = field(default_factory=list)

    def add(self, answer: Any, part: str) -> None:
        """Take in an answer, or a chunk of one."""
        self.usage = answer.usage or self.usage
        for choice in answer.choices:
            read = self.choices.setdefault(choice.index, Read())
            read.add(getattr(choice, part))
            read.finish_reason = choice.finish_reason or read.finish_reason
            if logprobs := getattr(choice, "logprobs", None):
                self.logprobs += logprobs.content or ()


@contextmanager
def client_of(vendor: str, base_url: str) -> Iterator[Any]:
    """The vendor's own client, which is openai's for a local server; without retries."""
    if vendor == "mistral":
        with Mistral(api_key="unused", server_url=base_url) as client:
            yield client
        return
    kinds = {"groq": groq.Groq, "together": together.Together}
    with kinds.get(vendor, openai.OpenAI)(api_key="unused", base_url=base_url, max_retries=0) as client:
        yield client


def ask(client: Any, vendor: str, body: Mapping[str, Any]) -> Answered:
    """Send a body through an SDK and read its objects."""
    given = dict(body)
    stream = given.pop("stream", False)
    answered = Answered()
    if vendor == "mistral":
        if not stream:
            answered.add(client.chat.complete(**given), "message")
            return answered
        with client.chat.stream(**given) as events:
            for event in events:
                answered.add(event.data, "delta")
        return answered
    if vendor in ("groq", "together") and "stream_options" in given:  # their SDKs have no such argument
        given["extra_body"] = {"stream_options": given.pop("stream_options")}
    if not stream:
        answered.add(client.chat.completions.create(**given), "message")
        return answered
    with client.chat.completions.create(**given, stream=True) as chunks:
        for chunk in chunks:
            answered.add(chunk, "delta")
    return answered


def wire_reason(vendor: str, scenario: Scenario, said: Said) -> str:
    """The finish reason that the vendor writes for what is said."""
    if said.finish_reason != "stop":
        return said.finish_reason
    if said.calls:
        return "stop" if vendor == "openai" and scenario.name == "tool-choice-named" else "tool_calls"
    return "eos" if vendor == "together" and not said.reasoning else "stop"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("vendor", "scenario"), PLAYED, ids=lambda each: getattr(each, "name", each))
def test_an_sdk_reads_what_was_said(vendor: str, scenario: Scenario, stream: bool) -> None:
    """Text, reasoning, refusal, calls, reason and usage come out of the SDK's objects, for each choice of each turn."""
    with Simulator(vendor, scenario) as simulator, client_of(vendor, simulator.base_url) as client:
        for turn, (_, messages) in zip(scenario.turns, conversation(scenario), strict=True):
            answered = ask(client, vendor, body_for(vendor, scenario, messages, stream=stream))
            everything = (turn.said, *turn.more)
            assert sorted(answered.choices) == list(range(len(everything)))
            for index, said in enumerate(everything):
                read = answered.choices[index].without_tags()
                assert (read.text, read.reasoning, read.refusal) == (said.text, said.reasoning, said.refusal)
                assert [Call(name, arguments) for _, name, arguments in read.calls.values()] == list(said.calls)
                assert len({identity for identity, _, _ in read.calls.values()}) == len(said.calls)
                assert read.finish_reason == wire_reason(vendor, scenario, said)
            assert answered.usage.prompt_tokens == turn.said.input_tokens
            if vendor == "local":  # each choice has a usage of its own there
                assert answered.usage.completion_tokens == turn.said.output_tokens
            else:
                assert answered.usage.completion_tokens == sum(said.output_tokens for said in everything)
            if turn.said.logprobs:
                assert "".join(token.token for token in answered.logprobs) == turn.said.text
                assert all(len(token.top_logprobs) == scenario.options["logprobs"] for token in answered.logprobs)


_CLASSES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "APIStatusError",
    429: "RateLimitError",
    500: "InternalServerError",
    502: "InternalServerError",
    503: "InternalServerError",
}


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_sdk_raises_for_each_error(vendor: str) -> None:
    """Each kind of error is the SDK's own exception for its status, which holds the vendor's body."""
    kinds: list[Any] = [*FAILURES[vendor], "rate_limit_date", "rate_limit_text", "html_502"]
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    with Simulator(vendor) as simulator, client_of(vendor, simulator.base_url) as client:
        for kind in kinds:
            simulator.fail(kind)
            status = voice_for(vendor).error(kind).status
            with pytest.raises(Exception) as raised:
                ask(client, vendor, body)
            if vendor == "mistral":
                assert isinstance(raised.value, SDKError)
            else:
                assert type(raised.value).__name__ == _CLASSES[status], kind
            assert getattr(raised.value, "status_code", None) == status


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_sdk_raises_for_an_error_inside_a_stream(vendor: str) -> None:
    """The stream begins well and ends with an error in the vendor's form."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Say a few words, please."}], "stream": True}
    with Simulator(vendor) as simulator, client_of(vendor, simulator.base_url) as client:
        simulator.fail("stream_error")
        with pytest.raises(Exception) as raised:
            ask(client, vendor, body)
    names = {"mistral": "ResponseValidationError"}
    assert type(raised.value).__name__ == names.get(vendor, "APIError")
