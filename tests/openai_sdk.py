"""The real openai provider over the real SDK, built the way a user builds it, for tests that put a server before it."""

from __future__ import annotations

from typing import Any

from agent_core import load_provider
from agent_core_openai import OpenAIProvider

__all__ = ["openai_provider"]


def openai_provider(base_url: str, *, api_key: str = "unused", **options: Any) -> OpenAIProvider:
    """Load it by its name, without retries, so that one call is one request."""
    provider = load_provider("openai", api_key=api_key, base_url=base_url, max_retries=0, **options)
    assert isinstance(provider, OpenAIProvider)
    return provider
