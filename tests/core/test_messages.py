"""The door for messages: dicts in the OpenAI shape, SDK objects and factories in; parts, views and JSON out."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from groq.types.chat import ChatCompletionMessage as GroqMessage
from huggingface_hub import ChatCompletionOutputMessage
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage as OpenAIMessage
from pydantic import ValidationError
from together.types.chat.chat_completion_message import ChatCompletionMessage as TogetherMessage

from agent_core import (
    AudioPart,
    CompletionRequest,
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
)
from agent_core._door import part_from
from counting import count

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "messages.json").read_text(encoding="utf-8"))["cases"]
FACTORIES: dict[str, Any] = {
    "System": Message.system,
    "User": Message.user,
    "Assistant": Message.assistant,
    "Tool": Message.tool,
    "Function": Message.function,
}
# A later text that keeps the first one belongs to the agent's messages, which do not exist yet.
MADE = [case for case in VECTORS if "rewrite" not in case["input"]]


@pytest.mark.parametrize("case", MADE, ids=[case["name"] for case in MADE])
def test_a_factory_fills_the_fields_of_its_vector(case: dict[str, Any]) -> None:
    """Role, content, status, and which call is answered."""
    message = FACTORIES[case["input"]["factory"]](*case["input"]["args"])
    expected = dict(case["expected"])
    content = expected.pop("content")
    assert message.content == (content if isinstance(content, str) else [part_from(part) for part in content])
    told = message.model_dump(include={"role", "status", "name", "tool_call_id"}, exclude_none=True)
    assert told == expected
    count("vectors")


CALL: dict[str, Any] = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
TOOL_CALL = ToolCall("t1", "look", '{"q": 1}')

SHAPES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "text": ({"role": "user", "content": "hi"}, (TextPart("hi"),)),
    "empty text": ({"role": "user", "content": ""}, ()),
    "a list of texts": ({"role": "user", "content": ["a", "b"]}, (TextPart("a"), TextPart("b"))),
    "a tuple of parts": ({"role": "user", "content": ({"type": "text", "text": "a"},)}, (TextPart("a"),)),
    "parts of this library": (
        {"role": "user", "content": [TextPart("a"), ImagePart("u")]},
        (TextPart("a"), ImagePart("u")),
    ),
    "text with a vendor's field": (
        {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
        (TextPart("a", {"cache_control": {"type": "ephemeral"}}),),
    ),
    "image": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}}]},
        (ImagePart("https://x/a.png", "low"),),
    ),
    "image by its address alone": (
        {"role": "user", "content": [{"type": "image_url", "image_url": "https://x/a.png"}]},
        (ImagePart("https://x/a.png"),),
    ),
    "file by id": (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
        (FilePart("file-1"),),
    ),
    "file by id, flat": ({"role": "user", "content": [{"type": "file", "file_id": "file-1"}]}, (FilePart("file-1"),)),
    "file inline": (
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:,a", "filename": "a.pdf"}}]},
        (FilePart(None, "data:,a", "a.pdf"),),
    ),
    "sound": (
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]},
        (AudioPart("AAAA", "wav"),),
    ),
    "a part nobody knows": (
        {"role": "user", "content": [{"type": "document", "document": {"id": 1}}]},
        (OtherPart({"type": "document", "document": {"id": 1}}),),
    ),
    "calls": ({"role": "assistant", "content": None, "tool_calls": [CALL]}, (TOOL_CALL,)),
    "text before calls": (
        {"role": "assistant", "tool_calls": [CALL], "content": "wait"},
        (TextPart("wait"), TOOL_CALL),
    ),
    "a call as an object": ({"role": "assistant", "tool_calls": [TOOL_CALL]}, (TOOL_CALL,)),
    "a call without id": (
        {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": ""}}]},
        (ToolCall("", "look"),),
    ),
    "a call with an object as arguments": (
        {"role": "assistant", "tool_calls": [{"id": "t1", "function": {"name": "look", "arguments": {"q": "é"}}}]},
        (ToolCall("t1", "look", '{"q":"é"}'),),
    ),
    "a call with a vendor's field": (
        {"role": "assistant", "tool_calls": [{**CALL, "extra_content": {"sig": "x"}}]},
        (ToolCall("t1", "look", '{"q": 1}', extras={"extra_content": {"sig": "x"}}),),
    ),
    "a legacy call": (
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        (ToolCall("", "look", "{}", legacy=True),),
    ),
    "a refusal": ({"role": "assistant", "content": None, "refusal": "No."}, (RefusalPart("No."),)),
    "reasoning_content": (
        {"role": "assistant", "content": "a", "reasoning_content": "hm"},
        (ReasoningPart("hm", field="reasoning_content"), TextPart("a")),
    ),
    "reasoning": (
        {"role": "assistant", "content": "a", "reasoning": "hm"},
        (ReasoningPart("hm", field="reasoning"), TextPart("a")),
    ),
    "reasoning and its details": (
        {"role": "assistant", "content": "a", "reasoning": "hm", "reasoning_details": [{"type": "x", "text": "hm"}]},
        (ReasoningPart("hm", field="reasoning", details=({"type": "x", "text": "hm"},)), TextPart("a")),
    ),
    "reasoning in details alone": (
        {"role": "assistant", "reasoning_details": [{"text": "h"}, {"summary": "m"}, {"data": "=="}]},
        (ReasoningPart("hm", field="reasoning_details", details=({"text": "h"}, {"summary": "m"}, {"data": "=="})),),
    ),
    "half an emoji": ({"role": "user", "content": "a\ud83d"}, (TextPart("a�"),)),
    "half an emoji in a part": ({"role": "user", "content": [{"type": "text", "text": "\ud83d"}]}, (TextPart("�"),)),
}


@pytest.mark.parametrize(("data", "parts"), SHAPES.values(), ids=SHAPES.keys())
def test_a_dict_in_the_openai_shape_becomes_parts(data: dict[str, Any], parts: tuple[Any, ...]) -> None:
    """By itself, as keyword arguments, and within a request; and the dict stays as it was."""
    before = copy.deepcopy(data)
    message = Message.model_validate(data)
    assert message.parts == parts
    assert Message(**data) == message
    assert CompletionRequest(messages=[data]).messages == [message]
    assert data == before


def test_fields_with_a_place_of_their_own_are_no_extras() -> None:
    """What nobody knows is kept as the vendor's own."""
    data = {"role": "tool", "tool_call_id": "t1", "name": "look", "content": "ok", "status": "error", "index": 3}
    message = Message.model_validate(data)
    assert (message.tool_call_id, message.name, message.status, message.extras) == ("t1", "look", "error", {"index": 3})


