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

    __slots__ = ("_begun", "_data", "_held", "_name", "_return_pending", "ended")

    def __init__(self) -> None:
        self._held: list[bytes] = []  # the pieces of a line that is not complete yet
        self._data: list[bytes] = []
        self._name = b""
        self._begun = False
        self._return_pending = False
        self.ended = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Give the payloads of the events that end in this piece."""
        if not self._begun:
            piece = self._without_mark(piece)
        if 13 in piece or self._return_pending:
            piece = self._unix_lines(piece)
        if 10 not in piece:
            if piece:
                self._held.append(piece)
            return []
        # One split is cheaper than a search for the blank line, and serves every cut.
        lines = piece.split(b"\n")
        if self._held:
            self._held.append(lines[0])
            lines[0] = b"".join(self._held)
            self._held.clear()
        if rest := lines.pop():
            self._held.append(rest)
        payloads: list[bytes] = []
        data = self._data
        for line in lines:
            if not line:
                if data and (payload := self._event()):
                    payloads.append(payload)
                self._name = b""
            elif line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
        return payloads

    def rest(self) -> bytes | None:
        """Give the payload that no blank line followed when the stream ended, if there is one."""
        self._return_pending = False
        self.feed(b"\n")
        payload = self._event() if self._data else b""
        self.ended = payload == DONE
        return None if self.ended else payload or None

    def _event(self) -> bytes:
        payload = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        if self._name and self._name != b"message":
            payload = NamedPayload(payload)
            payload.event = self._name.decode("utf-8", "replace")
        return payload

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
