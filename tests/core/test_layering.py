"""Imports point down. Each module of agent_core has a floor, and takes only from its own floor or one below.

What is counted is every import statement, those inside functions and under TYPE_CHECKING included: a name that is only
needed for a type still says who knows whom.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

FLOORS = {
    # values: what every other module speaks of
    "errors": 0,
    "_json": 0,
    "_door": 0,
    "_messages": 0,
    "_parts": 0,
    "_completion": 0,
    "_abort": 0,
    # what turns a request into a completion, and what a tool is
    "_deltas": 1,
    "_provider": 1,
    "_retry": 1,
    "_tools": 1,
    "_history": 1,
    "_hooks": 3,
    # the one loop
    "_engine": 2,
    # front doors, the registry, and the wire (which has a rule of its own below)
    "_loop": 3,
    "_model": 3,
    "_registry": 3,
    "chatwire": 3,
    # may use all of it, and is used by none of it
    "testing": 5,
}
WIRE_MAY_USE = 1
NEVER_SEE_THE_WIRE = ("_engine", "_loop", "_model", "_registry")
SDKS = {
    "agent_core_openai": ("openai", "httpx", "httpx2"),
    "agent_core_groq": ("groq", "httpx"),
    "agent_core_mistral": ("mistralai", "httpx2"),
    "agent_core_together": ("together", "httpx"),
    "agent_core_local": ("xllamacpp", "httpx"),
}
ADAPTERS = tuple(SDKS)

# What `import agent_core` may load that is not Python's own: its dependencies but snowballstemmer (0.15 s, loaded at
# first use), and what those bring.
MAY_BE_LOADED = {
    "agent_core",
    "annotated_types",
    "anyio",
    "idna",
    "pydantic",
    "pydantic_core",
    "sniffio",
    "typing_extensions",
    "typing_inspection",
}


def root_of(package: str) -> Path:
    """The folder an installed package is loaded from, without importing it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None, f"{package} has no __init__.py"
    return Path(spec.origin).parent


def modules_of(package: str) -> dict[str, Path]:
    """Every module of a package, by its dotted name."""
    root = root_of(package)
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = [package, *path.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, path: Path, *, types_too: bool = True) -> Iterator[str]:
    """The dotted names that a module imports, each as deep as the statement says: module, or module and name."""
    tree = ast.parse(path.read_text("utf-8"))
    left_out = set() if types_too else {id(node) for block in _typing_blocks(tree) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
                above = package[: len(package) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _typing_blocks(tree: ast.Module) -> Iterator[ast.If]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield node


def part_of(dotted: str) -> str:
    """The part of agent_core that a dotted name belongs to: `chatwire` of `agent_core.chatwire._sse.events`."""
    return dotted.split(".")[1] if "." in dotted else ""


CORE = modules_of("agent_core")
INSIDE = {name: path for name, path in CORE.items() if part_of(name)}


def test_every_module_has_a_floor() -> None:
    """A new module is put on a floor when it is made, and one that went away leaves the table."""
    assert {part_of(name) for name in INSIDE} == set(FLOORS)


@pytest.mark.parametrize("name", INSIDE)
def test_imports_point_down(name: str) -> None:
    """A module takes nothing from a floor above it, and nothing from the package's front door."""
    floor = FLOORS[part_of(name)]
    for imported in imports_of(name, INSIDE[name]):
        if imported.split(".")[0] != "agent_core":
            continue
        part = part_of(imported)
        assert part in FLOORS, f"{name} takes {imported} from the front door: import it where it is defined"
        if part == part_of(name):
            continue
        assert FLOORS[part] <= floor, f"{name} (floor {floor}) imports {imported} (floor {FLOORS[part]})"


@pytest.mark.parametrize("name", [name for name in INSIDE if part_of(name) == "chatwire"])
def test_the_wire_knows_values_and_deltas_only(name: str) -> None:
    """chatwire can be used without engine, loop and registry."""
    for imported in imports_of(name, INSIDE[name]):
        part = part_of(imported) if imported.startswith("agent_core.") else ""
        assert part in ("", "chatwire") or FLOORS[part] <= WIRE_MAY_USE, f"{name} imports {imported}"


@pytest.mark.parametrize("name", [name for name in INSIDE if part_of(name) in NEVER_SEE_THE_WIRE])
def test_the_engine_and_its_doors_do_not_know_the_wire(name: str) -> None:
    """Engine, loop and model speak to a Provider, whatever is behind it."""
    assert not [imported for imported in imports_of(name, INSIDE[name]) if part_of(imported) == "chatwire"]


def test_no_two_modules_import_each_other() -> None:
    """Modules of one floor may use one another, but not in a circle."""
    graph = {
        name: {
            known
            for imported in imports_of(name, path, types_too=False)
            for known in (imported, imported.rpartition(".")[0])
            if known in INSIDE and known != name and not name.startswith(f"{known}.")
        }
        for name, path in INSIDE.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("name", INSIDE)
def test_nothing_asks_for_a_dialect_by_name(name: str) -> None:
    """A vendor's difference is an attribute or a method of its dialect, never a question for its name."""
    for node in ast.walk(ast.parse(INSIDE[name].read_text("utf-8"))):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                assert not ast.unparse(side).endswith("dialect.name"), f"{name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_knows_neither_the_engine_nor_another_adapter(adapter: str) -> None:
    """An adapter is written against what agent_core shows, and of that not against the loop."""
    core = importlib.import_module("agent_core")
    for name, path in modules_of(adapter).items():
        for imported in imports_of(name, path):
            top, *rest = imported.split(".")
            assert top == adapter or not top.startswith("agent_core_"), f"{name} imports {imported}"
            if top != "agent_core":
                continue
            assert not any(part.startswith("_") for part in rest), f"{name} imports the private {imported}"
            if rest and rest[0] not in FLOORS:
                defined_in = getattr(getattr(core, rest[0]), "__module__", "agent_core")
                assert part_of(defined_in) not in ("_engine", "_loop"), f"{name} imports {imported}"


def loaded_by(module: str) -> set[str]:
    """The top-level packages, Python's own aside, that importing a module adds to a fresh interpreter."""
    script = f"import sys; old = set(sys.modules); import {module}; print(*set(sys.modules) - old)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()} - set(sys.stdlib_module_names)


@pytest.mark.parametrize("module", ["agent_core", "agent_core.chatwire"])
def test_core_loads_no_sdk(module: str) -> None:
    """Importing core loads no SDK, no HTTP library, no pytest, no command line and no stemmer."""
    assert {name for name in loaded_by(module) if not name.startswith("_")} <= MAY_BE_LOADED


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_loads_its_sdk_when_a_provider_is_built(adapter: str) -> None:
    """Importing an adapter is cheap, and tells nothing about whether its SDK works."""
    loaded = loaded_by(adapter)
    assert "agent_core" in loaded
    assert not loaded.intersection(SDKS[adapter])


def test_testing_alone_needs_pytest_and_vcrpy() -> None:
    """pytest and vcrpy come with the extra `testing`, so nothing else in the package may name them."""
    for name, path in INSIDE.items():
        if part_of(name) != "testing":
            tops = {imported.split(".")[0] for imported in imports_of(name, path)}
            assert not tops.intersection({"pytest", "_pytest", "vcr"}), name
