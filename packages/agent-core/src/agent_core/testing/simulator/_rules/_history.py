"""What may be wrong with the messages of a body, whoever minds it: each function finds one kind of fault.

Nothing here knows a vendor. That the messages are a list of objects was looked at before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from ._finding import Find, Finding, Request

__all__ = [
    "bare_assistant",
    "calls_and_results_differ",
    "calls_unanswered",
    "content_missing",
    "empty_assistant",
    "ids_not_like",
    "json_arguments",
    "last_is_assistant",
    "message_fields",
    "names_not_like",
    "order_broken",
    "prefix_not_last",
    "results_without_call",
    "results_without_id",
    "roles",
    "two_assistants_last",
    "unknown_message_fields",
    "unknown_roles",
]


def unknown_message_fields(known: Mapping[str, Collection[str]]) -> Find:
    """A field of a message is none of those known for its role."""

    def find(request: Request) -> Iterator[Finding]:
        for at, message in enumerate(request["messages"]):
            role = str(message.get("role"))
            for field, value in message.items():
                if role in known and field not in known[role]:
                    yield Finding(("messages", at, field), value, role)

    return find


def message_fields(role: str, *unwanted: str) -> Find:
    """A message of this role has one of these fields."""
    return lambda request: (
        Finding(("messages", at, field), message[field], role)
        for at, message in enumerate(request["messages"])
        if message.get("role") == role
        for field in unwanted
        if message.get(field) is not None
    )


def unknown_roles(known: Collection[str]) -> Find:
    """A message has a role that is none of those known."""
    return lambda request: (
        Finding(("messages", at, "role"), message.get("role"))
        for at, message in enumerate(request["messages"])
        if message.get("role") not in known
    )


def roles(*unwanted: str) -> Find:
    """A message has one of these roles."""
    return lambda request: (
        Finding(("messages", at, "role"), message["role"])
        for at, message in enumerate(request["messages"])
        if message.get("role") in unwanted
    )


def order_broken(follows: Mapping[str, Collection[str]]) -> Find:
    """A message has a role that may not follow that of the message before it."""

    def find(request: Request) -> Iterator[Finding]:
        said_by = [str(message.get("role")) for message in request["messages"]]
        for at, (before, role) in enumerate(pairwise(said_by), start=1):
            if before in follows and role not in follows[before]:
                yield Finding(("messages", at, "role"), before, role)

    return find


def last_is_assistant(request: Request) -> Iterator[Finding]:
    """The last message is the assistant's, and not marked as the beginning of what is to come."""
    last = request["messages"][-1]
    if last.get("role") == "assistant" and not last.get("prefix"):
        yield Finding(("messages", len(request["messages"]) - 1, "role"), "assistant", "assistant")


def two_assistants_last(request: Request) -> Iterator[Finding]:
    """The last two messages are the assistant's."""
    if [message.get("role") for message in request["messages"][-2:]] == ["assistant"] * 2:
        yield Finding(("messages", len(request["messages"]) - 1, "role"))


def prefix_not_last(request: Request) -> Iterator[Finding]:
    """A message is marked as the beginning of what is to come, but others follow it."""
    for at, message in enumerate(request["messages"][:-1]):
        if message.get("prefix"):
            yield Finding(("messages", at, "prefix"), True, "assistant")


def empty_assistant(request: Request) -> Iterator[Finding]:
    """A message of the assistant's has neither content nor calls."""
    for at, message in enumerate(request["messages"]):
        if message.get("role") == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield Finding(("messages", at), None, "assistant")


def bare_assistant(request: Request) -> Iterator[Finding]:
    """A message of the assistant's has neither the key for content nor calls; null is content enough."""
    for finding in empty_assistant(request):
        if "content" not in request["messages"][finding.path[1]]:
            yield finding


def content_missing(request: Request) -> Iterator[Finding]:
    """A message has no content: absent or null, which only a message with calls may have (or one that refuses)."""
    for at, message in enumerate(request["messages"]):
        instead = ("tool_calls", "function_call", "refusal", "audio")
        if message.get("content") is None and not any(message.get(field) for field in instead):
            yield Finding(("messages", at, "content"), None, str(message.get("role")))


def names_not_like(pattern: str) -> Find:
    """A tool or a call has a name that does not match the pattern."""

    def find(request: Request) -> Iterator[Finding]:
        for at, tool in enumerate(request.get("tools") or ()):
            name = (tool.get("function") or {}).get("name", "")
            if tool.get("type", "function") == "function" and not re.fullmatch(pattern, str(name)):
                yield Finding(("tools", at, "function", "name"), name)
        for path, call in _calls(request):
            if not re.fullmatch(pattern, str(call["function"].get("name", ""))):
                yield Finding((*path, "function", "name"), call["function"].get("name"), "assistant")

    return find


def json_arguments(request: Request) -> Iterator[Finding]:
    """The arguments of a call are no JSON text."""
    for path, call in _calls(request):
        arguments = call["function"].get("arguments")
        try:
            json.loads(arguments)
        except (TypeError, ValueError) as error:
            yield Finding((*path, "function", "arguments"), str(error), "assistant")


def ids_not_like(pattern: str) -> Find:
    """A call, or what answers one, has an id that does not match the pattern."""

    def find(request: Request) -> Iterator[Finding]:
        for path, call in _calls(request):
            if not re.fullmatch(pattern, str(call.get("id"))):
                yield Finding((*path, "id"), call.get("id"), "assistant")
        for at, message in enumerate(request["messages"]):
            if message.get("role") == "tool" and not re.fullmatch(pattern, str(message.get("tool_call_id"))):
                yield Finding(("messages", at, "tool_call_id"), message.get("tool_call_id"), "tool")

    return find


def calls_unanswered(request: Request) -> Iterator[Finding]:
    """Calls that no tool message answers before the next message of another role, or the end."""
    open_calls: dict[str, None] = {}
    for at, message in enumerate([*request["messages"], {"role": "end"}]):
        if message.get("role") == "tool":
            open_calls.pop(str(message.get("tool_call_id")), None)
            continue
        if open_calls:
            yield Finding(("messages", at, "role"), ", ".join(open_calls))
        open_calls = {str(call.get("id")): None for call in message.get("tool_calls") or ()}


def results_without_call(request: Request) -> Iterator[Finding]:
    """A tool message answers no call of the assistant's message before it."""
    known: set[str] = set()
    for at, message in enumerate(request["messages"]):
        if message.get("role") != "tool":
            known = {str(call.get("id")) for call in message.get("tool_calls") or ()}
        elif str(message.get("tool_call_id")) not in known:
            yield Finding(("messages", at, "role"), message.get("tool_call_id"), "tool")


def results_without_id(request: Request) -> Iterator[Finding]:
    """A tool message does not say which call it answers."""
    for at, message in enumerate(request["messages"]):
        if message.get("role") == "tool" and not message.get("tool_call_id"):
            yield Finding(("messages", at, "tool_call_id"), None, "tool")


def calls_and_results_differ(request: Request) -> Iterator[Finding]:
    """There are more or fewer results than calls, or they answer others."""
    yield from calls_unanswered(request)
    yield from results_without_call(request)


def _calls(request: Request) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Every call in the history, with its place."""
    for at, message in enumerate(request["messages"]):
        for position, call in enumerate(message.get("tool_calls") or ()):
            if isinstance(call, dict) and isinstance(call.get("function"), dict):
                yield ("messages", at, "tool_calls", position), call
