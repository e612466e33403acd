"""A GGUF file as a provider.

Decides which file a request means, and what llama.cpp's server wants told differently. The wire is chatwire's, the way
to it `_transport`'s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_core import Completion, CompletionRequest, RetryPolicy
from agent_core.chatwire import ChatStream, Dialect, OpenAICompatibleProvider
from agent_core.errors import ConfigError

from ._server import LlamaServer, load_xllamacpp
from ._transport import LocalTransport

__all__ = ["LocalDialect", "LocalProvider"]

_VARIABLE = "AGENT_CORE_LOCAL_MODEL"
# Sent as a server_error with status 500, also inside a stream, though it is the model's words that are at fault.
_UNREADABLE_CALL = re.compile(r"model produced output that does not match the expected .* format")


class LocalDialect(Dialect):
    """The wire of llama.cpp's server."""

    def pop_error(self, wire: dict[str, Any]) -> Any:
        """Tell a call that could not be read from a failure of the server: the same request would fail again."""
        error = super().pop_error(wire)
        if isinstance(error, dict) and _UNREADABLE_CALL.search(str(error.get("message"))):
            return {**error, "code": "tool_use_failed"}
        return error


class LocalProvider(OpenAICompatibleProvider):
    """Models in GGUF files, run by llama.cpp inside this process. Needs no key and no service.

    A request's model is the path of its file, as in `load_model("local:/path/to/model.gguf")`. The model loads with the
    first request, or with `preload`; providers of the same file and options share one server, which stops when the last
    of them is closed. xllamacpp holds the interpreter's lock while a model loads, so everything else waits meanwhile.

    Args:
        model_path: the file for every request, whatever model that names.
        base_url: a llama.cpp server that runs already, its `/v1` included: nothing is started, and the model is
            whatever it serves; `api_key` where it wants one.
        port, context, threads, slots, chat_template, verbose, startup_timeout: see `LlamaServer`.
        on_load: told in a line of text when a model begins to load and when it is ready.
        timeout: how long to wait for any bytes of an answer (seconds).
        first_chunk_timeout, idle_timeout: how long a stream may take to begin, and to stay silent then (seconds).
        retry, max_retries: when a failed request is sent again.
        think_tags: whether reasoning is taken out of the text between `<think>` tags.
        name: what the provider is called in completions and errors.

    Raises:
        ConfigError: xllamacpp is not installed. What is wrong with a file is told when it is asked for.
    """

    def __init__(
        self,
        *,
        model_path: str | Path | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        port: int | None = None,
        context: int | None = None,
        threads: int | None = None,
        slots: int = 2,
        chat_template: str | Path | None = None,
        verbose: bool = False,
        startup_timeout: float = 60.0,
        on_load: Callable[[str], object] | None = None,
        timeout: float | None = None,
        first_chunk_timeout: float | None = None,
        idle_timeout: float | None = None,
        retry: RetryPolicy | None = None,
        max_retries: int | None = None,
        think_tags: bool | None = None,
        name: str = "local",
    ) -> None:
        if base_url is None:
            load_xllamacpp()
        options = {
            "port": port,
            "context": context,
            "threads": threads,
            "slots": slots,
            "chat_template": chat_template,
            "verbose": verbose,
            "startup_timeout": startup_timeout,
        }
        self._model_path = model_path
        self._local = LocalTransport(options, on_load=on_load, provider=name, base_url=base_url, api_key=api_key)
        super().__init__(
            name=name,
            dialect=LocalDialect(),
            transport=self._local,
            think_tags=think_tags,
            retry=retry,
            max_retries=max_retries,
            timeout=timeout,
            first_chunk_timeout=first_chunk_timeout,
            idle_timeout=idle_timeout,
        )

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask for a whole answer. It is streamed, for llama.cpp ends no other kind when its caller has gone.

        Raises:
            ConfigError: no file, a wrong one, or one that llama.cpp cannot run.
            ProviderError: the server failed; `partial` holds what had arrived.
        """
        async with self.stream(request) as stream:
            async for _ in stream:
                pass
            return stream.completion

    def stream(self, request: CompletionRequest) -> ChatStream:
        """Ask for an answer piece by piece: `async with provider.stream(request) as stream`.

        Raises:
            ConfigError, ProviderError: as `complete` does, on entering or while iterating.
        """
        return super().stream(self._fitted(request))

    def preload(self, model: str = "") -> LlamaServer:
        """Load a model now instead of with the first request, and give its server. Blocks meanwhile.

        Raises:
            ConfigError: no file, a wrong one, or one that llama.cpp cannot run.
        """
        return self._local.load(self._path(model))

    def _path(self, model: str) -> str:
        path = str(self._model_path or model or os.environ.get(_VARIABLE, "").strip())
        if not path:
            raise ConfigError(
                f"no model file: name it, as in 'local:/path/to/model.gguf', pass model_path=..., or set {_VARIABLE}"
            )
        return path

    def _fitted(self, request: CompletionRequest) -> CompletionRequest:
        """Name the file, and say with `required` alone which tools may be called: llama.cpp heeds no other word.

        With `none` it would still show the tools to the model, and of a tool's name it makes `auto`.
        """
        update: dict[str, Any] = {"model": self._path(request.model)}
        chosen = [tool for tool in request.tools or () if tool.function.name == request.tool_choice]
        if request.tool_choice == "none":
            update |= {"tools": None, "tool_choice": None}
        elif chosen:
            update |= {"tools": chosen, "tool_choice": "required"}
        return request.model_copy(update=update)
