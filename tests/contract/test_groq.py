"""The provider contract, held by the groq adapter."""

from __future__ import annotations

from typing import Any

from agent_core_groq import GroqProvider
from simulated import SimulatedContract


class TestGroq(SimulatedContract):
    """Groq, on a model that shows its reasoning."""

    vendor = "groq"
    official_url = "https://api.groq.com"
    sdk = "groq"
    key_variable = "GROQ_API_KEY"
    model = "openai/gpt-oss-20b"
    extras = ("x_groq", "queue_time")

    def provider(self, base_url: str, **options: Any) -> GroqProvider:
        return GroqProvider(**{"api_key": "unused", "base_url": base_url, **options})
