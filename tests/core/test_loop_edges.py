"""The tool loop at its edges: taken up again, handed odd things by handlers, hooks and providers, and very large."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from pydantic import BaseModel, ValidationError

from agent_core import (
    AbortSignal,
    AgentAction,
    Completion,
    CompletionDelta,
    CompletionRequest,
    Message,
    Model,
    ToolCall,
    ToolHandlerResult,
    ToolLoopHooks,
    ToolLoopResult,
    ToolResponse,
    Usage,
    errors,
    run_tool_loop,
    stream_tool_loop,
)
from agent_core.testing import Answer, LoopbackServer, ScriptedProvider
from loops import ASK, STOP, answers, calling, noting, read_through, run, tools
from openai_sdk import openai_provider


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Every test runs on both event loops."""
    return request.param


# Taken up again


def asked(*calls: ToolCall, text: str = "") -> list[Message]:
    """A conversation that ends in these calls."""
    asking = Message.model_validate({"role": "assistant", "content": text, "tool_calls": list(calls)})
    return [Message.user("go"), asking]


ONE, TWO = ToolCall("t1", "one", '{"a": 1}'), ToolCall("t2", "two", '{"a": 2}')


@pytest.mark.parametrize("stored", [False, True])
async def test_a_conversation_that_ends_in_calls_is_taken_up_by_running_them(stored: bool) -> None:
    """In another process too: what was put away as JSON goes on as if nothing had happened."""
    ran: list[Any] = []
    history = asked(ONE, TWO)
    if stored:
        history = [Message.model_validate_json(message.model_dump_json()) for message in history]
    handlers = {name: noting(ran) for name in ("one", "two")}
    result, provider = await run(STOP, handlers=handlers, messages=history, max_iterations=1)
    assert ran == [{"a": 1}, {"a": 2}]
    assert [message.role for message in provider.requests[0].messages] == ["user", "assistant", "tool", "tool"]
    assert provider.requests[0].tool_choice == "none"
    assert (result.text, result.iterations, len(history)) == ("done", 1, 2)


@pytest.mark.parametrize("status", ["completed", "pending", "aborted"])
async def test_a_partly_answered_conversation_runs_what_is_left(status: Any) -> None:
    """An answer that was never completed is none."""
    ran: list[Any] = []
    history = [*asked(ONE, TWO), Message.tool(TWO, "old" if status == "completed" else "", status=status)]
    handlers = {name: noting(ran) for name in ("one", "two")}
    result, _ = await run(STOP, handlers=handlers, messages=history)
    assert ran == ([{"a": 1}] if status == "completed" else [{"a": 1}, {"a": 2}])
    assert result.text == "done"


async def test_a_conversation_taken_up_without_rounds_left_runs_nothing() -> None:
    """The calls stay open, and no model is asked."""
    result, provider = await run(messages=asked(ONE), handlers={"one": noting([])}, max_iterations=0)
    assert (result.stop_reason, result.iterations, provider.requests) == ("limit", 0, [])
    assert result.response_message.tool_calls == [ONE]


async def test_a_forced_choice_is_not_forced_on_a_conversation_taken_up() -> None:
    """Its first request follows a round of tools."""
    _, provider = await run(STOP, messages=asked(ONE), handlers={"one": lambda _: "ok"}, tool_choice="one")
    assert provider.requests[0].tool_choice == "auto"


