"""JSON as models read it: compact, not escaped, and never refused because of one odd value.

Decides how values without a JSON form are written (as readable text) and how text that is no valid Unicode is mended.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Set
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

__all__ = ["compact_json", "mend_text", "parse_object", "plain_value", "read_json"]

_DEPTH = 200  # that of pydantic-core's parser, and well below Python's own recursion limit
_BITS = 14_000  # Python refuses to write longer numbers in decimal


def mend_text(text: str) -> str:
    """Join halves of an emoji that arrived apart; replace a half that stays alone, as it cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def plain_value(value: Any) -> Any:
    """Turn any Python value into one that JSON can hold.

    Dates, bytes, exceptions and other objects become readable text, sets become lists, infinity and NaN become the
    texts JSON has no word for, pydantic models and dataclasses become objects.

    Raises:
        ValueError: the value refers to itself, or is nested more than 200 deep.
    """
    return _plain(value, ())


def _plain(value: Any, inside: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, inside)
    if isinstance(value, str):
        return mend_text(str(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() < _BITS else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if id(value) in inside:
        raise ValueError("the value refers to itself")
    if len(inside) >= _DEPTH:
        raise ValueError(f"the value is nested more than {_DEPTH} deep")
    inside = (*inside, id(value))
    if isinstance(value, BaseModel):
        return {name: _plain(item, inside) for name, item in value.model_dump(by_alias=True).items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), inside) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, inside) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, inside) for item in value]
    if isinstance(value, Set):
        return [_plain(item, inside) for item in sorted(value, key=repr)]
    return mend_text(_shown(value))


def _shown(value: object) -> str:
    """Write a value as text, whatever its own methods do."""
    try:
        return str(value) or repr(value)
    except Exception:  # a stranger's __str__ may raise anything
        return object.__repr__(value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return mend_text(key)
    plain = _plain(key, ())
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def compact_json(value: Any) -> str:
    """Write any value as compact JSON text, other scripts unescaped.

    Raises:
        ValueError: the value refers to itself, or is nested more than 200 deep.
    """
    return json.dumps(plain_value(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_json(data: bytes) -> Any:
    """Read JSON as servers send it: half an emoji as an escape, which pydantic-core refuses, is kept.

    Raises:
        ValueError: it is not JSON, or nested more than 200 deep.
    """
    try:
        return from_json(data)
    except ValueError:
        try:
            value = json.loads(data)
        except RecursionError:
            raise ValueError("nested too deep") from None
        plain_value(value)  # refuses what is nested too deep to be written again
        return value


def parse_object(text: str) -> dict[str, Any]:
    """Read a JSON object as a model writes it. Nothing, blanks and `null` are an empty object.

    Raises:
        ValueError: the text is no JSON object, or holds NaN, Infinity or a number JSON cannot hold.
    """
    if not text or text.isspace():
        return {}
    try:
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):
        # Half an emoji, or very deep nesting: the standard library reads both; all else fails here too.
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise ValueError("nested too deep") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {_kind(value)}")
    # A number too large for a float becomes infinity; it always has an exponent or very many digits.
    if ("e" in text or "E" in text or len(text) > 300) and _holds_infinity(value):
        raise ValueError("holds a number too large for JSON")
    return value


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _kind(value: Any) -> str:
    return {bool: "true or false", str: "a text", list: "a list"}.get(type(value), "a number")


def _holds_infinity(value: Any) -> bool:
    left = [value]  # no recursion: what was read may be nested deeper than Python calls
    while left:
        item = left.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
    return False
