"""What several tests of the local adapter use."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

import anyio
import anyio.to_thread

__all__ = ["LONG", "PATIENCE", "WEATHER", "array", "entry", "eventually", "gguf", "text", "until"]

PATIENCE = 120.0  # seconds; what takes one on an idle machine, for one that is very busy
LONG = {"messages": [{"role": "user", "content": "Count from one to a thousand."}], "max_tokens": 1800}
"""A request whose answer takes longer than any test: ends only where it is stopped. Needs `ignore_eos` too."""
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a condition of another thread or program, which gives no event; fails when patience is out."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that blocks while it is looked at, without blocking the loop."""
    with anyio.fail_after(PATIENCE):
        while not await anyio.to_thread.run_sync(condition):  # noqa: ASYNC110
            await anyio.sleep(0.01)  # llama.cpp gives no event


# GGUF written by hand


def text(value: str | bytes) -> bytes:
    """Write a string: its length, then its bytes."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: int, value: bytes) -> bytes:
    """Write one entry of the metadata."""
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, *items: bytes) -> bytes:
    """Write an array of one type."""
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def gguf(*entries: bytes, version: int = 3, count: int | None = None) -> bytes:
    """Write a file without tensors."""
    head = struct.pack("<IQQ", version, 0, len(entries) if count is None else count)
    return b"GGUF" + head + b"".join(entries)
