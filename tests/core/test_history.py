"""What of a conversation is sent: whole exchanges in a legal order, whatever the history looks like."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import FittedHistory, ImagePart, Message, ReasoningPart, TextPart, ToolCall, fit_history
from agent_core._history import unanswered_calls

MISTRAL = re.compile(r"[A-Za-z0-9]{9}")
ASK = Message.user("ask")
GO_ON = Message.user("go on")
DONE = Message.assistant("done")


def calling(*ids: str, text: str = "", **fields: Any) -> Message:
    """An assistant message with calls of these ids, each to the tool of its name: `id:name`, or `id` for `look`."""
    calls = [ToolCall(id.partition(":")[0], id.partition(":")[2] or "look", "{}") for id in ids]
    return Message(role="assistant", parts=[*([TextPart(text)] if text else []), *calls], **fields)


def answer(id: str, text: str = "ok", **fields: Any) -> Message:
    """A tool's answer to the call of this id."""
    return Message(role="tool", tool_call_id=id, name="look", content=text, **fields)


def legacy(name: str = "look", **fields: Any) -> Message:
    """An assistant message with a legacy call."""
    return Message(role="assistant", parts=[ToolCall("", name, "{}", legacy=True)], **fields)


def result(name: str = "look", text: str = "ok", **fields: Any) -> Message:
    """The answer to a legacy call."""
    return Message(role="function", name=name, content=text, **fields)


FITTED: dict[str, tuple[list[Message], list[Message]]] = {
    "nothing": ([], []),
    "a plain conversation": ([ASK, DONE, GO_ON], [ASK, DONE, GO_ON]),
    "a whole exchange": ([ASK, calling("a"), answer("a"), DONE], [ASK, calling("a"), answer("a"), DONE]),
    "two calls answered in another order": (
        [ASK, calling("a", "b"), answer("b", "2"), answer("a", "1"), DONE],
        [ASK, calling("a", "b"), answer("a", "1"), answer("b", "2"), DONE],
    ),
    "a call without an answer": ([ASK, calling("a"), GO_ON], [ASK, GO_ON]),
    "a call without an answer, with text": (
        [ASK, calling("a", text="wait"), GO_ON],
        [ASK, Message.assistant("wait"), GO_ON],
    ),
    "one of two calls without an answer": ([ASK, calling("a", "b"), answer("a"), GO_ON], [ASK, GO_ON]),
    "a call at the very end": ([ASK, calling("a")], [ASK]),
    "an answer at the very beginning": ([answer("a"), ASK], [ASK]),
    "an answer to another call": ([ASK, calling("a"), answer("b"), GO_ON], [ASK, GO_ON]),
    "an answer too many": ([ASK, calling("a"), answer("a"), answer("b"), DONE], [ASK, calling("a"), answer("a"), DONE]),
    "an answer twice": (
        [ASK, calling("a"), answer("a", "1"), answer("a", "2"), DONE],
        [ASK, calling("a"), answer("a", "1"), DONE],
    ),
    "an answer after another message": ([ASK, calling("a"), GO_ON, answer("a")], [ASK, GO_ON]),
    "an answer after text": ([ASK, DONE, answer("a"), GO_ON], [ASK, DONE, GO_ON]),
    "an answer that is still pending": ([ASK, calling("a"), answer("a", "", status="pending"), GO_ON], [ASK, GO_ON]),
    "an answer that failed at first": (
        [ASK, calling("a"), answer("a", "1", status="error"), answer("a", "2"), DONE],
        [ASK, calling("a"), answer("a", "2"), DONE],
    ),
    "a reply that was aborted, and its answers": (
        [ASK, calling("a", text="wait", status="aborted"), answer("a"), GO_ON],
        [ASK, GO_ON],
    ),
    "messages of every other status": (
        [ASK, *(Message(role="assistant", content="x", status=s) for s in ("pending", "writing", "error")), GO_ON],
        [ASK, GO_ON],
    ),
    "a question that was taken back": ([Message(role="user", content="x", status="aborted"), ASK], [ASK]),
    "an answer that says nothing": ([ASK, Message(role="assistant", content=""), GO_ON], [ASK, GO_ON]),
    "an answer of reasoning alone": (
        [ASK, Message(role="assistant", parts=[ReasoningPart("hm")]), GO_ON],
        [ASK, GO_ON],
    ),
    "the same id in two exchanges": (
        [ASK, calling("a"), answer("a", "1"), calling("a"), answer("a", "2"), DONE],
        [ASK, calling("a"), answer("a", "1"), calling("a"), answer("a", "2"), DONE],
    ),
    "a legacy exchange": ([ASK, legacy(), result(), DONE], [ASK, legacy(), result(), DONE]),
    "a legacy call without an answer": ([ASK, legacy(), GO_ON], [ASK, GO_ON]),
    "a legacy call answered for another": ([ASK, legacy("look"), result("save"), GO_ON], [ASK, GO_ON]),
    "a legacy call answered by a tool message": ([ASK, legacy(), answer("a"), GO_ON], [ASK, GO_ON]),
    "calls in a question": ([Message(role="user", parts=[TextPart("ask"), ToolCall("a", "look")]), answer("a")], [ASK]),
    "calls in an answer": (
        [
            ASK,
            calling("a"),
            Message.build("tool", [TextPart("ok"), ToolCall("b", "look")], tool_call_id="a", name="look"),
        ],
        [ASK, calling("a"), answer("a")],
    ),
    "a call answered by a function message": ([ASK, calling("a"), result(), GO_ON], [ASK, GO_ON]),
}


