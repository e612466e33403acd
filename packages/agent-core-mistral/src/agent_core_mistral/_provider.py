"""Mistral, through the mistralai SDK.

Decides the client and what differs on Mistral's wire. What is common is chatwire's.

Mistral refuses an order of messages that others take (400, code 3230); its rules are those of mistral-common's
`protocol/instruct/validator.py`. The repairs change the least that makes an order pass, and never the stored history.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from agent_core import AudioPart, FilePart, Message, ReasoningPart, RetryPolicy
from agent_core.chatwire import Dialect, OpenAICompatibleProvider, find_api_key
from agent_core.errors import ConfigError

from ._transport import MistralTransport

if TYPE_CHECKING:
    from mistralai.client import Mistral

__all__ = ["MistralDialect", "MistralProvider"]

_BRIDGE = "OK."  # an empty assistant message is refused too, by the validators of older models


class MistralDialect(Dialect):
    """Mistral's service. `prompt_mode`, `safe_prompt`, `guardrails` and the like go through `extra`."""

    seed_key: ClassVar[str] = "random_seed"
    required_word: ClassVar[str] = "any"
    stream_parameters: ClassVar[dict[str, Any]] = {}  # usage comes unasked, and what Mistral does not know it refuses
    knows_refusal: ClassVar[bool] = False
    call_id_form: ClassVar[re.Pattern[str] | None] = re.compile(r"[A-Za-z0-9]{9}")  # else 400, code 3280

    def pop_error(self, wire: dict[str, Any]) -> Any:
        """Take the error; a gateway's has neither `error` nor an `object`: `detail`, or `message` and `request_id`."""
        error = super().pop_error(wire)
        return dict(wire) if error is None and ("detail" in wire or "message" in wire) else error

    def reasoning_fields(self, reasoning: list[ReasoningPart]) -> dict[str, Any]:
        """Write nothing: reasoning is content here, and a field for it is refused (422 `extra_forbidden`)."""
        return {}

    def content_part(self, part: Any) -> dict[str, Any] | None:
        """Write one part in Mistral's form (mistralai: models/thinkchunk.py, documenturlchunk.py, audiochunk.py)."""
        match part:
            case ReasoningPart(field="thinking"):
                detail = part.details[0] if part.details else {}
                thoughts = [{"type": "text", "text": part.text}] if part.text else []
                signature = {"signature": part.signature} if part.signature else {}
                thinking = [*thoughts, *detail.get("thinking", ())]
                return {"type": "thinking", **detail, "thinking": thinking, **signature}
            case FilePart(file_id=str()):
                return {"type": "file", "file_id": part.file_id, **(part.extras or {})}
            case FilePart():
                name = {"document_name": part.filename} if part.filename else {}
                return {"type": "document_url", "document_url": part.data, **name, **(part.extras or {})}
            case AudioPart():
                return {"type": "input_audio", "input_audio": part.data}
        return super().content_part(part)

    def message(self, message: Message, wire: dict[str, Any]) -> dict[str, Any]:
        """Rename what Mistral calls otherwise: it has no `developer`, and only a tool's answer has a name there."""
        if message.role == "developer":
            wire["role"] = "system"
        wire.pop("name", None)
        if message.role == "tool" and message.name:
            wire["name"] = self.tool_name(message.name)
        return wire

    def messages(self, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Repair the order.

        - `system` after an answer or a result ("Unexpected role 'system' after role 'assistant'"): sent as `user`.
        - `user` after a result ("Unexpected role 'user' after role 'tool'"): an answer of two letters goes between.
        - `assistant` last ("Expected last role User or Tool (or Assistant with prefix)"): marked as `prefix`, so that
          the model goes on with it; on any other message that mark is refused, and taken off.
        """
        ordered: list[dict[str, Any]] = []
        for message in written:
            before = ordered[-1]["role"] if ordered else ""
            if message["role"] == "system" and before in ("assistant", "tool"):
                message["role"] = "user"
            if message["role"] == "user" and before == "tool":
                ordered.append({"role": "assistant", "content": _BRIDGE})
            if ordered:
                ordered[-1].pop("prefix", None)
            ordered.append(message)
        if ordered and ordered[-1]["role"] == "assistant":
            ordered[-1]["prefix"] = True
        return ordered


class MistralProvider(OpenAICompatibleProvider):
    """Mistral.

    Args:
        client: a `Mistral` client of one's own in place of the options below; it stays open.
        api_key: the key; by default the environment variable MISTRAL_API_KEY, or a service account's token
            (MISTRAL_SA_TOKEN_PATH).
        base_url: the address, without `/v1`, which the SDK adds; by default Mistral's own.
        timeout: how long to wait for each next piece of an answer (seconds); by default the client's own, else 600.
        retry, max_retries: when a failed request is sent again; the SDK's own retries are off.
        think_tags: whether reasoning is taken out of the text between `<think>` tags.
        headers: sent with every request.
        name: what the provider is called in completions and errors.

    Raises:
        ConfigError: no key, both a client and options for one, or a client of another kind.
    """

    def __init__(
        self,
        client: Mistral | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        max_retries: int | None = None,
        think_tags: bool | None = None,
        headers: Mapping[str, str] | None = None,
        name: str = "mistral",
    ) -> None:
        if client is not None and (api_key or base_url or headers):
            raise ConfigError("pass either a client or api_key, base_url and headers: a client brings its own")
        owned = client is None
        transport = MistralTransport(client or _client(api_key, base_url), provider=name, headers=headers, owned=owned)
        super().__init__(
            name=name,
            dialect=MistralDialect(),
            transport=transport,
            think_tags=think_tags,
            retry=retry,
            max_retries=max_retries,
            timeout=timeout,
        )


def _client(api_key: str | None, base_url: str | None) -> Mistral:
    given = (api_key or "").strip()
    # The SDK itself reads the token, before each request, where it was given no key (_hooks/service_account_auth.py).
    by_token = not given and os.environ.get("MISTRAL_SA_TOKEN_PATH")
    key = None if by_token else find_api_key("mistral", "MISTRAL_API_KEY", given)
    from mistralai.client import Mistral

    return Mistral(api_key=key, server_url=(base_url or "").strip() or None)