async def test_a_call_without_an_id_is_answered_all_the_same() -> None:
    """As some servers leave it out, and as it was stored."""
    history = [{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "one", "arguments": "{}"}}]}]
    with LoopbackServer(
        Answer.json({"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}]})
    ) as server:
        async with openai_provider(server.url) as provider:
            result = await run_tool_loop(
                provider=provider,
                model="m",
                messages=[*ASK, *history],
                tools=tools("one"),
                tool_handlers={"one": lambda _: "ok"},
            )
    sent = server.requests[0].json()["messages"]
    assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"] != ""
    assert result.text == "done"


async def test_a_run_that_was_aborted_is_taken_up_where_it_ended() -> None:
    """The error has the conversation; the tool that was cut short runs again."""
    signal = AbortSignal()
    ran: list[str] = []

    async def first(arguments: dict[str, Any]) -> str:
        ran.append("first")
        return "ok"

    async def second(arguments: dict[str, Any]) -> str:
        ran.append("second")
        signal.abort("later")
        await anyio.sleep(0 if ran.count("second") > 1 else 60)
        return "ok"

    handlers = {"first": first, "second": second}
    with pytest.raises(errors.AbortedError, match="later") as caught:
        await run(calling("first", "second"), handlers=handlers, signal=signal)
    assert caught.value.messages is not None
    assert [message.role for message in caught.value.messages] == ["user", "assistant", "tool"]
    result, _ = await run(STOP, messages=caught.value.messages, handlers=handlers)
    assert ran == ["first", "second", "second"]
    assert result.text == "done"


async def test_the_old_form_of_calls_goes_round_on_the_wire() -> None:
    """`function_call` is answered by a message of role `function`, and both go back as they came."""
    call = {"name": "look", "arguments": '{"q": 1}'}
    reply = {"role": "assistant", "content": None, "function_call": call}
    with LoopbackServer(
        Answer.json({"choices": [{"index": 0, "message": reply, "finish_reason": "function_call"}]}),
        Answer.json({"choices": [{"index": 0, "message": {"content": "done"}, "finish_reason": "stop"}]}),
    ) as server:
        async with openai_provider(server.url) as provider:
            result = await run_tool_loop(
                provider=provider,
                model="m",
                messages=ASK,
                tools=tools("look"),
                tool_handlers={"look": lambda arguments: f"found {arguments['q']}"},
            )
    asking, answering = server.requests[1].json()["messages"][1:]
    assert asking["function_call"] == call
    assert "tool_calls" not in asking
    assert (answering["role"], answering["name"]) == ("function", "look")
    assert json.loads(answering["content"]) == {"status": "success", "message": "found 1"}
    assert (result.text, result.iterations) == ("done", 1)


# What handlers are and give


async def test_sync_handlers_run_in_a_thread_and_async_ones_on_the_loop() -> None:
    """Callable objects and partial functions count as what they are."""
    here = threading.get_ident()
    where: dict[str, bool] = {}

    def plain(arguments: dict[str, Any]) -> str:
        where["plain"] = threading.get_ident() == here
        return "ok"

    async def coroutine(arguments: dict[str, Any]) -> str:
        where["coroutine"] = threading.get_ident() == here
        return "ok"

    class Callable_:  # noqa: N801
        async def __call__(self, arguments: dict[str, Any]) -> str:
            where["object"] = threading.get_ident() == here
            return "ok"

    handlers = {
        "plain": plain,
        "coroutine": coroutine,
        "object": Callable_(),
        "wrapped": lambda arguments: coroutine(arguments),
    }
    result, _ = await run(calling(*handlers), STOP, handlers=handlers)
    assert where == {"plain": False, "coroutine": True, "object": True}
    assert [answer["message"] for answer in answers(result)] == ["ok"] * 4


class Weather(BaseModel):
    """A pydantic model."""

    town: str
    at: datetime.date


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    tags: set[str]


def ring() -> dict[str, Any]:
    """A value that refers to itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


OK = {"status": "success", "message": "ok"}
GIVEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "a text": ("fine", {"status": "success", "message": "fine"}),
    "an empty text": ("", {"status": "success", "message": ""}),
    "half a character": ("a\ud83d", {"status": "success", "message": "a�"}),
    "a number": (5, {**OK, "data": 5}),
    "nought": (0, {**OK, "data": 0}),
    "false": (False, {**OK, "data": False}),
    "a list": ([1, "a"], {**OK, "data": [1, "a"]}),
    "an empty dict": ({}, {**OK, "data": {}}),
    "a dict": ({"a": {1}}, {**OK, "data": {"a": [1]}}),
    "a service's answer": ({"status": 200, "message": "fine"}, {**OK, "data": {"status": 200, "message": "fine"}}),
    "a state": ({"status": "open", "message": "x"}, {**OK, "data": {"status": "open", "message": "x"}}),
    "a response's fields, and others": (
        {"status": "error", "message": "x", "code": 1},
        {**OK, "data": {"status": "error", "message": "x", "code": 1}},
    ),
    "a response as a dict": (
        {"status": "error", "message": "no", "data": [1]},
        {"status": "error", "message": "no", "data": [1]},
    ),
    "a response": (ToolResponse(status="error", message="no"), {"status": "error", "message": "no"}),
    "a result": (
        ToolHandlerResult(tool_response=ToolResponse(message="fine", data=1)),
        {"status": "success", "message": "fine", "data": 1},
    ),
    "a result as a dict": ({"tool_response": {"message": "fine"}}, {"status": "success", "message": "fine"}),
    "a pydantic model": (
        Weather(town="Brno", at=datetime.date(2024, 2, 29)),
        {**OK, "data": {"town": "Brno", "at": "2024-02-29"}},
    ),
    "a dataclass": (Point(1, {"b"}), {**OK, "data": {"x": 1, "tags": ["b"]}}),
    "bytes": (b"abc", {**OK, "data": "abc"}),
    "infinity": (float("inf"), {**OK, "data": "inf"}),
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("given", "told"), GIVEN.values(), ids=GIVEN.keys())
async def test_whatever_a_handler_returns_is_told_as_a_response(given: Any, told: Any, asynchronous: bool) -> None:
    """A text is its message, any other value its data."""

    async def later(arguments: dict[str, Any]) -> Any:
        return given

    handler = later if asynchronous else lambda arguments: given
    result, _ = await run(calling("look"), STOP, handlers={"look": handler})
    assert answers(result) == [told]


class StubbornError(Exception):
    """An exception that refuses to be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")


FAILING: dict[str, tuple[Any, str]] = {
    "nothing": (None, "returned nothing"),
    "a ring": (ring(), "refers to itself"),
    "a result with a wrong field": ({"tool_response": {"status": "odd"}}, "tool_response.message"),
    "an error": (ValueError("too old"), "too old"),
    "an error without text": (ValueError(), "ValueError"),
    "a key": (KeyError("town"), "KeyError: 'town'"),
    "half a character": (ValueError("a\ud83d"), "a�"),
    "an error that refuses to be shown": (StubbornError(), "StubbornError"),
    "a timeout": (TimeoutError(), "TimeoutError"),
    "the end of an iterator": (StopIteration(), "StopIteration"),
    "the end of an async iterator": (StopAsyncIteration(), "StopAsyncIteration"),
    "an error of this library": (errors.RateLimitError("slow"), "slow"),
    "a group": (ExceptionGroup("many", [ValueError("a")]), "many (1 sub-exception)"),
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("given", "told"), FAILING.values(), ids=FAILING.keys())
async def test_whatever_fails_in_a_handler_is_told_as_an_error(given: Any, told: str, asynchronous: bool) -> None:
    """The model is told, the loop goes on, and the hook after hears of it."""
    heard: list[Any] = []

    def act(arguments: dict[str, Any]) -> Any:
        if isinstance(given, BaseException):
            raise given
        return given

    async def act_later(arguments: dict[str, Any]) -> Any:
        return act(arguments)

    hooks = ToolLoopHooks(after_tool_call=noting(heard))
    result, _ = await run(calling("look"), STOP, handlers={"look": act_later if asynchronous else act}, hooks=hooks)
    (answer,) = answers(result)
    assert (answer["status"], [response.status for _, response in heard], result.text) == ("error", ["error"], "done")
    if not isinstance(given, StopIteration | StopAsyncIteration):  # Python renames those on their way
        assert told in answer["message"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_of_the_handlers_own_making_is_a_failure() -> None:
    """A task it waited for was cancelled; the loop was not."""

    async def wait_for_another(arguments: dict[str, Any]) -> str:
        other = asyncio.ensure_future(asyncio.sleep(60))
        other.cancel()
        await other
        return "never"

    result, _ = await run(calling("look"), STOP, handlers={"look": wait_for_another}, signal=AbortSignal())
    (answer,) = answers(result)
    assert (answer["status"], result.text) == ("error", "done")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit])
def test_an_end_of_the_program_is_no_failure_of_a_tool(failure: type[BaseException]) -> None:
    """It goes through."""

    async def end(arguments: dict[str, Any]) -> str:
        raise failure

    with pytest.raises(failure):
        anyio.run(partial(run, calling("look"), STOP, handlers={"look": end}))


async def test_actions_come_in_the_order_of_their_calls() -> None:
    """One or several of each handler; a failing one has none."""

    def acting(*types: str) -> Callable[[dict[str, Any]], Any]:
        actions = [AgentAction(type=type) for type in types]
        return lambda _: ToolHandlerResult(
            tool_response=ToolResponse(message="ok"), action=actions[0] if len(actions) == 1 else actions
        )

    handlers = {"one": acting("a"), "two": acting("b", "c"), "three": acting(), "four": lambda _: 1 / 0}
    result, _ = await run(calling("two", "four", "one", "three"), STOP, handlers=handlers)
    assert [action.type for action in result.actions] == ["b", "c", "a"]


async def test_arguments_belong_to_their_handler() -> None:
    """What it does to them changes neither the conversation nor another call."""

    def spoil(arguments: dict[str, Any]) -> str:
        arguments["q"].append("spoilt")
        return "ok"

    call = ("look", '{"q": ["a"]}')
    result, provider = await run(calling(call, call), STOP, handlers={"look": spoil})
    assert [call.arguments for call in result.messages[1].tool_calls] == ['{"q": ["a"]}'] * 2
    assert provider.requests[1].messages[1].tool_calls[0].parse() == {"q": ["a"]}


# Which tool is meant


@pytest.mark.parametrize("name", ["look", "functions.look", "look<|channel|>commentary", " look"])
async def test_a_decorated_name_means_its_tool(name: str) -> None:
    """Models of the gpt-oss family write them."""
    ran: list[Any] = []
    handlers = {"look": noting(ran)}
    result, _ = await run(calling(name), STOP, handlers=handlers, allowed_tool_names=["look"])
    assert ran == ([{}] if name.strip() == name else ran)
    assert result.messages[1].tool_calls[0].name == name


@pytest.mark.parametrize("name", ["functions.wipe", "wipe<|channel|>x", "wipe"])
async def test_what_is_allowed_is_the_tool_that_runs(name: str) -> None:
    """A handler under a decorated name of its own is not let through by the bare one, nor the other way round."""
    ran: list[str] = []
    handlers = {
        "wipe": lambda _: noting(ran)("wipe"),
        "functions.wipe": lambda _: noting(ran)("functions.wipe"),
    }
    for allowed in (["wipe"], ["functions.wipe"]):
        ran.clear()
        await run_tool_loop(
            provider=ScriptedProvider(calling(name), STOP), model="m", messages=ASK, tools=tools("wipe"),
            tool_handlers=handlers, allowed_tool_names=allowed,
        )  # fmt: skip
        assert set(ran) <= set(allowed)


@pytest.mark.parametrize("form", ["text", "set", "list", "dict", "iterator"])
async def test_allowed_names_may_be_any_collection_and_one_name_is_one(form: str) -> None:
    """A text is no collection of its letters: a part of the name is not allowed."""
    forms: dict[str, Any] = {
        "text": "look",
        "set": {"look"},
        "list": ["look"],
        "dict": {"look": 1},
        "iterator": iter(["look"]),
    }
    ran: list[Any] = []
    handlers = {name: partial(noting(ran), name) for name in ("look", "loo", "l")}
    result, _ = await run(
        calling("l", "loo", "look"), calling("look"), STOP, handlers=handlers, allowed_tool_names=forms[form]
    )
    assert ran == [("look", {}), ("look", {})]
    assert "Tools that may be called: look" in answers(result)[0]["message"]


async def test_an_unknown_tool_is_told_which_there_are() -> None:
    """Those that may be called."""
    result, _ = await run(
        calling("lok"), STOP, handlers={"look": str, "save": str}, hooks=ToolLoopHooks(before_tool_call=lambda *_: None)
    )
    assert "look, save" in answers(result)[0]["message"]


# Ends


@pytest.mark.parametrize(
    ("replies", "options", "reason", "iterations"),
    [
        ([STOP], {}, "answer", 0),
        ([calling("look"), STOP], {}, "answer", 1),
        ([{"content": "cut", "finish_reason": "length"}], {}, "length", 0),
        ([{"content": "cut", "finish_reason": "content_filter"}], {}, "answer", 0),
        ([{"content": "", "finish_reason": "stop"}], {}, "answer", 0),
        ([calling("look")], {"max_iterations": 0}, "limit", 0),
        ([calling("look"), calling("look")], {"max_iterations": 1}, "limit", 1),
        ([calling("look")], {"hooks": ToolLoopHooks(should_break_early=lambda n: n == 1)}, "early_break", 1),
        (
            [calling("look"), errors.ServerError("x")],
            {"hooks": ToolLoopHooks(on_provider_error=lambda error, n: Message.assistant("sorry"))},
            "provider_error",
            1,
        ),
    ],
)
async def test_a_loop_says_why_it_ended(
    replies: list[Any], options: dict[str, Any], reason: str, iterations: int
) -> None:
    """And after how many rounds."""
    result, _ = await run(*replies, handlers={"look": lambda _: "ok"}, **options)
    assert (result.stop_reason, result.iterations) == (reason, iterations)


@pytest.mark.parametrize("number", [-1, -100])
async def test_fewer_than_no_rounds_are_refused(number: int) -> None:
    """Before anything is asked."""
    with pytest.raises(errors.ConfigError, match="max_iterations must not be negative"):
        await run(STOP, max_iterations=number)


@pytest.mark.parametrize(
    ("usages", "total"),
    [
        ([None, None], None),
        ([{"input_tokens": 1}, None], Usage(input_tokens=1)),
        ([None, {"input_tokens": 1}], Usage(input_tokens=1)),
        (
            [{"input_tokens": 1, "output_tokens": 2, "cached_tokens": 1}, {"input_tokens": 3, "total_tokens": 5}],
            Usage(4, 2, 5, 1, None),
        ),
    ],
)
async def test_usage_is_added_up_over_all_requests(usages: list[Any], total: Usage | None) -> None:
    """What no answer told stays unknown."""
    first, second = usages
    result, _ = await run(
        {**calling("look"), "usage": first}, {**STOP, "usage": second}, handlers={"look": lambda _: "ok"}
    )
    assert result.usage == total


async def test_an_error_that_ends_a_loop_has_the_conversation() -> None:
    """Up to the request that failed."""
    failure = errors.ServerError("gone")
    with pytest.raises(errors.ServerError) as caught:
        await run(calling("look"), failure, handlers={"look": lambda _: "ok"})
    assert caught.value is failure
    assert failure.messages is not None
    assert [message.role for message in failure.messages] == ["user", "assistant", "tool"]


async def test_the_callers_messages_stay_as_they_were() -> None:
    """A loop works on a list of its own."""
    given = [Message.user("go")]
    result, _ = await run(calling("look"), STOP, messages=given, handlers={"look": lambda _: "ok"})
    assert len(given) == 1
    assert len(result.messages) == 4
    assert result.messages[0] is given[0]


# Hooks


def failing_hook(name: str, asynchronous: bool) -> ToolLoopHooks:
    """Hooks of which one raises."""

    def fail(*arguments: Any) -> Any:
        raise RuntimeError(f"{name} broke")

    async def fail_later(*arguments: Any) -> Any:
        fail()

    return ToolLoopHooks(**{name: fail_later if asynchronous else fail})


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ToolLoopHooks)])
async def test_a_hook_that_raises_ends_the_loop_with_its_error(name: str, asynchronous: bool) -> None:
    """It is the caller's own, so the model has no part in it."""
    replies = [errors.ServerError("gone")] if name == "on_provider_error" else [calling("look"), STOP]
    with pytest.raises(RuntimeError, match=f"{name} broke"):
        await run(*replies, handlers={"look": lambda _: "ok"}, hooks=failing_hook(name, asynchronous))


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_hooks_may_be_sync_or_async(asynchronous: bool) -> None:
    """Each is told what it is documented to be told, in order."""
    told: list[Any] = []

    def noting(name: str, answer: Any) -> Callable[..., Any]:
        def note(*arguments: Any) -> Any:
            told.append((name, *arguments))
            return answer

        async def note_later(*arguments: Any) -> Any:
            return note(*arguments)

        return note_later if asynchronous else note

    hooks = ToolLoopHooks(
        before_tool_call=noting("before", {"q": 2}),
        after_tool_call=noting("after", None),
        decide_followup_tool_choice=noting("choice", "none"),
        should_break_early=noting("break", False),
        on_provider_error=noting("failed", {"role": "assistant", "content": "sorry"}),
    )
    failure = errors.ServerError("gone")
    result, provider = await run(
        calling(("look", '{"q": 1}')), failure, handlers={"look": lambda arguments: arguments}, hooks=hooks
    )
    response = ToolResponse(message="ok", data={"q": 2})
    assert told == [
        ("before", "look", {"q": 1}),
        ("after", "look", response),
        ("break", 1, 5),
        ("choice", 1, 5),
        ("failed", failure, 1),
    ]
    assert provider.requests[1].tool_choice == "none"
    assert (result.text, result.stop_reason) == ("sorry", "provider_error")


