"""A template that knows no tools gets them; one that does is left alone."""

from __future__ import annotations

from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from agent_core.errors import ConfigError
from agent_core_local import LlamaServer
from agent_core_local._template import given_template, template_for, with_tools

QUESTION = {"role": "user", "content": "How is it in Paris?"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "see", "arguments": '{"city": "Paris"}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "sunny"}
TOOLS = [{"type": "function", "function": {"name": "see", "parameters": {"type": "object", "properties": {}}}}]

# Written here after the manner of models without tools: turns marked in their own way.
BRACKETS = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<go>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system role here') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('take turns') }}"
    "{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}"
)


def test_a_template_with_tools_is_kept() -> None:
    """None stands for the file's own template."""
    assert template_for({"tokenizer.chat_template": "{% if tools %}{% endif %}"}) is None
    assert template_for({"tokenizer.chat_template": "{{ 1 }}", "tokenizer.chat_template.tool_use": "{{ 2 }}"}) is None


@pytest.mark.parametrize("metadata", [{}, {"tokenizer.chat_template": ""}])
def test_a_file_without_a_template_gets_one(metadata: dict[str, str | int | float | bool]) -> None:
    """llama.cpp would take ChatML for it, and so does this."""
    template = template_for(metadata)
    assert template is not None and "tools" in template and "<|im_start|>" in template


def test_a_template_is_named_by_its_text_or_its_path(tmp_path: Path) -> None:
    """What holds a brace is the text itself."""
    (tmp_path / "chat.jinja").write_text("é{{ messages }}", "utf-8")
    assert given_template(tmp_path / "chat.jinja") == given_template(str(tmp_path / "chat.jinja")) == "é{{ messages }}"
    assert given_template("{{ messages }}") == "{{ messages }}"
    with pytest.raises(ConfigError, match=r"chat template .*none\.jinja cannot be read: No such file"):
        given_template(tmp_path / "none.jinja")


def rendered(server: LlamaServer, *messages: Any, tools: Any = None) -> str:
    """Ask a server how it would write a conversation."""
    body = {"messages": messages} | ({"tools": tools} if tools else {})
    headers = {"content-type": "application/json", "authorization": f"Bearer {server.api_key}"}
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("POST", "/apply-template", to_json(body), headers)
        answer = from_json(connection.getresponse().read())
    finally:
        connection.close()
    return str(answer["prompt"])


@pytest.mark.local_model
def test_the_models_own_marks_stay(smollm2: Path) -> None:
    """Tools, calls and results become turns of the model's own form; a chat without tools is left as it is."""
    with LlamaServer(smollm2, threads=1, context=512, chat_template=with_tools(BRACKETS)) as server:
        assert rendered(server, QUESTION) == "<user>How is it in Paris?</><go>"
        terse = {"role": "system", "content": "Be terse."}
        assert rendered(server, terse, QUESTION) == "<system>Be terse.</><user>How is it in Paris?</><go>"
        asked = rendered(server, terse, QUESTION, tools=TOOLS)
        assert asked.startswith("<system>Be terse.\n\nYou turn a request into one function call.")
        assert '"name": "see"' in asked
        assert asked.endswith("<user>How is it in Paris?</><go>")
        told = rendered(server, QUESTION, CALLED, RESULT, tools=TOOLS)
        assert told.startswith(
            "<system>You are a helpful assistant.</><user>How is it in Paris?\nThe result is: sunny."
        )
        assert "see" not in told
        later = rendered(server, QUESTION, CALLED, RESULT, {"role": "assistant", "content": "Sun."}, QUESTION)
        assert '<assistant>{"name": "see", "arguments": {"city": "Paris"}}</><user>The result is: sunny</>' in later


@pytest.mark.local_model
def test_a_template_that_refuses_a_system_role_gets_none(smollm2: Path) -> None:
    """What would stand in a system message goes before the first user message, and turns stay turns."""
    with LlamaServer(smollm2, threads=1, context=512, chat_template=with_tools(NO_SYSTEM)) as server:
        asked = rendered(server, {"role": "system", "content": "Be terse."}, QUESTION, tools=TOOLS)
        assert asked.startswith("[user]")
        assert "You turn a request into one function call." in asked
        assert asked.endswith("[user]How is it in Paris?")
        told = rendered(server, QUESTION, CALLED, RESULT, tools=TOOLS)
        assert told.startswith("[user]You are a helpful assistant.\n\nHow is it in Paris?\nThe result is: sunny.")
