"""The real provider of each vendor over its real SDK, built the way a user builds it, for tests that serve it answers.

What is known of a vendor here is only what a user would have to know too: its name.
"""

from __future__ import annotations

from typing import Any

from agent_core import OpenAICompatibleProvider, installed_providers, load_provider

__all__ = ["VENDORS", "provider_of"]

VENDORS = tuple(name for name in ("openai", "groq", "mistral", "together") if name in installed_providers())
"""The vendors whose adapters are installed, by the names that the cases use."""


def provider_of(vendor: str, base_url: str, *, api_key: str = "unused", **options: Any) -> OpenAICompatibleProvider:
    """Load a vendor's provider by name, without retries, so that one call is one request."""
    provider = load_provider(vendor, api_key=api_key, base_url=base_url, max_retries=0, **options)
    assert isinstance(provider, OpenAICompatibleProvider)
    return provider
