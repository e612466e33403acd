"""Answers that broke other programs, through the real SDKs: each wire case of `tests/cases`, for every vendor it names.

Each case says what is right in the words of `tests/cases/README.md`; this module puts those words to the library.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_core import Completion, CompletionDelta, CompletionRequest, Message, OpenAICompatibleProvider, errors
from agent_core.testing import Answer, LoopbackServer
from counting import count
from vendors import VENDORS, provider_of

CASES = Path(__file__).parents[1] / "cases"


def _read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


ALL_CASES = [_read(path) for path in sorted(CASES.glob("c*.json"))]
WIRE_CASES = [case for case in ALL_CASES if "http" in case["input"]]
REPLAYED = [case for case in WIRE_CASES if "replay" in case["expected"]]
# A vendor is not named for a case where its SDK raises or drops something. The library reads the bytes past it.
ALSO_RIGHT = {"mistral": ("c03", "c09", "c19")}
SECRET_CASE = next(case for case in ALL_CASES if case["id"] == "c40")

# The words of the cases for the classes of this library.
KINDS: dict[str, tuple[type[errors.AgentCoreError], ...]] = {
    "auth": (errors.AuthenticationError, errors.PermissionDeniedError),
    "rate_limit": (errors.RateLimitError,),
    "bad_request": (errors.BadRequestError,),
    "too_large": (errors.RequestTooLargeError, errors.ContextLengthError),
    "tool_use_failed": (errors.ToolUseFailedError,),
    "server": (errors.ServerError,),
    "connection": (errors.ProviderConnectionError, errors.ProviderTimeoutError, errors.StreamInterruptedError),
    "protocol": (errors.ProtocolError,),
    "config": (errors.ConfigError,),
}

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
FINE = Answer.json({"choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}}]})


def is_right_for(vendor: str, case: Mapping[str, Any]) -> bool:
    """Whether what a case expects is right for a vendor."""
    return vendor in case["vendors"] or case["id"] in ALSO_RIGHT.get(vendor, ())


def each(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """Parametrise a test over cases and the vendors that each names, as far as their adapters are installed."""
    pairs = [(case, vendor) for case in cases for vendor in VENDORS if is_right_for(vendor, case)]
    names = [f"{case['id']} {case['title']}-{vendor}" for case, vendor in pairs]
    return pytest.mark.parametrize(("case", "vendor"), pairs, ids=names)


@dataclass(slots=True)
class Outcome:
    """What came of a case: a completion or an error, and the deltas where it was streamed."""

    completion: Completion | None = None
    error: errors.ProviderError | None = None
    deltas: list[CompletionDelta] = field(default_factory=list)


def answer_of(http: Mapping[str, Any]) -> Answer:
    """The case's answer, cut and broken off as the case says."""
    how = {"status": http.get("status", 200), "cut": http.get("split", "whole"), "drop": http.get("drop", False)}
    if "sse" in http:
        return Answer.sse(http["sse"], headers=http.get("headers"), **how)
    if "body" in http:
        return Answer.json(http["body"], headers=http.get("headers"), **how)
    return Answer(headers=http.get("headers", {}), body=http["text"].encode(), **how)


