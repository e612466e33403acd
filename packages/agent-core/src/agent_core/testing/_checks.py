"""Whether what came out of an adapter is what the model said, with a text that names every difference."""

from __future__ import annotations

from typing import Any

from .._completion import Choice, Completion
from .._json import parse_object
from ._scenarios import Said

__all__ = ["differences"]


def differences(completion: Completion, said: tuple[Said, ...], *, streamed: bool) -> list[str]:
    """Compare a completion with what was said, choice by choice; an empty list means that they agree."""
    found: list[str] = []
    if len(completion.choices) != len(said):
        found.append(f"{len(completion.choices)} choices instead of {len(said)}")
    for choice, words in zip(completion.choices, said, strict=False):
        found += _choice_differences(choice, words)
    first = said[0]
    usage = completion.usage
    if usage is None:
        found.append("no usage")
    else:
        output = sum(words.output_tokens for words in said)
        found += _unequal("input_tokens", usage.input_tokens, first.input_tokens)
        found += _unequal("output_tokens", usage.output_tokens, output)
        found += _unequal("total_tokens", usage.total_tokens, first.input_tokens + output)
        if first.cached_tokens is not None:
            found += _unequal("cached_tokens", usage.cached_tokens, first.cached_tokens)
        if first.reasoning_tokens is not None:
            found += _unequal("reasoning_tokens", usage.reasoning_tokens, first.reasoning_tokens)
    if not completion.id:
        found.append("no id")
    if not completion.model:
        found.append("no model")
    if (completion.raw is None) is not streamed:
        found.append("raw is the body of a whole answer, and None after a stream")
    return found


def _choice_differences(choice: Choice, words: Said) -> list[str]:
    message = choice.message
    found = [
        *_unequal("text", message.text, words.text),
        *_unequal("reasoning", message.reasoning, words.reasoning),
        *_unequal("refusal", message.refusal, words.refusal),
        *_unequal("finish_reason", choice.finish_reason, "tool_calls" if words.calls else words.finish_reason),
        *_unequal("calls", [call.name for call in message.tool_calls], [call.name for call in words.calls]),
    ]
    if choice.raw_finish_reason is None:
        found.append("raw_finish_reason is None although the wire gave one")
    for got, wanted in zip(message.tool_calls, words.calls, strict=False):
        found += _unequal(f"arguments of {got.name}", got.parse(), parse_object(wanted.arguments))
    ids = [call.id for call in message.tool_calls]
    if not all(ids) or len(set(ids)) != len(ids):
        found.append(f"call ids must be there and distinct, got {ids}")
    if words.logprobs:
        tokens = (choice.logprobs or {}).get("content") or []
        found += _unequal("tokens of logprobs", "".join(str(token.get("token")) for token in tokens), words.text)
        found += [f"no logprob in {token}" for token in tokens if not isinstance(token.get("logprob"), float)]
    return found


def _unequal(what: str, got: Any, wanted: Any) -> list[str]:
    return [] if got == wanted else [f"{what}: {got!r} instead of {wanted!r}"]