@pytest.mark.parametrize(
    "hook",
    [lambda n: n >= 1, lambda n, limit: n >= 1, lambda n, limit=None: n >= 1, lambda *all: True, int, bool],
    ids=["one", "two", "two if wanted", "any", "int", "bool"],
)
async def test_the_hook_that_breaks_early_may_take_one_number_or_two(hook: Any) -> None:
    """Whatever it is made of; a builtin shows no signature."""
    result, _ = await run(
        calling("look"), STOP, handlers={"look": lambda _: "ok"}, hooks=ToolLoopHooks(should_break_early=hook)
    )
    assert result.stop_reason == "early_break"


@pytest.mark.parametrize("choice", ["required", "look", True, 5])
async def test_a_followup_choice_that_is_none_is_refused(choice: Any) -> None:
    """With what it may be."""
    hooks = ToolLoopHooks(decide_followup_tool_choice=lambda *_: choice)
    with pytest.raises(errors.ConfigError, match="must return 'auto', 'none' or None"):
        await run(calling("look"), STOP, handlers={"look": lambda _: "ok"}, hooks=hooks)


@pytest.mark.parametrize("answer", ["sorry", 5, Message.user("sorry"), {"role": "tool"}, {"content": "sorry"}, True])
async def test_a_stand_in_that_is_no_answer_is_refused(answer: Any) -> None:
    """Only an assistant's message can stand for one."""
    hooks = ToolLoopHooks(on_provider_error=lambda *_: answer)
    with pytest.raises(errors.ConfigError, match="on_provider_error must return an assistant message or None"):
        await run(errors.ServerError("gone"), hooks=hooks)


