"""Acme AI for agent-core: an OpenAI-shaped vendor in a few lines."""

from typing import ClassVar

from agent_core import FinishReason
from agent_core.chatwire import Dialect, SdkProvider


class AcmeDialect(Dialect):
    """Acme's wire is OpenAI's, but for the name of the seed and a finish reason of its own."""

    seed_key: ClassVar[str] = "random_seed"
    finish_reasons: ClassVar[dict[str, FinishReason]] = {**Dialect.finish_reasons, "done": "stop"}


class AcmeProvider(SdkProvider):
    """Acme AI, through the openai SDK at Acme's address."""

    vendor = "acme"
    sdk_client = "openai:AsyncOpenAI"
    key_variable = "ACME_API_KEY"
    default_base_url = "https://api.acme.example/v1"
    dialect_class = AcmeDialect
