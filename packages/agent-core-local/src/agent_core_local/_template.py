"""Which chat template a model is run with.

A template that knows no tools drops them without a word: the model answers in text, even where a call is required. So
before such a template goes one of ours (`tools.jinja`), which rewrites the messages for it; the marks between turns
stay those the model was trained on.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from agent_core.errors import ConfigError

from ._gguf import Metadata

__all__ = ["given_template", "template_for", "with_tools"]

# What llama.cpp takes for a file without a template.
_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# Gemma 2 says "System role not supported"; Mistral 7B v0.1 wants user and assistant in turns, and speaks of no other.
_REFUSES_SYSTEM = re.compile(r"raise_exception\([^)]*system", re.IGNORECASE)


def template_for(metadata: Metadata) -> str | None:
    """Give the template to run a model with, or None where its own knows tools."""
    own = str(metadata.get("tokenizer.chat_template") or _CHATML)
    if "tools" in own or "tokenizer.chat_template.tool_use" in metadata:
        return None
    return with_tools(own)


def with_tools(own: str) -> str:
    """Teach a template to write tools, calls and results as ordinary turns."""
    fold = "raise_exception" in own and ("system" not in own or _REFUSES_SYSTEM.search(own) is not None)
    ours = files(__package__).joinpath("tools.jinja").read_text("utf-8").rstrip()
    return f"{{%- set fold_system = {str(fold).lower()} %}}{ours}{own}"


def given_template(given: str | Path) -> str:
    """Give the text of a template that is named by its path, or is the text itself.

    Raises:
        ConfigError: it is a path, and the file cannot be read.
    """
    if isinstance(given, str) and "{" in given:
        return given
    try:
        return Path(given).expanduser().read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        told = f"the chat template {given} cannot be read: {reason}. Pass the path of a Jinja file, or its text"
    raise ConfigError(told)
