"""agent-core's adapter for Groq."""

from ._provider import GroqDialect, GroqProvider

__all__ = ["GroqDialect", "GroqProvider"]
