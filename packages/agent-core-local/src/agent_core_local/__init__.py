"""agent-core's adapter for a GGUF file: llama.cpp's server inside the process, no key, no service."""

from ._provider import LocalDialect, LocalProvider
from ._server import LlamaServer

__all__ = ["LlamaServer", "LocalDialect", "LocalProvider"]
