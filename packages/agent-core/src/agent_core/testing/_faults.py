"""What can go wrong on the way, and what an adapter must make of it: the second half of the contract.

The faults are made from the cassettes' own bytes, cut off, stalled or replaced, so they fit any wire. Error answers are
OpenAI-shaped unless the adapter says how its vendor writes them.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import anyio
import pytest

from .. import errors
from .._completion import Completion, CompletionRequest
from .._messages import Message
from ._loopback import Answer, Gate, LoopbackServer

if TYPE_CHECKING:
    from ._cassettes import Cassette, Interaction

__all__ = ["ErrorKind", "FaultTests"]

ErrorKind = Literal[
    "bad_request",
    "unauthorized",
    "forbidden",
    "not_found",
    "too_large",
    "rate_limit",
    "rate_limit_date",
    "rate_limit_text",
    "server_error",
    "unavailable",
    "html_502",
]
_T = TypeVar("_T")
_PATIENCE = 20.0  # seconds within which what must happen has to happen, however busy the machine
_STALL = 0.3  # seconds of an adapter's timeout in the tests of one; its size proves nothing
_WAIT = 20  # seconds that the limits of these tests ask for
_PAGE = "<html><head><title>502 Bad Gateway</title></head><body>edge</body></html>"
_TOLD: dict[str, tuple[int, str, type[errors.ProviderError]]] = {
    "bad_request": (400, "invalid_request_error", errors.BadRequestError),
    "unauthorized": (401, "invalid_api_key", errors.AuthenticationError),
    "forbidden": (403, "permission_denied", errors.PermissionDeniedError),
    "not_found": (404, "model_not_found", errors.NotFoundError),
    "too_large": (413, "request_too_large", errors.RequestTooLargeError),
    "rate_limit": (429, "rate_limit_exceeded", errors.RateLimitError),
    "rate_limit_date": (429, "rate_limit_exceeded", errors.RateLimitError),
    "rate_limit_text": (429, "rate_limit_exceeded", errors.RateLimitError),
    "server_error": (500, "server_error", errors.ServerError),
    "unavailable": (503, "unavailable", errors.ServerError),
    "html_502": (502, "", errors.ServerError),
}
_BROKEN = (errors.StreamInterruptedError, errors.ProviderConnectionError)
_both = pytest.mark.parametrize("mode", ["whole", "streamed"])


class FaultTests:
    """Faults, each told by the right error. `ProviderContract` brings them in."""

    vendor: ClassVar[str]
    cassettes: ClassVar[Path]
    model: ClassVar[str] = "test-model"

    def provider(self, base_url: str, **options: Any) -> Any:
        """Build the provider under test for an address; options are `timeout` (seconds) and `max_retries`."""
        raise NotImplementedError(f"{type(self).__name__} must define provider(self, base_url, **options)")

    def cassette(self, name: str) -> Cassette:
        """Load the cassette of a scenario."""
        raise NotImplementedError

    def error_answer(self, kind: ErrorKind) -> Answer:
        """Give the vendor's answer for a kind of error."""
        raise NotImplementedError

    def stream_error(self) -> bytes:
        """Give the bytes of an error inside a stream that began well; in OpenAI's shape, status 503."""
        return b'data: {"error": {"message": "engine overloaded", "type": "server_error", "code": 503}}\n\n'

    def base_url(self, server: LoopbackServer) -> str:
        """Give the base URL for a server, with the path that the cassettes' one has."""
        return server.url + self._text("whole").base_path

    # How a test runs

    def run(self, call: Callable[[Any], Awaitable[_T]], base_url: str, **options: Any) -> _T:
        """Build a provider, make a call with it on a loop of its own, and close it."""

        async def main() -> _T:
            provider = self.provider(base_url, **{"max_retries": 0, **options})
            try:
                with anyio.fail_after(_PATIENCE):
                    return await call(provider)
            finally:
                if hasattr(provider, "aclose"):
                    await provider.aclose()

        return anyio.run(main)

    def failure(self, answer: Answer, mode: str, **options: Any) -> errors.ProviderError:
        """Ask for a text, get this answer, and give the error that comes of it."""
        with LoopbackServer(answer) as server:
            return self.failure_at(self.base_url(server), mode, **options)

    def failure_at(self, base_url: str, mode: str, **options: Any) -> errors.ProviderError:
        """Ask for a text at an address and give the error; nothing but this library's errors may come out."""
        try:
            completion = self.run(functools.partial(_ask, self.request(), mode), base_url, **options)
        except errors.ProviderError as error:
            _check_clean(error)
            return error
        pytest.fail(f"passed as an answer: {completion}")

    def request(self) -> CompletionRequest:
        """The request of the faults: the scenario `text`."""
        return CompletionRequest(model=self.model, messages=[Message.user("Say hello.")])

    def _text(self, mode: str, name: str = "text") -> _Recorded:
        cassette = self.cassette(name)
        kind = [each for each in cassette.interactions if each.streamed is (mode == "streamed")]
        return _Recorded((kind or cassette.interactions)[0], str(cassette.header["base_url"]))

    # Answers that are errors

    @_both
    @pytest.mark.parametrize("kind", list(_TOLD))
    def test_error_answers(self, kind: ErrorKind, mode: str) -> None:
        """Each status has its class, carries what the vendor said, and tells whether and when to try again."""
        error = self.failure(self.error_answer(kind), mode)
        status, _, cls = _TOLD[kind]
        assert isinstance(error, cls), repr(error)
        assert error.status == status
        assert error.retryable is (status in (429, 500, 502, 503))
        assert error.message and "<html" not in error.message
        if kind.startswith("rate_limit"):
            assert error.retry_after is not None and 0 < error.retry_after <= 60
        if kind in ("rate_limit", "rate_limit_text"):
            assert error.retry_after == _WAIT

    @_both
    def test_connection_refused(self, mode: str) -> None:
        """Nobody listens: a connection error that may be tried again."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        error = self.failure_at(f"http://127.0.0.1:{port}{self._text('whole').base_path}", mode)
        assert isinstance(error, errors.ProviderConnectionError) and error.retryable

    @_both
    def test_no_answer_at_all(self, mode: str) -> None:
        """The server hangs up before a byte."""
        error = self.failure(Answer(hang_up=True), mode)
        assert isinstance(error, errors.ProviderConnectionError) and error.retryable

    @_both
    def test_timeout_before_the_first_byte(self, mode: str) -> None:
        """The headers do not come in time."""
        error = self.failure(Answer(hold=Gate()), mode, timeout=_STALL)
        assert isinstance(error, errors.ProviderTimeoutError) and error.retryable

    def test_timeout_between_chunks(self) -> None:
        """The stream stalls; what had come is in `partial`."""
        answer, half = self._text("streamed").until_half()
        error = self.failure(answer(gates={half: Gate()}), "streamed", timeout=_STALL)
        assert isinstance(error, errors.ProviderTimeoutError) and error.retryable
        assert _is_part(error.partial, self._whole_text("text"))

    # Streams that break off

    @pytest.mark.parametrize("drop", [True, False], ids=["connection-lost", "clean-end"])
    def test_stream_cut_in_text(self, drop: bool) -> None:
        """A stream that ends in the text is no answer, whichever way it ends; what had come is kept."""
        answer, half = self._text("streamed").until_half()
        error = self.failure(answer(length=half, drop=drop), "streamed")
        assert isinstance(error, (*_BROKEN, errors.ProtocolError)), repr(error)
        assert _is_part(error.partial, self._whole_text("text"))

    def test_stream_cut_in_a_character(self) -> None:
        """A stream that ends between the bytes of a character gives no half character."""
        recorded = self._text("streamed", "unicode")
        error = self.failure(recorded.answer(length=recorded.in_a_character(), drop=True), "streamed")
        assert isinstance(error, _BROKEN), repr(error)
        if error.partial is not None:
            assert _is_part(error.partial, self._whole_text("unicode"))
            assert "\ufffd" not in error.partial.text

    def test_stream_cut_in_tool_arguments(self) -> None:
        """Arguments that were cut off are kept as they came, and never repaired."""
        if not (self.cassettes / "one-tool.yaml").exists():
            pytest.skip(f"{self.vendor} has no tools")
        recorded = self._text("streamed", "one-tool")
        error = self.failure(recorded.answer(length=recorded.body.rindex(b"Par") + 2, drop=True), "streamed")
        assert isinstance(error, _BROKEN), repr(error)
        for call in error.partial.tool_calls if error.partial else ():
            assert "Paris" not in call.arguments

    def test_whole_answer_cut(self) -> None:
        """A whole answer that breaks off is no answer."""
        recorded = self._text("whole")
        error = self.failure(recorded.answer(length=len(recorded.body) // 2, drop=True), "whole")
        assert isinstance(error, _BROKEN), repr(error)

    def test_error_inside_the_stream(self) -> None:
        """An error object after a good start is raised, with what had come before it."""
        answer, half = self._text("streamed").until_half()
        error = self.failure(answer(length=half, append=self.stream_error()), "streamed")
        assert error.message and not isinstance(error, errors.StreamInterruptedError), repr(error)
        assert _is_part(error.partial, self._whole_text("text"))

    # Answers of another kind than was asked for

    def test_json_body_where_a_stream_was_asked(self) -> None:
        """A server that answers at once is understood."""
        recorded = self._text("whole")
        if recorded.streamed:
            pytest.skip(f"{self.vendor} only streams")
        with LoopbackServer(recorded.answer()) as server:
            completion = self.run(functools.partial(_ask, self.request(), "streamed"), self.base_url(server))
        assert completion.text == self._whole_text("text")

    @_both
    def test_web_page_with_status_200(self, mode: str) -> None:
        """A captive portal, or a wrong address, is no answer."""
        page = Answer(
            headers={"content-type": "text/html; charset=utf-8"}, body=b"<!doctype html><title>Sign in</title>"
        )
        error = self.failure(page, mode)
        assert isinstance(error, errors.ProtocolError) and not error.retryable
        assert "text/html" in str(error) or "<!doctype" in str(error)

    def test_empty_stream(self) -> None:
        """A 200 in which nothing came is no empty answer."""
        error = self.failure(Answer.sse(b""), "streamed")
        assert isinstance(error, errors.ProtocolError)

    def test_stream_without_end_mark(self) -> None:
        """A finish reason makes a stream whole, whether `[DONE]` follows or not."""
        recorded = self._text("streamed")
        body = recorded.body.replace(b"data: [DONE]", b"").rstrip() + b"\n\n"
        with LoopbackServer(recorded.answer(body=body)) as server:
            completion = self.run(functools.partial(_ask, self.request(), "streamed"), self.base_url(server))
        assert completion.text == self._whole_text("text")

    # Leaving early

    @pytest.mark.parametrize("way", ["break", "exception", "cancellation"])
    def test_leaving_closes_the_connection(self, way: str) -> None:
        """Leaving the block of a stream closes the connection at once, so that the vendor stops."""
        answer, half = self._text("streamed").until_half()
        with LoopbackServer(answer(gates={half: Gate()})) as server:
            self.run(functools.partial(_leave, self.request(), way), self.base_url(server))
            assert server.requests[0].closed.wait(_PATIENCE), "the server still sees an open connection"

    def _whole_text(self, name: str) -> str:
        """Give the text that a scenario's whole answer holds, as this adapter reads it."""
        recorded = self._text("whole", name)
        with LoopbackServer(recorded.answer()) as server:
            return self.run(functools.partial(_ask, self.request(), "whole"), self.base_url(server)).text


