"""The server: turns in any order, errors on demand, paths and keys; and the command that runs it."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_core.testing._scenarios import SCENARIOS, scenario
from agent_core.testing.simulator import VENDORS, Brain, Simulator, voice_for
from agent_core.testing.simulator.__main__ import directions, main
from recordings.oracle import chunks_of
from simulator.asking import MODELS, body_for, conversation

HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
KEY = {"authorization": "Bearer unused"}
ROUND_TRIP = scenario("tool-round-trip")


def post(simulator: Simulator, body: Any, *, headers: dict[str, str] | None = None, path: str = "") -> httpx.Response:
    """Send a body to where completions are asked for, with a key."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = simulator.url + (path or simulator.voice.path)
    return httpx.post(url, content=content, headers=KEY if headers is None else headers, trust_env=False)


def choice_in(response: httpx.Response) -> Any:
    """The only message of a whole answer."""
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["message"]


@pytest.mark.parametrize("vendor", VENDORS)
def test_turns_come_in_any_order_and_at_the_same_time(vendor: str) -> None:
    """Each request gets the reply of its turn, whole and streamed, whatever was asked before."""
    turns = list(conversation(ROUND_TRIP))
    bodies = [
        (at, stream, body_for(vendor, ROUND_TRIP, messages, stream=stream))
        for at, (_, messages) in enumerate(turns)
        for stream in (False, True)
    ]
    jobs = [*reversed(bodies), *bodies]
    with Simulator(vendor, ROUND_TRIP) as simulator, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda job: post(simulator, job[2]), jobs))
    texts: dict[tuple[int, bool], set[str]] = {}
    for (at, stream, _), answer in zip(jobs, answers, strict=True):
        assert answer.status_code == 200
        texts.setdefault((at, stream), set()).add(answer.text)
    assert all(len(same) == 1 for same in texts.values())  # asked twice, answered alike
    for (at, stream), (text,) in texts.items():
        ids = {chunk["id"] for chunk in chunks_of(text)} if stream else {json.loads(text)["id"]}
        assert ids == {json.loads(next(iter(texts[at, False])))["id"]}


