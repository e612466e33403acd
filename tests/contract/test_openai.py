"""The provider contract, held by the openai adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from agent_core.testing import Answer, Capability, ErrorKind, ProviderContract
from agent_core.testing.simulator import voice_for
from agent_core_openai import OpenAIDialect, OpenAIProvider

VOICE = voice_for("openai")


class TestOpenAI(ProviderContract):
    """OpenAI itself; compatible servers are held by the recordings in tests/recordings."""

    vendor = "openai"
    cassettes = Path(__file__).parents[2] / "cassettes" / "openai"
    official_url = "https://api.openai.com/v1"
    sdk = "openai"
    key_variable = "OPENAI_API_KEY"
    model = "gpt-5.1"
    capabilities: ClassVar[frozenset[Capability]] = VOICE.supports
    extras = ("service_tier", "system_fingerprint")

    def provider(self, base_url: str, **options: Any) -> OpenAIProvider:
        return OpenAIProvider(**{"api_key": "unused", "base_url": base_url, "dialect": OpenAIDialect(), **options})

    def error_answer(self, kind: ErrorKind) -> Answer:
        status, headers, body = VOICE.error(kind)
        return Answer(status=status, headers=headers, body=body)

    def stream_error(self) -> bytes:
        return VOICE.stream_error()
