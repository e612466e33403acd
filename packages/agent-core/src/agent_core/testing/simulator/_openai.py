"""OpenAI: fragments keyed by index, usage in a chunk of its own and only on demand, padding, refusals, logprobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._scenarios import Said
from ._failures import Failure
from ._reply import ALPHANUMERIC, HEX, Reply, alternating, argument_pieces, logprobs_of, text_pieces
from ._voice import Voice

__all__ = ["OpenAIVoice"]


class OpenAIVoice(Voice):
    """OpenAI, as recorded from 2024 to 2026."""

    vendor = "openai"
    base = "/v1"
    stream_type = "text/event-stream; charset=utf-8"

    def _error_body(self, failure: Failure) -> dict[str, Any]:
        names = {"message": failure.message, "type": failure.type, "param": failure.param, "code": failure.code}
        return {"error": {**names, **failure.more}}

    def _whole(self, reply: Reply) -> dict[str, Any]:
        return {
            "id": self._id(reply),
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [
                {
                    "index": index,
                    "message": self._message(reply, index, said),
                    "logprobs": self._logprobs(reply, said, text_pieces(said.text)),
                    "finish_reason": self._finish(reply, said),
                }
                for index, said in enumerate(reply.said)
            ],
            "usage": self._usage(reply),
            "service_tier": "default",
            "system_fingerprint": self._fingerprint(reply),
        }

    def _message(self, reply: Reply, index: int, said: Said) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        if not (said.text or said.calls or said.refusal):
            message["content"] = ""
        if said.calls:
            message["tool_calls"] = [
                {
                    "id": self._call_id(reply, index, at),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for at, call in enumerate(said.calls)
            ]
        return {**message, "refusal": said.refusal or None, "annotations": []}

    def _chunks(self, reply: Reply) -> Iterator[dict[str, Any]]:
        tracks = [self._choices(reply, index, said) for index, said in enumerate(reply.said)]
        usage = {"usage": None} if reply.wants_usage else {}
        for at, choice in enumerate(alternating(*tracks)):
            yield {**self._head(reply), "choices": [choice], **usage, **self._padding(reply, at)}
        if usage:
            yield {**self._head(reply), "choices": [], "usage": self._usage(reply), **self._padding(reply, "usage")}

    def _choices(self, reply: Reply, index: int, said: Said) -> list[dict[str, Any]]:
        """The choice objects of one choice, in their order."""
        words = text_pieces(said.text)
        steps = [self._choice(index, self._first_delta(reply, index, said), self._logprobs(reply, said, []))]
        steps += [
            self._choice(index, {"content": word}, self._logprobs(reply, said, words, at))
            for at, word in enumerate(words)
        ]
        steps += [self._choice(index, {"refusal": word}, None) for word in text_pieces(said.refusal)]
        steps += [self._choice(index, delta, None) for delta in self._call_deltas(reply, index, said)]
        return [*steps, self._choice(index, {}, None, self._finish(reply, said))]

    def _first_delta(self, reply: Reply, index: int, said: Said) -> dict[str, Any]:
        if said.refusal:
            return {"role": "assistant", "content": None, "refusal": ""}
        if said.text or not said.calls:
            return {"role": "assistant", "content": "", "refusal": None}
        if len(said.calls) > 1:
            return {"role": "assistant", "content": None}
        start = self._call_start(reply, index, said, 0)  # one call alone starts with the role
        return {"role": "assistant", "content": None, "tool_calls": [start], "refusal": None}

    def _call_deltas(self, reply: Reply, index: int, said: Said) -> Iterator[dict[str, Any]]:
        started = 0 if said.text or len(said.calls) > 1 else 1
        for at, call in enumerate(said.calls):
            if at >= started:
                yield {"tool_calls": [self._call_start(reply, index, said, at)]}
            for piece in argument_pieces(call.arguments):
                yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}

    def _call_start(self, reply: Reply, index: int, said: Said, at: int) -> dict[str, Any]:
        function = {"name": said.calls[at].name, "arguments": ""}
        return {"index": at, "id": self._call_id(reply, index, at), "type": "function", "function": function}

    @staticmethod
    def _choice(index: int, delta: object, logprobs: object, finish_reason: str | None = None) -> dict[str, Any]:
        return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}

    @staticmethod
    def _logprobs(reply: Reply, said: Said, pieces: list[str], at: int | None = None) -> dict[str, Any] | None:
        if not said.logprobs:
            return None
        content = logprobs_of(pieces, reply.request.get("top_logprobs") or 0)
        return {"content": content if at is None else content[at : at + 1], "refusal": None}

    @staticmethod
    def _usage(reply: Reply) -> dict[str, Any]:
        return {
            "prompt_tokens": reply.input_tokens,
            "completion_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.said[0].cached_tokens or 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": sum(said.reasoning_tokens or 0 for said in reply.said),
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }

    def _head(self, reply: Reply) -> dict[str, Any]:
        return {
            "id": self._id(reply),
            "object": "chat.completion.chunk",
            "created": reply.created,
            "model": reply.model,
            "service_tier": "default",
            "system_fingerprint": self._fingerprint(reply),
        }

    @staticmethod
    def _padding(reply: Reply, at: object) -> dict[str, str]:
        """Characters that hide the length of a chunk from those who watch the wire."""
        if (reply.request.get("stream_options") or {}).get("include_obfuscation") is False:
            return {}
        return {"obfuscation": reply.token(ALPHANUMERIC, reply.number(15, "padding", at), "padding", at)}

    def _finish(self, reply: Reply, said: Said) -> str:
        # A tool that was asked for by name ends with "stop".
        if said.calls and said.finish_reason == "stop" and reply.names_a_tool:
            return "stop"
        return super()._finish(reply, said)

    @staticmethod
    def _id(reply: Reply) -> str:
        return f"chatcmpl-{reply.token(ALPHANUMERIC, 29, 'id')}"

    @staticmethod
    def _call_id(reply: Reply, index: int, at: int) -> str:
        return f"call_{reply.token(ALPHANUMERIC, 24, 'call', index, at)}"

    @staticmethod
    def _fingerprint(reply: Reply) -> str:
        return f"fp_{reply.token(HEX, 10, 'fingerprint')}"