class _Recorded:
    """A recorded answer, and answers made from its bytes."""

    def __init__(self, interaction: Interaction, base_url: str) -> None:
        from urllib.parse import urlsplit

        self._interaction = interaction
        self.body = interaction.body
        self.streamed = interaction.streamed
        self.base_path = urlsplit(base_url).path
        interaction.played = True

    def answer(
        self, *, length: int | None = None, append: bytes = b"", body: bytes | None = None, **how: Any
    ) -> Answer:
        sent = (self.body if body is None else body)[:length] + append
        cut: Any = "event" if self._interaction.streamed else "whole"
        return Answer(headers=self._interaction.headers, body=sent, **{"cut": cut, **how})

    def until_half(self) -> tuple[Callable[..., Answer], int]:
        """Give a maker of answers and the end of an event at about the middle of the stream."""
        middle = len(self.body) // 2
        return self.answer, self.body.index(b"\n\n", middle) + 2 if b"\n\n" in self.body[middle:-2] else middle

    def in_a_character(self) -> int:
        """Give a position between two bytes of one character."""
        return next(place for place, byte in enumerate(self.body) if place and 0x80 <= byte < 0xC0)


async def _ask(request: CompletionRequest, mode: str, provider: Any) -> Completion:
    if mode == "whole":
        whole: Completion = await provider.complete(request)
        return whole
    async with provider.stream(request) as stream:
        async for _ in stream:
            pass
        streamed: Completion = stream.completion
    return streamed


