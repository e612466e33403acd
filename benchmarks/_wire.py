"""The canned answers, in each vendor's own shape: keys, their order and their number are as on the real wire.

Bytes are made once, when the server starts; a stream has one HTTP frame for each event, as vendors send it.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["CHUNKS", "KINDS", "VENDORS", "ask", "frames", "stream_of", "whole_of"]

VENDORS = ("openai", "groq", "mistral", "together")
KINDS = ("text", "reasoning", "arguments")
CHUNKS = 500
"""Chunks of a stream, without the one that ends it."""

_WORDS = (" the", " quick", " brown", " fox", " jumps", " over", " a", " lazy", " dog", ".")
_PIECES = ('{"city', '": "', "Paris", '", "', "unit", '": "', "celsius", '", "', "days", '": 3')
_MODELS = {
    "openai": "gpt-4o-mini-2024-07-18",
    "groq": "openai/gpt-oss-120b",
    "mistral": "mistral-small-latest",
    "together": "deepseek-ai/DeepSeek-V3.1",
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}


def ask(vendor: str, *, tools: bool = False) -> dict[str, Any]:
    """What every program asks, as arguments of an SDK's `create()` or as a body."""
    messages = [
        {"role": "system", "content": "You are a helpful assistant. Answer in one sentence."},
        {"role": "user", "content": "What is the weather like in Paris today?"},
    ]
    return {"model": _MODELS[vendor], "messages": messages, **({"tools": [_TOOL]} if tools else {})}


def stream_of(vendor: str, kind: str) -> list[bytes]:
    """The events of one streamed answer."""
    chunks = [_chunk(vendor, {"role": "assistant", "content": ""}, number=0)]
    chunks += [_chunk(vendor, _delta(vendor, kind, number), number=number) for number in range(1, CHUNKS)]
    chunks.append(
        _chunk(vendor, {"content": ""}, number=CHUNKS, finish="tool_calls" if kind == "arguments" else "stop")
    )
    return [*(b"data: " + _json(chunk) + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]


def whole_of(vendor: str, *, calls: bool = False) -> bytes:
    """One whole answer: a sentence, or a tool call."""
    message: dict[str, Any] = {"role": "assistant", "content": "It is 18 degrees and sunny in Paris today."}
    if vendor == "openai":
        message |= {"refusal": None, "annotations": []}
    if calls:
        call = {"id": "Abcdef123", "type": "function", "function": {"name": "get_weather"}}
        call["function"]["arguments"] = '{"city": "Paris", "days": 3}'  # type: ignore[index]
        message |= {"content": None, "tool_calls": [call]}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    if vendor != "mistral":
        choice["logprobs"] = None
    head = {"id": "chatcmpl-B1946ac92492d2347c6235b4d2611184", "object": "chat.completion", "created": 1775237394}
    return _json({**head, "model": _MODELS[vendor], "choices": [choice], **_end(vendor)})


def frames(events: list[bytes]) -> bytes:
    """The body of a chunked answer, one frame for each event."""
    return b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


def _delta(vendor: str, kind: str, number: int) -> dict[str, Any]:
    word = _WORDS[number % len(_WORDS)]
    if kind == "text":
        return {"content": word}
    if kind == "arguments":
        first = number == 1
        function = {"name": "get_weather", "arguments": ""} if first else {"arguments": _PIECES[number % len(_PIECES)]}
        call: dict[str, Any] = {"index": 0, **({"id": "Abcdef123", "type": "function"} if first else {})}
        if vendor == "mistral" and not first:  # as models that others made send them there; its own send whole calls
            call, function = {"type": "function", "index": 0}, {"name": "", **function}
            return {"tool_calls": [{**call, "function": function}], "index": 0, "content": ""}
        return {"tool_calls": [{**call, "function": function}]}
    if vendor == "mistral":
        return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": word}]}]}
    if vendor == "groq":
        return {"reasoning": word, "channel": "analysis"}
    return {"reasoning_content": word} if vendor == "openai" else {"reasoning": word}


def _chunk(vendor: str, delta: dict[str, Any], *, number: int, finish: str | None = None) -> dict[str, Any]:
    padding = "abcdefghijklmnopqrstuvwxyz0123456789"[: 4 + number % 8]  # against guessing lengths on encrypted wires
    chunk: dict[str, Any] = {"id": "chatcmpl-B1946ac92492d2347c6235b4d2611184", "object": "chat.completion.chunk"}
    chunk |= {"created": 1775237394, "model": _MODELS[vendor]}
    end = _end(vendor) if finish else {}
    if vendor == "openai":
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk |= {"service_tier": "default", "system_fingerprint": "fp_162d3c480f"}
        return {**chunk, "choices": [choice], "usage": None, **end, "obfuscation": padding}
    if vendor == "groq":
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**chunk, "system_fingerprint": "fp_c82faf3ca0", "choices": [choice], **end}
    if vendor == "together":
        choice = {"index": 0, "logprobs": None, "finish_reason": finish}
        if "tool_calls" in delta:
            return {**chunk, "choices": [{**choice, "delta": delta}]}
        choice |= {"text": delta.get("content") or "", "seed": None}
        return {**chunk, "choices": [{**choice, "delta": {"token_id": 1000 + number, **delta}}], "usage": None, **end}
    return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "p": padding, **end}


def _end(vendor: str) -> dict[str, Any]:
    usage: dict[str, Any] = {"prompt_tokens": 31, "completion_tokens": 66, "total_tokens": 97}
    if vendor == "openai":
        usage["prompt_tokens_details"] = {"cached_tokens": 0, "audio_tokens": 0}
        usage["completion_tokens_details"] = {"reasoning_tokens": 0, "audio_tokens": 0}
        return {"usage": usage, "service_tier": "default", "system_fingerprint": "fp_162d3c480f"}
    if vendor == "groq":
        usage |= {"queue_time": 0.0200, "prompt_time": 0.0022, "completion_time": 0.0801, "total_time": 0.0823}
        return {"usage": usage, "x_groq": {"id": "req_01kkht5b3yfqdt97w99bdntjns", "usage": usage}}
    return {"usage": usage}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
