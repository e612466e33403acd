"""Groq, through the groq SDK.

Decides the client and what differs on Groq's wire. What is common is chatwire's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from agent_core import RetryPolicy
from agent_core.chatwire import Dialect, OpenAICompatibleProvider, find_api_key
from agent_core.errors import ConfigError

if TYPE_CHECKING:
    from groq import AsyncGroq, Groq

__all__ = ["GroqDialect", "GroqProvider"]

_CONNECT = 5.0  # seconds; the SDK's own default, kept while `timeout` sets the rest


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
        copy = _block(wire).get("usage")
        # In a whole answer this counts what hardware caches served, which is no usage but an extra.
        if not isinstance(copy, dict) or "prompt_tokens" not in copy:
            return usage
        return {**copy, **usage} if isinstance(usage, dict) else copy

    def pop_error(self, wire: dict[str, Any]) -> Any:
        """Take the error; a stream that was stopped early says so in `x_groq`, with a text alone."""
        error = super().pop_error(wire)
        block = _block(wire)
        return dict(block) if error is None and block.get("error") else error


class GroqProvider(OpenAICompatibleProvider):
    """Groq.

    Args:
        client: a client of one's own (`AsyncGroq` or `Groq`) in place of the options below.
        api_key: the key; by default the environment variable GROQ_API_KEY.
        base_url: the address, without `/openai/v1`, which the SDK adds; by default GROQ_BASE_URL, else Groq's own.
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
        client: AsyncGroq | Groq | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        max_retries: int | None = None,
        think_tags: bool | None = None,
        headers: Mapping[str, str] | None = None,
        name: str = "groq",
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
            dialect=GroqDialect(),
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
) -> AsyncGroq:
    key = find_api_key("groq", "GROQ_API_KEY", api_key)
    from groq import AsyncGroq, Timeout

    return AsyncGroq(
        api_key=key,
        base_url=(base_url or "").strip() or None,
        timeout=Timeout(timeout or 600.0, connect=_CONNECT),
        max_retries=0,
        default_headers=dict(headers or {}),
    )


def _block(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    block = wire.get("x_groq")
    return block if isinstance(block, dict) else {}
