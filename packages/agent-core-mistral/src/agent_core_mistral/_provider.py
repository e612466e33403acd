"""Mistral, through the mistralai SDK.

Decides the client and what differs on Mistral's wire. What is common is chatwire's.

Mistral refuses an order of messages that others take (400, code 3230); its rules are those of mistral-common's
`protocol/instruct/validator.py`. The repairs change the least that makes an order pass, and never the stored history.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from math import ceil
from typing import Any, ClassVar

from agent_core import AudioPart, FilePart, Message, ReasoningPart
from agent_core.chatwire import Dialect, SdkProvider, find_api_key

from ._transport import MistralTransport

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


class MistralProvider(SdkProvider):
    """Mistral, over `Mistral`.

    The options are those of `SdkProvider`. The key is MISTRAL_API_KEY, or a service account's token, whose file
    MISTRAL_SA_TOKEN_PATH names. `base_url` goes without `/v1`, which the SDK adds; by default it is
    MISTRAL_BASE_URL (read here, as the SDK has no such variable), else Mistral's own.
    """

    vendor = "mistral"
    sdk_client = "mistralai.client:Mistral"
    key_variable = "MISTRAL_API_KEY"
    dialect_class = MistralDialect

    def transport_over(self, client: Any, *, name: str, headers: Mapping[str, str]) -> MistralTransport:
        """Send by Mistral's own SDK, which has no raw-response interface."""
        return MistralTransport(client, provider=name, headers=headers)

    async def aclose(self) -> None:
        """Close the client that this provider made. One that was passed in stays open."""
        if self._owned is not None:
            self._closed = True
            await self._owned.__aexit__(None, None, None)
            self._owned.__exit__(None, None, None)

    def _client(
        self, api_key: str | None, base_url: str | None, timeout: float | None, headers: Mapping[str, str] | None
    ) -> Any:
        given = (api_key or "").strip()
        # Without a key the SDK itself reads the token, before each request (_hooks/service_account_auth.py).
        by_token = not given and os.environ.get("MISTRAL_SA_TOKEN_PATH")
        key = None if by_token else find_api_key(self.vendor, self.key_variable, given)
        from mistralai.client import Mistral

        milliseconds = ceil(timeout * 1000) if timeout else None
        address = (base_url or "").strip() or os.environ.get("MISTRAL_BASE_URL", "").strip()
        return Mistral(api_key=key, server_url=address or None, timeout_ms=milliseconds)