class _LeftError(Exception):
    """What a caller raises inside the block."""


async def _leave(request: CompletionRequest, way: str, provider: Any) -> None:
    if way == "cancellation":
        with anyio.CancelScope() as scope:
            async with provider.stream(request) as stream:
                async for _ in stream:
                    scope.cancel()
        return
    try:
        async with provider.stream(request) as stream:
            async for _ in stream:
                if way == "exception":
                    raise _LeftError
                break
    except _LeftError:
        pass


def default_error(kind: ErrorKind) -> Answer:
    """Give an error answer in OpenAI's shape."""
    status, code, _ = _TOLD[kind]
    if kind == "html_502":
        return Answer(status=status, headers={"content-type": "text/html"}, body=_PAGE.encode())
    message = f"please try again in {_WAIT}s" if kind == "rate_limit_text" else f"told as {kind}"
    headers = {}
    if kind == "rate_limit":
        headers["retry-after"] = str(_WAIT)
    elif kind == "rate_limit_date":
        headers["retry-after"] = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return Answer.json(body, status=status, headers=headers)


def _is_part(partial: Completion | None, text: str) -> bool:
    """Tell whether something had come, and whether it is the beginning of the text but not all of it."""
    return partial is not None and text.startswith(partial.text) and partial.text != text


def _check_clean(error: BaseException) -> None:
    """No SDK, HTTP or JSON exception may hang on the error: it would carry the request, and with it the key."""
    link = error.__cause__ or error.__context__
    while link is not None:
        assert isinstance(link, errors.AgentCoreError), f"{type(link).__module__}.{type(link).__name__} is chained"
        link = link.__cause__ or link.__context__
