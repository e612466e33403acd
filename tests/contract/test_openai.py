"""The provider contract, held by the openai adapter."""

from __future__ import annotations

from typing import Any

from agent_core_openai import OpenAIDialect, OpenAIProvider
from simulated import SimulatedContract


class TestOpenAI(SimulatedContract):
    """OpenAI itself; compatible servers are held by the recordings in tests/recordings."""

    vendor = "openai"
    official_url = "https://api.openai.com/v1"
    sdk = "openai"
    key_variable = "OPENAI_API_KEY"
    model = "gpt-5.1"
    extras = ("service_tier", "system_fingerprint")

    def provider(self, base_url: str, **options: Any) -> OpenAIProvider:
        return OpenAIProvider(**{"api_key": "unused", "base_url": base_url, "dialect": OpenAIDialect(), **options})
