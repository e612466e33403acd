"""What may differ between vendors that speak the chat-completions wire.

A difference that is a value is a class attribute; one that is a shape is a small method with a default. The defaults
are those of compatible servers at large (vLLM, Ollama, llama.cpp, DeepSeek, OpenRouter).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from .._completion import CompletionRequest, FinishReason, Usage
from .._json import mend_text
from .._messages import Message
from .._parts import AudioPart, FilePart, ImagePart, OtherPart, Part, ReasoningPart, RefusalPart, TextPart

__all__ = ["Dialect"]

_UNSENDABLE = re.compile(r"[^A-Za-z0-9_-]")


class Dialect:
    """The wire of one vendor, told as facts. Override only what differs; `docs` for each names the vendors."""

    max_tokens_key: ClassVar[str] = "max_tokens"
    seed_key: ClassVar[str] = "seed"
    required_word: ClassVar[str] = "required"
    """The word that makes the model call some tool; Mistral says `any`."""
    stream_parameters: ClassVar[dict[str, Any]] = {"stream_options": {"include_usage": True}}
    """What a streamed request needs besides `stream` in order to report usage."""
    reasoning_keys: ClassVar[tuple[str, ...]] = ("reasoning_content", "reasoning")
    """Where reasoning text stands in a message or delta; the first that is not empty counts, as both may be sent."""
    think_models: ClassVar[re.Pattern[str] | None] = None
    """Models known to write their reasoning into the text, between `<think>` and `</think>`."""
    error_block: ClassVar[str] = "error"
    """Where a chunk may hold an error beside its choices; Groq has a block of its own for it."""
    content_copy: ClassVar[str | None] = None
    """A key of a choice that repeats the content beside it; Together sends `text`."""
    knows_refusal: ClassVar[bool] = True
    """Whether a refusal is sent back in a field of its own, as OpenAI has it; else it is sent as text."""
    call_id_form: ClassVar[re.Pattern[str] | None] = None
    """The form of call ids that the vendor demands, where it demands one."""
    finish_reasons: ClassVar[dict[str, FinishReason]] = {
        "stop": "stop",
        "eos": "stop",  # Together
        "eos_token": "stop",  # Hugging Face endpoints
        "end_turn": "stop",
        "stop_sequence": "stop",
        "length": "length",
        "model_length": "length",  # Mistral: the context, not max_tokens, was the limit
        "max_tokens": "length",
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
        "content_filter": "content_filter",
        "error": "error",
    }

    # Reading an answer

    def finish_reason(self, word: str) -> FinishReason:
        """Name the end of an answer; a word nobody knows is `unknown`."""
        return self.finish_reasons.get(word, "unknown")

    def pop_usage(self, wire: dict[str, Any]) -> Any:
        """Take the usage object out of a body or chunk, wherever the vendor puts it."""
        return wire.pop("usage", None)

    def pop_error(self, wire: dict[str, Any]) -> Any:
        """Take the error out of a body or chunk; None where it holds none."""
        if error := wire.get("error"):  # an empty one beside an answer is none
            # Beside a plain text stand the code and type that an error object has inside.
            return {**wire, "error": wire.pop("error")} if isinstance(error, str) else wire.pop("error")
        return dict(wire) if wire.get("object") == "error" else None

    def usage(self, counts: Mapping[str, Any]) -> Usage:
        """Read token counts. Cached ones are told in four ways: OpenAI's, Together's, Mistral's and DeepSeek's."""
        rest = dict(counts)
        prompt, completion = rest.pop("prompt_tokens", None), rest.pop("completion_tokens", None)
        total = rest.pop("total_tokens", None)
        cached = _pop_detail(rest, "prompt_tokens_details", "cached_tokens")
        for key in ("cached_tokens", "num_cached_tokens", "prompt_cache_hit_tokens"):
            if cached is None:
                cached = _count(rest.pop(key, None))
        reasoning = _pop_detail(rest, "completion_tokens_details", "reasoning_tokens")
        if reasoning is None:
            reasoning = _count(rest.pop("reasoning_tokens", None))  # xAI
        return Usage(_count(prompt), _count(completion), _count(total), cached, reasoning, rest)

    def part(self, item: Any) -> Part:
        """Read one entry of a content list."""
        if isinstance(item, str):
            return TextPart(item)
        if isinstance(item, dict):
            if item.get("type") == "text" and isinstance(item.get("text"), str):
                return TextPart(item["text"])
            if item.get("type") == "refusal" and isinstance(item.get("refusal"), str):
                return RefusalPart(item["refusal"])
            return OtherPart(item)
        return OtherPart({"type": "unknown", "value": item})

    def logprobs(self, wire: Any, choice: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any] | None:
        """Read the log probabilities of a choice, as OpenAI spells them; None for a form that nobody knows.

        Args:
            choice: what else the choice holds; what is read from it is to be taken out.
            said: its message or delta.
        """
        return wire if isinstance(wire, dict) else None

    # Writing a request

    def parameters(self, request: CompletionRequest) -> dict[str, Any]:
        """Write the request's options, without messages, tools and `extra`."""
        options = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            self.max_tokens_key: request.max_output_tokens,
            "stop": request.stop,
            self.seed_key: request.seed,
            "n": request.n,
            "parallel_tool_calls": request.parallel_tool_calls if request.tools else None,
            "reasoning_effort": request.reasoning_effort,
        }
        return {key: value for key, value in options.items() if value is not None}

    def logprobs_parameters(self, alternatives: int) -> dict[str, Any]:
        """Ask for log probabilities with so many alternatives."""
        return {"logprobs": True, "top_logprobs": alternatives}

    def tool_choice(self, choice: str) -> Any:
        """Write the tool choice: a word, or a tool's name."""
        if choice == "required":
            return self.required_word
        return choice if choice in ("auto", "none") else {"type": "function", "function": {"name": choice}}

    def tool_name(self, name: str) -> str:
        """Write the name of a call in the history: vendors refuse others than letters, digits, `_` and `-`."""
        return _UNSENDABLE.sub("_", name.strip())[:64] or "unknown"

    def reasoning_fields(self, reasoning: list[ReasoningPart]) -> dict[str, Any]:
        """Write reasoning back onto an assistant message, in the field it came from."""
        fields: dict[str, Any] = {}
        for part in reasoning:
            if part.field in self.reasoning_keys and part.text:
                fields[part.field] = fields.get(part.field, "") + mend_text(part.text)
            if part.details and part.field != "thinking":  # which is content
                fields["reasoning_details"] = [*fields.get("reasoning_details", ()), *part.details]
        return fields

    def content_part(self, part: Part) -> dict[str, Any] | None:
        """Write one part of a content list; None for what has its place elsewhere in the message."""
        match part:
            case TextPart():
                return {"type": "text", "text": mend_text(part.text), **(part.extras or {})}
            case ImagePart():
                detail = {"detail": part.detail} if part.detail else {}
                return {"type": "image_url", "image_url": {"url": part.url, **detail}, **(part.extras or {})}
            case FilePart():
                known = {"file_id": part.file_id, "file_data": part.data, "filename": part.filename}
                file = {key: value for key, value in known.items() if value is not None}
                return {"type": "file", "file": file, **(part.extras or {})}
            case AudioPart():
                return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
            case OtherPart():
                return dict(part.data)
        return None

    def message(self, message: Message, wire: dict[str, Any]) -> dict[str, Any]:
        """Change a written message before it is sent; `wire` is its common form."""
        return wire

    def messages(self, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Change the written messages as a whole, where a vendor refuses an order that the others take."""
        return written


def _count(value: Any) -> int | None:
    return int(value) if type(value) in (int, float) and math.isfinite(value) else None


def _pop_detail(rest: dict[str, Any], block: str, key: str) -> int | None:
    """Take a count out of a nested block, and the block too once nothing else is in it."""
    details = rest.get(block)
    if not isinstance(details, dict) or key not in details:
        return None
    left = dict(details)
    count = _count(left.pop(key))
    if left:
        rest[block] = left
    else:
        del rest[block]
    return count
