"""agent-core's adapter for Together AI."""

from ._provider import TogetherDialect, TogetherProvider

__all__ = ["TogetherDialect", "TogetherProvider"]