async def test_hooks_that_are_no_hooks_are_refused() -> None:
    """A dict of them would be silently ignored otherwise."""
    wrong: Any = {"should_break_early": lambda _: True}
    with pytest.raises(errors.ConfigError, match="hooks must be ToolLoopHooks, got dict"):
        await run(STOP, hooks=wrong)


# Settings


async def test_settings_reach_every_request() -> None:
    """Fields by their names, vendor fields in `extra`; the temperature is the loop's unless it is said."""
    settings = {"top_p": 0.1, "max_output_tokens": 5, "top_k": 3, "extra": {"min_p": 0.1}}
    _, provider = await run(calling("look"), STOP, handlers={"look": lambda _: "ok"}, settings=settings)
    for request in provider.requests:
        assert (request.top_p, request.max_output_tokens, request.temperature) == (0.1, 5, 0.4)
        assert request.extra == {"top_k": 3, "min_p": 0.1}


@pytest.mark.parametrize(
    ("argument", "settings", "own", "sent"),
    [
        (0.4, {}, {}, 0.4),
        (None, {}, {}, None),
        (0.4, {"temperature": 0.9}, {}, 0.9),
        (0.4, {}, {"temperature": 0.7}, 0.7),
    ],
)
async def test_the_temperature_that_is_sent(argument: Any, settings: Any, own: Any, sent: Any) -> None:
    """None leaves it out; settings and a model's own count before the loop's default."""
    provider = ScriptedProvider(STOP)
    await run_tool_loop(model=Model(provider, "m", own), messages=ASK, temperature=argument, settings=settings)
    assert provider.requests[0].temperature == sent


