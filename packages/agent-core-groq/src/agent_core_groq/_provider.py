"""Groq, through the groq SDK.

Decides what differs on Groq's wire. The wire and the client are chatwire's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from agent_core.chatwire import Dialect, SdkProvider

__all__ = ["GroqDialect", "GroqProvider"]


class GroqDialect(Dialect):
    """Groq's service. Its own block `x_groq` stays in the completion's extras, as do `executed_tools`."""

    # max_tokens is deprecated (groq: types/chat/completion_create_params.py).
    max_tokens_key: ClassVar[str] = "max_completion_tokens"
    # Only this one is a property of an assistant message there (types/chat/chat_completion_assistant_message_param.py).
    reasoning_keys: ClassVar[tuple[str, ...]] = ("reasoning",)
    # Tags are the default of these models, unless tools or a JSON mode make Groq parse them; `reasoning_format`,
    # `include_reasoning` and the rest go through `extra`.
    think_models: ClassVar[re.Pattern[str] | None] = re.compile(r"qwen-?3|qwq|deepseek-r1", re.IGNORECASE)
    error_block: ClassVar[str] = "x_groq"
    knows_refusal: ClassVar[bool] = False

    def pop_usage(self, wire: dict[str, Any]) -> Any:
        """Take usage from both places: a stream has it in `x_groq`, and richer beside it where it was asked for."""
        usage = wire.pop("usage", None)
        if "x_groq" not in wire:  # nearly every chunk
            return usage
        copy = _block(wire).get("usage")
        # In a whole answer this counts what hardware caches served, which is no usage but an extra.
        if not isinstance(copy, dict) or "prompt_tokens" not in copy:
            return usage
        told = usage if isinstance(usage, dict) else {}
        return {**copy, **{key: value for key, value in told.items() if value is not None}}

    def pop_error(self, wire: dict[str, Any]) -> Any:
        """Take the error; a stream that was stopped early says so in `x_groq`, with a text alone."""
        error = super().pop_error(wire)
        block = _block(wire)
        return dict(block) if error is None and block.get("error") else error


class GroqProvider(SdkProvider):
    """Groq, over `AsyncGroq`.

    The options are those of `SdkProvider`; `client` may be `AsyncGroq` or `Groq`. The key is GROQ_API_KEY. `base_url`
    goes without `/openai/v1`, which the SDK adds; by default it is GROQ_BASE_URL, else Groq's own.
    """

    vendor = "groq"
    sdk_client = "groq:AsyncGroq"
    key_variable = "GROQ_API_KEY"
    dialect_class = GroqDialect


def _block(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    block = wire.get("x_groq")
    return block if isinstance(block, dict) else {}
