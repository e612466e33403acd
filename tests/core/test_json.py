"""JSON at the edges: what has no JSON form becomes readable text, and what is no JSON object is no arguments."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections import OrderedDict, deque
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from agent_core import ToolCall
from agent_core._json import compact_json, mend_text, parse_object, plain_value, read_json

HALF = "\ud83d"  # the first half of an emoji
OTHER_HALF = "\ude00"


class Colour(enum.Enum):
    RED = "red"
    NOTHING = None


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


class Person(BaseModel):
    name: str
    born: datetime.date = Field(serialization_alias="bornOn")
    password: SecretStr = SecretStr("hunter22")


class Stubborn:
    """Will not be written."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")


class Silent:
    def __str__(self) -> str:
        return ""

    def __repr__(self) -> str:
        return "Silent()"


PLAIN: dict[str, tuple[Any, Any]] = {
    "nothing": (None, None),
    "truth": (True, True),
    "number": (5, 5),
    "fraction": (0.5, 0.5),
    "text": ("é北👩‍🚀", "é北👩‍🚀"),
    "infinity": (float("inf"), "inf"),
    "minus infinity": (float("-inf"), "-inf"),
    "not a number": (float("nan"), "nan"),
    "number of more digits than Python writes": (1 << 20_000, "0x1" + "0" * 5_000),
    "decimal": (decimal.Decimal("1.50"), "1.50"),
    "complex": (1 + 2j, "(1+2j)"),
    "date": (datetime.date(2024, 2, 29), "2024-02-29"),
    "time": (datetime.datetime(2024, 2, 29, 7, 5), "2024-02-29 07:05:00"),
    "span": (datetime.timedelta(hours=30), "1 day, 6:00:00"),
    "uuid": (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    "path": (PurePosixPath("a/b"), "a/b"),
    "bytes": ("é".encode(), "é"),
    "bytes that are no text": (b"\xff\x00", "�\x00"),
    "bytearray": (bytearray(b"a"), "a"),
    "memoryview": (memoryview(b"ab"), "ab"),
    "enum": (Colour.RED, "red"),
    "enum of nothing": (Colour.NOTHING, None),
    "enum of numbers": (Level.HIGH, 3),
    "set": ({"b", "a"}, ["a", "b"]),
    "frozenset of tuples": (frozenset({(2, 1), (1, 2)}), [[1, 2], [2, 1]]),
    "keys": ({"a": 1}.keys(), ["a"]),
    "tuple": ((1, (2, 3)), [1, [2, 3]]),
    "mapping": (MappingProxyType({"a": {1}}), {"a": [1]}),
    "ordered": (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    "deque": (deque([1, 2]), "deque([1, 2])"),
    "keys that are no text": ({1: "a", None: "b", (1, 2): "d"}, {"1": "a", "null": "b", "[1, 2]": "d"}),
    "truth as a key": ({True: {False: 1}}, {"true": {"false": 1}}),
    "exception": (ValueError("too old"), "too old"),
    "exception without text": (ValueError(), "ValueError()"),
    "class": (Point, f"<class '{Point.__module__}.Point'>"),
    "dataclass": (Point(1, datetime.date(2024, 2, 29)), {"x": 1, "when": "2024-02-29"}),
    "pydantic model": (
        Person(name="Žofie", born=datetime.date(2000, 1, 1)),
        {"name": "Žofie", "bornOn": "2000-01-01", "password": "**********"},
    ),
    "object without text": (Silent(), "Silent()"),
    "half an emoji": (f"a{HALF}", "a�"),
    "both halves of an emoji": (HALF + OTHER_HALF, "😀"),
    "half an emoji as a key": ({HALF: [HALF]}, {"�": ["�"]}),
}


@pytest.mark.parametrize(("value", "plain"), PLAIN.values(), ids=PLAIN.keys())
def test_any_value_becomes_one_that_json_can_hold(value: Any, plain: Any) -> None:
    """Readable text where JSON has no form; and what comes out is written and read again unchanged."""
    assert plain_value(value) == plain
    written = compact_json(value)
    assert written.encode("utf-8")
    assert json.loads(written, parse_constant=_refuse) == plain


def _refuse(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


def test_an_object_that_refuses_to_be_text_is_named() -> None:
    """One odd value never costs the rest of a result."""
    assert f"{Stubborn.__module__}.Stubborn object at 0x" in plain_value({"a": 1, "b": Stubborn()})["b"]


def test_compact_json_has_no_blanks_and_no_escapes() -> None:
    """As models read it."""
    assert compact_json({"a": [1, 2.5, None, True], "é": "北\n"}) == '{"a":[1,2.5,null,true],"é":"北\\n"}'


def itself(kind: str) -> Any:
    """A value that refers to itself."""
    if kind == "list":
        ring: list[Any] = [1]
        ring.append({"in": ring})
        return ring
    if kind == "dict":
        looped: dict[str, Any] = {}
        looped["self"] = looped
        return looped

    @dataclasses.dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = Node(node)
    return node


@pytest.mark.parametrize("kind", ["list", "dict", "dataclass"])
def test_a_value_that_refers_to_itself_cannot_be_written(kind: str) -> None:
    """It says so, rather than running out of stack."""
    with pytest.raises(ValueError, match="refers to itself"):
        plain_value(itself(kind))


def test_the_same_value_twice_is_no_cycle() -> None:
    """Two places may hold one object."""
    shared = [1]
    assert plain_value({"a": shared, "b": shared}) == {"a": [1], "b": [1]}


def nested(depth: int) -> Any:
    """A list so deep."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_what_can_be_read_can_be_written() -> None:
    """200 levels, as deep as the parser goes; deeper is refused rather than running out of stack."""
    assert compact_json(nested(200)) == "[" * 200 + "1" + "]" * 200
    with pytest.raises(ValueError, match="nested more than 200 deep"):
        compact_json(nested(201))
    with pytest.raises(ValueError, match="nested more than 200 deep"):
        compact_json(nested(100_000))


BLANK = ["", " ", "\n\t ", "null", " null "]


@pytest.mark.parametrize("text", BLANK)
def test_no_arguments_are_an_empty_object(text: str) -> None:
    """Nothing, blanks and `null`."""
    assert parse_object(text) == {}
    assert ToolCall("t1", "f", text).parse() == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (' \n{"a": {"b": [1, 2]}} ', {"a": {"b": [1, 2]}}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}),
        ('{"n": 1e308}', {"n": 1e308}),
        ('{"NaN": "Infinity"}', {"NaN": "Infinity"}),
        ('{"a": "e' + "x" * 400 + '"}', {"a": "e" + "x" * 400}),
        ('{"a": "\\ud83d"}', {"a": HALF}),
        (f'{{"a": "{HALF}"}}', {"a": HALF}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    ],
)
def test_arguments_are_read_as_the_model_wrote_them(text: str, value: Any) -> None:
    """Half an emoji too: a token limit may cut one in two."""
    assert parse_object(text) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "expected a JSON object, got a list"),
        ('"a"', "expected a JSON object, got a text"),
        ("5", "expected a JSON object, got a number"),
        ("1.5", "expected a JSON object, got a number"),
        ("true", "expected a JSON object, got true or false"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": Infinity}', "Infinity is not JSON"),
        ('{"a": [-Infinity]}', "-Infinity is not JSON"),
        ('{"a": 1e999}', "holds a number too large for JSON"),
        ('{"a": [{"b": -1E+999}]}', "holds a number too large for JSON"),
        ('{"a": 1' + "0" * 400 + ".5}", "holds a number too large for JSON"),
        ('{"a": ' + "1" * 5_000 + "}", "digits"),
        ('{"a": 1', "Expecting"),
        ('{"a": 1} {"b": 2}', "Extra data"),
        ("{'a': 1}", "Expecting property name"),
        ('{"a": "\n"}', "control character"),
        ('{"a":' * 100_000, "nested too deep"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deep"),
        ("\ufeff{}", "BOM"),
    ],
)
def test_what_is_no_json_object_is_refused_with_the_reason(text: str, told: str) -> None:
    """Nothing is repaired, and nothing else than ValueError is raised."""
    with pytest.raises(ValueError, match=told):
        parse_object(text)


@pytest.mark.parametrize("end", ["1", "1e5", '"e"'])
def test_deep_arguments_are_read_where_python_can_read_them(end: str) -> None:
    """Deeper than the fast parser goes, and deeper than Python's own functions may call one another."""
    value: Any = parse_object('{"a":' * 600 + end + "}" * 600)
    for _ in range(600):
        value = value["a"]
    assert value == json.loads(end)


def test_a_number_too_large_is_found_at_any_depth() -> None:
    """Also where the value is nested deeper than Python calls."""
    with pytest.raises(ValueError, match="too large for JSON"):
        parse_object('{"a":' * 600 + "1e999" + "}" * 600)


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_read_or_refused(text: str) -> None:
    """With ValueError, and no other exception."""
    try:
        value = parse_object(text)
    except ValueError:
        return
    assert type(value) is dict


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), jsons, max_size=4))
def test_what_json_holds_is_written_and_read_unchanged(value: dict[str, Any]) -> None:
    """Whatever the object."""
    assert parse_object(compact_json(value)) == value


@given(st.text(st.characters(codec=None)))
def test_mended_text_can_be_written(text: str) -> None:
    """Halves of emoji that stand alone are replaced; every other text stays as it is."""
    mended = mend_text(text)
    assert mended.encode("utf-8").decode("utf-8") == mended
    if all(not "\ud800" <= letter <= "\udfff" for letter in text):
        assert mended == text


def test_a_servers_half_emoji_is_read() -> None:
    """As an escape, the only way it can be sent."""
    assert read_json(b'{"a": "\\ud83d"}') == {"a": HALF}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"<html>",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b'["\\ud83d",' + b"[" * 300,
    ],
)
def test_what_a_server_cannot_mean_is_refused(data: bytes) -> None:
    """With ValueError, however deep it is nested."""
    with pytest.raises(ValueError):
        read_json(data)