def test_extras_given_by_name_join_those_found() -> None:
    """`extras` itself is a field."""
    message = Message.model_validate({"role": "user", "content": "a", "extras": {"b": 1}, "c": 2, "d": None})
    assert message.extras == {"b": 1, "c": 2}


SDK_MESSAGES: dict[str, Any] = {
    "openai": OpenAIMessage.model_validate(
        {"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [CALL]}
    ),
    "groq": GroqMessage.model_validate({"role": "assistant", "content": "hi", "reasoning": "hm", "tool_calls": [CALL]}),
    "together": TogetherMessage.model_validate(
        {"role": "assistant", "content": "hi", "reasoning": "hm", "tool_calls": [{**CALL, "index": 0}]}
    ),
    "huggingface_hub": ChatCompletionOutputMessage.parse_obj_as_instance(
        {"role": "assistant", "content": "hi", "reasoning": "hm", "tool_calls": [CALL]}
    ),
}


@pytest.mark.parametrize("given", SDK_MESSAGES.values(), ids=SDK_MESSAGES.keys())
def test_a_vendor_sdks_message_object_is_taken(given: Any) -> None:
    """What the answer was, whatever class it came as."""
    message = Message.model_validate(given)
    assert (message.role, message.text, message.reasoning) == ("assistant", "hi", "hm")
    assert message.tool_calls == [TOOL_CALL]


def test_an_sdk_object_that_its_own_types_do_not_allow_is_taken_without_a_warning() -> None:
    """The SDKs build what a server sends without validation; arguments may be an object there."""
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": {"q": 1}}}
    given = OpenAIMessage.construct(role="assistant", content=None, tool_calls=[call])
    assert Message.model_validate(given).tool_calls == [ToolCall("t1", "look", '{"q":1}')]


BAD: dict[str, tuple[Any, str]] = {
    "no message": ("hi", "valid dictionary or instance of Message"),
    "nothing": (None, "valid dictionary or instance of Message"),
    "no role": ({"content": "a"}, "needs 'role'"),
    "a role that is no text": ({"role": ["user"], "content": None}, "needs 'role'"),
    "a role nobody knows": ({"role": "human", "content": "a"}, "role"),
    "user without content": ({"role": "user"}, "user message needs 'content'"),
    "system with null": ({"role": "system", "content": None}, "system message needs 'content'"),
    "tool without content": ({"role": "tool", "tool_call_id": "t1"}, "tool message needs 'content'"),
    "tool without id": ({"role": "tool", "content": "a"}, "tool_call_id"),
    "an id that is no text": ({"role": "tool", "tool_call_id": 5, "content": "a"}, "tool_call_id"),
    "a name that is no text": ({"role": "user", "name": 5, "content": "a"}, "name"),
    "a status nobody knows": ({"role": "user", "status": "done", "content": "a"}, "status"),
    "content that is a number": (
        {"role": "user", "content": 5},
        "'content' must be a text or a list of parts, not int",
    ),
    "content that is bytes": ({"role": "user", "content": b"a"}, "'content' must be .*, not bytes"),
    "content that is one part": ({"role": "user", "content": {"type": "text", "text": "a"}}, "'content' must .* dict"),
    "content that is used up": ({"role": "user", "content": iter("a")}, "'content' must be a text or a list"),
    "a part that is a number": ({"role": "user", "content": ["a", 5]}, "'content.1' must be an object"),
    "a part without type": (
        {"role": "user", "content": [{"text": "a"}]},
        "'content.0' must be an object with a 'type'",
    ),
    "a part whose type is a number": ({"role": "user", "content": [{"type": 5}]}, "'content.0' must be an object"),
    "a text part without text": ({"role": "user", "content": [{"type": "text"}]}, "'content.0' is a text part"),
    "a text part with a number": ({"role": "user", "content": [{"type": "text", "text": 5}]}, "'content.0' is a text"),
    "an image without address": ({"role": "user", "content": [{"type": "image_url"}]}, "'content.0' is a image_url"),
    "an image with a number": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": 5}}]},
        "'content.0.image_url' needs a 'url'",
    ),
    "an image's detail": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": 7}}]},
        "'content.0.image_url.detail' must be a text, not int",
    ),
    "a file without anything": (
        {"role": "user", "content": [{"type": "file", "file": {}}]},
        "'content.0' needs a 'fil",
    ),
    "a file's id": (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": 7}}]},
        "'content.0.file_id' must be a text, not int",
    ),
    "a file's bytes": (
        {"role": "user", "content": [{"type": "file", "file": {"file_data": b"PDF"}}]},
        "'content.0.file_data' must be a text, not bytes",
    ),
    "sound without anything": (
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
        "'content.0.input_audio' needs 'data'",
    ),
    "sound as bytes": (
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": b"a", "format": "wav"}}]},
        "'content.0.input_audio.data' must be a text, not bytes",
    ),
    "calls that are no list": ({"role": "assistant", "tool_calls": 5}, "'tool_calls' must be a list, not int"),
    "calls that are one call": ({"role": "assistant", "tool_calls": CALL}, "'tool_calls' must be a list, not dict"),
    "a call that is a text": ({"role": "assistant", "tool_calls": ["look"]}, "'tool_calls.0' must be an object"),
    "a call without name": (
        {"role": "assistant", "tool_calls": [CALL, {"id": "t2", "function": {"arguments": "{}"}}]},
        "'tool_calls.1' has no function name",
    ),
    "a legacy call that is a text": ({"role": "assistant", "function_call": "auto"}, "'function_call' has no function"),
    "a refusal that is no text": ({"role": "assistant", "refusal": {"a": 1}}, "'refusal' must be a text, not dict"),
    "reasoning that is no text": (
        {"role": "assistant", "reasoning_content": ["a"]},
        "'reasoning_content' must be a te",
    ),
    "details that are a text": ({"role": "assistant", "reasoning_details": "a"}, "'reasoning_details' must be a list"),
    "details that are a number": ({"role": "assistant", "reasoning_details": 5}, "'reasoning_details' must be a list"),
    "details that hold a text": ({"role": "assistant", "reasoning_details": ["a"]}, "'reasoning_details.0' must be an"),
    "extras that are no object": ({"role": "user", "content": "a", "extras": 5}, "'extras' must be an object, not int"),
    "parts and content": ({"role": "user", "content": "a", "parts": []}, "content"),
    "parts that are none": ({"role": "user", "parts": [5]}, "parts"),
}


