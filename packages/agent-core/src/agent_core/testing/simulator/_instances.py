"""The least value that satisfies a JSON schema: arguments for a tool, or an answer, without a model.

What is required is there, and no more. A `pattern` is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["instance_of"]

_DEEPEST = 16
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "hostname": "example.com",
}

Schema = Mapping[str, Any]


def instance_of(schema: Schema) -> Any:
    """Make the value. A schema that contains itself without end gives null where it goes too deep."""
    return _instance(schema, schema, 0)


def _instance(schema: Any, root: Schema, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if "$ref" in schema:
        return _instance(_resolved(str(schema["$ref"]), root), root, depth + 1)
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("enum", "examples"):
        if schema.get(keyword):
            return schema[keyword][0]
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return _instance(schema[keyword][0], root, depth + 1)
    if schema.get("allOf"):
        return _instance(_merged(schema["allOf"], root), root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return _of_type(kind[0] if isinstance(kind, list) else kind, schema, root, depth)


def _of_type(kind: str, schema: Schema, root: Schema, depth: int) -> Any:
    match kind:
        case "object":
            properties = schema.get("properties") or {}
            return {name: _instance(properties.get(name), root, depth + 1) for name in schema.get("required") or ()}
        case "array":
            first = [_instance(item, root, depth + 1) for item in schema.get("prefixItems") or ()]
            missing = int(schema.get("minItems") or 0) - len(first)
            return first + [_instance(schema.get("items"), root, depth + 1) for _ in range(missing)]
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return True
        case "null":
            return None
    return _string(schema)


def _number(schema: Schema) -> Any:
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    most = schema.get("maximum", schema.get("exclusiveMaximum", least + 1) - 1)
    return min(least, most)


def _string(schema: Schema) -> str:
    text = _FORMATS.get(str(schema.get("format")), "example")
    return text.ljust(int(schema.get("minLength") or 0), "x")[: schema.get("maxLength")]


def _merged(parts: Any, root: Schema) -> dict[str, Any]:
    """One schema for several that hold at once."""
    merged: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    required: list[str] = []
    for part in parts:
        known = _resolved(str(part["$ref"]), root) if "$ref" in part else part
        merged |= known
        properties |= known.get("properties") or {}
        required += known.get("required") or ()
    return {**merged, "properties": properties, "required": required} if properties else merged


def _resolved(reference: str, root: Schema) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").split("/"):
        if step:
            found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
