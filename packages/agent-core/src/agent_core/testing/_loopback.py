"""A small HTTP/1.1 server on the loopback interface that gives scripted answers.

It decides how an answer travels: in which pieces, how its end is marked, where it waits, and whether the
connection breaks. What the answer says is left to the test. It exists because a mock inside an HTTP library
hands a stream over as a whole, so cuts, stalls and broken connections never reach the code under test.

    with LoopbackServer(Answer.sse(text, cut="byte")) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="unused")

A cut body is sent as chunked transfer encoding with one frame for each piece. HTTP clients hand the frames over
one by one even where many of them arrive in one read, so a body of 30 kB in single bytes costs one `send` here
and still thirty thousand pieces there.

One thread runs one event loop; every connection is a protocol on it. Nothing polls and nothing sleeps: an answer
waits for a `Gate`, which any thread may open.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import pairwise
from types import TracebackType
from typing import Any, Literal, Self

__all__ = ["Answer", "Cut", "Gate", "LoopbackServer", "ReceivedRequest", "cut_body"]

Cut = Literal["whole", "event", "byte"] | int | Sequence[int]
"""Where a body is cut: nowhere, after each event, after each byte, every n bytes, or at the positions given."""

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_BYTE_FRAMES = tuple(b"1\r\n" + bytes((value,)) + b"\r\n" for value in range(256))
_LAST_FRAME = b"0\r\n\r\n"


def cut_body(body: bytes, cut: Cut) -> list[bytes]:
    """Cut a body into the pieces in which it is to arrive; joined they are the body, and none is empty."""
    if cut == "byte":
        return [body[at : at + 1] for at in range(len(body))]
    if cut == "whole":
        ends = []
    elif cut == "event":
        ends = [found.end() for found in _EVENT_END.finditer(body)]
    elif isinstance(cut, int):
        if cut < 1:
            raise ValueError("a cut every n bytes needs an n of at least 1")
        ends = list(range(cut, len(body), cut))
    else:
        ends = sorted(cut)
    marks = [0, *(end for end in ends if 0 < end < len(body)), len(body)]
    return [body[start:end] for start, end in pairwise(marks) if start < end]


class Gate:
    """Something an answer waits for, so that a test decides when it goes on.

    `open()` may be called from any thread, more than once, and before anybody waits. A gate that nobody opens is
    a stall. `reached` is set as soon as an answer stands before the gate, with all that comes before it sent.
    """

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._lock = threading.Lock()
        self._is_open = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def is_open(self) -> bool:
        """Whether `open` was called."""
        return self._is_open

    def open(self) -> None:
        """Let through every answer that waits here or will come here."""
        with self._lock:
            self._is_open = True
            waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the server has been closed meanwhile
                continue

    async def _wait(self) -> None:
        event = asyncio.Event()
        with self._lock:
            if self._is_open:
                event.set()
            else:
                self._waiting.append((asyncio.get_running_loop(), event))
        self.reached.set()
        await event.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One scripted answer, and how it travels.

    `framing` marks the end of the body: by `content-length`, by chunks, or by closing the connection. `auto` takes
    the length for a body that is sent whole and chunks for any other. With `length` or `close` each piece is a
    `send` of its own, which the receiving side may still read together; only chunks keep the cuts.

    `drop` breaks the connection after the last byte of the body without marking the end; `"reset"` does the same
    with a TCP reset, which may cost the client what it has not read by then. `hang_up` closes the connection without
    a single byte of an answer.

    `hold` is a gate before the status line. `gates` are gates inside the body, by position: the bytes before the
    position have been sent when the gate is reached.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: Cut = "whole"
    framing: Literal["auto", "length", "chunked", "close"] = "auto"
    drop: bool | Literal["reset"] = False
    hang_up: bool = False
    hold: Gate | None = None
    gates: Mapping[int, Gate] = field(default_factory=dict)

    @classmethod
    def json(cls, value: object, *, headers: Mapping[str, str] | None = None, **how: Any) -> Self:
        """Answer with a value as JSON. Further keywords are fields of the answer."""
        body = json.dumps(value, ensure_ascii=False).encode()
        return cls(headers={"content-type": "application/json", **(headers or {})}, body=body, **how)

    @classmethod
    def sse(cls, text: str | bytes, *, headers: Mapping[str, str] | None = None, **how: Any) -> Self:
        """Answer with the text of an event stream, sent as it is. Further keywords are fields of the answer."""
        body = text.encode() if isinstance(text, str) else text
        return cls(headers={"content-type": "text/event-stream", **(headers or {})}, body=body, **how)

    @classmethod
    def events(cls, events: Iterable[object], *, done: bool = True, **how: Any) -> Self:
        """Answer with an event stream of these values as JSON, closed by `[DONE]` unless `done` is false."""
        lines = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
        return cls.sse("".join([*lines, "data: [DONE]\n\n"] if done else lines), **how)

    def _framing(self) -> Literal["length", "chunked", "close"]:
        if self.framing != "auto":
            return self.framing
        plain = self.cut == "whole" and not self.drop and not self.gates
        return "length" if plain else "chunked"


@dataclass(slots=True, kw_only=True, eq=False)
class ReceivedRequest:
    """One request as it arrived. Its representation leaves out the headers, which may hold a credential.

    `answered` is set once the whole answer has been written, `closed` once the client has closed the connection
    the request came on.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    answered: threading.Event = field(default_factory=threading.Event, repr=False)
    closed: threading.Event = field(default_factory=threading.Event, repr=False)

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