@pytest.mark.parametrize(("history", "sent"), FITTED.values(), ids=FITTED.keys())
def test_whole_exchanges_are_sent_and_half_ones_are_left_out(history: list[Message], sent: list[Message]) -> None:
    """What cannot be sent as it is costs no more than itself; and a history that was fitted stays as it is."""
    fitted = fit_history(history)
    assert fitted.messages == sent
    assert fit_history(fitted.messages) == FittedHistory(sent)


NOTED: dict[str, tuple[list[Message], str]] = {
    "half an exchange": ([ASK, calling("a:save")], "without all its answers (save)"),
    "an orphan": ([answer("a")], "an answer without its call (a)"),
    "a legacy orphan": ([result("save")], "an answer without its call (save)"),
    "an answer too many": ([calling("a"), answer("a"), answer("b")], "an answer without its call (b)"),
    "an answer twice": ([calling("a"), answer("a"), answer("a")], "an answer without its call (a)"),
    "a status": ([Message(role="user", content="x", status="aborted")], "a message that is aborted (user)"),
    "foreign reasoning": (
        [Message(role="assistant", parts=[ReasoningPart("hm", "q", "m"), TextPart("a")])],
        "reasoning of q:m",
    ),
}


@pytest.mark.parametrize(("history", "note"), NOTED.values(), ids=NOTED.keys())
def test_what_is_left_out_is_noted(history: list[Message], note: str) -> None:
    """One sentence for each; a whole history needs none."""
    assert [one for one in fit_history(history, provider="p", model="m").notes if note in one] != []
    assert fit_history([ASK, calling("a"), answer("a"), DONE]).notes == ()


THOUGHT = ReasoningPart("hm", provider="p", model="m", field="reasoning", signature="s")


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        (THOUGHT, True),
        (ReasoningPart("hm", provider="q", model="m"), False),
        (ReasoningPart("hm", provider="p", model="n"), False),
        (ReasoningPart("hm"), True),
    ],
)
def test_reasoning_goes_back_to_the_model_it_came_from(part: ReasoningPart, kept: bool) -> None:
    """And to no other; what names no origin came from the caller's own hand."""
    message = Message(role="assistant", parts=[part, TextPart("a")])
    (sent,) = fit_history([message], provider="p", model="m").messages
    assert sent.parts == ((part, TextPart("a")) if kept else (TextPart("a"),))


@pytest.mark.parametrize(("provider", "kept"), [("p", True), ("q", False), (None, True)])
def test_a_vendors_fields_go_back_to_that_vendor(provider: str | None, kept: bool) -> None:
    """Those of a message and those of its calls."""
    call = ToolCall("a", "look", "{}", extras={"sig": 1})
    message = Message(role="assistant", parts=[call], provider=provider, extras={"x": 1})
    sent = fit_history([message, answer("a")], provider="p").messages[0]
    assert sent.extras == ({"x": 1} if kept else {})
    assert sent.tool_calls[0].extras == ({"sig": 1} if kept else None)


def ids_of(messages: Sequence[Message]) -> list[str]:
    """The ids of calls and answers, in order."""
    return [
        id for message in messages for id in (*[call.id for call in message.tool_calls], message.tool_call_id) if id
    ]


