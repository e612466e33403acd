"""Together AI, through the together SDK.

Decides what differs on Together's wire. The wire and the client are chatwire's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, ClassVar

from agent_core import CompletionRequest, Message
from agent_core.chatwire import Dialect, SdkProvider

__all__ = ["TogetherDialect", "TogetherProvider"]


class TogetherDialect(Dialect):
    """Together's service."""

    # Both are in the SDK's types; where both come, they say the same.
    reasoning_keys: ClassVar[tuple[str, ...]] = ("reasoning", "reasoning_content")
    think_models: ClassVar[re.Pattern[str] | None] = re.compile(r"deepseek-r1|qwen-?3|qwq", re.IGNORECASE)
    content_copy: ClassVar[str | None] = "text"
    knows_refusal: ClassVar[bool] = False

    def logprobs(self, wire: Any, choice: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any] | None:
        """Read Together's own forms: lists side by side in a whole answer, the number of one token in a chunk."""
        if isinstance(wire, int | float):
            texts = (said.get("content"), said.get("reasoning"), said.get("reasoning_content"), choice.get("text"))
            token = next((text for text in texts if text and isinstance(text, str)), "")
            top = choice.pop("top_logprobs", None)
            return {"content": [_entry(token, wire, said.get("token_id"), top)]}
        if not isinstance(wire, dict) or not isinstance(wire.get("token_logprobs"), list):
            return super().logprobs(wire, choice, said)
        rest = dict(wire)
        # The SDK types `top_logprobs` as one mapping; the service sends a list of them, one for each token.
        keys = ("tokens", "token_logprobs", "token_ids", "top_logprobs")
        columns = [rest.pop(key) if isinstance(rest.get(key), list) else [] for key in keys]
        return {"content": [_entry(*row) for row in zip_longest(*columns)], **rest}

    def parameters(self, request: CompletionRequest) -> dict[str, Any]:
        """Leave out `parallel_tool_calls`, which Together does not know."""
        options = super().parameters(request)
        options.pop("parallel_tool_calls", None)
        return options

    def logprobs_parameters(self, alternatives: int) -> dict[str, Any]:
        """Ask with one number; 0 would ask for none, and 1 gives the chosen token."""
        return {"logprobs": max(alternatives, 1)}

    def message(self, message: Message, wire: dict[str, Any]) -> dict[str, Any]:
        """Call a developer's instructions the system's: Together has no other role for them."""
        return {**wire, "role": "system"} if message.role == "developer" else wire


class TogetherProvider(SdkProvider):
    """Together AI, over `AsyncTogether`.

    The options are those of `SdkProvider`; `client` may be `AsyncTogether` or `Together`. The key is TOGETHER_API_KEY.
    `base_url` goes without `/v1`, which the SDK adds; by default it is TOGETHER_BASE_URL, else Together's own.
    """

    vendor = "together"
    sdk_client = "together:AsyncTogether"
    key_variable = "TOGETHER_API_KEY"
    dialect_class = TogetherDialect


def _entry(text: Any, logprob: Any, id: Any, alternatives: Any) -> dict[str, Any]:
    others = alternatives.items() if isinstance(alternatives, dict) else ()
    entry = {**_token(text, logprob), "top_logprobs": [_token(*other) for other in others]}
    if id is not None:
        entry["token_id"] = int(id) if isinstance(id, float) else id
    return entry


def _token(text: Any, logprob: Any) -> dict[str, Any]:
    return {"token": text or "", "logprob": logprob, "bytes": None}
