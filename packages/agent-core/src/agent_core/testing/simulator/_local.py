"""llama.cpp's own server: `reasoning_content`, timings, arguments that begin in the first fragment of a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._scenarios import Said
from ._failures import Failure
from ._reply import ALPHANUMERIC, Reply, alternating, argument_pieces, text_pieces
from ._voice import Voice

__all__ = ["LocalVoice"]

_BUILD = "b10499-6d05498"


class LocalVoice(Voice):
    """llama.cpp's server, as recorded in 2026."""

    vendor = "local"
    base = "/v1"
    json_type = "application/json; charset=utf-8"

    def _error_body(self, failure: Failure) -> dict[str, Any]:
        error = {"code": failure.status, "message": failure.message, "type": failure.type}
        return {"error": {**error, **failure.more}}

    def _whole(self, reply: Reply) -> dict[str, Any]:
        return {
            "choices": [
                {
                    "finish_reason": self._finish(reply, said),
                    "index": index,
                    "message": self._message(reply, index, said),
                }
                for index, said in enumerate(reply.said)
            ],
            **self._head(reply, "chat.completion"),
            "usage": self._usage(reply.said[0]),
            "timings": self._timings(reply.said[0]),
        }

    def _message(self, reply: Reply, index: int, said: Said) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text}
        if said.reasoning:
            message["reasoning_content"] = said.reasoning
        if said.calls:
            message["tool_calls"] = [
                {
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                    "id": self._call_id(reply, index, at),
                }
                for at, call in enumerate(said.calls)
            ]
        return message

    def _chunks(self, reply: Reply) -> Iterator[dict[str, Any]]:
        tracks = [self._choices(reply, index, said) for index, said in enumerate(reply.said)]
        for choice in alternating(*tracks):
            chunk = {"choices": [choice], **self._head(reply, "chat.completion.chunk")}
            if choice["finish_reason"] is None:
                yield chunk
                continue
            said = reply.said[choice["index"]]
            if not reply.wants_usage:
                yield {**chunk, "timings": self._timings(said)}
                continue
            yield chunk
            # Each choice has a usage of its own, so there are as many such chunks as choices.
            yield {**chunk, "choices": [], "usage": self._usage(said), "timings": self._timings(said)}

    def _choices(self, reply: Reply, index: int, said: Said) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
        deltas += [{"reasoning_content": piece} for piece in text_pieces(said.reasoning)]
        deltas += [{"content": piece} for piece in text_pieces(said.text)]
        for at, call in enumerate(said.calls):
            function = {"name": call.name, "arguments": call.arguments[:1]}
            start = {"index": at, "id": self._call_id(reply, index, at), "type": "function", "function": function}
            deltas.append({"tool_calls": [start]})
            deltas += [
                {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}
                for piece in argument_pieces(call.arguments[1:])
            ]
        steps = [{"finish_reason": None, "index": index, "delta": delta} for delta in deltas]
        return [*steps, {"finish_reason": self._finish(reply, said), "index": index, "delta": {}}]

    @staticmethod
    def _head(reply: Reply, kind: str) -> dict[str, Any]:
        return {
            "created": reply.created,
            "id": f"chatcmpl-{reply.token(ALPHANUMERIC, 32, 'id')}",
            "model": reply.model,
            "system_fingerprint": _BUILD,
            "object": kind,
        }

    @staticmethod
    def _usage(said: Said) -> dict[str, Any]:
        return {
            "completion_tokens": said.output_tokens,
            "prompt_tokens": said.input_tokens,
            "total_tokens": said.input_tokens + said.output_tokens,
            "prompt_tokens_details": {"cached_tokens": said.cached_tokens or 0},
        }

    @staticmethod
    def _timings(said: Said) -> dict[str, Any]:
        cached = said.cached_tokens or 0
        fresh = max(said.input_tokens - cached, 1)
        prompt, predicted = fresh * 0.541, max(said.output_tokens, 1) * 7.123
        return {
            "cache_n": cached,
            "prompt_n": fresh,
            "prompt_ms": prompt,
            "prompt_per_token_ms": prompt / fresh,
            "prompt_per_second": 1000 * fresh / prompt,
            "predicted_n": said.output_tokens,
            "predicted_ms": predicted,
            "predicted_per_token_ms": predicted / max(said.output_tokens, 1),
            "predicted_per_second": 1000 * said.output_tokens / predicted,
        }

    def _ids(self, reply: Reply) -> dict[str, str]:
        return {}

    @staticmethod
    def _call_id(reply: Reply, index: int, at: int) -> str:
        return reply.token(ALPHANUMERIC, 32, "call", index, at)