def test_ids_that_the_target_refuses_are_rewritten_with_their_answers() -> None:
    """The same way every time; those of the right form stay."""
    history = [calling("call_1", "abcdefghi"), answer("call_1"), answer("abcdefghi")]
    fitted = fit_history(history, call_id_form=MISTRAL)
    new = fitted.messages[0].tool_calls[0].id
    assert MISTRAL.fullmatch(new)
    assert ids_of(fitted.messages) == [new, "abcdefghi", new, "abcdefghi"]
    assert fitted == fit_history(copy.deepcopy(history), call_id_form=MISTRAL)
    assert [note for note in fitted.notes if "rewrote 1 call ids" in note] != []


def test_equal_ids_of_two_exchanges_become_two() -> None:
    """A server that counts its calls anew each time (`call_0`) asked for two different things."""
    history = [calling("call_0"), answer("call_0"), calling("call_0"), answer("call_0")]
    first, _, second, _ = ids_of(fit_history(history, call_id_form=MISTRAL).messages)
    assert first != second


@pytest.mark.parametrize("form", [None, MISTRAL])
def test_equal_ids_in_one_message_become_two(form: re.Pattern[str] | None) -> None:
    """Vendors refuse a message with one id twice; the answers belong to the calls in their order."""
    history = [calling("a", "a"), answer("a", "1"), answer("a", "2")]
    asking, one, two = fit_history(history, call_id_form=form).messages
    first, second = asking.tool_calls
    assert first.id != second.id
    assert [(one.tool_call_id, one.text), (two.tool_call_id, two.text)] == [(first.id, "1"), (second.id, "2")]


def test_calls_without_ids_get_ids() -> None:
    """Their answers have none either; they belong to the calls in their order."""
    unnamed = [Message.build("tool", [TextPart(text)], name="look") for text in ("1", "2")]
    asking, one, two = fit_history([calling("", ""), *unnamed]).messages
    first, second = asking.tool_calls
    assert first.id and second.id and first.id != second.id
    assert [(one.tool_call_id, one.text), (two.tool_call_id, two.text)] == [(first.id, "1"), (second.id, "2")]


def test_a_rewritten_id_is_none_that_is_taken() -> None:
    """Neither by the same message nor by a later one."""
    history = [calling("call_1"), answer("call_1")]
    new = fit_history(history, call_id_form=MISTRAL).messages[0].tool_calls[0].id
    clash = [*history, calling(new), answer(new)]
    first, _, second, _ = ids_of(fit_history(clash, call_id_form=MISTRAL).messages)
    assert second == new != first


@pytest.mark.parametrize(
    ("history", "left"),
    [
        ([], []),
        ([ASK], []),
        ([ASK, DONE], []),
        ([ASK, calling("a", "b")], ["a", "b"]),
        ([ASK, calling("a", "b"), answer("b")], ["a"]),
        ([ASK, calling("a", "b"), answer("b"), answer("a")], []),
        ([ASK, calling("a", "a"), answer("a")], ["a"]),
        ([ASK, calling("a"), answer("a", "", status="pending")], ["a"]),
        ([ASK, calling("a"), answer("a", "x", status="aborted")], ["a"]),
        ([ASK, calling("a"), GO_ON], []),
        ([ASK, calling("a", status="aborted")], []),
        ([ASK, legacy()], [""]),
        ([ASK, legacy(), result()], []),
        ([answer("a")], []),
    ],
)
def test_the_calls_that_end_a_conversation_are_those_still_to_run(history: list[Message], left: list[str]) -> None:
    """A call whose answer was never completed is one of them."""
    assert [call.id for call in unanswered_calls(history)] == left