@pytest.mark.parametrize(
    ("options", "choices"),
    [
        ({}, ["auto", "auto"]),
        ({"tool_choice": "required"}, ["required", "auto"]),
        ({"tool_choice": "look"}, ["look", "auto"]),
        ({"settings": {"tool_choice": "required"}}, ["required", "auto"]),
        ({"tool_choice": "look", "settings": {"tool_choice": "required"}}, ["look", "auto"]),
        ({"max_iterations": 1}, ["auto", "none"]),
    ],
)
async def test_the_tool_choice_of_each_request(options: dict[str, Any], choices: list[str]) -> None:
    """What is asked for holds for the first one."""
    _, provider = await run(calling("look"), STOP, handlers={"look": lambda _: "ok"}, **options)
    assert [request.tool_choice for request in provider.requests] == choices


async def test_a_forced_choice_without_tools_is_refused() -> None:
    """Rather than forgotten."""
    with pytest.raises(ValidationError, match="'required' needs 'tools'"):
        await run_tool_loop(provider=ScriptedProvider(STOP), model="m", messages=ASK, tool_choice="required")


async def test_tools_may_stand_in_the_settings() -> None:
    """A model's own as well: they are offered, and the choice is that of any tools."""
    provider = ScriptedProvider(calling("look"), STOP)
    result = await run_tool_loop(
        model=Model(provider, "m", {"tools": tools("look")}),
        messages=ASK,
        tool_handlers={"look": lambda _: "ok"},
        tool_choice="required",
        max_iterations=1,
    )
    assert [request.tool_choice for request in provider.requests] == ["required", "none"]
    assert result.text == "done"