class Bench:
    """A server and the real providers that ask it, kept for all cases: making an SDK's client is slow."""

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        self._providers: dict[str, OpenAICompatibleProvider] = {}

    def provider_for(self, case: Mapping[str, Any], vendor: str) -> OpenAICompatibleProvider:
        """The vendor's provider with the options of the case, without retries."""
        options = case["input"].get("options", {})
        name = f"{vendor} {json.dumps(options)}"
        if name not in self._providers:
            self._providers[name] = provider_of(vendor, self.server.url, **options)
        return self._providers[name]

    async def play(self, case: Mapping[str, Any], vendor: str, *, cut: Any = None) -> Outcome:
        """Play a case. Only this library's own errors are caught: any other exception fails the test."""
        self.server.add(answer_of(case["input"]["http"] | ({} if cut is None else {"split": cut})))
        asked_before = len(self.server.requests)
        outcome = await self._ask(case, vendor)
        assert len(self.server.requests) == asked_before + 1
        return outcome

    async def _ask(self, case: Mapping[str, Any], vendor: str) -> Outcome:
        provider = self.provider_for(case, vendor)
        request = CompletionRequest(model="m-test", messages=HELLO)
        outcome = Outcome()
        try:
            if not case["input"]["stream"]:
                outcome.completion = await provider.complete(request)
                return outcome
            async with provider.stream(request) as stream:
                async for delta in stream:
                    outcome.deltas.append(delta)
                outcome.completion = stream.completion
        except errors.ProviderError as error:
            outcome.error = error
        return outcome

    async def close(self) -> None:
        """Close the providers."""
        for provider in self._providers.values():
            await provider.aclose()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for the module, so that the providers may keep their connections."""
    return "asyncio"


@pytest.fixture(scope="module")
async def bench() -> AsyncIterator[Bench]:
    """A server and providers for all cases."""
    with LoopbackServer() as server:
        bench = Bench(server)
        yield bench
        await bench.close()


def check(expected: Mapping[str, Any], outcome: Outcome) -> None:
    """Hold an outcome against `expected`, where one of `any_of` is enough."""
    if "any_of" in expected:
        failures = []
        for alternative in expected["any_of"]:
            try:
                check(alternative, outcome)
            except AssertionError as failure:
                failures.append(failure)
        assert len(failures) < len(expected["any_of"]), failures
    if "completion" in expected:
        assert outcome.completion is not None, f"raised {outcome.error!r}"
        check_completion(expected["completion"], outcome.completion)
    if "error" in expected:
        assert outcome.error is not None, f"gave {outcome.completion!r}"
        check_error(expected, outcome.error)


def check_completion(expected: Mapping[str, Any], completion: Completion) -> None:
    """Only the fields that are named count; empty text and None are the same."""
    strip = "compare" in expected
    for name, value in (("content", completion.text), ("reasoning", completion.reasoning)):
        if name in expected:
            assert (value.strip() if strip else value) == expected[name]
    if "finish_reason" in expected:
        assert completion.finish_reason == expected["finish_reason"]
    if "tool_calls" in expected:
        check_calls(expected["tool_calls"], completion)
    for name, tokens in expected.get("usage", {}).items():
        assert completion.usage is not None
        assert getattr(completion.usage, name) == tokens


def check_calls(expected: list[dict[str, Any]], completion: Completion) -> None:
    """Calls with their parsed arguments; ids exist, differ, and are those of the wire where it had one."""
    calls = list(completion.tool_calls)
    assert [(call.name, call.parse()) for call in calls] == [(call["name"], call["arguments"]) for call in expected]
    assert all(call.id and call.id != "null" for call in calls)
    assert len({call.id for call in calls}) == len(calls)
    for call, wanted in zip(calls, expected, strict=True):
        assert wanted["id"] in ("*", call.id)


def check_error(expected: Mapping[str, Any], error: errors.ProviderError) -> None:
    """Kind, whether to retry, and what else the case names."""
    wanted = expected["error"]
    kinds = expected.get("accept_kinds", [wanted["kind"]])
    assert isinstance(error, tuple(kind for name in kinds for kind in KINDS[name]))
    for name in ("retryable", "status", "retry_after"):
        if name in wanted:
            assert getattr(error, name) == wanted[name]
    assert wanted.get("message_contains", "") in str(error)
    if "partial_content" in wanted:
        assert error.partial is not None
        assert error.partial.text == wanted["partial_content"]
        assert error.partial.finish_reason != "stop"


@each(WIRE_CASES)
async def test_a_case_comes_out_as_it_says(case: dict[str, Any], vendor: str, bench: Bench) -> None:
    """Completion or error are what the case calls right, and no foreign exception reaches the caller."""
    check(case["expected"], await bench.play(case, vendor))
    count("cases")


@pytest.mark.parametrize("cut", ["event", "byte", 7])
@each([case for case in WIRE_CASES if case["input"]["stream"]])
async def test_a_streamed_case_comes_out_the_same_in_every_cut(
    case: dict[str, Any], vendor: str, cut: str | int, bench: Bench
) -> None:
    """Where the bytes are cut decides nothing."""
    check(case["expected"], await bench.play(case, vendor, cut=cut))
    count("cuts")


@each([case for case in WIRE_CASES if case["input"]["stream"] and "completion" in case["expected"]])
async def test_the_deltas_of_a_case_add_up_to_its_completion(case: dict[str, Any], vendor: str, bench: Bench) -> None:
    """For a streaming case the joined deltas give the same value."""
    outcome = await bench.play(case, vendor)
    assert outcome.completion is not None
    assert "".join(delta.text for delta in outcome.deltas) == outcome.completion.text
    assert "".join(delta.reasoning for delta in outcome.deltas) == outcome.completion.reasoning
    pieces = [piece for delta in outcome.deltas for piece in delta.calls]
    assert {piece.name for piece in pieces if piece.name} == {call.name for call in outcome.completion.tool_calls}
    written = "".join(call.arguments for call in outcome.completion.tool_calls)
    assert sorted("".join(str(piece.arguments or "") for piece in pieces)) == sorted(written)


@each(REPLAYED)
async def test_calls_go_back_on_the_wire_as_json_text(case: dict[str, Any], vendor: str, bench: Bench) -> None:
    """Sent back, arguments are a JSON object in a string, whatever form they came in; nothing becomes `{}`."""
    provider = bench.provider_for(case, vendor)
    bench.server.add(answer_of(case["input"]["http"]), FINE)
    first = await provider.complete(CompletionRequest(model="m-test", messages=HELLO))
    results = [Message.tool(call, "done") for call in first.tool_calls]
    history = [Message.user("hello"), first.message, *results]
    await provider.complete(CompletionRequest(model="m-test", messages=history))
    sent = bench.server.requests[-1].json()["messages"][1]["tool_calls"]
    assert all(isinstance(call["function"]["arguments"], str) for call in sent)
    wanted = [(call["id"], call["arguments"]) for call in case["expected"]["completion"]["tool_calls"]]
    assert [(call["id"], json.loads(call["function"]["arguments"])) for call in sent] == wanted


def case_named(id: str) -> dict[str, Any]:
    """The case of an id."""
    return next(case for case in WIRE_CASES if case["id"] == id)


@each([case_named("c20")])
async def test_no_delta_shows_a_piece_of_a_think_tag(case: dict[str, Any], vendor: str, bench: Bench) -> None:
    """c20: what is held back as a possible tag either becomes one or is released as text, at the latest at the end."""
    outcome = await bench.play(case, vendor, cut="byte")
    shown = [delta.text for delta in outcome.deltas] + [delta.reasoning for delta in outcome.deltas]
    told_apart = [piece for piece in shown if re.search(r"<th(ink)?|ink>|</think|^k?>\n", piece)]
    assert told_apart == []
    assert outcome.completion is not None
    assert "</this> stays" in outcome.completion.text


@each([case_named("c24")])
async def test_a_stream_that_ends_early_is_said_to_be_cut(case: dict[str, Any], vendor: str, bench: Bench) -> None:
    """c24: half a line is no JSON error; the error says that the answer broke off."""
    outcome = await bench.play(case, vendor)
    assert re.search(r"broke|cut|ended|interrupted|incomplete", str(outcome.error))


@each([case_named("c26")])
async def test_the_page_of_a_gateway_is_not_the_message(case: dict[str, Any], vendor: str, bench: Bench) -> None:
    """c26: the status is the useful part, the page stays in `body`."""
    outcome = await bench.play(case, vendor)
    assert outcome.error is not None
    assert "<center>" not in str(outcome.error)
    assert outcome.error.body == case["input"]["http"]["text"]


@each([case_named("c01"), case_named("c14"), case_named("c16")])
async def test_a_connection_that_breaks_after_the_last_byte_is_an_error(
    case: dict[str, Any], vendor: str, bench: Bench
) -> None:
    """After the finish reason too, for usage may be missing; `partial` has all that came."""
    text = case["input"]["http"]["sse"].removesuffix("data: [DONE]\n\n")
    broken = {**case, "input": {"stream": True, "http": {"sse": text, "drop": True}}}
    outcome = await bench.play(broken, vendor)
    assert isinstance(outcome.error, errors.StreamInterruptedError)
    assert outcome.error.retryable
    assert outcome.error.partial is not None
    check_completion(case["expected"]["completion"], outcome.error.partial)


SECRET = "XYZZY"
every_vendor = pytest.mark.parametrize("vendor", [vendor for vendor in SECRET_CASE["vendors"] if vendor in VENDORS])
KEYS = {
    "newline at the end": SECRET_CASE["input"]["api_key"],
    "newline inside": f"sk-fake-\n{SECRET}-000",
    "carriage return": f"sk-fake-{SECRET}-000\r\n",
    "beyond ASCII": f"sk-fake-{SECRET}-\u2013-000",
}
FAILURES = {
    "none": FINE,
    "refused": Answer.json({"error": {"message": f"Incorrect API key: sk-fake-{SECRET}-000"}}, status=401),
    "broken page": Answer(status=502, headers={"content-type": "text/html"}, body=b"<html>", drop=True),
    "no answer": Answer(hang_up=True),
    "cut": Answer.sse("data: {}\n\n", drop=True),
}


@pytest.mark.parametrize("answer", FAILURES.values(), ids=FAILURES.keys())
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("way", ["complete", "stream"])
@every_vendor
async def test_no_credential_is_shown(
    vendor: str, key: str, answer: Answer, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """c40: not in the error, its traceback with all that is chained, a repr, or a log at DEBUG."""
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    request = CompletionRequest(model="m-test", messages=HELLO)
    with LoopbackServer(answer) as server:
        try:
            async with provider_of(vendor, server.url, api_key=key) as provider:
                shown.append(repr(provider))
                shown += [repr(value) for value in vars(provider).values()]
                if way == "complete":
                    shown.append(repr(await provider.complete(request)))
                else:
                    async with provider.stream(request) as stream:
                        shown += [repr(delta) async for delta in stream]
        except errors.AgentCoreError as error:
            shown += [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
            link: BaseException | None = error
            while link is not None:
                shown += [str(link), repr(link)]
                link = link.__cause__ or link.__context__
    shown += [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    assert [text for text in shown if SECRET in text] == []


@pytest.mark.parametrize("key", [KEYS["newline at the end"], KEYS["carriage return"]], ids=["newline", "return"])
@every_vendor
async def test_a_key_read_from_a_file_with_its_newline_works_or_is_refused_clearly(vendor: str, key: str) -> None:
    """c40: the key is sent without the line end, or a ConfigError says that the API key is wrong."""
    with LoopbackServer(FINE) as server:
        try:
            async with provider_of(vendor, server.url, api_key=key) as provider:
                await provider.complete(CompletionRequest(model="m-test", messages=HELLO))
        except errors.ConfigError as error:
            assert "API key" in str(error)  # noqa: PT017 -- one of two outcomes
        else:
            assert server.requests[0].headers["authorization"] == f"Bearer {key.strip()}"
    if key == SECRET_CASE["input"]["api_key"]:
        count("cases")


@pytest.mark.parametrize("key", [KEYS["newline inside"], KEYS["beyond ASCII"]], ids=["newline inside", "beyond ASCII"])
@every_vendor
async def test_a_key_that_no_header_can_hold_is_refused_before_anything_is_sent(vendor: str, key: str) -> None:
    """Such a key is a mistake in the settings: the error names the API key, and no request leaves."""
    with LoopbackServer(FINE) as server:
        with pytest.raises(errors.ConfigError, match="API key"):
            async with provider_of(vendor, server.url, api_key=key) as provider:
                await provider.complete(CompletionRequest(model="m-test", messages=HELLO))
        assert server.requests == []
