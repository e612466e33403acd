"""The event parser and the tag splitter, for any cuts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.chatwire._sse import EventParser, NamedPayload
from agent_core.chatwire._think import ThinkSplitter

lines = st.sampled_from(
    [
        "data: one",
        "data:two",
        'data: {"text": "東京\u2028👩‍🚀"}',
        "data:",
        "data",
        ": a comment",
        "event: error",
        "event:message",
        "id: 4",
        "retry: 10",
        "",
        "",
        "data: [DONE]",
    ]
)
streams = st.tuples(st.lists(lines, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans()).map(
    lambda parts: (b"\xef\xbb\xbf" if parts[2] else b"") + "".join(line + parts[1] for line in parts[0]).encode()
)


def parsed(pieces: list[bytes]) -> list[tuple[bytes, str | None]]:
    """Read a stream in pieces; each payload with the name of its event, if it has one."""
    parser = EventParser()
    payloads = [payload for piece in pieces for payload in parser.feed(piece)]
    rest = parser.rest()
    payloads += [] if rest is None else [rest]
    ended = [(b"[DONE]", None)] if parser.ended else []
    return [(bytes(one), one.event if isinstance(one, NamedPayload) else None) for one in payloads] + ended


def cut_at(body: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at these places."""
    marks = sorted({0, len(body), *(place for place in places if place < len(body))})
    return [body[start:end] for start, end in pairwise(marks)]


@given(streams, st.lists(st.integers(0, 200), max_size=8))
def test_cuts_change_no_event(body: bytes, places: list[int]) -> None:
    """Bytes may arrive in any pieces, whatever ends the lines."""
    assert parsed(cut_at(body, places)) == parsed([body])


@given(streams)
def test_single_bytes_change_no_event(body: bytes) -> None:
    """Bytes may arrive one by one."""
    assert parsed([body[place : place + 1] for place in range(len(body))]) == parsed([body])


@pytest.mark.parametrize(
    ("body", "payloads"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata:b\r\r", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": ping\n\nid: 4\n\ndata: a\n\n", [b"a"]),
        (b"data:\n\ndata: a\n\n", [b"a"]),
        (b"data: a", [b"a"]),
        (b"data: a\n\ndata: [DONE]", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data:  two blanks\n\n", [b" two blanks"]),
    ],
)
def test_events(body: bytes, payloads: list[bytes]) -> None:
    """What the event-stream text means."""
    parser = EventParser()
    found = parser.feed(body)
    rest = parser.rest()
    assert [*found, *([rest] if rest is not None else [])] == payloads


def test_named_event() -> None:
    """The name of an event stays with its payload, and with no later one."""
    parser = EventParser()
    first, second = parser.feed(b"event: error\ndata: a\n\ndata: b\n\n")
    assert isinstance(first, NamedPayload) and first.event == "error"
    assert type(second) is bytes


thoughts = st.lists(
    st.sampled_from(["<think>", "</think>", " ", "\n", "a < b", "<", "</", "think>", "x", "</thi", "<th"]), max_size=10
).map("".join)


def split(pieces: list[str]) -> tuple[str, str]:
    """Take reasoning and text apart."""
    splitter = ThinkSplitter()
    found = [pair for piece in pieces for pair in splitter.feed(piece)] + splitter.flush()
    return "".join(text for inside, text in found if inside), "".join(text for inside, text in found if not inside)


@given(thoughts, st.lists(st.integers(0, 60), max_size=8))
def test_cuts_change_no_thought(text: str, places: list[int]) -> None:
    """Tags may be split anywhere."""
    marks = sorted({0, len(text), *(place for place in places if place < len(text))})
    assert split([text[start:end] for start, end in pairwise(marks)]) == split([text])


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>\nwhy\n</think>\n\nbecause", "why", "because"),
        ("no tags < here", "", "no tags < here"),
        ("  <think>a</think>b", "a", "b"),
        ("<think>never closed", "never closed", ""),
        ("late <think>tag</think>", "", "late <think>tag</think>"),
        ("<think>a</think>b</think>c", "a", "b</think>c"),
        ("<thinking>", "", "<thinking>"),
        ("<think></think>", "", ""),
        (" \n", "", " \n"),
    ],
)
def test_thoughts(text: str, reasoning: str, answer: str) -> None:
    """Only tags at the very start count; blanks around them belong to neither side."""
    assert split([text]) == (reasoning, answer)
