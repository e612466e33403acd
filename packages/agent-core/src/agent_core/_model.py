"""A model of one provider, with settings of its own: what `"groq:llama-3.3-70b-versatile"` stands for.

Decides how settings and a request become one request. Finding the provider is left to `_registry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

from ._completion import Completion, CompletionRequest
from ._messages import Message
from ._provider import Completer, CompletionStream, open_stream

__all__ = ["Model", "Prompt"]

Prompt = str | Message | Sequence[Message | Mapping[str, Any]] | CompletionRequest


class Model:
    """A provider, a model name and settings. Asked with a text, messages, or a whole `CompletionRequest`.

    Args:
        provider: what answers.
        name: the vendor's name for the model.
        settings: fields of `CompletionRequest` used where a request leaves them out; other keys are vendor fields.
    """

    def __init__(self, provider: Completer, name: str, settings: Mapping[str, Any] | None = None) -> None:
        self.provider = provider
        self.name = name
        self.settings = dict(settings or {})

    def __repr__(self) -> str:
        return f"<Model {self.provider.name}:{self.name}>"

    def request(self, prompt: Prompt, /, **settings: Any) -> CompletionRequest:
        """Make the request for a prompt: what it says itself counts, then `settings`, then the model's own.

        Raises:
            pydantic.ValidationError: a field is wrong; the error names it.
        """
        said: dict[str, Any]
        if isinstance(prompt, CompletionRequest):
            said = {key: getattr(prompt, key) for key in prompt.model_fields_set if key != "model" or prompt.model}
        elif isinstance(prompt, str):
            said = {"messages": [Message.user(prompt)]}
        elif isinstance(prompt, Message):
            said = {"messages": [prompt]}
        else:
            said = {"messages": prompt}  # what is no list of messages is refused by name
        fields: dict[str, Any] = {"model": self.name}
        extra: dict[str, Any] = {}
        for layer in (self.settings, settings, said):
            extra |= {key: value for key, value in layer.items() if key not in CompletionRequest.model_fields}
            fields |= {key: value for key, value in layer.items() if key in CompletionRequest.model_fields}
            if isinstance(fields.get("extra"), Mapping):
                extra |= fields.pop("extra")
        return CompletionRequest(**{"extra": extra, **fields})

    async def complete(self, prompt: Prompt, /, **settings: Any) -> Completion:
        """Ask for a whole answer. Raises what the provider raises."""
        return await self.provider.complete(self.request(prompt, **settings))

    def stream(self, prompt: Prompt, /, **settings: Any) -> AbstractAsyncContextManager[CompletionStream]:
        """Ask for an answer piece by piece: `async with model.stream("...") as stream`."""
        return open_stream(self.provider, self.request(prompt, **settings))

    async def aclose(self) -> None:
        """Close the provider, where it can be closed."""
        if (close := getattr(self.provider, "aclose", None)) is not None:
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()
