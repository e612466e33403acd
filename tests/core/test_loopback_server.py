"""The loopback server sends what its script says, in the pieces it says, and tells what the client did."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent_core.testing import Answer, Cut, Gate, LoopbackServer, ReceivedRequest, cut_body

WAIT = 10.0  # seconds after which a wait has failed; nothing waits that long
POST = b'POST /v1/x HTTP/1.1\r\nHost: h\r\nX-Key: k\r\nContent-Length: 7\r\n\r\n{"a":1}'
EVENTS = b"data: 1\n\ndata: 2\r\n\r\n: end\n"


@contextmanager
def connected(server: LoopbackServer) -> Iterator[socket.socket]:
    """A plain connection to the server."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection:
        yield connection


def received(connection: socket.socket, *, until: bytes = b"") -> bytes:
    """What arrives, up to a text or the end of the connection."""
    data = b""
    while not until or until not in data:
        piece = connection.recv(65536)
        if not piece:
            break
        data += piece
    return data


def exchange(answer: Answer, *, until: bytes = b"") -> bytes:
    """The bytes that an answer is on the wire, its head and body."""
    with LoopbackServer(answer) as server, connected(server) as connection:
        connection.sendall(POST)
        return received(connection, until=until)


@pytest.mark.parametrize(
    ("cut", "pieces"),
    [
        ("whole", [EVENTS]),
        ("event", [b"data: 1\n\n", b"data: 2\r\n\r\n", b": end\n"]),
        (20, [EVENTS[:20], EVENTS[20:]]),
        ([3, 9], [b"dat", b"a: 1\n\n", EVENTS[9:]]),
        ([9, 3, 3, 0, 999], [b"dat", b"a: 1\n\n", EVENTS[9:]]),
        ("byte", [EVENTS[at : at + 1] for at in range(len(EVENTS))]),
    ],
)
def test_a_body_is_cut_where_asked(cut: Cut, pieces: list[bytes]) -> None:
    """The pieces are those named, none is empty, and joined they are the body."""
    assert cut_body(EVENTS, cut) == pieces


@pytest.mark.parametrize("cut", ["whole", "event", "byte", 3, [1]])
def test_an_empty_body_has_no_pieces(cut: Cut) -> None:
    """Nothing is sent where there is nothing."""
    assert cut_body(b"", cut) == []


def test_a_cut_of_no_bytes_is_refused() -> None:
    """Every 0 bytes is nowhere."""
    with pytest.raises(ValueError, match="at least 1"):
        cut_body(EVENTS, 0)


def test_a_whole_answer_has_its_length() -> None:
    """A body that is sent whole is announced by its length, so the connection can be used again."""
    wire = exchange(Answer.json({"ok": "ja, 東京"}), until=b"}")
    head, _, body = wire.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"content-length: {len(body)}".encode() in head
    assert json.loads(body) == {"ok": "ja, 東京"}


def test_each_piece_of_a_cut_answer_is_a_frame() -> None:
    """Clients hand frames over one by one, however many of them come in one read."""
    wire = exchange(Answer.sse("data: 1\n\ndata: 22\n\n", cut="event"), until=b"0\r\n\r\n")
    assert wire.partition(b"\r\n\r\n")[2] == b"9\r\ndata: 1\n\n\r\na\r\ndata: 22\n\n\r\n0\r\n\r\n"


def test_a_dropped_answer_has_no_end() -> None:
    """All bytes come, the mark of the end does not, and the connection is closed."""
    wire = exchange(Answer.sse("data: 1\n\n", drop=True))
    assert wire.partition(b"\r\n\r\n")[2] == b"9\r\ndata: 1\n\n\r\n"


def test_a_dropped_answer_of_known_length_is_short() -> None:
    """With a length the client misses one byte."""
    wire = exchange(Answer.sse("data: 1\n\n", drop=True, framing="length"))
    assert b"content-length: 10" in wire


def test_a_reset_reaches_the_client_as_one() -> None:
    """`drop="reset"` breaks the connection the hard way."""
    gate = Gate()
    answer = Answer.sse("data: 1\n\n", drop="reset", gates={9: gate})
    with LoopbackServer(answer) as server, connected(server) as connection:
        connection.sendall(POST)
        received(connection, until=b"data: 1")
        gate.open()
        with pytest.raises(ConnectionResetError):
            received(connection)


def test_an_answer_can_end_with_the_connection() -> None:
    """`framing="close"` announces nothing; the end of the connection is the end of the body."""
    wire = exchange(Answer(body=b"all", framing="close", cut="byte"))
    assert wire.endswith(b"\r\n\r\nall")
    assert b"content-length" not in wire


def test_hanging_up_sends_nothing() -> None:
    """Not even a status line."""
    assert exchange(Answer(hang_up=True)) == b""


