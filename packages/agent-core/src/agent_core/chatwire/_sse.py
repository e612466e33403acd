"""Bytes of an event stream to the payloads in it, whatever the cuts.

Decides where lines and events end (WHATWG "server-sent events"). What a payload means is left to `_decode`.
"""

from __future__ import annotations

__all__ = ["DONE", "EventParser", "NamedPayload"]

DONE = b"[DONE]"
"""The payload that ends a stream of chat completions."""
_BOM = b"\xef\xbb\xbf"


class NamedPayload(bytes):
    """The payload of an event with a name of its own, such as `error`."""

    event: str


class EventParser:
    """Takes the pieces of one stream in order; `feed` gives the payloads that are complete with each.

    Attributes:
        ended: the mark `[DONE]` came as the very last line, without the blank line after it.
    """

    __slots__ = ("_begun", "_between_events", "_data", "_held", "_name", "_return_pending", "ended")

    def __init__(self) -> None:
        self._held: list[bytes] = []  # the pieces of a line that is not complete yet
        self._data: list[bytes] = []
        self._name = b""
        self._begun = False
        self._return_pending = False
        self._between_events = False
        self.ended = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Give the payloads of the events that end in this piece."""
        # Most vendors send each event as a piece of its own, which has no other line end than the pair that closes it.
        if self._between_events and 13 not in piece and piece[:6] == b"data: ":
            end = piece.find(b"\n")
            if 6 < end == len(piece) - 2 and piece[-1] == 10:
                return [piece[6:end]]
        if not self._begun:
            piece = self._without_mark(piece)
        if 13 in piece or self._return_pending:
            piece = self._unix_lines(piece)
        # One split is cheaper than a search for the blank line, and serves every cut.
        lines = piece.split(b"\n")
        if self._held and len(lines) > 1:
            self._held.append(lines[0])
            lines[0] = b"".join(self._held)
            self._held.clear()
        if rest := lines.pop():
            self._held.append(rest)
        payloads: list[bytes] = []
        data = self._data
        for line in lines:
            if line[:6] == b"data: ":  # CPython 3.12 takes three times as long for startswith
                data.append(line[6:])
            elif not line:
                if payload := b"\n".join(data):
                    payloads.append(self._named(payload) if self._name else payload)
                data.clear()
                self._name = b""
            elif line.startswith(b"data:"):
                data.append(line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
        self._between_events = not (self._held or data or self._name or self._return_pending)
        return payloads

    def rest(self) -> bytes | None:
        """Give the payload that no blank line followed when the stream ended, if there is one."""
        self._return_pending = False
        payloads = self.feed(b"\n\n")
        self.ended = payloads == [DONE]
        return None if self.ended or not payloads else payloads[0]

    def _named(self, payload: bytes) -> bytes:
        if self._name == b"message":
            return payload
        named = NamedPayload(payload)
        named.event = self._name.decode("utf-8", "replace")
        return named

    def _without_mark(self, piece: bytes) -> bytes:
        """Drop a byte-order mark at the very start; hold the piece while it could still become one."""
        start = b"".join(self._held) + piece
        self._held.clear()
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._held.append(start)
            return b""
        self._begun = True
        return start.removeprefix(_BOM)

    def _unix_lines(self, piece: bytes) -> bytes:
        """Turn CRLF and CR into LF. A CR at the end of a piece ends its line; an LF that follows it is dropped."""
        if self._return_pending and piece:
            piece = piece.removeprefix(b"\n")
            self._return_pending = False
        if piece.endswith(b"\r"):
            self._return_pending = True
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
