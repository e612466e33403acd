"""OpenAI and every server that speaks its wire, through the openai SDK.

Decides what differs between OpenAI itself and compatible servers. The wire and the client are chatwire's.
"""

from __future__ import annotations

from typing import Any, ClassVar

from agent_core.chatwire import Dialect, SdkProvider

__all__ = ["CompatibleDialect", "OpenAIDialect", "OpenAIProvider"]


class CompatibleDialect(Dialect):
    """Servers that speak OpenAI's wire: DeepSeek, OpenRouter, vLLM, Ollama, llama.cpp and many more."""


class OpenAIDialect(Dialect):
    """OpenAI's own service, and Azure's."""

    # max_tokens is deprecated, and refused by reasoning models (openai: types/chat/completion_create_params.py).
    max_tokens_key: ClassVar[str] = "max_completion_tokens"


class OpenAIProvider(SdkProvider):
    """OpenAI, or a compatible server at `base_url` (its `/v1` included).

    The options are those of `SdkProvider`; `client` may be `AsyncOpenAI`, `OpenAI` or one of their Azure forms. The key
    is OPENAI_API_KEY; a server that needs none takes any text. The dialect is OpenAI's own for its address and Azure's,
    and that of compatible servers elsewhere; behind a proxy, name it: `dialect=OpenAIDialect()`.
    """

    vendor = "openai"
    sdk_client = "openai:AsyncOpenAI"
    key_variable = "OPENAI_API_KEY"

    def dialect_for(self, client: Any) -> Dialect:
        """Tell OpenAI and Azure from compatible servers by the host."""
        host = str(getattr(getattr(client, "base_url", None), "host", ""))
        return OpenAIDialect() if host.endswith(("openai.com", ".azure.com")) else CompatibleDialect()
