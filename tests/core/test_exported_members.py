"""`__all__` says what a package shows, and the package shows that and no more; all of it is explained."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
from types import ModuleType

import pytest

PACKAGES = (
    *("agent_core", "agent_core_openai", "agent_core_groq", "agent_core_mistral", "agent_core_together"),
    "agent_core_local",
)

# What the design pins, as far as it is built. A name leaves this list only with a reason that users accept.
PINNED = (
    *("load_provider", "load_model", "Model"),
    *("CompletionRequest", "Completion", "CompletionDelta", "Usage", "FinishReason"),
    *("Message", "ToolCall", "ToolDefinition", "Provider", "OpenAICompatibleProvider"),
    *("run_tool_loop", "stream_tool_loop", "ToolLoopHooks", "ToolLoopResult"),
    *("ToolResponse", "ToolHandlerResult", "AgentAction", "AbortSignal", "errors"),
)


def every_module() -> list[str]:
    """All modules of all packages, by import name."""
    names = []
    for package in PACKAGES:
        names.append(package)
        root = importlib.import_module(package)
        names += [info.name for info in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return names


MODULES = every_module()
PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]


def shown_by(module: ModuleType) -> set[str]:
    """The names a module shows as its own: without underscore, no submodule, nothing it only uses.

    A package shows what it imports from its modules, since that is how its names come together; a single file does not.
    """
    names = {
        name
        for name, value in vars(module).items()
        if name.isidentifier()  # pytest leaves "@pytest_ar" in a module whose asserts it rewrites
        and not name.startswith(("_", "pytest_"))  # and calls hooks by their name
        and not (isinstance(value, ModuleType) and value.__name__ == f"{module.__name__}.{name}")
    }
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import):
            names -= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            ours = node.level > 0 or str(node.module).startswith("agent_core")
            if not (ours and hasattr(module, "__path__")):
                names -= {alias.asname or alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("name", PUBLIC)
def test_all_names_what_the_package_shows(name: str) -> None:
    """Nothing listed is missing, nothing is listed twice, nothing else is in sight."""
    module = importlib.import_module(name)
    listed = list(module.__all__)
    assert len(listed) == len(set(listed))
    for each in listed:
        assert getattr(module, each, None) is not None, f"{name}.{each} is listed but not there"
    assert shown_by(module) <= set(listed)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_decides(name: str) -> None:
    """Every module, private ones too, begins with a docstring and lists what others may take from it."""
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    for each in getattr(module, "__all__", ()):
        assert hasattr(module, each), f"{name}.{each} is listed but not there"


def explained(value: object) -> bool:
    """Whether a class or function has a docstring of its own, not one that dataclass or NamedTuple wrote."""
    text = (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__) or ""
    return bool(text.strip()) and not text.startswith(f"{getattr(value, '__name__', '')}(")


def members_of(value: type) -> set[str]:
    """The methods and properties that a class of ours adds to what it shows."""
    return {
        name
        for name, member in vars(value).items()
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
    }


def explained_by_protocols() -> set[str]:
    """What the docstring of a protocol explains once for all that follow it: `complete`, `stream`, `aclose`."""
    exported = [getattr(module, each) for module in map(importlib.import_module, PUBLIC) for each in module.__all__]
    protocols = [value for value in exported if inspect.isclass(value) and getattr(value, "_is_protocol", False)]
    return set().union(*map(members_of, protocols))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_object_has_a_docstring(name: str) -> None:
    """A class or function that users meet says what it is; so do its methods, in their own words or a base's."""
    module = importlib.import_module(name)
    bare = []
    for each in module.__all__:
        value = getattr(module, each)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue  # a type alias or a constant: its comment stands at its definition
        if not str(value.__module__).startswith("agent_core"):
            continue
        if not explained(value):
            bare.append(each)
        if inspect.isclass(value):
            own = members_of(value) - explained_by_protocols()
            bare += [f"{each}.{member}" for member in sorted(own) if not inspect.getdoc(getattr(value, member))]
    assert not bare, f"{name}: no docstring on {', '.join(bare)}"


def test_the_pinned_names_are_there() -> None:
    """The public surface is a promise."""
    core = importlib.import_module("agent_core")
    assert not set(PINNED) - set(core.__all__)
