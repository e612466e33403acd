"""What holds for every test: loopback only, no key of the machine, one Hypothesis profile, sums at the end."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from counting import totals

TESTS = Path(__file__).parent

# Folders whose tests put an adapter's real SDK before recorded or written bytes: what `nox -s contract` runs.
CONTRACT_FOLDERS = ("adapters", "chatwire", "contract", "recordings")

# A stranger's project: it is not of this workspace, and runs where only wheels are installed (`nox -s smoke`).
collect_ignore = ["thirdparty"]

VENDOR_SETTINGS = ("OPENAI_", "AZURE_OPENAI_", "GROQ_", "MISTRAL_", "TOGETHER_")

# No deadline: two busy cores make any single example slow. CI tries the same examples each time (derandomize).
settings.register_profile("agent-core", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("agent-core")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what belongs to the contract by the folder it is in."""
    for item in items:
        if item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).parts[0] in CONTRACT_FOLDERS:
            item.add_marker(pytest.mark.contract)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much the tests went through: `vectors: 80, cases: 30, recordings: 400, cuts: 1200`."""
    if sums := totals() | dict(_OF_WORKERS):
        terminalreporter.write_line(", ".join(f"{what}: {times}" for what, times in sums.items()))


_OF_WORKERS: Counter[str] = Counter()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the sums of a pytest-xdist worker over."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["sums"] = totals()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mend what a test has logged: a worker cannot hand over half a character, and the whole run would end."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up what the workers went through."""
    _OF_WORKERS.update(getattr(node, "workeroutput", {}).get("sums", {}))


class NotLoopbackError(Exception):
    """A test reached for an address beyond this machine."""


def _is_loopback(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_the_network(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not _is_loopback(host):
        raise NotLoopbackError(f"tests stay on loopback, but one reached for {host!r}")


# An audit hook sees every library's sockets, whatever they are wrapped in.
sys.addaudithook(_refuse_the_network)


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, base URL or proxy of the machine reaches a test; one that needs such a variable sets it."""
    for name in os.environ:
        if name.startswith(VENDOR_SETTINGS) or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio; a module that means trio too overrides this with its own parametrized fixture."""
    return "asyncio"
