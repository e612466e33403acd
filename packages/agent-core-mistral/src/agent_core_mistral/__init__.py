"""agent-core's adapter for Mistral."""

from ._provider import MistralDialect, MistralProvider

__all__ = ["MistralDialect", "MistralProvider"]
