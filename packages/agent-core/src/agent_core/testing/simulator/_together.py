"""Together: the role and the text twice in every chunk, tags around thoughts, `eos`, finish reasons that repeat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._scenarios import Said
from ._failures import Failure
from ._reply import ALPHANUMERIC, HEX, LOWER, Reply, alternating, argument_pieces, text_pieces
from ._voice import Voice

__all__ = ["TogetherVoice"]

_END_OF_TEXT = 128009


class TogetherVoice(Voice):
    """Together, as recorded in 2025 and 2026."""

    vendor = "together"
    json_type = "application/json; charset=utf-8"
    stream_type = "text/event-stream;charset=utf-8"

    def headers(self, *, stream: bool, seed: str = "") -> dict[str, str]:
        """Give a wait with every answer, also with those that succeed."""
        return {**super().headers(stream=stream, seed=seed), "retry-after": "2"}

    def _error_body(self, failure: Failure) -> dict[str, Any]:
        names = {"message": failure.message, "type": failure.type, "param": failure.param, "code": failure.code}
        return {"id": self._id(Reply((), {}, failure.message)), "error": {**names, **failure.more}}

    def _whole(self, reply: Reply) -> dict[str, Any]:
        return {
            "id": self._id(reply),
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "prompt": [],
            "choices": [
                {
                    "finish_reason": self._finish(reply, said),
                    "seed": self._seed(reply, index),
                    "index": index,
                    "logprobs": None,
                    "message": {
                        "role": "assistant",
                        "content": _content(said) or (None if said.calls else ""),
                        "tool_calls": self._calls(reply, index, said),
                    },
                }
                for index, said in enumerate(reply.said)
            ],
            "usage": self._usage(reply),
        }

    def _chunks(self, reply: Reply) -> Iterator[dict[str, Any]]:
        choices = list(alternating(*(self._choices(reply, index, said) for index, said in enumerate(reply.said))))
        for at, choice in enumerate(choices):
            chunk = {
                "id": self._id(reply),
                "object": "chat.completion.chunk",
                "created": reply.created,
                "choices": [choice],
                "model": reply.model,
            }
            if at == len(choices) - 1:
                yield {**chunk, "usage": self._usage(reply)}
            elif "seed" in choice:
                yield {**chunk, "usage": None}
            else:
                yield chunk

    def _choices(self, reply: Reply, index: int, said: Said) -> list[dict[str, Any]]:
        finish = self._finish(reply, said)
        steps = [self._choice(reply, index, piece) for piece in text_pieces(_content(said))]
        if said.calls and not steps:
            steps.append({**self._choice(reply, index, ""), "role": "assistant"})
        for at, call in enumerate(self._calls(reply, index, said)):
            arguments = call["function"].pop("arguments")
            call["function"]["arguments"] = ""
            steps.append(self._choice(reply, index, "", tool_calls=[call]))
            *pieces, last = argument_pieces(arguments) or [""]
            steps += [self._choice(reply, index, "", tool_calls=[_rest(at, piece)]) for piece in pieces]
            # Each call is finished by itself, so that another may start after a finish reason.
            steps.append(self._choice(reply, index, "", finish, tool_calls=[_rest(at, last)]))
        end = self._choice(reply, index, "", finish)
        end["delta"]["token_id"] = _END_OF_TEXT
        if not said.calls:  # where there are calls, only the last chunk has a seed and a usage, even a null one
            steps = [{**step, "seed": None} for step in steps]
        return [*steps, {**end, "seed": self._seed(reply, index)}]

    @staticmethod
    def _choice(reply: Reply, index: int, text: str, finish: str | None = None, **more: object) -> dict[str, Any]:
        token = reply.number(128_000, "token", text) if text else None
        return {
            "index": index,
            "text": text,
            "logprobs": None,
            "finish_reason": finish,
            "delta": {"token_id": token, "role": "assistant", "content": text, **more},
        }

    @staticmethod
    def _calls(reply: Reply, index: int, said: Said) -> list[dict[str, Any]]:
        return [
            {
                "index": at,
                "id": f"call_{reply.token(LOWER, 24, 'call', index, at)}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for at, call in enumerate(said.calls)
        ]

    @staticmethod
    def _usage(reply: Reply) -> dict[str, Any]:
        return {
            "prompt_tokens": reply.input_tokens,
            "completion_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "cached_tokens": reply.said[0].cached_tokens or 0,
        }

    def _finish(self, reply: Reply, said: Said) -> str:
        finish = super()._finish(reply, said)
        return "eos" if finish == "stop" and not said.reasoning else finish

    @staticmethod
    def _seed(reply: Reply, index: int) -> int:
        """A number beyond what fits a double, its last digits rounded away."""
        return (2**52 + reply.number(2**50, "seed", index)) * 2000

    @staticmethod
    def _id(reply: Reply) -> str:
        return (
            f"o{reply.token(ALPHANUMERIC, 6, 'id')}-{reply.token(ALPHANUMERIC, 6, 'key')}-{reply.token(HEX, 16, 'ray')}"
        )


def _rest(at: int, arguments: str) -> dict[str, Any]:
    return {"index": at, "function": {"arguments": arguments}}


def _content(said: Said) -> str:
    return f"<think>\n{said.reasoning}\n</think>\n{said.text}" if said.reasoning else said.text
