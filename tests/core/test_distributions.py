"""What the packages say of themselves: one version, the pins between them, their dependencies, their entry points."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECTS = {path.parent.name: path for path in sorted(ROOT.glob("packages/*/pyproject.toml"))}
MOST_DISTRIBUTIONS = 9


def project(name: str) -> dict[str, Any]:
    """The [project] table of a package."""
    table: dict[str, Any] = tomllib.loads(PROJECTS[name].read_text("utf-8"))["project"]
    return table


def test_all_packages_carry_one_version() -> None:
    """`nox -s bump` writes it everywhere; nothing was forgotten, pins between the packages included."""
    versions = {project(name)["version"] for name in PROJECTS}
    assert len(versions) == 1
    (version,) = versions
    for name in PROJECTS:
        extras = [line for lines in project(name).get("optional-dependencies", {}).values() for line in lines]
        ours = [line for line in project(name)["dependencies"] + extras if line.startswith("agent-core")]
        assert all(line.endswith(f"=={version}") for line in ours), f"{name}: {ours}"


def test_every_adapter_is_an_extra_of_core() -> None:
    """`pip install agent-core[openai]` brings the adapter that was made with it."""
    extras = project("agent-core")["optional-dependencies"]
    for name in PROJECTS.keys() - {"agent-core"}:
        version = project(name)["version"]
        assert extras[name.removeprefix("agent-core-")] == [f"{name}=={version}"]


def test_every_adapter_can_be_found_by_its_name() -> None:
    """The entry point has the extra's name, and names the class that the adapter's package shows."""
    found = {entry.name: entry.value for entry in metadata.entry_points(group="agent_core.providers")}
    for name in PROJECTS.keys() - {"agent-core"}:
        module, _, cls = found[name.removeprefix("agent-core-")].partition(":")
        assert module == name.replace("-", "_")
        assert cls.endswith("Provider")


@pytest.mark.parametrize("name", PROJECTS)
def test_a_package_is_typed_and_licensed(name: str) -> None:
    """Type checkers read the annotations only where py.typed is, and a wheel carries its licence itself."""
    folder = PROJECTS[name].parent
    assert (folder / "src" / name.replace("-", "_") / "py.typed").is_file()
    assert (folder / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")


@pytest.mark.parametrize("name", PROJECTS)
def test_every_dependency_has_a_floor_and_a_cap(name: str) -> None:
    """The range is the one that was tested: from a release that `nox -s contract` runs on, to before the next break."""
    for line in project(name)["dependencies"]:
        assert re.fullmatch(r"[\w-]+(==[\w.]+|>=[\w.]+,<[\w.]+)", line), line


def test_core_depends_on_three_packages() -> None:
    """No vendor, no HTTP library, no test tool."""
    names = {re.split(r"[^\w-]", line)[0] for line in project("agent-core")["dependencies"]}
    assert names == {"anyio", "pydantic"}


def test_core_alone_installs_few_distributions() -> None:
    """What comes with `pip install agent-core`, itself counted, on this Python."""
    wanted, installed = ["agent-core"], set[str]()
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name not in installed:
            installed.add(name)
            needs = [Requirement(line) for line in metadata.requires(name) or ()]
            wanted += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    assert len(installed) <= MOST_DISTRIBUTIONS, sorted(installed)
