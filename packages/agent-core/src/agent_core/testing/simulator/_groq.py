"""Groq: whole tool calls, reasoning beside the content, usage twice or three times, errors as a named event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._scenarios import Said
from ._failures import FAILURES, Failure
from ._reply import HEX, LOWER, Reply, event, text_pieces
from ._voice import Voice

__all__ = ["GroqVoice"]


class GroqVoice(Voice):
    """Groq, as recorded in 2026."""

    vendor = "groq"
    path = "/openai/v1/chat/completions"

    def _error_body(self, failure: Failure) -> dict[str, Any]:
        body: dict[str, Any] = {"message": failure.message, "type": failure.type}
        if failure.param is not None:
            body["param"] = failure.param
        if failure.code is not None:
            body["code"] = failure.code
        return {"error": {**body, **failure.more}}

    def stream_error(self) -> bytes:
        """Give the error as a named event. No `[DONE]` follows it."""
        failure = FAILURES[self.vendor]["tool_use_failed"]
        error = {**self._error_body(failure)["error"], "failed_generation": "", "status_code": failure.status}
        return event({"error": error}, "error")

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
                    "logprobs": None,
                    "finish_reason": self._finish(reply, said),
                }
                for index, said in enumerate(reply.said)
            ],
            "usage": self._usage(reply),
            "usage_breakdown": None,
            "system_fingerprint": self._fingerprint(reply),
            "x_groq": {"id": self._request_id(reply), "seed": reply.number(2**31, "seed")},
            "service_tier": "on_demand",
        }

    def _message(self, reply: Reply, index: int, said: Said) -> dict[str, Any]:
        reasoning, text = _shown(reply, said)
        message: dict[str, Any] = {"role": "assistant"}
        if text or not said.calls:  # beside calls alone the key is left out
            message["content"] = text
        if reasoning:
            message["reasoning"] = reasoning
        if said.calls:
            message["tool_calls"] = [self._call(reply, index, said, at) for at in range(len(said.calls))]
        return message

    def _chunks(self, reply: Reply) -> Iterator[dict[str, Any]]:
        (said,) = reply.said
        reasoning, text = _shown(reply, said)
        about = {"id": self._request_id(reply)}
        usage = self._usage(reply)
        first = self._chunk(reply, {"role": "assistant", "content": "" if text or not said.calls else None})
        yield {**first, "x_groq": {**about, "seed": reply.number(2**31, "seed")}}
        for piece in text_pieces(reasoning):
            yield self._chunk(reply, {"reasoning": piece, "channel": "analysis"})
        for piece in text_pieces(text):
            yield self._chunk(reply, {"content": piece})
        for at in range(len(said.calls)):
            yield self._chunk(reply, {"tool_calls": [{**self._call(reply, 0, said, at), "index": at}]})
        end = self._chunk(reply, {}, self._finish(reply, said))
        yield {**end, "x_groq": {**about, "usage": usage}, "usage": usage}
        if reply.wants_usage:
            yield {**self._head(reply), "choices": [], "usage": usage, "service_tier": "on_demand"}

    def _chunk(self, reply: Reply, delta: object, finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head(reply), "choices": [choice]}

    def _head(self, reply: Reply) -> dict[str, Any]:
        return {
            "id": self._id(reply),
            "object": "chat.completion.chunk",
            "created": reply.created,
            "model": reply.model,
            "system_fingerprint": self._fingerprint(reply),
        }

    @staticmethod
    def _usage(reply: Reply) -> dict[str, Any]:
        prompt_time, completion_time = reply.input_tokens * 7.1e-05 + 1e-06, reply.output_tokens * 2.3e-03 + 1e-06
        usage: dict[str, Any] = {
            "queue_time": 0.180000001,
            "prompt_tokens": reply.input_tokens,
            "prompt_time": prompt_time,
            "completion_tokens": reply.output_tokens,
            "completion_time": completion_time,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "total_time": prompt_time + completion_time,
        }
        said = reply.said[0]
        if said.cached_tokens is not None:  # only when there were any
            usage["prompt_tokens_details"] = {"cached_tokens": said.cached_tokens}
        if said.reasoning_tokens is not None:
            usage["completion_tokens_details"] = {"reasoning_tokens": said.reasoning_tokens}
        return usage

    def _call(self, reply: Reply, index: int, said: Said, at: int) -> dict[str, Any]:
        call = said.calls[at]
        return {
            "id": self._call_id(reply, index, call.name, at),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }

    @staticmethod
    def _call_id(reply: Reply, index: int, name: str, at: int) -> str:
        """Each model behind Groq has a form of its own."""
        if "gpt-oss" in reply.model:
            return f"fc_{reply.uuid('call', index, at)}"
        if "kimi" in reply.model:
            return f"functions.{name}:{at}"  # the same again in the next turn
        return reply.token(LOWER, 9, "call", index, at)

    def _ids(self, reply: Reply) -> dict[str, str]:
        return {"x-request-id": self._request_id(reply)}

    @staticmethod
    def _id(reply: Reply) -> str:
        return f"chatcmpl-{reply.uuid('id')}"

    @staticmethod
    def _request_id(reply: Reply) -> str:
        return f"req_01{reply.token(LOWER, 24, 'request')}"

    @staticmethod
    def _fingerprint(reply: Reply) -> str:
        return f"fp_{reply.token(HEX, 10, 'fingerprint')}"


def _shown(reply: Reply, said: Said) -> tuple[str, str]:
    """Reasoning and text as they are shown: qwen models write tags into the text unless told to keep them apart."""
    form = reply.request.get("reasoning_format") or ("raw" if "qwen" in reply.model else "parsed")
    if not said.reasoning or form == "hidden" or reply.request.get("include_reasoning") is False:
        return "", said.text
    if form == "raw":
        return "", f"<think>\n{said.reasoning}\n</think>\n\n{said.text}"
    return said.reasoning, said.text