Handler = Callable[[ReceivedRequest], Answer]

_NO_ANSWER_LEFT = Answer.json(
    {"error": {"message": "the loopback server has no scripted answer left", "code": "no_scripted_answer"}},
    status=400,
)


class LoopbackServer:
    """Serves scripted answers, one per request and in order, or those a handler makes from the request.

    A handler runs on the server's thread and must not block; what it raises becomes an answer of status 500 that
    names the exception's class. A request for which no answer is left gets status 400, which no client retries.

    `requests` has all that arrived, in order. `closed` is set once any client has closed a connection.
    """

    def __init__(self, *answers: Answer, handler: Handler | None = None, port: int = 0) -> None:
        self.requests: list[ReceivedRequest] = []
        self.closed = threading.Event()
        self.port = port
        self._answers = deque(answers)
        self._handler = handler
        self._connections: set[_Connection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the server, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        """How many connections are open at this moment."""
        return len(self._connections)

    def add(self, *answers: Answer) -> None:
        """Append answers to those still to be given."""
        self._answers.extend(answers)

    def start(self) -> None:
        """Listen on the port, or on a free one where it is 0. Entering the server as a context does the same."""
        if self._thread is not None:
            raise RuntimeError("the server is already running")
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(listener, started), name=f"loopback-server-{self.port}", daemon=True
        )
        self._thread.start()
        started.wait()

    def close(self) -> None:
        """Close the port and every connection, and wait for the thread to end."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        self._thread = self._loop = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, listener: socket.socket, started: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        self._loop = loop
        try:
            server = loop.run_until_complete(loop.create_server(lambda: _Connection(self), sock=listener))
            started.set()
            loop.run_forever()
            server.close()
            for connection in list(self._connections):
                connection.abandon()
            loop.run_until_complete(_settle())
        finally:
            loop.close()

    def _answer_to(self, request: ReceivedRequest) -> Answer:
        self.requests.append(request)
        if self._handler is not None:
            try:
                return self._handler(request)
            except Exception as error:  # the client is told, as a real server would
                message = f"the handler of the loopback server raised {type(error).__name__}: {error}"
                return Answer.json({"error": {"message": message, "code": "handler_raised"}}, status=500)
        return self._answers.popleft() if self._answers else _NO_ANSWER_LEFT


async def _settle() -> None:
    """Let cancelled tasks and closed transports finish before the loop goes away."""
    current = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not current]
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One connection: reads a request, writes its answer, and again, until one side closes it."""

    def __init__(self, server: LoopbackServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._request: ReceivedRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed_here = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next_request()

    def eof_received(self) -> bool:
        self._client_left()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._client_left()
        self._server._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def abandon(self) -> None:
        """Close from this side at once, whatever is still being sent."""
        self._closed_here = True
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _client_left(self) -> None:
        if self._closed_here:
            return
        if self._request is not None:
            self._request.closed.set()
        self._server.closed.set()

    def _next_request(self) -> None:
        if self._task is not None:
            return
        request = _read_request(self._buffer)
        if request is None:
            return
        self._request = request
        answer = self._server._answer_to(request)
        self._task = asyncio.get_running_loop().create_task(self._respond(request, answer))
        self._task.add_done_callback(self._responded)

    def _responded(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.result()
            self._next_request()

    async def _respond(self, request: ReceivedRequest, answer: Answer) -> None:
        transport = self._transport
        assert transport is not None
        if answer.hold is not None:
            await answer.hold._wait()
        framing = answer._framing()
        if not answer.hang_up:
            await self._write_answer(transport, answer, framing)
        if answer.hang_up or answer.drop or framing == "close":
            self._close(transport, reset=answer.drop == "reset")
        request.answered.set()

    async def _write_answer(
        self, transport: asyncio.Transport, answer: Answer, framing: Literal["length", "chunked", "close"]
    ) -> None:
        head = _head(answer, framing)
        position = 0
        for end, gate in [*sorted(answer.gates.items(), key=lambda item: item[0]), (len(answer.body), None)]:
            part = answer.body[position:end]
            pieces = cut_body(part, _cut_from(answer.cut, position))
            if framing == "chunked":
                transport.write(head + _chunked(pieces))
            elif not pieces:
                transport.write(head)
            else:
                for piece in pieces:
                    transport.write(head + piece)
                    head = b""
                    await asyncio.sleep(0)
            head = b""
            position = max(position, end)
            if gate is not None:
                await gate._wait()
        if framing == "chunked" and not answer.drop:
            transport.write(_LAST_FRAME)

    def _close(self, transport: asyncio.Transport, *, reset: bool) -> None:
        self._closed_here = True
        if reset:
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.close()


def _read_request(buffer: bytearray) -> ReceivedRequest | None:
    """Take one whole request off the front of the buffer; None while more of it has to come."""
    head_end = buffer.find(b"\r\n\r\n")
    if head_end < 0:
        return None
    first, *lines = bytes(buffer[:head_end]).decode("latin-1").split("\r\n")
    method, path, _version = first.split(" ", 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body_start = head_end + 4
    if headers.get("transfer-encoding", "").lower() == "chunked":
        taken = _read_chunks(buffer, body_start)
        if taken is None:
            return None
        body, end = taken
    else:
        end = body_start + int(headers.get("content-length", "0"))
        if len(buffer) < end:
            return None
        body = bytes(buffer[body_start:end])
    del buffer[:end]
    return ReceivedRequest(method=method, path=path, headers=headers, body=body)


def _read_chunks(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while True:
        line_end = buffer.find(b"\r\n", start)
        if line_end < 0:
            return None
        size = int(bytes(buffer[start:line_end]).partition(b";")[0], 16)
        data_end = line_end + 2 + size
        if len(buffer) < data_end + 2:
            return None
        body += buffer[line_end + 2 : data_end]
        start = data_end + 2
        if size == 0:
            return bytes(body), start


def _head(answer: Answer, framing: Literal["length", "chunked", "close"]) -> bytes:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Status"
    lines = [f"HTTP/1.1 {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    match framing:
        case "length":
            # A dropped body promises one byte more than comes, or its end would not be missed.
            lines.append(f"content-length: {len(answer.body) + bool(answer.drop)}")
        case "chunked":
            lines.append("transfer-encoding: chunked")
        case "close":
            lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _chunked(pieces: Sequence[bytes]) -> bytes:
    return b"".join(
        _BYTE_FRAMES[piece[0]] if len(piece) == 1 else b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces
    )


def _cut_from(cut: Cut, position: int) -> Cut:
    """The same cut for the part of a body that begins at a position: only listed positions move."""
    if position == 0 or isinstance(cut, str | int):
        return cut
    return [mark - position for mark in cut]