def test_a_turn_that_there_is_not_is_told() -> None:
    """Not answered with another."""
    messages = [*HELLO["messages"], {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Again."}]
    with Simulator("openai", "text") as simulator:
        answer = post(simulator, {**HELLO, "messages": messages})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "no_such_turn"


@pytest.mark.parametrize("vendor", VENDORS)
def test_ids_follow_from_scenario_turn_and_place(vendor: str) -> None:
    """The same again each time, the same whole and streamed, and no two calls alike."""
    voice = voice_for(vendor)
    request = {"model": MODELS[vendor], "messages": []}
    said = (ROUND_TRIP.turns[0].said,)
    bodies = [voice.body(said, request, seed) for seed in ("a", "a", "b")]
    calls = [[call["id"] for call in body["choices"][0]["message"]["tool_calls"]] for body in bodies]
    assert bodies[0] == bodies[1]
    assert bodies[0]["id"] != bodies[2]["id"]
    assert len({*calls[0], *calls[2]}) == 4
    streamed = [
        call["id"]
        for chunk in voice.chunks(said, request, "a")
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
        if call.get("id")
    ]
    assert streamed == calls[0]


FORMS = {
    "openai": r"call_[A-Za-z0-9]{24}",
    "groq": r"fc_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "mistral": r"[A-Za-z0-9]{9}",
    "together": r"call_[a-z0-9]{24}",
    "local": r"[A-Za-z0-9]{32}",
}


@pytest.mark.parametrize("vendor", VENDORS)
def test_call_ids_have_the_vendors_form(vendor: str) -> None:
    """As on the wire."""
    body = voice_for(vendor).body((ROUND_TRIP.turns[0].said,), {"model": MODELS[vendor]}, "seed")
    for call in body["choices"][0]["message"]["tool_calls"]:
        assert_matches(FORMS[vendor], call["id"])


def assert_matches(pattern: str, text: str) -> None:
    """The whole text matches."""
    assert re.fullmatch(pattern, text), text


@pytest.mark.parametrize(
    ("model", "pattern"),
    [("llama-3.3-70b-versatile", r"[a-z0-9]{9}"), ("moonshotai/kimi-k2-instruct", r"functions\.get_weather:[01]")],
)
def test_groq_has_as_many_forms_of_ids_as_models(model: str, pattern: str) -> None:
    """One of them is the same again in the next turn."""
    body = voice_for("groq").body((ROUND_TRIP.turns[0].said,), {"model": model}, "seed")
    for call in body["choices"][0]["message"]["tool_calls"]:
        assert_matches(pattern, call["id"])


@pytest.mark.parametrize(
    ("fields", "content", "reasoning"),
    [
        ({"model": "openai/gpt-oss-20b"}, "42", "Six sevens are forty-two."),
        ({"model": "qwen/qwen3-32b"}, "<think>\nSix sevens are forty-two.\n</think>\n\n42", None),
        ({"model": "qwen/qwen3-32b", "reasoning_format": "parsed"}, "42", "Six sevens are forty-two."),
        ({"model": "qwen/qwen3-32b", "reasoning_format": "hidden"}, "42", None),
        ({"model": "openai/gpt-oss-20b", "include_reasoning": False}, "42", None),
    ],
)
def test_groq_shows_reasoning_as_asked(fields: dict[str, Any], content: str, reasoning: str | None) -> None:
    """Apart, in tags, or not at all."""
    said = scenario("reasoning").turns[0].said
    message = voice_for("groq").body((said,), fields, "seed")["choices"][0]["message"]
    assert (message["content"], message.get("reasoning")) == (content, reasoning)
    chunks = [chunk["choices"][0]["delta"] for chunk in voice_for("groq").chunks((said,), fields, "seed")]
    assert "".join(delta.get("content") or "" for delta in chunks) == content
    assert "".join(delta.get("reasoning") or "" for delta in chunks) == (reasoning or "")


@pytest.mark.parametrize("vendor", VENDORS)
def test_usage_comes_where_the_vendor_puts_it(vendor: str) -> None:
    """In a chunk of its own, on the last one, or only on demand."""
    said = (scenario("text").turns[0].said,)
    places = {}
    for asked in (False, True):
        request = {**HELLO, "stream_options": {"include_usage": asked}}
        chunks = list(voice_for(vendor).chunks(said, request, "seed"))
        places[asked] = [bool(chunk["choices"]) for chunk in chunks if chunk.get("usage")]
    assert (
        places
        == {
            "openai": {False: [], True: [False]},
            "groq": {False: [True], True: [True, False]},
            "mistral": {False: [True], True: [True]},
            "together": {False: [True], True: [True]},
            "local": {False: [], True: [False]},
        }[vendor]
    )


@pytest.mark.parametrize("vendor", VENDORS)
def test_paths_and_keys(vendor: str) -> None:
    """Another path is no route; a missing key is refused, but by a local server."""
    with Simulator(vendor) as simulator:
        assert simulator.base_url == simulator.url + ("/v1" if vendor in ("openai", "local") else "")
        assert post(simulator, HELLO, path="/v2/chat/completions").status_code == 404
        assert httpx.get(simulator.url + simulator.voice.path, headers=KEY, trust_env=False).status_code == 404
        for headers in ({}, {"authorization": "Bearer"}):
            assert post(simulator, HELLO, headers=headers).status_code == (200 if vendor == "local" else 401)
        assert post(simulator, HELLO).status_code == 200
        assert len(simulator.requests) == 5


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_body_that_does_not_parse_is_refused(vendor: str) -> None:
    """Cut off, or no UTF-8."""
    with Simulator(vendor) as simulator:
        for body in (b'{"model": ', b"\xff", b"[]"):
            assert post(simulator, body).status_code == 400


@pytest.mark.parametrize("vendor", VENDORS)
def test_limits_name_their_wait(vendor: str) -> None:
    """In seconds, as a date, or in the text alone."""
    voice = voice_for(vendor)
    now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    waits = [voice.error(kind, now=now).headers.get("retry-after") for kind in ("rate_limit", "rate_limit_date")]
    assert waits == ["20", "Mon, 30 Nov 2026 12:00:20 GMT"]
    text = voice.error("rate_limit_text")
    assert "retry-after" not in text.headers
    assert b"try again in 20s" in text.body


def test_errors_come_in_order_and_then_answers() -> None:
    """One for each request."""
    with Simulator("groq") as simulator:
        simulator.fail("rate_limit", "html_502", "tool_use_failed")
        statuses = [post(simulator, HELLO).status_code for _ in range(4)]
    assert statuses == [429, 502, 400, 200]


def test_an_error_that_the_vendor_has_not_is_not_taken() -> None:
    """At once, not when it is due."""
    with pytest.raises(KeyError):
        Simulator("openai").fail("tool_use_failed")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stream_may_fail_half_way(vendor: str) -> None:
    """What comes before the error is the beginning of the answer; nothing follows it."""
    body = {**HELLO, "stream": True}
    with Simulator(vendor) as simulator:
        whole = post(simulator, body).text
        simulator.fail("stream_error")
        broken = post(simulator, body)
    assert broken.status_code == 200
    good, error = broken.text.removesuffix("\n\n").rsplit("\n\n", 1)
    assert whole.startswith(good)
    assert ("event: error\n" in error) is (vendor == "groq")
    assert "[DONE]" not in broken.text


def test_a_brain_of_ones_own_replies() -> None:
    """Where there is no scenario."""

    class Poet(Brain):
        def say(self, request: Any) -> str:
            return "Roses are red."

    with Simulator("mistral", brain=Poet()) as simulator:
        assert choice_in(post(simulator, HELLO))["content"] == "Roses are red."


def test_a_local_server_takes_the_name_of_a_tool_for_auto() -> None:
    """As llama.cpp does: it has no such choice."""
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    choice = {"type": "function", "function": {"name": "add"}}
    body = {**HELLO, "tools": [tool], "tool_choice": choice}
    with Simulator("local") as local, Simulator("together") as together:
        assert "tool_calls" not in choice_in(post(local, body))
        assert choice_in(post(together, body))["tool_calls"]


def test_a_vendor_without_a_voice() -> None:
    """Is named, with those that there are."""
    with pytest.raises(ValueError, match="no voice for 'acme'; there are: openai, groq"):
        Simulator("acme")


def test_no_module_knows_the_reader_of_these_wires() -> None:
    """The simulator takes nothing of the library but the scenarios and the loopback server."""
    spec = importlib.util.find_spec("agent_core.testing.simulator")
    assert spec is not None and spec.origin is not None
    outside = set()
    for path in Path(spec.origin).parent.rglob("*.py"):
        depth = len(path.relative_to(Path(spec.origin).parent).parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level > depth:
                outside.add(node.module)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert not str(node.module).startswith("agent_core")
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("agent_core") for alias in node.names)
    assert outside == {"_scenarios", "_loopback"}


# The command


@pytest.mark.parametrize("vendor", VENDORS)
def test_directions_name_the_address(vendor: str) -> None:
    """As variables of the environment, which the adapters read, and as an argument."""
    told = directions(vendor, "http://127.0.0.1:8000")
    prefix = {"local": "OPENAI"}.get(vendor, vendor.upper())
    assert f"export {prefix}_API_KEY=unused" in told
    assert f"export {prefix}_BASE_URL=http://127.0.0.1:8000" in told


def test_the_command_serves_until_it_is_ended() -> None:
    """It prints where it is, answers there, and takes Ctrl-C for the end, not for an error."""
    command = [sys.executable, "-m", "agent_core.testing.simulator", "--vendor", "groq", "--scenario", "text"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stderr is not None
        address = running.stdout.readline().strip().rpartition(" ")[2]
        answer = httpx.post(f"{address}/openai/v1/chat/completions", json=HELLO, headers=KEY, trust_env=False)
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == ""
    assert running.returncode == 0
    assert choice_in(answer)["content"] == SCENARIOS[0].turns[0].said.text


def test_the_command_tells_of_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, with exit code 1."""
    with Simulator("openai") as simulator:
        port = simulator.url.rpartition(":")[2]
        assert main(["--vendor", "openai", "--port", port]) == 1
    assert capsys.readouterr().err.startswith(f"port {port} cannot be had: ")
