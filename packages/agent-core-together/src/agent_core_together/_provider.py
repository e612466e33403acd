"""Together AI, through the together SDK.

Decides the client and what differs on Together's wire. What is common is chatwire's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from agent_core import CompletionRequest, Message, RetryPolicy
from agent_core.chatwire import Dialect, OpenAICompatibleProvider, find_api_key
from agent_core.errors import ConfigError

if TYPE_CHECKING:
    from together import AsyncTogether, Together

__all__ = ["TogetherDialect", "TogetherProvider"]

_CONNECT = 5.0  # seconds; the SDK's own default, kept while `timeout` sets the rest


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
            token = said.get("content") or said.get("reasoning") or choice.get("text") or ""
            wire = {"tokens": [token], "token_logprobs": [wire], "token_ids": [said.get("token_id")]}
            wire["top_logprobs"] = [choice.pop("top_logprobs", None)]
        elif not isinstance(wire, dict) or "token_logprobs" not in wire:
            return super().logprobs(wire, choice, said)
        rest = dict(wire)
        # The SDK types one mapping of alternatives, the service sends a list of them, one for each token.
        tops = rest.pop("top_logprobs") if isinstance(rest.get("top_logprobs"), list) else []
        columns = [rest.pop(key, None) or [] for key in ("tokens", "token_logprobs", "token_ids")]
        return {"content": [_entry(*row) for row in zip_longest(*columns, tops)], **rest}

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


class TogetherProvider(OpenAICompatibleProvider):
    """Together AI.

    Args:
        client: a client of one's own (`AsyncTogether` or `Together`) in place of the options below.
        api_key: the key; by default the environment variable TOGETHER_API_KEY.
        base_url: the address, without `/v1`, which the SDK adds; by default TOGETHER_BASE_URL, else Together's own.
        timeout: how long to wait for each next piece of an answer (seconds).
        retry, max_retries: when a failed request is sent again; the SDK's own retries are off.
        think_tags: whether reasoning is taken out of the text between `<think>` tags; None: for models that write them.
        headers: sent with every request.
        name: what the provider is called in completions and errors.

    Raises:
        ConfigError: no key, or both a client and options for one.
    """

    def __init__(
        self,
        client: AsyncTogether | Together | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        max_retries: int | None = None,
        think_tags: bool | None = None,
        headers: Mapping[str, str] | None = None,
        name: str = "together",
    ) -> None:
        self._owned: Any = None
        if client is None:
            client = self._owned = _client(api_key, base_url, timeout, headers)
            timeout = None  # the client has it, with a shorter wait for the connection
        elif api_key or base_url or headers:
            raise ConfigError("pass either a client or api_key, base_url and headers: a client brings its own")
        super().__init__(
            client,
            name=name,
            dialect=TogetherDialect(),
            think_tags=think_tags,
            retry=retry,
            max_retries=max_retries,
            timeout=timeout,
        )

    async def aclose(self) -> None:
        """Close the client that this provider made. One that was passed in stays open."""
        if self._owned is not None:
            await self._owned.close()


def _client(
    api_key: str | None, base_url: str | None, timeout: float | None, headers: Mapping[str, str] | None
) -> AsyncTogether:
    key = find_api_key("together", "TOGETHER_API_KEY", api_key)
    from together import AsyncTogether, Timeout

    return AsyncTogether(
        api_key=key,
        base_url=(base_url or "").strip() or None,
        timeout=Timeout(timeout or 600.0, connect=_CONNECT),
        max_retries=0,
        default_headers=dict(headers or {}),
    )


def _entry(text: str | None, logprob: float | None, id: float | None, alternatives: Any) -> dict[str, Any]:
    others = alternatives.items() if isinstance(alternatives, dict) else ()
    entry = {**_token(text, logprob), "top_logprobs": [_token(*other) for other in others]}
    return entry if id is None else {**entry, "token_id": int(id)}


def _token(text: str | None, logprob: float | None) -> dict[str, Any]:
    return {"token": text or "", "logprob": logprob, "bytes": None}
