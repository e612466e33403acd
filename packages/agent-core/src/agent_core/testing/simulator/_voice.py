"""What a voice is: one vendor's wire, written from what that vendor has been seen to send.

A voice turns neutral words into that vendor's bytes. It shares no code with `chatwire`, which reads such bytes: the
two are written from the same recordings by different hands, so that a misreading shows.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, ClassVar, NamedTuple

from .._scenarios import Capability, Said
from ._failures import FAILURES, RETRY_AFTER, ErrorKind, Failure
from ._reply import HEX, Reply, event, seed_of
from ._support import supported_by

__all__ = ["HttpAnswer", "Voice"]

_HTML_502 = (
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n"
    "<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
)


class HttpAnswer(NamedTuple):
    """An answer as it goes out."""

    status: int
    headers: dict[str, str]
    body: bytes


class Voice(ABC):
    """One vendor's wire.

    Attributes:
        vendor: the name that `load_provider` knows it by.
        path: where completions are asked for.
        base: what that vendor's SDK wants after the host in its base address.
        needs_key: whether it refuses a request without one.
        json_type, stream_type: the content types of its answers.
    """

    vendor: ClassVar[str]
    path: ClassVar[str] = "/v1/chat/completions"
    base: ClassVar[str] = ""
    needs_key: ClassVar[bool] = True
    json_type: ClassVar[str] = "application/json"
    stream_type: ClassVar[str] = "text/event-stream"

    @property
    def supports(self) -> frozenset[Capability]:
        """What the vendor can do."""
        return supported_by(self.vendor)

    def body(self, said: Sequence[Said], request: Mapping[str, Any], seed: str = "") -> dict[str, Any]:
        """Give the whole answer. There is one `Said` for each choice; the ids follow from the seed."""
        return self._whole(Reply(said, request, seed or seed_of(request)))

    def chunks(self, said: Sequence[Said], request: Mapping[str, Any], seed: str = "") -> Iterator[dict[str, Any]]:
        """Give the chunks of the same answer as a stream."""
        return self._chunks(Reply(said, request, seed or seed_of(request)))

    def events(self, said: Sequence[Said], request: Mapping[str, Any], seed: str = "") -> bytes:
        """Give the same answer as an event stream, to its end."""
        return b"".join(map(event, self.chunks(said, request, seed))) + b"data: [DONE]\n\n"

    def headers(self, *, stream: bool, seed: str = "") -> dict[str, str]:
        """Give the headers that matter to a client, for an answer or (not streamed) for an error."""
        return {"content-type": self.stream_type if stream else self.json_type, **self._ids(Reply((), {}, seed))}

    def error(self, kind: ErrorKind, *, now: datetime | None = None) -> HttpAnswer:
        """Give an error of this kind.

        Args:
            now: what a date in Retry-After is counted from.

        Raises:
            KeyError: the vendor has no such error.
        """
        if kind == "html_502":
            return HttpAnswer(502, {"content-type": "text/html"}, _HTML_502.encode())
        wait: dict[str, str] = {}
        if kind == "rate_limit":
            wait = {"retry-after": str(RETRY_AFTER)}
        elif kind == "rate_limit_date":
            moment = (now or datetime.now(UTC)) + timedelta(seconds=RETRY_AFTER)
            wait = {"retry-after": format_datetime(moment.astimezone(UTC), usegmt=True)}
        named: ErrorKind = "rate_limit" if kind in ("rate_limit_date", "rate_limit_text") else kind
        answer = self.refuse(FAILURES[self.vendor][named], wait)
        if kind != "rate_limit_text":
            return answer
        # Together names a wait in the header of every answer, which would hide the one in the text.
        return answer._replace(headers={key: value for key, value in answer.headers.items() if key != "retry-after"})

    def refuse(self, failure: Failure, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Give this failure in the vendor's form."""
        body = json.dumps(self._error_body(failure), ensure_ascii=False).encode()
        return HttpAnswer(failure.status, {**self.headers(stream=False, seed=failure.message), **(headers or {})}, body)

    def stream_error(self) -> bytes:
        """Give what a stream says, after any chunk, when it fails with status 200: the error and the stream's end."""
        return event(self._error_body(FAILURES[self.vendor]["server_error"]))

    def read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Give the request as this vendor understands it, for whoever thinks of a reply."""
        return request

    def broken_events(self, said: Sequence[Said], request: Mapping[str, Any], seed: str = "") -> bytes:
        """Give the first half of a stream, and then the error that ends it."""
        chunks = list(self.chunks(said, request, seed))
        return b"".join(map(event, chunks[: (len(chunks) + 1) // 2])) + self.stream_error()

    @abstractmethod
    def _whole(self, reply: Reply) -> dict[str, Any]: ...

    @abstractmethod
    def _chunks(self, reply: Reply) -> Iterator[dict[str, Any]]: ...

    @abstractmethod
    def _error_body(self, failure: Failure) -> dict[str, Any]: ...

    def _ids(self, reply: Reply) -> dict[str, str]:
        return {"x-request-id": f"req_{reply.token(HEX, 32, 'request')}"}

    def _finish(self, reply: Reply, said: Said) -> str:
        """The word on the wire for why a choice ended."""
        return "tool_calls" if said.calls and said.finish_reason == "stop" else said.finish_reason