def test_requests_are_recorded_as_they_came() -> None:
    """Method, path, headers by lower-case name, body; the headers stay out of the representation."""
    with LoopbackServer(Answer.json({})) as server, connected(server) as connection:
        connection.sendall(POST)
        received(connection, until=b"{}")
        request = server.requests[0]
    assert (request.method, request.path, request.json()) == ("POST", "/v1/x", {"a": 1})
    assert request.headers["x-key"] == "k"
    assert repr(request) == "ReceivedRequest(method='POST', path='/v1/x')"


def test_a_request_may_come_in_pieces_and_in_chunks() -> None:
    """The server waits for the whole of it, as the body's framing says."""
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with LoopbackServer(Answer.json({})) as server, connected(server) as connection:
        for piece in (head, b'3\r\n{"a', b'\r\n4\r\n": 1\r\n1\r\n}\r\n', b"0\r\n\r\n"):
            connection.sendall(piece)
        received(connection, until=b"{}")
        assert server.requests[0].json() == {"a": 1}


def test_a_connection_serves_request_after_request() -> None:
    """Answers are given in order, and what is added later comes after them."""
    with LoopbackServer(Answer(body=b"<1>"), Answer(body=b"<2>")) as server, connected(server) as connection:
        server.add(Answer(body=b"<3>"))
        for end in (b"<1>", b"<2>", b"<3>"):
            connection.sendall(POST)
            assert received(connection, until=b">").endswith(end)
        assert server.open_connections == 1


def test_a_request_beyond_the_script_is_told_so() -> None:
    """It gets status 400, which no client tries again."""
    with LoopbackServer() as server, connected(server) as connection:
        connection.sendall(POST)
        wire = received(connection, until=b"}}")
    assert wire.startswith(b"HTTP/1.1 400 ")
    assert b"no scripted answer left" in wire


def test_a_handler_makes_the_answer_from_the_request() -> None:
    """It sees the request that it answers."""

    def echo(request: ReceivedRequest) -> Answer:
        return Answer.json({"got": request.json()}, status=201)

    with LoopbackServer(handler=echo) as server, connected(server) as connection:
        connection.sendall(POST)
        wire = received(connection, until=b"}}")
    assert wire.startswith(b"HTTP/1.1 201 ")
    assert wire.endswith(b'{"got": {"a": 1}}')


def test_a_handler_that_raises_is_answered_for() -> None:
    """The client gets a 500 that names the exception, and the server goes on."""

    def broken(request: ReceivedRequest) -> Answer:
        raise LookupError("no such script")

    with LoopbackServer(handler=broken) as server, connected(server) as connection:
        connection.sendall(POST)
        wire = received(connection, until=b"}}")
    assert wire.startswith(b"HTTP/1.1 500 ")
    assert b"LookupError: no such script" in wire


def test_a_gate_holds_the_answer_back_until_it_is_opened() -> None:
    """What stands before the gate has been sent when it is reached, the rest comes once it is open."""
    before, inside = Gate(), Gate()
    answer = Answer.sse("data: 1\n\ndata: 2\n\n", hold=before, gates={9: inside})
    with LoopbackServer(answer) as server, connected(server) as connection:
        connection.sendall(POST)
        assert before.reached.wait(WAIT)
        before.open()
        assert received(connection, until=b"data: 1\n\n").endswith(b"data: 1\n\n\r\n")
        assert inside.reached.wait(WAIT)
        assert not server.requests[0].answered.is_set()
        inside.open()
        assert b"data: 2" in received(connection, until=b"0\r\n\r\n")
        assert server.requests[0].answered.wait(WAIT)


def test_an_open_gate_holds_nothing_back() -> None:
    """A gate that was opened before is passed."""
    gate = Gate()
    gate.open()
    assert gate.is_open
    assert exchange(Answer(body=b"ab", gates={1: gate}), until=b"0\r\n\r\n").endswith(b"0\r\n\r\n")


def test_a_client_that_leaves_is_noticed() -> None:
    """Also while the answer waits for a gate: the request and the server both tell."""
    gate = Gate()
    with LoopbackServer(Answer.sse("data: 1\n\n", gates={4: gate})) as server:
        with connected(server) as connection:
            connection.sendall(POST)
            assert gate.reached.wait(WAIT)
            assert not server.closed.is_set()
        assert server.requests[0].closed.wait(WAIT)
        assert server.closed.wait(WAIT)
        assert not server.requests[0].answered.is_set()


def test_a_closed_server_leaves_nothing_behind() -> None:
    """Its thread has ended, its port refuses, and an answer that still waited for a gate is broken off."""
    server = LoopbackServer(Answer.sse("data: 1\n\n", gates={4: Gate()}))
    with server, connected(server) as connection:
        connection.sendall(POST)
        received(connection, until=b"data")
        server.close()
        assert received(connection) in (b"", b"\r\n")
    assert f"loopback-server-{server.port}" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=WAIT)


def test_a_running_server_is_not_started_again() -> None:
    """One server, one port."""
    with LoopbackServer() as server, pytest.raises(RuntimeError, match="already running"):
        server.start()
