"""How a scenario is asked for at each vendor: bodies written by hand from the vendors' own documentation.

Shares nothing with the library's encoder, so that a test of the simulator is no test of the library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_core.testing._scenarios import SCENARIOS, Said, Scenario
from agent_core.testing.simulator import VENDORS, voice_for

__all__ = ["MODELS", "PLAYED", "Message", "body_for", "conversation", "history_after"]

Message = dict[str, Any]

MODELS = {
    "openai": "gpt-5.1",
    "groq": "openai/gpt-oss-20b",
    "mistral": "magistral-medium-latest",
    "together": "deepseek-ai/DeepSeek-R1",
    "local": "qwen3",
}

PLAYED = [
    (vendor, scenario) for vendor in VENDORS for scenario in SCENARIOS if scenario.needs <= voice_for(vendor).supports
]
"""Each vendor with each scenario that its voice can play."""


def body_for(vendor: str, scenario: Scenario, messages: Sequence[Mapping[str, Any]], *, stream: bool) -> dict[str, Any]:
    """Write the request body for a turn whose messages are given."""
    options = dict(scenario.options)
    body: dict[str, Any] = {"model": MODELS[vendor], "messages": list(messages)}
    if (most := options.pop("max_output_tokens", None)) is not None:
        body["max_tokens"] = most
    if (schema := options.pop("response_format", None)) is not None:
        json_schema = {"name": "person", "schema": schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    if (alternatives := options.pop("logprobs", None)) is not None:
        body |= {"logprobs": True, "top_logprobs": alternatives}
    if (choice := options.pop("tool_choice", None)) is not None:
        body["tool_choice"] = _choice(vendor, choice)
    if vendor == "together":
        options.pop("parallel_tool_calls", None)
    if stream:
        body["stream"] = True
        if vendor != "mistral":
            body["stream_options"] = {"include_usage": True}
    return {**body, **options}


def _choice(vendor: str, choice: str) -> Any:
    if choice in ("auto", "none"):
        return choice
    if choice == "required":
        return "any" if vendor == "mistral" else choice
    return {"type": "function", "function": {"name": choice}}


def conversation(scenario: Scenario) -> Iterator[tuple[Said, list[Message]]]:
    """Give each turn's reply and the messages before it, the calls with ids that every vendor takes."""
    messages: list[Message] = []
    for turn in scenario.turns:
        messages += _asked(turn.ask, messages)
        yield turn.said, list(messages)
        messages.append(history_after(turn.said, len(messages)))


def history_after(said: Said, position: int) -> Message:
    """The assistant's message for the next request."""
    message: Message = {"role": "assistant", "content": said.text}
    if said.calls:
        message["tool_calls"] = [
            {
                "id": f"call{position:03}{at:02}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for at, call in enumerate(said.calls)
        ]
    return message


def _asked(ask: Sequence[Mapping[str, Any]], before: Sequence[Message]) -> list[Message]:
    """The messages of a turn; tool results take the ids of the calls before them, in their order."""
    ids = iter([call["id"] for call in before[-1].get("tool_calls", ())] if before else [])
    return [{**message, "tool_call_id": next(ids)} if message["role"] == "tool" else dict(message) for message in ask]