@pytest.mark.parametrize("way", ["model", "provider", "both"])
async def test_a_model_may_be_given_as_model_or_as_provider(way: str) -> None:
    """With its settings."""
    provider = ScriptedProvider(STOP)
    model = Model(provider, "m", {"seed": 7})
    given: dict[str, Any] = {"model": model} if way == "model" else {"provider": model}
    if way == "both":
        given["model"] = "other"
    result = await run_tool_loop(**given, messages=ASK)
    (request,) = provider.requests
    assert (request.model, request.seed, result.text) == ("other" if way == "both" else "m", 7, "done")


@pytest.mark.parametrize("given", [{}, {"model": "m"}, {"provider": ScriptedProvider()}])
async def test_a_loop_without_provider_or_model_is_refused(given: dict[str, Any]) -> None:
    """With both ways to say them."""
    with pytest.raises(errors.ConfigError, match=r"pass provider=.* or model=load_model"):
        await run_tool_loop(**given, messages=ASK)


async def test_messages_may_be_one_text() -> None:
    """It is the user's."""
    _, provider = await run(STOP, messages="go")
    assert provider.requests[0].messages == [Message.user("go")]


# Providers of the user's own


class Least:
    """The least that can answer."""

    name = "least"

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    async def complete(self, request: CompletionRequest) -> Any:
        """Give the next reply."""
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply


ASKING = Completion(Message(role="assistant", tool_calls=[ToolCall("t1", "look", "{}")]))


@pytest.mark.parametrize("streamed", [False, True])
async def test_one_method_is_enough_for_a_provider(streamed: bool) -> None:
    """Also for a stream of events, deltas included."""
    deltas: list[str] = []
    options: dict[str, Any] = {
        "provider": Least(ASKING, Completion(Message.assistant("done"))),
        "model": "m",
        "messages": ASK,
        "tools": tools("look"),
        "tool_handlers": {"look": lambda _: "ok"},
    }
    if streamed:
        async with stream_tool_loop(**options) as events:
            deltas = [event.text async for event in events if isinstance(event, CompletionDelta)]
            assert events.result is not None
            result = events.result
        assert "".join(deltas) == "done"
    else:
        result = await run_tool_loop(**options)
    assert (result.text, result.iterations) == ("done", 1)


@pytest.mark.parametrize("reply", [None, "done", {"content": "done"}, Message.assistant("done")])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_provider_that_gives_no_completion_is_told_so(reply: Any, streamed: bool) -> None:
    """By its name."""
    options: dict[str, Any] = {"provider": Least(reply), "model": "m", "messages": ASK}
    start = read_through if streamed else run_tool_loop
    with pytest.raises(errors.ConfigError, match="provider 'least' must give a Completion, not "):
        await start(**options)


async def test_an_answer_that_is_no_assistants_is_refused() -> None:
    """It could not stand in the conversation."""
    with pytest.raises(errors.ConfigError, match="provider 'least' gave a message of role 'user'"):
        await run_tool_loop(provider=Least(Completion(Message.user("hi"))), model="m", messages=ASK)


@pytest.mark.parametrize(
    "failure", [RuntimeError("odd"), KeyError("x"), ExceptionGroup("g", [OSError()]), StopAsyncIteration()]
)
async def test_a_provider_may_raise_anything_and_the_hook_hears_of_it(failure: Exception) -> None:
    """Whatever it is; without a hook it is the caller's."""
    heard: list[Any] = []
    hooks = ToolLoopHooks(on_provider_error=noting(heard, Message.assistant("sorry")))
    result = await run_tool_loop(provider=Least(failure), model="m", messages=ASK, hooks=hooks)
    assert result.text == "sorry"
    assert type(heard[0][0]) is type(failure) or isinstance(failure, StopAsyncIteration)


