"""When a failed request is sent again: the waits of a policy, and how a provider keeps to it before a real server."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agent_core import Completion, CompletionDelta, CompletionRequest, CompletionStream, RetryPolicy, errors
from agent_core.chatwire import OpenAICompatibleProvider
from agent_core.testing import Answer, LoopbackServer
from agent_core_openai import OpenAIProvider

BUSY = errors.ServerError("busy")


def waits(policy: RetryPolicy, *failures: errors.ProviderError) -> list[float | None]:
    """The wait before each further try."""
    attempts = policy.start()
    return [attempts.wait_before_next(failure) for failure in failures]


def steady(**fields: Any) -> RetryPolicy:
    """A policy that leaves nothing to chance."""
    return RetryPolicy(**{"jitter": 0.0, **fields})


def test_the_wait_doubles_up_to_its_limit() -> None:
    """And after the last try there is none."""
    policy = steady(max_retries=5, initial_delay=1.0, max_delay=5.0)
    assert waits(policy, *[BUSY] * 6) == [1.0, 2.0, 4.0, 5.0, 5.0, None]


def test_by_default_there_are_two_more_tries() -> None:
    """Half a second, then a second, each up to a quarter shorter."""
    first, second, third = waits(RetryPolicy(), BUSY, BUSY, BUSY)
    assert first is not None and 0.375 <= first <= 0.5
    assert second is not None and 0.75 <= second <= 1.0
    assert third is None


def test_a_policy_without_retries_has_one_try() -> None:
    """The error is raised at once."""
    assert waits(steady(max_retries=0), BUSY) == [None]


def test_thousands_of_tries_wait_no_longer_than_the_limit() -> None:
    """However often it doubled."""
    assert waits(steady(max_retries=3000), *[BUSY] * 3000)[-1] == 8.0


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_chance_only_shortens_the_wait(jitter: float) -> None:
    """By its share at most."""
    for _ in range(50):
        (wait,) = waits(RetryPolicy(initial_delay=2.0, jitter=jitter), BUSY)
        assert wait is not None and 2.0 * (1 - jitter) <= wait <= 2.0


def test_the_vendors_wait_counts_before_our_own() -> None:
    """To the second, also where it is none; chance has no part in it."""
    told = [errors.RateLimitError("slow", retry_after=wait) for wait in (7.0, 0.0)]
    assert waits(RetryPolicy(jitter=1.0), *told) == [7.0, 0.0]


def test_a_vendors_wait_beyond_the_limit_is_raised_at_once() -> None:
    """The caller is told how long it would be, and decides."""
    assert waits(steady(max_retry_after=60.0), errors.RateLimitError("slow", retry_after=60.5)) == [None]
    assert waits(steady(max_retry_after=60.0), errors.RateLimitError("slow", retry_after=60.0)) == [60.0]
    assert waits(steady(max_retry_after=0.0), errors.RateLimitError("slow", retry_after=0.1)) == [None]


@pytest.mark.parametrize(
    "failure",
    [
        errors.BadRequestError("no"),
        errors.AuthenticationError("no"),
        errors.NotFoundError("no"),
        errors.ProtocolError("no"),
        errors.RateLimitError("no credit", retryable=False),
        errors.ToolUseFailedError("the same request would fail again"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_waiting_does_not_mend_is_raised_at_once(failure: errors.ProviderError) -> None:
    """A call that could not be read needs another request, which is the loop's."""
    assert waits(steady(), failure) == [None]