# Any history at all: few ids and names, so that they meet by accident.
ids = st.sampled_from(["a", "b", "call_1", "abcdefghi", ""])
names = st.sampled_from(["look", "save"])
statuses: st.SearchStrategy[Any] = st.sampled_from(["completed"] * 6 + ["pending", "writing", "error", "aborted"])
texts = st.sampled_from(["", "x", "y"])
calls = st.builds(ToolCall, ids, names, st.just("{}"), st.just(False)) | st.builds(
    ToolCall, st.just(""), names, st.just("{}"), st.just(True)
)
thoughts = st.builds(ReasoningPart, texts, st.sampled_from([None, "p", "q"]), st.sampled_from([None, "m"]))
assistants = st.builds(
    Message,
    role=st.just("assistant"),
    parts=st.lists(st.builds(TextPart, texts) | calls | thoughts, max_size=4),
    status=statuses,
    provider=st.sampled_from([None, "p", "q"]),
    extras=st.sampled_from([{}, {"x": 1}]),
)
answers = st.builds(
    Message,
    role=st.just("tool"),
    tool_call_id=ids,
    name=names,
    parts=st.tuples(st.builds(TextPart, texts)),
    status=statuses,
) | st.builds(
    Message, role=st.just("function"), name=names, parts=st.tuples(st.builds(TextPart, texts)), status=statuses
)
others = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "developer"]),
    parts=st.lists(st.builds(TextPart, texts) | st.builds(ImagePart, texts) | calls, max_size=2),
    status=statuses,
)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """An assistant message, and answers that may fit it."""
    message = draw(assistants)
    given = [
        Message(
            role="function" if call.legacy else "tool",
            name=call.name,
            tool_call_id=None if call.legacy else call.id,
            parts=[TextPart(draw(texts))],
            status=draw(statuses),
        )
        for call in message.tool_calls
    ]
    return [message, *draw(st.permutations(given)), *draw(st.lists(answers, max_size=2))]


histories = st.lists(exchanges() | st.lists(others | answers | assistants, max_size=2), max_size=6).map(
    lambda groups: [message for group in groups for message in group]
)
forms = st.sampled_from([None, MISTRAL])


@given(histories, forms)
def test_any_history_becomes_a_legal_one(history: list[Message], form: re.Pattern[str] | None) -> None:
    """Every call has one answer, directly after it and in its order; no answer stands alone; all is complete."""
    sent = fit_history(history, provider="p", model="m", call_id_form=form).messages
    place = 0
    while place < len(sent):
        message = sent[place]
        place += 1
        assert message.status == "completed"
        assert message.role not in ("tool", "function")
        assert message.parts or message.role != "assistant"
        calls = message.tool_calls
        assert len({call.id for call in calls if not call.legacy}) == len([call for call in calls if not call.legacy])
        for call in calls:
            given = sent[place]
            place += 1
            assert given.status == "completed"
            assert given.name == call.name or given.role == "tool"
            assert given.role == ("function" if call.legacy else "tool")
            assert call.legacy or given.tool_call_id == call.id != ""
            assert form is None or call.legacy or form.fullmatch(call.id)


@given(histories, forms)
def test_a_fitted_history_stays_as_it_is(history: list[Message], form: re.Pattern[str] | None) -> None:
    """Nothing is left to do on what was done; and the history given is unchanged."""
    before = copy.deepcopy(history)
    once = fit_history(history, provider="p", model="m", call_id_form=form)
    assert history == before
    assert fit_history(once.messages, provider="p", model="m", call_id_form=form) == FittedHistory(once.messages)


@given(histories, forms)
def test_no_text_is_lost_but_that_of_answers(history: list[Message], form: re.Pattern[str] | None) -> None:
    """What a person or the model said stays, in its order, where the message is complete."""
    said = [
        message.text
        for message in history
        if message.status == "completed" and message.role not in ("tool", "function") and message.text
    ]
    sent = fit_history(history, provider="p", model="m", call_id_form=form).messages
    assert [message.text for message in sent if message.role not in ("tool", "function") and message.text] == said


@given(histories, histories, forms)
def test_a_history_that_grows_is_sent_with_the_same_beginning(
    history: list[Message], later: list[Message], form: re.Pattern[str] | None
) -> None:
    """Ids too: a vendor's cache of the beginning holds."""
    now = fit_history([*history, ASK], call_id_form=form).messages
    assert fit_history([*history, ASK, *later], call_id_form=form).messages[: len(now)] == now


@given(histories)
def test_calls_that_are_run_late_make_the_history_whole(history: list[Message]) -> None:
    """Once the open calls are answered, all of the last exchange is sent and nothing of it is open."""
    given = [
        Message.build("function" if call.legacy else "tool", [TextPart("late")], name=call.name, tool_call_id=call.id)
        for call in unanswered_calls(history)
    ]
    whole = [*history, *given]
    assert unanswered_calls(whole) == []
    if given:
        sent = fit_history(whole).messages
        assert [message.text for message in sent].count("late") == len(given)
