"""What holds for every recorded exchange, whoever's it is, through the real SDK of its vendor.

A loopback server gives the recorded answer byte for byte; what the provider makes of it is compared with the oracle,
a second reader that shares no code with the library. What a vendor has of its own is tested beside its subclass.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

import pytest

from agent_core import Choice, Completion, CompletionRequest, Message, Provider, ToolCall, Usage, errors
from agent_core.testing import Answer, LoopbackServer
from counting import count
from recordings.completeness import missing_from_stream, missing_from_whole
from recordings.oracle import (
    ANY_ID,
    Call,
    ExpectedAnswer,
    ExpectedChoice,
    Recording,
    chunks_of,
    join_details,
    read_recordings,
    read_stream,
    read_whole,
    recordings_folder,
)
from vendors import provider_of

__all__ = ["CUTS", "HELLO", "CutName", "RecordedExchanges", "compare", "completion_of", "sent_body", "streamed"]

_FOLDER = recordings_folder()
if _FOLDER is None:
    pytest.skip("AGENT_CORE_RECORDINGS names no folder with recordings", allow_module_level=True)
ALL_RECORDINGS = read_recordings(_FOLDER)
SDKS_OF_THEIR_OWN = ("groq", "mistral", "together")

CutName = Literal["whole", "event", "byte"]
CUTS: tuple[CutName, ...] = ("whole", "event", "byte")
each_cut = pytest.mark.parametrize("cut", CUTS)

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
FINE = Answer.json({"choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}}]})


def recordings_of(vendor: str) -> list[Recording]:
    """The recordings that go through a vendor's SDK; openai's serves all services without one of their own."""
    if vendor == "openai":
        return [recording for recording in ALL_RECORDINGS if recording.vendor not in SDKS_OF_THEIR_OWN]
    return [recording for recording in ALL_RECORDINGS if recording.vendor == vendor]


def answer_of(recording: Recording, cut: CutName = "whole") -> Answer:
    """The recorded answer, to be served."""
    if recording.is_stream:
        return Answer(status=recording.status, headers=recording.headers, body=recording.sse.encode(), cut=cut)
    headers = {"content-type": "application/json", **recording.headers}
    return Answer(status=recording.status, headers=headers, body=json.dumps(recording.body).encode(), cut=cut)


async def completion_of(provider: Provider, server: LoopbackServer, recording: Recording) -> Completion:
    """Ask for the recorded answer as a whole."""
    server.add(answer_of(recording))
    return await provider.complete(CompletionRequest(model=requested_model(recording), messages=HELLO))


async def streamed(
    provider: Provider, server: LoopbackServer, recording: Recording, cut: CutName = "event"
) -> tuple[list[Any], Completion]:
    """Ask for the recorded answer as a stream; gives the deltas and the completion at its end."""
    server.add(answer_of(recording, cut))
    request = CompletionRequest(model=requested_model(recording), messages=HELLO)
    async with provider.stream(request) as stream:
        deltas = [delta async for delta in stream]
        return deltas, stream.completion


def requested_model(recording: Recording) -> str:
    """The model of the recorded request; two refused requests name none."""
    return recording.request.get("model") or "m"


def oracle_of(recording: Recording) -> ExpectedAnswer:
    """The recorded answer as the oracle reads it."""
    return read_stream(recording.sse) if recording.is_stream else read_whole(recording.body)


def count_stream(cut: CutName) -> None:
    """A stream is one recording and as many cuts as it was tried in."""
    count("cuts")
    if cut == CUTS[0]:
        count("recordings")


def compare(completion: Completion, expected: ExpectedAnswer) -> None:
    """Hold a completion against what the oracle read."""
    assert completion.id == expected.id
    assert completion.model == expected.model
    assert [choice.index for choice in completion.choices] == sorted(expected.choices)
    for choice in completion.choices:
        compare_choice(choice, expected.choices[choice.index])
    first = completion.choices[0]
    assert completion.message == first.message
    assert (completion.finish_reason, completion.raw_finish_reason) == (first.finish_reason, first.raw_finish_reason)
    assert counts(completion.usage) == counts(expected.usage)


def compare_choice(choice: Choice, expected: ExpectedChoice) -> None:
    """Hold one choice against what the oracle read."""
    assert choice.message.role == "assistant"
    assert choice.message.text == expected.text
    assert choice.message.reasoning == expected.reasoning
    assert choice.message.refusal == expected.refusal
    assert choice.finish_reason == expected.finish_reason
    assert choice.raw_finish_reason == expected.raw_finish_reason
    compare_calls(choice.message.tool_calls, expected.calls)


def compare_calls(calls: list[ToolCall], expected: list[Call]) -> None:
    """Hold calls against expected ones: name and arguments as written, and the id or, where none came, some id."""
    assert [(call.name, call.arguments) for call in calls] == [(call.name, call.arguments) for call in expected]
    for call, wanted in zip(calls, expected, strict=True):
        if wanted.id != ANY_ID:
            assert call.id == wanted.id
        elif not call.legacy:
            assert call.id
    ids = [call.id for call in calls if not call.legacy]
    assert len(set(ids)) == len(ids)


def counts(usage: Any) -> tuple[int | None, ...] | None:
    """The five figures of a usage, this library's or the oracle's; None where there is none."""
    if usage is None:
        return None
    names = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
    return tuple(getattr(usage, name) for name in names)


def content_meaning(content: Any) -> list[Any]:
    """Content as a list of parts: text is one text part, nothing is none."""
    if not content:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def call_meaning(call: dict[str, Any]) -> tuple[str, str, Any]:
    """Id, name and arguments of a call; arguments as a value where they are JSON."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = function["arguments"]
    return call["id"], function["name"], arguments