# Many and large


async def test_many_loops_run_beside_one_another() -> None:
    """On one provider, with the same handlers: none sees anything of another."""

    def rule(request: CompletionRequest) -> Any:
        last = request.messages[-1]
        number = request.messages[0].text
        return {"content": f"{number}: {last.text}"} if last.role == "tool" else calling(("echo", f'{{"n": {number}}}'))

    provider = ScriptedProvider(rule=rule)
    results: dict[int, ToolLoopResult] = {}

    async def echo(arguments: dict[str, Any]) -> str:
        await anyio.lowlevel.checkpoint()
        return str(arguments["n"])

    async def loop(number: int) -> None:
        results[number] = await run_tool_loop(
            provider=provider, model="m", messages=str(number), tools=tools("echo"), tool_handlers={"echo": echo}
        )

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(loop, number)
    for number, result in results.items():
        assert result.text == f'{number}: {{"status":"success","message":"{number}"}}'
        assert len(result.messages) == 4


async def test_a_thousand_calls_in_one_answer_are_answered_in_order() -> None:
    """Each once, also on the wire."""
    ids = [f"call_{number}" for number in range(1000)]
    calls = [
        {"id": id, "type": "function", "function": {"name": "look", "arguments": f'{{"n": {n}}}'}}
        for n, id in enumerate(ids)
    ]
    with LoopbackServer(
        Answer.json({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}),
        Answer.json({"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}]}),
    ) as server:

        async def look(arguments: dict[str, Any]) -> int:
            return int(arguments["n"])

        async with openai_provider(server.url) as provider:
            await run_tool_loop(
                provider=provider, model="m", messages=ASK, tools=tools("look"), tool_handlers={"look": look}
            )
        sent = server.requests[1].json()["messages"]
    assert [message.get("tool_call_id") for message in sent[2:]] == ids
    assert [json.loads(message["content"])["data"] for message in sent[2:]] == list(range(1000))


async def test_large_arguments_and_results_go_through() -> None:
    """A megabyte each way."""
    text = "é" * 1_000_000
    result, _ = await run(
        calling(("echo", json.dumps({"text": text}))), STOP, handlers={"echo": lambda arguments: arguments["text"]}
    )
    assert answers(result)[0]["message"] == text


async def test_many_rounds_are_run() -> None:
    """As many as are allowed."""
    result = await run_tool_loop(
        provider=Least(*[ASKING] * 1001),
        model="m",
        messages=ASK,
        tools=tools("look"),
        tool_handlers={"look": _nothing_much},
        max_iterations=1000,
    )
    assert (result.iterations, result.stop_reason, len(result.messages)) == (1000, "limit", 2002)


async def _nothing_much(arguments: dict[str, Any]) -> str:
    return "ok"


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no messages": ({"messages": []}, ValidationError, "messages"),
    "a message that is none": ({"messages": [5]}, ValidationError, "messages"),
    "one message": ({"messages": ASK[0]}, ValidationError, "messages"),
    "a tool that is none": ({"tools": ["look"]}, ValidationError, "tools"),
    "a handler that is none": ({"tool_handlers": {"look": "look"}}, errors.ConfigError, "handler of tool 'look'"),
    "handlers in a list": ({"tool_handlers": [print]}, errors.ConfigError, "must map names to functions"),
    "a choice of no tool": ({"tools": tools("look"), "tool_choice": "lok"}, ValidationError, "tool_choice 'lok'"),
    "a setting that is none": ({"settings": {"n": 0}}, ValidationError, "n"),
    "a provider by name": ({"provider": "openai"}, errors.ConfigError, "load_provider"),
}


@pytest.mark.parametrize("start", [run_tool_loop, read_through])
@pytest.mark.parametrize(("options", "kind", "told"), WRONG.values(), ids=WRONG.keys())
async def test_what_is_wrong_is_refused_before_anything_is_asked(
    start: Any, options: dict[str, Any], kind: type[Exception], told: str
) -> None:
    """By its name."""
    provider = ScriptedProvider(STOP)
    given: dict[str, Any] = {"provider": provider, "model": "m", "messages": ASK, **options}
    with pytest.raises(kind, match=told):
        await start(**given)
    assert provider.requests == []
