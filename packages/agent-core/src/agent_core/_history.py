"""What of a conversation may be sent, and to whom.

Decides which messages, calls and answers are complete, whose reasoning goes where, and how call ids look. Made before
every request from a history that stays as it is; how the result is spelled on a wire is left to the dialect.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ._messages import Message
from ._parts import OtherPart, Part, ReasoningPart, ToolCall

__all__ = ["FittedHistory", "fit_history", "unanswered_calls"]

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class FittedHistory:
    """A history as it may be sent, and `notes` on what was changed or left out, one sentence each."""

    messages: list[Message]
    notes: tuple[str, ...] = ()


def unanswered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Give the calls that end a conversation without an answer, as a run that was put away leaves them."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role in ("tool", "function"):
            continue
        if message.role != "assistant" or message.status != "completed":
            return []
        return [call for call, answer in _pairs(message.tool_calls, messages[place + 1 :]) if answer is None]
    return []


def fit_history(
    messages: Sequence[Message], *, provider: str = "", model: str = "", call_id_form: re.Pattern[str] | None = None
) -> FittedHistory:
    """Fit a conversation to the model it goes to. The messages themselves are not changed.

    Left out: messages that are not completed, calls without an answer (text beside them stays), answers without a
    call, reasoning and vendor fields of another provider or model. Call ids that are missing, stand twice in one
    message or do not match `call_id_form` are replaced, the same way every time.
    """
    notes: list[str] = []
    kept: list[Message] = []
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        if message.role in ("tool", "function"):
            notes.append(_orphan(message))
            continue
        if message.status != "completed":
            notes.append(f"left out a message that is {message.status} ({message.role})")
            # Its calls are not sent, so neither are the answers to them.
            place = _skip_answers(messages, place)
            continue
        if message.role != "assistant":
            if message.tool_calls:
                notes.append(f"left out calls in a message of another role ({message.role})")
                message = _without_calls(message)
            kept.append(message)
            continue
        message = _without_foreign(message, provider, model, notes)
        end = _skip_answers(messages, place)
        if calls := message.tool_calls:
            following = messages[place:end]
            answers = [answer for _, answer in _pairs(calls, following) if answer is not None]
            if len(answers) == len(calls):
                kept += [message, *map(_without_calls, answers)]
                notes += [_orphan(answer) for answer in following if not any(answer is one for one in answers)]
                place = end
                continue
            notes.append(f"left out an exchange without all its answers ({', '.join(call.name for call in calls)})")
            place = end
            message = _without_calls(message)
        if any(not isinstance(part, ReasoningPart) for part in message.parts):
            kept.append(message)
    return FittedHistory(_with_ids(kept, call_id_form, notes), tuple(notes))


def _orphan(answer: Message) -> str:
    return f"left out an answer without its call ({answer.tool_call_id or answer.name})"


def _skip_answers(messages: Sequence[Message], place: int) -> int:
    while place < len(messages) and messages[place].role in ("tool", "function"):
        place += 1
    return place


def _pairs(calls: Sequence[ToolCall], following: Sequence[Message]) -> list[tuple[ToolCall, Message | None]]:
    """Pair each call with the first whole answer to it among the messages that follow directly."""
    answers = [answer for answer in following[: _skip_answers(following, 0)] if answer.status == "completed"]
    pairs: list[tuple[ToolCall, Message | None]] = []
    for call in calls:
        found = next((place for place, answer in enumerate(answers) if _answers(answer, call)), None)
        pairs.append((call, None if found is None else answers.pop(found)))
    return pairs


def _answers(answer: Message, call: ToolCall) -> bool:
    if call.legacy:
        return answer.role == "function" and answer.name == call.name
    return answer.role == "tool" and (answer.tool_call_id or "") == call.id


def _without_calls(message: Message) -> Message:
    parts = [part for part in message.parts if not isinstance(part, ToolCall)]
    return message if len(parts) == len(message.parts) else _with_parts(message, parts)


def _with_parts(message: Message, parts: Sequence[Part]) -> Message:
    return message.model_copy(update={"parts": tuple(parts)})


def _without_foreign(message: Message, provider: str, model: str, notes: list[str]) -> Message:
    """Drop what only its origin understands: signatures, encrypted reasoning, vendor fields."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ReasoningPart) and part.provider and (part.provider, part.model) != (provider, model):
            notes.append(f"left out reasoning of {part.provider}:{part.model}")
        elif isinstance(part, ToolCall) and part.extras and message.provider not in (None, provider):
            parts.append(replace(part, extras=None))
        elif isinstance(part, OtherPart) and message.provider not in (None, provider):
            notes.append(f"left out a part of {message.provider} ({part.data.get('type')})")
        else:
            parts.append(part)
    extras = message.extras if message.provider in (None, provider) else {}
    if len(parts) == len(message.parts) and extras is message.extras:
        return message
    return message.model_copy(update={"parts": tuple(parts), "extras": extras})


def _with_ids(messages: list[Message], form: re.Pattern[str] | None, notes: list[str]) -> list[Message]:
    """Replace ids that the target refuses; the answers of a message follow it in the order of its calls.

    A legacy call, which has none, gets one where a form is demanded, and so becomes a call like any other.
    """
    taken = {call.id for message in messages for call in message.tool_calls if _has_form(call.id, form)}
    fitted: list[Message] = []
    waiting: list[ToolCall] = []  # calls whose answers come next
    changed = 0
    for place, message in enumerate(messages):
        if calls := message.tool_calls:
            waiting = []
            for call in calls:
                stays = call.legacy and form is None
                if not stays and (not _has_form(call.id, form) or any(call.id == other.id for other in waiting)):
                    call = replace(call, id=_short_id(f"{place}\n{call.id}", taken), legacy=False)
                    taken.add(call.id)
                    changed += 1
                waiting.append(call)
            if waiting != calls:
                written = iter(waiting)
                message = _with_parts(
                    message, [next(written) if isinstance(part, ToolCall) else part for part in message.parts]
                )
        elif waiting:
            call = waiting.pop(0)
            if not call.legacy and (message.role, message.tool_call_id) != ("tool", call.id):
                message = message.model_copy(update={"role": "tool", "tool_call_id": call.id})
        fitted.append(message)
    if changed:
        notes.append(f"rewrote {changed} call ids" + (f" to the form {form.pattern}" if form is not None else ""))
    return fitted


def _has_form(id: str, form: re.Pattern[str] | None) -> bool:
    return id != "" if form is None else form.fullmatch(id) is not None


def _short_id(seed: str, taken: set[str]) -> str:
    """Make nine letters and digits from a seed; a number is appended to the seed in the unlikely case of a clash."""
    for attempt in range(1000):
        number = int.from_bytes(
            hashlib.blake2b(f"{seed}\n{attempt}".encode("utf-8", "replace"), digest_size=8).digest()
        )
        letters = ""
        for _ in range(9):
            number, rest = divmod(number, len(_LETTERS))
            letters += _LETTERS[rest]
        if letters not in taken:
            return letters
    raise AssertionError("62 ** 9 ids cannot all be taken")
