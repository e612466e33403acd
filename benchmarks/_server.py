"""The vendor's part: a process of its own that sends canned bytes, so that only the client's work is counted.

The first part of the address says what is answered, so that a base URL is enough to choose it:

    /openai.text/...     a stream, all of it at once
    /openai.whole/...    one whole answer; /openai.round/... first a tool call, then, to its result, the answer
    /openai.held/...     the beginning of a stream, and nothing more: the client has to leave
    /closed              answers once a held connection has been closed (each is told once)
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from . import _wire

__all__ = ["Server"]

_HEAD = b"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nx-request-id: req_1\r\n"


def _whole(body: bytes) -> bytes:
    return _HEAD + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def _stream(body: bytes) -> bytes:
    return _HEAD + b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n" + body


def _answers() -> dict[str, bytes]:
    """Every answer by name; `round` is chosen in two steps, see `_Connection.answer`."""
    answers = {}
    for vendor in _wire.VENDORS:
        for kind in _wire.KINDS:
            answers[f"{vendor}.{kind}"] = _stream(_wire.frames(_wire.stream_of(vendor, kind)))
        beginning = _wire.frames(_wire.stream_of(vendor, "text")[:5]).removesuffix(b"0\r\n\r\n")
        answers[f"{vendor}.held"] = _stream(beginning)
        answers[f"{vendor}.whole"] = _whole(_wire.whole_of(vendor))
        answers[f"{vendor}.call"] = _whole(_wire.whole_of(vendor, calls=True))
    return answers


class _Connection(asyncio.Protocol):
    """One connection, kept open for the next request."""

    def __init__(self, answers: dict[str, bytes], closed: asyncio.Queue[None]) -> None:
        self._answers = answers
        self._closed = closed
        self._received = b""
        self._held = False
        self._transport: asyncio.WriteTransport | None = None
        self._waiting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, rest = self._received.partition(b"\r\n\r\n")
        if not blank:
            return
        _, found, length = head.lower().partition(b"content-length: ")
        size = int(length.partition(b"\r\n")[0]) if found else 0
        if len(rest) < size:
            return
        self._received = b""
        self.answer(head.split(b" ", 2)[1].decode(), rest)

    def answer(self, path: str, body: bytes) -> None:
        assert self._transport is not None
        name = path.split("/")[1]
        if name == "closed":
            self._waiting = asyncio.get_running_loop().create_task(self._tell_closed())
            return
        vendor, _, kind = name.partition(".")
        self._held = kind == "held"
        if kind == "round":
            kind = "whole" if b'"tool_call_id"' in body else "call"
        self._transport.write(self._answers[f"{vendor}.{kind}"])

    async def _tell_closed(self) -> None:
        assert self._transport is not None
        await self._closed.get()
        self._transport.write(_whole(b"{}"))

    def connection_lost(self, error: Exception | None) -> None:
        if self._held:
            self._closed.put_nowait(None)


class Server:
    """A server that runs: its addresses, and what it saw."""

    def __init__(self, port: int) -> None:
        self.port = port

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Self]:
        """Run a server in a process of its own."""
        command = [sys.executable, "-m", "benchmarks._server"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            # Leaving the block closes the server's input, which ends it, as does the death of this process.
            yield cls(int(process.stdout.readline()))

    def url(self, answer: str) -> str:
        """The address of one answer, without the `/v1` that most SDKs want in a base URL."""
        return f"http://127.0.0.1:{self.port}/{answer}"

    async def closed(self) -> float:
        """Wait until the server has seen a held connection close, and give the time of its word (`perf_counter`)."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /closed HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"{}")
        told = time.perf_counter()
        writer.close()
        return told


async def _serve() -> None:
    answers, closed = _answers(), asyncio.Queue[None]()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(answers, closed), "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
