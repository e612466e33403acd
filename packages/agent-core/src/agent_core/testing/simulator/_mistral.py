"""Mistral: content lists while it thinks, whole calls with the end of the stream, ids of nine, four forms of error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._scenarios import Said
from ._failures import FAILURES, Failure
from ._reply import ALPHANUMERIC, HEX, LOWER, Reply, alternating, text_pieces
from ._voice import Voice

__all__ = ["MistralVoice"]

_PADDING = LOWER + "abcdefghij"


_BY_GATEWAY = [FAILURES["mistral"][kind] for kind in ("no_key", "not_found", "no_route", "too_large")]


class MistralVoice(Voice):
    """Mistral's own models, as recorded in 2026."""

    vendor = "mistral"
    stream_type = "text/event-stream; charset=utf-8"

    def _error_body(self, failure: Failure) -> dict[str, Any]:
        if failure in _BY_GATEWAY:
            return {"message": failure.message, "request_id": Reply((), {}, failure.message).token(HEX, 32, "request")}
        if failure.status == 401:
            return {"detail": failure.message}
        if failure.status == 422:
            return {"detail": [dict(failure.more)]}
        return {
            "object": "error",
            "message": failure.message,
            "type": failure.type,
            "param": failure.param,
            "code": failure.code,
            "raw_status_code": failure.status,
        }

    def _whole(self, reply: Reply) -> dict[str, Any]:
        return {
            "id": reply.token(HEX, 32, "id"),
            "created": reply.created,
            "model": reply.model,
            "usage": self._usage(reply),
            "object": "chat.completion",
            "choices": [
                {
                    "index": index,
                    "finish_reason": self._finish(reply, said),
                    "message": {
                        "role": "assistant",
                        "tool_calls": self._calls(reply, index, said) or None,
                        "content": _content(said),
                    },
                }
                for index, said in enumerate(reply.said)
            ],
        }

    def _chunks(self, reply: Reply) -> Iterator[dict[str, Any]]:
        choices = list(alternating(*(self._choices(reply, index, said) for index, said in enumerate(reply.said))))
        for at, choice in enumerate(choices):
            chunk: dict[str, Any] = {
                "id": reply.token(HEX, 32, "id"),
                "object": "chat.completion.chunk",
                "created": reply.created,
                "model": reply.model,
                "choices": [choice],
            }
            if at == len(choices) - 1:  # usage is on the chunk that ends the last choice
                chunk["usage"] = self._usage(reply)
            if at >= len(reply.said):
                chunk["p"] = _PADDING[: 1 + reply.number(36, "padding", at)]
            yield chunk

    def _choices(self, reply: Reply, index: int, said: Said) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"content": piece} for piece in text_pieces(said.text)]
        thoughts = text_pieces(said.reasoning)
        thinking = [{"content": [_thinking(piece, closed=at > 0)]} for at, piece in enumerate(thoughts)]
        if thinking and deltas:  # the last thought and the first word of the text come in one delta
            text = {"type": "text", "text": deltas.pop(0)["content"]}
            thinking[-1]["content"].append(text)
        deltas = [*thinking, *deltas]
        if said.calls:
            deltas.append({"tool_calls": self._calls(reply, index, said)})
        if not deltas or isinstance(deltas[-1].get("content"), list):
            deltas.append({"content": ""})
        first = {"role": "assistant", "content": ""}
        *steps, last = [first, *deltas]
        return [
            *({"index": index, "delta": delta, "finish_reason": None} for delta in steps),
            {"index": index, "delta": last, "finish_reason": self._finish(reply, said)},
        ]

    @staticmethod
    def _calls(reply: Reply, index: int, said: Said) -> list[dict[str, Any]]:
        return [
            {
                "id": reply.token(ALPHANUMERIC, 9, "call", index, at),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                "index": at,
            }
            for at, call in enumerate(said.calls)
        ]

    @staticmethod
    def _usage(reply: Reply) -> dict[str, Any]:
        return {
            "prompt_tokens": reply.input_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "completion_tokens": reply.output_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.said[0].cached_tokens or 0},
            "service_tier": "standard",
        }

    def _ids(self, reply: Reply) -> dict[str, str]:
        known = reply.uuid("request")
        return {"mistral-correlation-id": known, "x-kong-request-id": known}


def _thinking(text: str, *, closed: bool) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    return {**part, "closed": True} if closed else part


def _content(said: Said) -> str | list[dict[str, Any]]:
    if not said.reasoning:
        return said.text
    text = [{"type": "text", "text": said.text}] if said.text else []
    return [_thinking(said.reasoning, closed=True), *text]