@pytest.mark.parametrize(("data", "told"), BAD.values(), ids=BAD.keys())
def test_a_wrong_message_is_refused_with_the_name_of_the_field(data: Any, told: str) -> None:
    """By itself and within a request, where its place among the messages is told too; nothing else is raised."""
    with pytest.raises(ValidationError, match=told):
        Message.model_validate(data)
    with pytest.raises(ValidationError, match=told) as caught:
        CompletionRequest(messages=[{"role": "user", "content": "ok"}, data])
    assert caught.value.errors()[0]["loc"][:2] == ("messages", 1)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "image_url", "url", "file", "function", "name", "id", "arguments"])
            | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
KEYS = [
    *("role", "content", "tool_calls", "function_call", "refusal", "reasoning", "reasoning_content"),
    *("reasoning_details", "name", "tool_call_id", "status", "extras", "provider", "audio"),
]


@given(
    st.dictionaries(st.sampled_from(KEYS), anything, max_size=6),
    st.sampled_from(["user", "assistant", "tool", "system", "function", "developer", None]),
)
def test_any_dict_is_taken_or_refused(data: dict[str, Any], role: str | None) -> None:
    """With a ValidationError and no other exception; what is taken can be dumped and loaded."""
    try:
        message = Message.model_validate({**data, **({"role": role} if role else {})})
    except ValidationError:
        return
    assert Message.model_validate(message.model_dump()) == message


