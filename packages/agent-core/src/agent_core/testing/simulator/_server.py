"""The server: takes a request as the vendor would, refuses what it would refuse, and answers in its voice."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, Self

from .._loopback import Answer, Cut, LoopbackServer, ReceivedRequest
from .._scenarios import Said, Scenario
from .._scenarios import scenario as scenario_by_name
from ._brain import Brain
from ._failures import ErrorKind, Failure
from ._reply import seed_of
from ._rules import refusal_of
from ._voice import HttpAnswer, Voice
from ._voices import voice_for

__all__ = ["Simulator"]


class Simulator:
    """A vendor's server, on a free port of the loopback interface.

        with Simulator("groq", scenario="one-tool") as simulator:
            client = Groq(base_url=simulator.base_url, api_key="unused")

    With a scenario, a request gets the reply of the turn that it asks for: as many messages of the assistant as it
    holds, so many turns are over. So the turns may come in any order, whole or streamed, and at the same time. Without
    one, a `Brain` replies.

    Args:
        vendor: whose server it is.
        scenario: what is said, turn by turn, or the name of one of `SCENARIOS`.
        brain: who replies where there is no scenario.
        cut: where the body of a stream is cut on its way.
        port: the port to listen on; 0 takes a free one.
    """

    def __init__(
        self,
        vendor: str,
        scenario: Scenario | str | None = None,
        *,
        brain: Brain | None = None,
        cut: Cut = "event",
        port: int = 0,
    ) -> None:
        self.voice: Voice = voice_for(vendor)
        self.scenario = scenario_by_name(scenario) if isinstance(scenario, str) else scenario
        self._brain = brain or Brain()
        self._cut = cut
        self._failing: deque[ErrorKind | Literal["stream_error"]] = deque()
        self._server = LoopbackServer(handler=self._answer, port=port)

    @property
    def url(self) -> str:
        """The address of the server alone."""
        return self._server.url

    @property
    def base_url(self) -> str:
        """What this vendor's SDK takes as its base address."""
        return self._server.url + self.voice.base

    @property
    def requests(self) -> list[ReceivedRequest]:
        """All that has arrived, in order."""
        return self._server.requests

    def fail(self, *kinds: ErrorKind | Literal["stream_error"]) -> None:
        """Answer the next requests with these errors, one each. A stream fails half way with `stream_error`.

        Raises:
            KeyError: the vendor has no such error.
        """
        for kind in kinds:
            if kind != "stream_error":
                self.voice.error(kind)
        self._failing.extend(kinds)

    def start(self) -> None:
        """Begin to listen. Entering the simulator as a context does the same."""
        self._server.start()

    def close(self) -> None:
        """Close the port and every connection."""
        self._server.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, received: ReceivedRequest) -> Answer:
        if (refused := self._refused_unread(received)) is not None:
            return _as_answer(refused)
        request = _parsed(received.body)
        if (failure := refusal_of(self.voice.vendor, request)) is not None:
            return _as_answer(self.voice.refuse(failure))
        failing = self._failing.popleft() if self._failing else None
        if failing is not None and failing != "stream_error":
            return _as_answer(self.voice.error(failing))
        assert isinstance(request, dict)
        told = self._told(request)
        if isinstance(told, Failure):
            return _as_answer(self.voice.refuse(told))
        said, seed = told
        return self._spoken(said, request, seed, broken=failing is not None)

    def _refused_unread(self, received: ReceivedRequest) -> HttpAnswer | None:
        """What is answered to a request whose body is of no matter."""
        path = received.path.partition("?")[0]
        if path != self.voice.path or received.method != "POST":
            return self.voice.error("no_route")
        if self.voice.needs_key and not received.headers.get("authorization", "").removeprefix("Bearer").strip():
            return self.voice.error("no_key")
        return None

    def _told(self, request: dict[str, Any]) -> tuple[Sequence[Said], str] | Failure:
        if self.scenario is None:
            return self._brain.reply(self.voice.read(request)), seed_of(request)
        turn = sum(message.get("role") == "assistant" for message in request["messages"])
        if turn >= len(self.scenario.turns):
            turns = len(self.scenario.turns)
            message = f"the scenario {self.scenario.name!r} has {turns} turns, but turn {turn + 1} was asked for"
            return Failure(400, message, "invalid_request_error", "no_such_turn")
        told = self.scenario.turns[turn]
        return (told.said, *told.more), f"{self.voice.vendor}/{self.scenario.name}/{turn}"

    def _spoken(self, said: Sequence[Said], request: dict[str, Any], seed: str, *, broken: bool) -> Answer:
        stream = bool(request.get("stream"))
        headers = self.voice.headers(stream=stream, seed=seed)
        if not stream:
            body = self.voice.body(said, request, seed)
            return Answer(headers=headers, body=json.dumps(body, ensure_ascii=False).encode())
        events = self.voice.broken_events if broken else self.voice.events
        return Answer.sse(events(said, request, seed), headers=headers, cut=self._cut)


def _as_answer(answer: HttpAnswer) -> Answer:
    return Answer(status=answer.status, headers=answer.headers, body=answer.body)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