@pytest.mark.parametrize(
    "failure",
    [
        errors.RateLimitError("x"),
        errors.ServerError("x"),
        errors.ProviderTimeoutError("x"),
        errors.ProviderConnectionError("x"),
        errors.StreamInterruptedError("x"),
        errors.BadRequestError("conflict", retryable=True),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_may_pass_is_tried_again(failure: errors.ProviderError) -> None:
    """Limits, failures of the server, and of the way to it."""
    assert waits(steady(), failure) == [0.5]


def test_no_try_begins_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait counts: one that would end too late is not begun."""
    now = 100.0
    monkeypatch.setattr("agent_core._retry.time.monotonic", lambda: now)
    attempts = steady(max_retries=9, initial_delay=2.0, deadline=10.0).start()
    assert attempts.wait_before_next(BUSY) == 2.0
    now = 106.0
    assert attempts.wait_before_next(BUSY) == 4.0
    assert attempts.made == 3
    now = 107.0
    assert attempts.wait_before_next(BUSY) is None
    assert attempts.made == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"max_retries": -1},
        {"initial_delay": -0.1},
        {"initial_delay": math.nan},
        {"max_delay": -1},
        {"jitter": 1.1},
        {"jitter": -0.1},
        {"jitter": math.nan},
        {"max_retry_after": -1},
        {"deadline": -1},
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    """When it is made."""
    with pytest.raises(errors.ConfigError, match="retry policy"):
        RetryPolicy(**fields)


class Client:
    """An OpenAI-shaped client that is never asked."""

    class chat:  # noqa: N801  # as the SDKs spell it
        class completions:  # noqa: N801
            @staticmethod
            def create(**body: Any) -> Any:
                raise AssertionError


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"retry": RetryPolicy(), "max_retries": 2}, "either retry or max_retries"),
        ({"retry": 3}, "retry takes a RetryPolicy, not int; for a number use max_retries"),
        ({"max_retries": -1}, "must not be negative"),
    ],
)
def test_a_provider_refuses_retries_that_make_no_sense(options: dict[str, Any], told: str) -> None:
    """When it is made."""
    with pytest.raises(errors.ConfigError, match=told):
        OpenAICompatibleProvider(Client(), **options)


# Before a real server. The time waited is only noted.

ASK = CompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}])
FINE = Answer.json({"choices": [{"index": 0, "message": {"content": "fine"}, "finish_reason": "stop"}]})
HALF = {"choices": [{"index": 0, "delta": {"content": "half"}}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
TOLD: dict[str, Any] = {"error": {"message": "busy", "type": "server_error", "code": 503}}
FINE_STREAM = Answer.events([{"choices": [{"index": 0, "delta": {"content": "fine"}}]}, END])


def failing(status: int = 503, **headers: str) -> Answer:
    """An answer that is an error."""
    return Answer.json(TOLD, status=status, headers={name.replace("_", "-"): text for name, text in headers.items()})


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, none of which is waited for."""
    noted: list[float] = []

    async def sleep(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr("agent_core.chatwire._provider.anyio.sleep", sleep)
    return noted


async def whole(provider: OpenAIProvider) -> Completion:
    """Ask for a whole answer."""
    return await provider.complete(ASK)


async def streamed(provider: OpenAIProvider) -> Completion:
    """Ask for a stream, and read it to its end."""
    async with provider.stream(ASK) as stream:
        deltas = [delta async for delta in stream]
        assert "".join(delta.text for delta in deltas) == stream.completion.text
        return stream.completion


async def read_into(pieces: list[CompletionDelta], stream: CompletionStream) -> None:
    """Read a stream; what came before an error is kept."""
    async for delta in stream:
        pieces.append(delta)  # noqa: PERF401


Ask = Callable[[OpenAIProvider], Any]
both_ways = pytest.mark.parametrize(
    ("ask", "fine"), [pytest.param(whole, FINE, id="whole"), pytest.param(streamed, FINE_STREAM, id="streamed")]
)


def provider_at(server: LoopbackServer, **fields: Any) -> OpenAIProvider:
    """A provider with a steady policy."""
    return OpenAIProvider(api_key="unused", base_url=server.url, retry=steady(**fields), timeout=10.0)


@both_ways
async def test_two_failures_then_an_answer(ask: Ask, fine: Answer, slept: list[float]) -> None:
    """Three requests, all the same; the completion says how many it took."""
    with LoopbackServer(failing(), failing(429, retry_after="3"), fine) as server:
        async with provider_at(server) as provider:
            completion = await ask(provider)
    assert (completion.text, completion.attempts) == ("fine", 3)
    assert slept == [0.5, 3.0]
    assert len({request.body for request in server.requests}) == 1
    assert len(server.requests) == 3


@both_ways
async def test_an_answer_at_once_is_one_attempt(ask: Ask, fine: Answer, slept: list[float]) -> None:
    """Nothing is waited for."""
    with LoopbackServer(fine) as server:
        async with provider_at(server) as provider:
            assert (await ask(provider)).attempts == 1
    assert slept == []


@both_ways
async def test_the_last_failure_is_raised(ask: Ask, fine: Answer, slept: list[float]) -> None:
    """Once the tries are used up."""
    with LoopbackServer(failing(500), failing(502), failing(503)) as server:
        async with provider_at(server) as provider:
            with pytest.raises(errors.ServerError) as caught:
                await ask(provider)
    assert caught.value.status == 503
    assert slept == [0.5, 1.0]


@both_ways
@pytest.mark.parametrize("answer", [failing(401), failing(429, retry_after="61"), Answer.json({"odd": 1})])
async def test_what_waiting_does_not_mend_is_one_request(
    answer: Answer, ask: Ask, fine: Answer, slept: list[float]
) -> None:
    """And a wait beyond the limit is told in the error."""
    with LoopbackServer(answer, fine) as server:
        async with provider_at(server) as provider:
            with pytest.raises(errors.ProviderError) as caught:
                await ask(provider)
    assert (len(server.requests), slept) == (1, [])
    assert caught.value.retry_after == (61.0 if answer.status == 429 else None)


@both_ways
@pytest.mark.parametrize(
    "answer",
    [
        Answer(hang_up=True),
        Answer.json(TOLD),
        Answer.json({"choices": [{"message": {"content": "half"}}], **TOLD}),
        Answer.json({"choices": []}, drop=True),
    ],
    ids=["no answer", "an error with status 200", "an error beside an answer", "a body that breaks off"],
)
async def test_a_connection_that_breaks_and_an_error_of_status_200_are_tried_again(
    answer: Answer, ask: Ask, fine: Answer, slept: list[float]
) -> None:
    """Nothing of the failed try is left in the answer."""
    with LoopbackServer(answer, fine) as server:
        async with provider_at(server) as provider:
            completion = await ask(provider)
    assert (completion.text, completion.attempts, slept) == ("fine", 2, [0.5])


@pytest.mark.parametrize(
    "answer",
    [
        Answer.events([TOLD], done=False),
        Answer.events([{**TOLD, "id": "c1", "choices": [], "usage": {"prompt_tokens": 1}}]),
        Answer.sse('data: {"error": {"code": 503}}'),
        Answer.sse('event: error\ndata: {"code": 503}\n\n'),
        Answer.sse(": wait\n\n", drop=True),
        Answer.sse("", drop=True),
    ],
    ids=["an error event", "with other fields", "without a blank line", "an event by name", "a comment", "nothing"],
)
async def test_a_stream_that_fails_before_its_first_piece_is_tried_again(answer: Answer, slept: list[float]) -> None:
    """Nothing was handed out, so nothing is handed out twice."""
    with LoopbackServer(answer, FINE_STREAM) as server:
        async with provider_at(server) as provider:
            completion = await streamed(provider)
    assert (completion.text, completion.attempts, completion.usage) == ("fine", 2, None)
    assert slept == [0.5]


@pytest.mark.parametrize(
    "answer",
    [Answer.events([HALF, TOLD]), Answer.events([HALF], done=False), Answer.events([HALF], done=False, drop=True)],
    ids=["an error event", "an early end", "a broken connection"],
)
async def test_a_stream_that_fails_after_its_first_piece_is_not_tried_again(answer: Answer, slept: list[float]) -> None:
    """Whoever reads has seen the piece; the error has what came, and says that trying again may work."""
    pieces: list[CompletionDelta] = []
    with LoopbackServer(answer, FINE_STREAM) as server:
        async with provider_at(server) as provider, provider.stream(ASK) as stream:
            with pytest.raises(errors.ProviderError) as caught:
                await read_into(pieces, stream)
    assert (len(server.requests), slept) == (1, [])
    assert "".join(piece.text for piece in pieces) == "half"
    assert caught.value.retryable
    assert caught.value.partial is not None and caught.value.partial.text == "half"


@pytest.mark.parametrize("ask", [whole, streamed])
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_wait_can_be_cancelled(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that gives up does not wait for the vendor."""
    scope = anyio.CancelScope()

    async def give_up(seconds: float) -> None:
        scope.cancel()
        await anyio.sleep_forever()

    monkeypatch.setattr("agent_core.chatwire._provider.anyio.sleep", give_up)
    with LoopbackServer(failing(429, retry_after="50"), FINE) as server:
        async with provider_at(server) as provider:
            with scope:
                await ask(provider)
    assert scope.cancelled_caught
    assert len(server.requests) == 1


async def test_requests_in_parallel_count_their_own_tries(slept: list[float]) -> None:
    """A policy is shared, its tries are not."""
    seen: set[bytes] = set()

    def first_time_busy(request: Any) -> Answer:
        if request.body in seen:
            return FINE
        seen.add(request.body)
        return failing()

    async def ask(number: int) -> None:
        completion = await provider.complete(ASK.model_copy(update={"seed": number}))
        assert completion.attempts == 2

    with LoopbackServer(handler=first_time_busy) as server:
        async with provider_at(server, max_retries=1) as provider, anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(ask, number)
    assert slept == [0.5] * 20
