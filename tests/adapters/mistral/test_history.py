"""What of a conversation leaves for Mistral: ids in its form, and messages in an order that it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.asking import HELLO, Wire
from agent_core import Message, OtherPart, ReasoningPart, TextPart, ToolCall
from counting import count

VENDOR = "mistral"

CASE: dict[str, Any] = json.loads(
    next((Path(__file__).parents[2] / "cases").glob("c30-*.json")).read_text(encoding="utf-8")
)
HISTORY: list[dict[str, Any]] = CASE["input"]["history"]


def user(text: str) -> dict[str, Any]:
    """A user message as it is sent."""
    return {"role": "user", "content": text}


def system(text: str) -> dict[str, Any]:
    """A system message as it is sent."""
    return {"role": "system", "content": text}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    """An assistant's text as it is sent."""
    return {"role": "assistant", "content": text, **more}


def called(id: str = "aB3dE5fG7") -> dict[str, Any]:
    """An assistant's call as it is sent."""
    call = {"id": id, "type": "function", "function": {"name": "add", "arguments": "{}"}}
    return {"role": "assistant", "tool_calls": [call]}


def result(text: str = "4", id: str = "aB3dE5fG7") -> dict[str, Any]:
    """A tool's answer as it is sent."""
    return {"role": "tool", "content": text, "tool_call_id": id}


def ids_of(messages: list[dict[str, Any]]) -> list[str]:
    """All ids of calls, in order."""
    return [call["id"] for message in messages for call in message.get("tool_calls", [])]


async def test_ids_of_another_vendor_become_nine_letters_or_digits(wire: Wire) -> None:
    """c30: distinct, each answer with that of its own call, the same in every request, the stored history as it was."""
    stored = [Message.model_validate(message) for message in HISTORY]
    before = [message.model_dump() for message in stored]
    sent = (await wire.sent(messages=stored))["messages"]
    again = (await wire.sent(messages=[*stored, *HELLO]))["messages"]
    monday, tuesday = ids_of(sent)
    assert monday != tuesday
    assert all(len(id) == 9 and id.isascii() and id.isalnum() for id in (monday, tuesday))
    answers = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
    assert answers == {monday: "closed", tuesday: "9-17"}
    assert ids_of(again) == [monday, tuesday]
    assert [message.model_dump() for message in stored] == before
    count("cases")


async def test_ids_in_mistrals_form_stay(wire: Wire) -> None:
    """Also beside some that do not, which get others than these."""
    calls = [ToolCall(id, "add", "{}") for id in ("aB3dE5fG7", "call_1", "null", "aB3dE5fG78")]
    answer = Message.build("assistant", calls)
    sent = (await wire.sent(messages=[*HELLO, answer, *[Message.tool(call, "4") for call in calls]]))["messages"]
    ids = ids_of(sent)
    assert ids[0] == "aB3dE5fG7"
    assert len(set(ids)) == 4
    assert all(len(id) == 9 and id.isalnum() for id in ids)
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids


async def test_equal_ids_of_two_rounds_become_two(wire: Wire) -> None:
    """Kimi's `functions.add:0` comes again in the next round."""
    rounds = [called("functions.add:0"), result("4", "functions.add:0")]
    sent = (await wire.sent(messages=[*HELLO, *rounds, *rounds]))["messages"]
    assert len(set(ids_of(sent))) == 2
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids_of(sent)


async def test_a_legacy_call_becomes_a_call(wire: Wire) -> None:
    """Mistral knows neither `function_call` nor the role `function`."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": '{"x":1}'}}
    answer = {"role": "function", "name": "add", "content": "4"}
    sent = (await wire.sent(messages=[*HELLO, call, answer]))["messages"]
    (id,) = ids_of(sent)
    function = {"name": "add", "arguments": '{"x":1}'}
    assert sent[1:] == [
        {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "content": "4", "tool_call_id": id, "name": "add"},
    ]


async def test_what_another_vendor_meant_for_itself_stays_behind(wire: Wire) -> None:
    """Its thoughts, and its own kinds of parts."""
    answer = Message.build(
        "assistant",
        [
            ReasoningPart("Two.", "groq", "m", "reasoning"),
            TextPart("See "),
            OtherPart({"type": "citation", "n": 1}),
            TextPart("this."),
        ],
        provider="groq",
        model="m",
    )
    assert (await wire.sent(messages=[*HELLO, answer, *HELLO]))["messages"][1] == assistant("See this.")


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        # as it is taken everywhere
        ([system("s"), user("a")], None),
        ([system("s"), system("t"), user("a"), system("u")], None),
        ([system("s"), assistant("x"), user("a"), user("b")], None),
        ([user("a"), assistant("x"), assistant("y"), user("b")], None),
        ([user("a"), called(), result()], None),
        ([user("a"), called(), result(), assistant("x"), user("b")], None),
        # Unexpected role 'user' after role 'tool'
        ([user("a"), called(), result(), user("b")], [user("a"), called(), result(), assistant("OK."), user("b")]),
        # Unexpected role 'system' after role 'assistant'
        ([user("a"), assistant("x"), system("s"), user("b")], [user("a"), assistant("x"), user("s"), user("b")]),
        # Unexpected role 'system' after role 'tool'
        ([user("a"), called(), result(), system("s")], [user("a"), called(), result(), assistant("OK."), user("s")]),
        # Expected last role User or Tool (or Assistant with prefix)
        ([user("a"), assistant("x")], [user("a"), assistant("x", prefix=True)]),
        ([user("a"), assistant("x", prefix=True)], [user("a"), assistant("x", prefix=True)]),
        # Assistant message with prefix True must be last message
        ([user("a"), assistant("x", prefix=True), user("b")], [user("a"), assistant("x"), user("b")]),
        (
            [user("a"), assistant("x", prefix=True), assistant("y"), user("b")],
            [user("a"), assistant("x"), assistant("y"), user("b")],
        ),
        # Not the same number of function calls and responses
        ([user("a"), called(), user("b")], [user("a"), user("b")]),
        ([user("a"), result(), user("b")], [user("a"), user("b")]),
        # Assistant message must have either content or tool_calls, but not none
        ([user("a"), assistant(""), user("b")], [user("a"), user("b")]),
    ],
)
async def test_an_order_that_mistral_refuses_is_repaired(
    given: list[dict[str, Any]], sent: list[dict[str, Any]] | None, wire: Wire
) -> None:
    """By the least that passes; an order that it takes stays as it is."""
    assert (await wire.sent(messages=given))["messages"] == (given if sent is None else sent)


async def test_a_developers_word_in_mid_conversation_stays_in_its_place(wire: Wire) -> None:
    """There is no such role; after an answer not even that of the system."""
    given = [{"role": "developer", "content": "s"}, user("a"), assistant("x"), {"role": "developer", "content": "t"}]
    assert (await wire.sent(messages=given))["messages"] == [system("s"), user("a"), assistant("x"), user("t")]


async def test_a_start_that_the_model_goes_on_with(wire: Wire) -> None:
    """`prefix` by a message's extras, or by being last."""
    start = Message(role="assistant", content="Once upon", extras={"prefix": True})
    for last in (start, Message.assistant("Once upon")):
        sent = await wire.sent(messages=[*HELLO, last])
        assert sent["messages"][1:] == [assistant("Once upon", prefix=True)]