def test_a_factory_refuses_a_call_without_name() -> None:
    """An answer names what it answers."""
    with pytest.raises(ValueError, match="no function name"):
        Message.tool({"id": "t1"}, "done")


def test_the_views_show_their_parts_in_order() -> None:
    """Text, reasoning, calls and refusal are read from the parts; content is the text of an answer."""
    message = Message(
        role="assistant",
        parts=[
            ReasoningPart("hm"),
            TextPart("a"),
            TOOL_CALL,
            ReasoningPart("!"),
            TextPart("b"),
            RefusalPart("No"),
            RefusalPart("."),
        ],
    )
    assert (message.text, message.reasoning, message.refusal) == ("ab", "hm!", "No.")
    assert message.tool_calls == [TOOL_CALL]
    assert message.content == "ab"


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (Message.user(""), ""),
        (Message.user("a"), "a"),
        (Message.user([TextPart("a")]), "a"),
        (Message.user([TextPart("a"), TextPart("b")]), [TextPart("a"), TextPart("b")]),
        (Message.user([ImagePart("u")]), [ImagePart("u")]),
        (
            Message(role="assistant", parts=[TextPart("a"), OtherPart({"type": "c"})]),
            [TextPart("a"), OtherPart({"type": "c"})],
        ),
        (Message(role="assistant", parts=[TOOL_CALL]), ""),
    ],
)
def test_content_is_text_or_the_list_of_parts_a_reader_sees(message: Message, content: Any) -> None:
    """One text is a text; several texts of a user stay apart, as they were written apart."""
    assert message.content == content


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (Message.assistant(), "pending"),
        (Message.assistant("a"), "completed"),
        (Message.assistant(status="writing"), "writing"),
        (Message.assistant("a", status="aborted"), "aborted"),
        (Message.tool(TOOL_CALL), "pending"),
        (Message.tool(TOOL_CALL, "a"), "completed"),
        (Message.tool(TOOL_CALL, "a", status="error"), "error"),
        (Message.tool(TOOL_CALL, [TextPart("a")]), "completed"),
        (Message.function(TOOL_CALL), "pending"),
        (Message.function(TOOL_CALL, "", status="completed"), "completed"),
        (Message(role="assistant", content=""), "completed"),
    ],
)
def test_a_message_without_its_text_is_pending(message: Message, status: str) -> None:
    """Those that a run fills later, unless the status is said."""
    assert message.status == status


def test_changing_a_copy_leaves_the_message_alone() -> None:
    """Parts are values."""
    message = Message.user("a")
    other = message.model_copy(update={"parts": (TextPart("b"),)})
    assert (message.text, other.text) == ("a", "b")
    with pytest.raises(AttributeError):
        message.parts[0].text = "c"  # type: ignore[union-attr,misc]


texts = st.text(max_size=8)
plain = st.dictionaries(
    st.text(max_size=4), st.none() | st.integers() | texts | st.lists(texts, max_size=2), max_size=2
)
maybe = st.none() | texts
parts = st.one_of(
    st.builds(TextPart, texts, st.none() | plain),
    st.builds(ImagePart, texts, maybe, st.none() | plain),
    st.builds(FilePart, maybe, maybe, maybe, st.none() | plain),
    st.builds(AudioPart, texts, texts),
    st.builds(ReasoningPart, texts, maybe, maybe, maybe, maybe, st.lists(plain, max_size=2).map(tuple)),
    st.builds(ToolCall, texts, texts, texts, st.booleans(), st.none() | plain),
    st.builds(RefusalPart, texts),
    st.builds(OtherPart, plain),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]),
    parts=st.lists(parts, max_size=4),
    status=st.sampled_from(["pending", "writing", "completed", "error", "aborted"]),
    name=maybe,
    tool_call_id=maybe,
    provider=maybe,
    model=maybe,
    extras=plain,
)


@given(messages)
def test_a_message_dumped_and_loaded_is_the_same(message: Message) -> None:
    """As JSON text, as JSON values, as Python values and as a pickle: nothing is lost, nothing is added."""
    assert Message.model_validate_json(message.model_dump_json()) == message
    assert Message.model_validate(json.loads(json.dumps(message.model_dump(mode="json")))) == message
    assert Message.model_validate(message.model_dump()) == message
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message


def test_a_message_of_an_answer_is_dumped_and_loaded_like_any_other() -> None:
    """Made without validation, it is still whole."""
    made = Message.build("assistant", [TextPart("a"), TOOL_CALL], provider="p", model="m")
    again = Message.model_validate_json(made.model_dump_json())
    assert again == made
    assert (again.provider, again.model, again.status) == ("p", "m", "completed")
