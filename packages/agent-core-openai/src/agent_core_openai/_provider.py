"""OpenAI and every server that speaks its wire, through the openai SDK.

Decides the client and what differs between OpenAI itself and compatible servers. The wire is chatwire's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from agent_core import RetryPolicy
from agent_core.chatwire import Dialect, OpenAICompatibleProvider, find_api_key
from agent_core.errors import ConfigError

if TYPE_CHECKING:
    from openai import AsyncAzureOpenAI, AsyncOpenAI, AzureOpenAI, OpenAI

__all__ = ["CompatibleDialect", "OpenAIDialect", "OpenAIProvider"]

_CONNECT = 5.0  # seconds; the SDK's own default, kept while `timeout` sets the rest


class CompatibleDialect(Dialect):
    """Servers that speak OpenAI's wire: DeepSeek, OpenRouter, vLLM, Ollama, llama.cpp and many more."""


class OpenAIDialect(Dialect):
    """OpenAI's own service, and Azure's."""

    # max_tokens is deprecated, and refused by reasoning models (openai: types/chat/completion_create_params.py).
    max_tokens_key: ClassVar[str] = "max_completion_tokens"


class OpenAIProvider(OpenAICompatibleProvider):
    """OpenAI, or a compatible server at `base_url`.

    Args:
        client: a client of one's own (`AsyncOpenAI`, `OpenAI`, or their Azure forms) in place of the options below.
        api_key: the key; by default the environment variable OPENAI_API_KEY. A server that needs none takes any text.
        base_url: the address, its `/v1` included; by default OPENAI_BASE_URL, else OpenAI's own.
        timeout: how long to wait for each next piece of an answer (seconds).
        retry, max_retries: when a failed request is sent again; the SDK's own retries are off.
        think_tags: whether reasoning is taken out of the text between `<think>` tags.
        headers: sent with every request.
        dialect: how the server differs from the common wire; by default OpenAI's own for its address and Azure's, that
            of compatible servers elsewhere. Behind a proxy, name it: `dialect=OpenAIDialect()`.
        name: what the provider is called in completions and errors.

    Raises:
        ConfigError: no key, or both a client and options for one.
    """

    def __init__(
        self,
        client: AsyncOpenAI | OpenAI | AsyncAzureOpenAI | AzureOpenAI | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        max_retries: int | None = None,
        think_tags: bool | None = None,
        headers: Mapping[str, str] | None = None,
        dialect: Dialect | None = None,
        name: str = "openai",
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
            dialect=dialect or _dialect_for(client),
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
) -> AsyncOpenAI:
    key = find_api_key("openai", "OPENAI_API_KEY", api_key)
    from openai import AsyncOpenAI, Timeout

    return AsyncOpenAI(
        api_key=key,
        base_url=(base_url or "").strip() or None,
        timeout=Timeout(timeout or 600.0, connect=_CONNECT),
        max_retries=0,
        default_headers=dict(headers or {}),
    )


def _dialect_for(client: Any) -> Dialect:
    host = str(getattr(getattr(client, "base_url", None), "host", ""))
    if host.endswith(("openai.com", ".azure.com")):
        return OpenAIDialect()
    return CompatibleDialect()
