"""The provider contract, held by the together adapter."""

from __future__ import annotations

from typing import Any

from agent_core_together import TogetherProvider
from simulated import SimulatedContract


class TestTogether(SimulatedContract):
    """Together, on a model that writes its reasoning between tags."""

    vendor = "together"
    official_url = "https://api.together.ai"
    sdk = "together"
    key_variable = "TOGETHER_API_KEY"
    model = "deepseek-ai/DeepSeek-R1"
    extras = ("seed",)

    def provider(self, base_url: str, **options: Any) -> TogetherProvider:
        return TogetherProvider(**{"api_key": "unused", "base_url": base_url, **options})
