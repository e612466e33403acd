"""The provider contract, held by the mistral adapter."""

from __future__ import annotations

from typing import Any

from agent_core_mistral import MistralProvider
from simulated import SimulatedContract


class TestMistral(SimulatedContract):
    """Mistral, on a model that shows its reasoning."""

    vendor = "mistral"
    official_url = "https://api.mistral.ai"
    sdk = "mistralai"
    key_variable = "MISTRAL_API_KEY"
    model = "magistral-medium-latest"

    def provider(self, base_url: str, **options: Any) -> MistralProvider:
        return MistralProvider(**{"api_key": "unused", "base_url": base_url, **options})
