"""agent-core's adapter for OpenAI and every server that speaks its wire."""

from ._provider import CompatibleDialect, OpenAIDialect, OpenAIProvider

__all__ = ["CompatibleDialect", "OpenAIDialect", "OpenAIProvider"]
