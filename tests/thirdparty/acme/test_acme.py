"""The provider contract, held by a stranger's adapter."""

from pathlib import Path
from typing import Any, ClassVar

from agent_core import load_provider
from agent_core.testing import Capability, ProviderContract


class TestAcme(ProviderContract):
    """Acme has tools and a system message, and no more."""

    vendor = "acme"
    cassettes = Path(__file__).parent / "cassettes"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {"system", "tools", "tool_choice_auto", "parallel_tools", "json_schema"}
    )
    official_url = "https://api.acme.example/v1"
    sdk = "openai"
    key_variable = "ACME_API_KEY"
    voice = "openai"

    def provider(self, base_url: str, **options: Any) -> Any:
        return load_provider("acme", **{"api_key": "unused", "base_url": base_url, **options})
