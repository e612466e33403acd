"""What the tool loop does with replies that broke other programs: the scripted cases of `tests/cases`.

Each case is played three ways: by a scripted provider through `run_tool_loop`, by the same through `stream_tool_loop`,
and by a server through the real openai SDK, where what counts is the body that leaves.
"""

from __future__ import annotations

import copy
import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core import (
    Completion,
    CompletionFinished,
    CompletionRequest,
    Message,
    Provider,
    ToolLoopHooks,
    ToolLoopResult,
    ToolResponse,
    run_tool_loop,
    stream_tool_loop,
)
from agent_core.testing import Answer, LoopbackServer, ReceivedRequest, ScriptedProvider
from counting import count
from openai_sdk import openai_provider

CASES = Path(__file__).parents[1] / "cases"
WAYS = ("scripted", "streamed", "wire")
ASK: list[Any] = [{"role": "user", "content": "go"}]
SENDABLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def case_named(id: str) -> dict[str, Any]:
    """The case of an id."""
    path = next(CASES.glob(f"{id}-*.json"))
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


@dataclass(slots=True)
class Sent:
    """One request, whichever way it went: the tool choice it asks for, and its messages in the OpenAI shape."""

    tool_choice: str
    messages: list[dict[str, Any]]


@dataclass(slots=True)
class Run:
    """One run of the loop: what was asked, which tools ran, what arrived (streamed only), and the result."""

    sent: list[Sent] = field(default_factory=list)
    tools_run: list[list[Any]] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    result: ToolLoopResult | None = None

    @property
    def ended(self) -> ToolLoopResult:
        """The result, once there is one."""
        assert self.result is not None
        return self.result

    @property
    def answers(self) -> list[Message]:
        """The tool messages of the conversation, in order."""
        return [message for message in self.ended.messages if message.role == "tool"]


