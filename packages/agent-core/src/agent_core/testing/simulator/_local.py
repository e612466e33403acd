"""llama.cpp's own server: `reasoning_content`, timings, arguments that begin in the first fragment of a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._scenarios import Said
from ._failures import Failure
from ._reply import ALPHANUMERIC, Reply, alternating, argument_pieces, logprobs_of, text_pieces
from ._voice import Voice

__all__ = ["LocalVoice"]

_BUILD = "b10499-6d05498"


class LocalVoice(Voice):
    """llama.cpp's server, as recorded in 2026."""

    vendor = "local"
    base = "/v1"
    needs_key = False  # unless it is started with one
    json_type = "application/json; charset=utf-8"

    def read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Leave out the name of a tool as a choice: it is taken for `auto`, even where there is no such tool."""
        if isinstance(request.get("tool_choice"), dict):
            return {**request, "tool_choice": "auto"}
        return request

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
                    **self._logprobs(reply, said, text_pieces(said.text)),
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
        words = text_pieces(said.text)
        before: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
        before += [{"reasoning_content": piece} for piece in text_pieces(said.reasoning)]
        text = [
            self._choice(index, {"content": word}, **self._logprobs(reply, said, words, at))
            for at, word in enumerate(words)
        ]
        return [
            *(self._choice(index, delta) for delta in before),
            *text,
            *(self._choice(index, delta) for delta in self._call_deltas(reply, index, said)),
            self._choice(index, {}, self._finish(reply, said)),
        ]

    def _call_deltas(self, reply: Reply, index: int, said: Said) -> Iterator[dict[str, Any]]:
        for at, call in enumerate(said.calls):
            function = {"name": call.name, "arguments": call.arguments[:1]}
            start = {"index": at, "id": self._call_id(reply, index, at), "type": "function", "function": function}
            yield {"tool_calls": [start]}
            for piece in argument_pieces(call.arguments[1:]):
                yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}

    @staticmethod
    def _choice(index: int, delta: object, finish_reason: str | None = None, **more: object) -> dict[str, Any]:
        return {"finish_reason": finish_reason, "index": index, "delta": delta, **more}

    @staticmethod
    def _logprobs(reply: Reply, said: Said, words: list[str], at: int | None = None) -> dict[str, Any]:
        """Each token has its number, too. There are 20 alternatives unless a request says how many."""
        if not said.logprobs:
            return {}
        alternatives = reply.request.get("top_logprobs")
        content = logprobs_of(words, 20 if alternatives is None else alternatives)
        for token in content:
            for each in (token, *token["top_logprobs"]):
                each["id"] = reply.number(49_152, "token", each["token"])
        return {"logprobs": {"content": content if at is None else content[at : at + 1]}}

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
