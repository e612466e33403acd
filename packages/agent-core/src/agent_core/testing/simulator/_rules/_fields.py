"""What may be wrong with the fields of a body, whoever minds it: each function finds one kind of fault.

Nothing here knows a vendor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ._finding import Find, Finding, Request

__all__ = [
    "absent",
    "choice_not_in",
    "choice_without_tools",
    "field_alone",
    "fields_together",
    "for_models",
    "messages_missing",
    "more_than",
    "no_messages",
    "not_a_list",
    "not_typed",
    "present",
    "unknown_fields",
]


def messages_missing(request: Request) -> Iterator[Finding]:
    """The messages are missing or no list; there may be none."""
    if not isinstance(request.get("messages"), list):
        yield Finding(("messages",), request.get("messages"))


def no_messages(request: Request) -> Iterator[Finding]:
    """The messages are missing or none."""
    if not request.get("messages"):
        yield Finding(("messages",), request.get("messages"))


def not_a_list(*fields: str) -> Find:
    """A field that must be a list of objects is not."""

    def find(request: Request) -> Iterator[Finding]:
        for field in fields:
            value = request.get(field)
            if value is not None and not (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
                yield Finding((field,), value)

    return find


def not_typed(types: Mapping[str, type | tuple[type, ...]]) -> Find:
    """A field has a value of another type than it must have. No number is true or false."""

    def find(request: Request) -> Iterator[Finding]:
        for field, wanted in types.items():
            value = request.get(field)
            wrong = not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)
            if value is not None and wrong:
                yield Finding((field,), value)

    return find


def unknown_fields(known: Collection[str]) -> Find:
    """A field of the body is none of those known."""
    return lambda request: (Finding((field,), request[field]) for field in request if field not in known)


def absent(*fields: str) -> Find:
    """A field is missing or null."""
    return lambda request: (Finding((field,)) for field in fields if request.get(field) is None)


def present(*fields: str) -> Find:
    """A field is there at all."""
    return lambda request: (Finding((field,), request[field]) for field in fields if request.get(field) is not None)


def fields_together(one: str, other: str) -> Find:
    """Two fields are there that exclude each other."""

    def find(request: Request) -> Iterator[Finding]:
        if request.get(one) is not None and request.get(other) is not None:
            yield Finding((other,), request[other])

    return find


def field_alone(field: str, other: str) -> Find:
    """A field is there without the other that it belongs to."""

    def find(request: Request) -> Iterator[Finding]:
        if request.get(field) and not request.get(other):
            yield Finding((field,), request[field])

    return find


def more_than(field: str, most: int) -> Find:
    """A number is larger than it may be, or a list longer."""

    def find(request: Request) -> Iterator[Finding]:
        value = request.get(field)
        size = len(value) if isinstance(value, list) else value
        if isinstance(size, int) and size > most:
            yield Finding((field,), size)

    return find


def choice_without_tools(request: Request) -> Iterator[Finding]:
    """Something is said about tools, but there are none."""
    for field in ("tool_choice", "parallel_tool_calls"):
        if request.get(field) is not None and not request.get("tools"):
            yield Finding((field,), request[field])


def choice_not_in(*words: str) -> Find:
    """The choice of a tool is a word that is none of these."""

    def find(request: Request) -> Iterator[Finding]:
        choice = request.get("tool_choice")
        if isinstance(choice, str) and choice not in words:
            yield Finding(("tool_choice",), choice)

    return find


def for_models(find: Find, *starts: str) -> Find:
    """A fault that counts with those models alone whose names begin so."""
    return lambda request: find(request) if str(request.get("model")).startswith(starts) else iter(())