def sent_by_loop(request: CompletionRequest) -> Sent:
    """A request as a scripted provider got it. No tools on offer is the same as a choice of none."""
    messages = [
        {
            "role": message.role,
            "content": message.text,
            "tool_call_id": message.tool_call_id,
            "tool_calls": [
                {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ],
        }
        for message in request.messages
    ]
    return Sent("none" if not request.tools else request.tool_choice or "auto", messages)


def sent_on_wire(request: ReceivedRequest) -> Sent:
    """A request as a server got it: valid UTF-8 and valid JSON, or this raises."""
    body = json.loads(request.body.decode("utf-8"), parse_constant=_refuse)
    return Sent("none" if not body.get("tools") else body.get("tool_choice") or "auto", body["messages"])


def _refuse(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


def wire_reply(reply: Mapping[str, Any]) -> Answer:
    """A scripted reply as the answer of a server."""
    message = {"role": "assistant", "content": reply.get("content")}
    if reply.get("tool_calls"):
        message["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in reply["tool_calls"]
        ]
    return Answer.json({"choices": [{"index": 0, "message": message, "finish_reason": reply["finish_reason"]}]})


def handler_for(name: str, does: Mapping[str, Any], run: Run) -> Callable[[dict[str, Any]], Any]:
    """A tool's handler: notes its arguments, then does what the case says."""

    async def handler(arguments: dict[str, Any]) -> Any:
        run.tools_run.append([name, copy.deepcopy(arguments)])
        await anyio.sleep(does.get("sleeps", 0))
        if "raises" in does:
            raise eval(does["raises"])
        if "returns_python" in does:
            return eval(does["returns_python"], {"datetime": datetime})
        return does["returns"]

    return handler


async def play(
    case: Mapping[str, Any],
    way: str,
    *,
    hooks: ToolLoopHooks | None = None,
    rule: Callable[[str], Mapping[str, Any]] | None = None,
    then: str | None = None,
) -> Run:
    """Play a case.

    Args:
        rule: gives the reply by the tool choice of the request, where the case has no script.
        then: a further question, asked in the conversation that the loop left; it is answered by `Bye.`
    """
    given = case["input"]
    run = Run()
    arguments: dict[str, Any] = {
        "model": "m-test",
        "messages": ASK,
        "tools": [{"type": "function", "function": {"name": name}} for name in given["tools"]],
        "tool_handlers": {name: handler_for(name, does, run) for name, does in given["tools"].items()},
        "hooks": hooks,
        **given.get("options", {}),
    }
    if "allowed" in given:
        arguments["allowed_tool_names"] = given["allowed"]
    kept = copy.deepcopy({key: arguments[key] for key in ("messages", "tools")})
    replies: list[dict[str, Any]] = given.get("script", [])
    bye = {"content": "Bye.", "finish_reason": "stop"}
    if way == "wire":
        with LoopbackServer(
            *map(wire_reply, replies),
            handler=None if rule is None else lambda request: wire_reply(rule(sent_on_wire(request).tool_choice)),
        ) as server:
            async with openai_provider(server.url) as provider:
                run.result = await run_tool_loop(provider=provider, **arguments)
                if then is not None:
                    server.add(wire_reply(bye))
                    await ask_further(provider, run, then)
            run.sent = [sent_on_wire(request) for request in server.requests]
    else:
        scripted = ScriptedProvider(
            *replies, rule=None if rule is None else lambda request: rule(sent_by_loop(request).tool_choice)
        )
        if way == "scripted":
            run.result = await run_tool_loop(provider=scripted, **arguments)
        else:
            async with stream_tool_loop(provider=scripted, **arguments) as events:
                async for event in events:
                    if isinstance(event, CompletionFinished):
                        run.completions.append(event.completion)
                run.result = events.result
        if then is not None:
            scripted.add(bye)
            await ask_further(scripted, run, then)
        run.sent = [sent_by_loop(request) for request in scripted.requests]
    assert {key: arguments[key] for key in kept} == kept
    return run


async def ask_further(provider: Provider, run: Run, text: str) -> None:
    """Go on with the conversation that a loop left."""
    await provider.complete(CompletionRequest(model="m-test", messages=[*run.ended.messages, Message.user(text)]))


def is_error(answer: Message) -> bool:
    """Whether a tool message tells the model that something failed."""
    try:
        told = json.loads(answer.text)
    except ValueError:
        return False
    return isinstance(told, dict) and told.get("status") == "error"


def check(expected: Mapping[str, Any], run: Run) -> None:
    """Hold a run against the `loop` of a case; what the case says in words is left to its own test."""
    if "requests" in expected:
        assert len(run.sent) == expected["requests"]
    if "final_content" in expected:
        assert run.ended.response_message.text == expected["final_content"]
    if "tool_calls_run" in expected:
        assert run.tools_run == expected["tool_calls_run"]
    for name in expected.get("tools_never_run", ()):
        assert name not in [tool for tool, _ in run.tools_run]
    if "tool_messages" in expected:
        assert [answer.tool_call_id for answer in run.answers] == [a["tool_call_id"] for a in expected["tool_messages"]]
        for answer, wanted in zip(run.answers, expected["tool_messages"], strict=True):
            assert is_error(answer) is wanted["is_error"]
            assert wanted.get("content_contains", "") in answer.text
            assert answer.text
    if "tool_choice_per_request" in expected:
        assert [sent.tool_choice for sent in run.sent] == expected["tool_choice_per_request"]
    if "stopped_because" in expected:
        assert run.ended.stop_reason == expected["stopped_because"]
    if "answers" in expected:
        assert len(run.answers) == expected["answers"]


def unanswered(messages: list[dict[str, Any]]) -> list[str]:
    """Ids of calls that no tool message answers before the conversation goes on."""
    open_calls: list[str] = []
    left: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        left += open_calls
        open_calls = [call["id"] for call in message.get("tool_calls") or []]
    return left + open_calls


each_way = pytest.mark.parametrize("way", WAYS)


@each_way
@pytest.mark.parametrize("id", ["c10", "c11"])
async def test_arguments_that_are_no_json_object_are_answered_and_not_run(id: str, way: str) -> None:
    """Of the two right outcomes the one that repairs nothing: the model is told, in one more request."""
    case = case_named(id)
    told = next(each["loop"] for each in case["expected"]["any_of"] if each["loop"]["tool_calls_run"] == [])
    run = await play(case, way)
    check(told, run)
    assert unanswered(run.sent[1].messages) == []
    count("cases", way == "scripted")


@each_way
async def test_a_call_cut_off_by_the_token_limit_is_not_run(way: str) -> None:
    """c12: half a path is another path. The answer to the call says so, and every call has an answer."""
    case = case_named("c12")
    run = await play(case, way)
    check(case["expected"]["loop"], run)
    first, second = (alternative["loop"] for alternative in case["expected"]["any_of"])
    check(first if len(run.sent) == 2 else second, run)
    cut = next(answer for answer in run.answers if answer.tool_call_id == "t2bbbbbbb")
    assert is_error(cut)
    assert "cut off" in cut.text
    assert {answer.tool_call_id for answer in run.answers} == {"t1aaaaaaa", "t2bbbbbbb"}
    if way == "streamed":
        assert run.completions[0].finish_reason == case["expected"]["finish_reason_first_turn"]
    count("cases", way == "scripted")


@each_way
async def test_a_reply_that_names_calls_but_has_none_is_the_answer(way: str) -> None:
    """c15: there is nothing to run and nothing to ask again."""
    case = case_named("c15")
    reply = {"content": "All set.", "tool_calls": [], "finish_reason": "tool_calls"}
    run = await play({"input": {"script": [reply], "tools": {"step": {"returns": "ok"}}}}, way)
    check(case["expected"]["loop"], run)
    assert run.tools_run == []


@each_way
async def test_a_result_without_a_json_form_is_written_as_readable_text(way: str) -> None:
    """c32: a date, a set, bytes, infinity, half a character: the model gets text, unescaped, and the turn goes on."""
    case = case_named("c32")
    run = await play(case, way)
    check(case["expected"]["loop"], run)
    content = run.sent[1].messages[-1]["content"]
    assert isinstance(content, str)
    assert "2024-02-29" in content
    assert "Žofie 北" in content
    assert json.loads(content, parse_constant=_refuse)["data"]["tags"] == ["b"]
    assert content.encode("utf-8")
    count("cases", way == "scripted")


@each_way
async def test_a_call_that_raises_leaves_its_siblings_alone(way: str) -> None:
    """c33: three calls, three answers in the order of the calls, and the failure is one of them."""
    case = case_named("c33")
    run = await play(case, way)
    check(case["expected"]["loop"], run)
    assert [message["tool_call_id"] for message in run.sent[1].messages[-3:]] == ["t1aaaaaaa", "t2bbbbbbb", "t3ccccccc"]
    assert run.tools_run == [["get", {"k": "a"}], ["bad", {}], ["get", {"k": "c"}]]
    count("cases", way == "scripted")


@each_way
async def test_a_forced_tool_choice_is_forced_once(way: str) -> None:
    """c34: after the first result the choice is the model's again, and the caller's options stay as they were."""
    case = case_named("c34")

    def rule(tool_choice: str) -> dict[str, Any]:
        if tool_choice in ("required", "pick"):
            call = {"id": "t1aaaaaaa", "name": "pick", "arguments": "{}"}
            return {"tool_calls": [call], "finish_reason": "tool_calls"}
        return {"content": "picked", "finish_reason": "stop"}

    given = copy.deepcopy(case)
    run = await play(case, way, rule=rule)
    check(case["expected"]["loop"], run)
    assert case == given
    count("cases", way == "scripted")


@each_way
async def test_calls_made_on_the_last_round_are_neither_run_nor_left_open(way: str) -> None:
    """c35: the reply is returned as it came; what is sent next holds no call without an answer."""
    case = case_named("c35")
    run = await play(case, way)
    check(case["expected"]["loop"], run)
    assert [call.id for call in run.ended.response_message.tool_calls] == ["t2bbbbbbb"]
    count("cases", way == "scripted")


async def test_a_conversation_that_ended_at_the_limit_can_go_on() -> None:
    """c35: on the wire the open call is gone or answered, and its text is still there."""
    run = await play(case_named("c35"), "wire", then="and now?")
    messages = run.sent[-1].messages
    assert unanswered(messages) == []
    assert "one more" in [message.get("content") for message in messages]


@each_way
async def test_decorated_tool_names_are_not_guessed_at(way: str) -> None:
    """c36: decoration may be taken off; a name that is only near gets the answer for unknown tools."""
    case = case_named("c36")
    run = await play(case, way)
    check(case["expected"]["loop"], run)
    ran = [arguments["q"] for name, arguments in run.tools_run if name == "lookup"]
    assert len(ran) == len(run.tools_run)
    assert 4 not in ran
    for place, answer in enumerate(run.answers, start=1):
        assert is_error(answer) is (place not in ran)
        if place not in ran:
            assert "lookup" in answer.text
    count("cases", way == "scripted")


async def test_tool_names_that_vendors_refuse_do_not_go_back() -> None:
    """c36: a name in the history that is no name would have the next request refused."""
    run = await play(case_named("c36"), "wire")
    names = [call["function"]["name"] for message in run.sent[1].messages for call in message.get("tool_calls") or []]
    assert len(names) == 4
    assert [name for name in names if not SENDABLE_NAME.fullmatch(name)] == []


@each_way
async def test_only_false_from_the_guard_hook_refuses(way: str) -> None:
    """c37: False answers the call with an error, an empty dict is a set of arguments. The hook after hears of one."""
    case = case_named("c37")
    heard: list[tuple[str, ToolResponse]] = []
    hooks = ToolLoopHooks(
        before_tool_call=lambda name, arguments: False if name == "wipe" else {},
        after_tool_call=lambda name, response: heard.append((name, response)),
    )
    run = await play(case, way, hooks=hooks)
    check(case["expected"]["loop"], run)
    assert [name for name, _ in heard] == ["list"]
    count("cases", way == "scripted")