def meaning(message: dict[str, Any]) -> dict[str, Any]:
    """What a message says to a model, however it is spelled: role, content, calls, and which call it answers."""
    return {
        "role": message["role"],
        "content": content_meaning(message.get("content")),
        "calls": [call_meaning(call) for call in message.get("tool_calls") or []],
        "answers": message.get("tool_call_id"),
    }


async def sent_body(provider: Provider, server: LoopbackServer, request: CompletionRequest) -> dict[str, Any]:
    """What the SDK sends for a request."""
    server.add(FINE)
    await provider.complete(request)
    body: dict[str, Any] = server.requests[-1].json()
    return body


class RecordedExchanges:
    """The tests of one vendor's recordings. A subclass is named `Test...` and says whose they are.

    Attributes:
        vendor: name of the adapter.
        refusals: for each recorded refusal the class of its error and its code: the service's own, or its type.
        broken_off: the same, with the status, for each recorded stream that failed after it had begun.
        request_id_header: where the service tells the id of a request.
    """

    vendor: ClassVar[str]
    refusals: ClassVar[dict[str, tuple[type[errors.ProviderError], str | None]]] = {}
    broken_off: ClassVar[dict[str, tuple[type[errors.ProviderError], int, str]]] = {}
    request_id_header: ClassVar[str] = "x-request-id"

    @classmethod
    def groups(cls) -> dict[str, list[Recording]]:
        """The recordings by what a test needs of them; the names are arguments of the tests."""
        recordings = recordings_of(cls.vendor)
        answered = [one for one in recordings if one.status < 400 and one.name not in cls.broken_off]
        whole = [one for one in answered if not one.is_stream]
        firsts = {one.name: oracle_of(one).choices[0] for one in answered}
        return {
            "recording": recordings,
            "whole": whole,
            "stream": [one for one in answered if one.is_stream],
            "refused": [one for one in recordings if one.status >= 400],
            "broken": [one for one in recordings if one.name in cls.broken_off],
            "tagged": [one for one in whole if "<think>" in firsts[one.name].text],
            # An answer that was cut off may end in a call that no one could read; what says nothing is not sent.
            "replayable": [
                one
                for one in answered
                if firsts[one.name].finish_reason != "length" and (firsts[one.name].text or firsts[one.name].calls)
            ],
            "offering": [  # not a service's own tools alone
                one
                for one in recordings
                if any(tool.get("type", "function") == "function" for tool in one.request.get("tools") or [])
            ],
        }

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test the recordings that its argument names."""
        for name, group in self.groups().items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, group, ids=[one.name for one in group])

    async def test_a_whole_answer_reads_as_a_careful_reader_would(
        self, whole: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Text, reasoning, refusal, calls, finish reason and usage are those of the oracle."""
        compare(await completion_of(provider, server, whole), read_whole(whole.body))
        count("recordings")

    async def test_nothing_of_a_whole_answer_is_lost(
        self, whole: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Every value on the wire is in a field, in extras, and in `raw`."""
        completion = await completion_of(provider, server, whole)
        assert missing_from_whole(whole.body, completion) == []
        assert completion.raw == whole.body

    @each_cut
    async def test_a_stream_reads_the_same_in_every_cut(
        self, stream: Recording, cut: CutName, provider: Provider, server: LoopbackServer
    ) -> None:
        """However the bytes are cut, the completion is that of the oracle."""
        _, completion = await streamed(provider, server, stream, cut)
        compare(completion, read_stream(stream.sse))
        assert completion.raw is None
        count_stream(cut)

    async def test_the_deltas_of_a_stream_add_up_to_its_completion(
        self, stream: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Joining what the deltas say gives the texts and the usage of the completion."""
        deltas, completion = await streamed(provider, server, stream)
        for choice in completion.choices:
            of_choice = [delta for delta in deltas if delta.choice == choice.index]
            assert "".join(delta.text for delta in of_choice) == choice.message.text
            assert "".join(delta.reasoning for delta in of_choice) == choice.message.reasoning
            assert "".join(delta.refusal for delta in of_choice) == choice.message.refusal
        told: list[Usage] = [delta.usage for delta in deltas if delta.usage is not None]
        assert (told[-1] if told else None) == completion.usage

    async def test_nothing_of_a_stream_is_lost(
        self, stream: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """The last value of every path on the wire is in a field or in extras."""
        _, completion = await streamed(provider, server, stream)
        assert missing_from_stream(stream.sse, completion) == []

    async def test_the_deltas_hold_every_chunk_as_it_was_sent(
        self, stream: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """`delta.raw` gives the chunks, in order and whole."""
        deltas, _ = await streamed(provider, server, stream)
        assert [delta.raw for delta in deltas if delta.raw is not None] == list(chunks_of(stream.sse))

    async def test_think_tags_are_split_off_where_asked(self, tagged: Recording, server: LoopbackServer) -> None:
        """With `think_tags=True` what stands in the tags is reasoning, an open tag included, and the rest is text."""
        inside, _, after = read_whole(tagged.body).choices[0].text.partition("<think>")[2].partition("</think>")
        async with provider_of(self.vendor, server.url, think_tags=True) as provider:
            completion = await completion_of(provider, server, tagged)
        assert completion.reasoning.strip() == inside.strip()
        assert completion.text.strip() == after.strip()

    @pytest.mark.parametrize("way", ["complete", "stream"])
    async def test_a_refusal_becomes_the_error_of_its_kind(
        self, refused: Recording, way: str, provider: Provider, server: LoopbackServer
    ) -> None:
        """Class, status, code, whether a retry may help, and the body, however the answer was asked for."""
        expected, code = self.refusals[refused.name]
        ask = completion_of if way == "complete" else streamed
        with pytest.raises(errors.ProviderError) as caught:
            await ask(provider, server, refused)
        error = caught.value
        assert type(error) is expected
        assert error.status == refused.status
        assert error.code == code
        assert error.retryable is expected.default_retryable
        assert error.body == refused.body
        assert error.request_id == refused.headers.get(self.request_id_header)
        assert error.model == requested_model(refused)
        if way == "complete":
            count("recordings")

    @each_cut
    async def test_an_error_inside_a_stream_keeps_what_came_before(
        self, broken: Recording, cut: CutName, provider: Provider, server: LoopbackServer
    ) -> None:
        """The error has the class of its code, and `partial` all of the answer, the error's own chunk included."""
        expected, status, code = self.broken_off[broken.name]
        with pytest.raises(expected) as caught:
            await streamed(provider, server, broken, cut)
        error = caught.value
        assert type(error) is expected
        assert (error.status, error.code, error.retryable) == (status, code, expected.default_retryable)
        assert error.partial is not None
        compare(error.partial, read_stream(broken.sse))
        count_stream(cut)

    async def test_the_messages_of_a_request_leave_with_their_meaning(
        self, recording: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Roles, texts, images, files, calls and results of the recorded request are in the body that is sent."""
        messages = recording.request["messages"]
        body = await sent_body(provider, server, CompletionRequest(model="m", messages=messages))
        assert [meaning(message) for message in body["messages"]] == [meaning(message) for message in messages]
        count("round trips")

    async def test_the_tools_of_a_request_leave_as_they_came(
        self, offering: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Name, description, parameters and `strict`; a description that is empty is none."""
        tools = [tool for tool in offering.request["tools"] if tool.get("type", "function") == "function"]
        body = await sent_body(provider, server, CompletionRequest(model="m", messages=HELLO, tools=tools))
        for sent, given in zip(body["tools"], tools, strict=True):
            assert {"description": "", **given["function"]} == {"description": "", **sent["function"]}

    async def test_an_answer_goes_back_as_it_came(
        self, replayable: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """In the next request of the conversation: text, calls with their ids, reasoning and its details."""
        if replayable.is_stream:
            _, completion = await streamed(provider, server, replayable)
        else:
            completion = await completion_of(provider, server, replayable)
        results = [
            Message.function(call, "done") if call.legacy else Message.tool(call, "done")
            for call in completion.tool_calls
        ]
        history = [Message.user("hello"), completion.message, *results, Message.user("go on")]
        request = CompletionRequest(model=requested_model(replayable), messages=history)
        body = await sent_body(provider, server, request)
        assert len(body["messages"]) == len(history)
        sent = body["messages"][1]
        expected = oracle_of(replayable).choices[0]
        assert (sent.get("content") or "") == expected.text
        if not expected.details:  # details hold the text too, and some services take no other form of it
            assert (sent.get("reasoning_content") or sent.get("reasoning") or "") == expected.reasoning
        assert join_details(sent.get("reasoning_details", [])) == join_details(expected.details)
        calls = [call["function"] for call in sent.get("tool_calls", [])]
        calls += [sent["function_call"]] if "function_call" in sent else []
        assert [(call["name"], call["arguments"]) for call in calls] == [
            (call.name, call.arguments or "{}") for call in expected.calls
        ]
        answered = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
        assert answered == [call["id"] for call in sent.get("tool_calls", [])]
