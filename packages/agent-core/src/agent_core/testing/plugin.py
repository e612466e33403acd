"""The pytest plugin: a scorecard of the contract, and a check that every recorded exchange was played.

pytest --scorecard docs/scorecard.md        write the scorecard as Markdown, and beside it as JSON
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("agent_core.testing._contract", "agent_core.testing._faults")

__all__ = ["Scorecard", "unplayed"]

_WORDS = {"passed": "yes", "failed": "NO", "xfailed": "excused", "skipped": "–"}
_WORST = ["failed", "xfailed", "passed", "skipped"]


class Scorecard:
    """Results of contract tests: for each scenario or fault and provider, the worst outcome of its parameters."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, str]] = {}
        self.tests = 0

    def add(self, row: str, provider: str, outcome: str) -> None:
        """Take in one result."""
        self.tests += 1
        known = self.cells.setdefault(row, {}).get(provider, "skipped")
        self.cells[row][provider] = min(known, outcome, key=_WORST.index)

    @property
    def providers(self) -> list[str]:
        """The providers, in alphabetical order."""
        return sorted({provider for row in self.cells.values() for provider in row})

    def rows(self) -> Iterator[list[str]]:
        """Give the table, its head first."""
        yield ["", *self.providers]
        for name, row in self.cells.items():
            yield [name, *(_WORDS[row.get(provider, "skipped")] for provider in self.providers)]

    def text(self) -> str:
        """Write the table for a terminal."""
        rows = list(self.rows())
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)

    def markdown(self) -> str:
        """Write the table as Markdown."""
        head, *rows = self.rows()
        lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
        return "\n".join(lines) + "\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("agent-core").addoption(
        "--scorecard", type=Path, default=None, help="write the scorecard of the provider contract to this file"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_KEY] = Scorecard()
    config.stash[_RAN] = {}
    config.stash[_LEFT] = []


_KEY = pytest.StashKey[Scorecard]()
_RAN = pytest.StashKey[dict[Any, set[str]]]()
_LEFT = pytest.StashKey[list[str]]()
_CELL = "agent-core contract"  # the property of a report, and what a worker of pytest-xdist hands over


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    cls = getattr(item, "cls", None)
    if cls is not None and hasattr(cls, "run_recorded") and (call.when == "call" or report.outcome != "passed"):
        outcome = "xfailed" if hasattr(report, "wasxfail") and report.outcome == "skipped" else report.outcome
        name = getattr(item, "originalname", None) or item.name
        item.config.stash[_RAN].setdefault(cls, set()).add(name)
        report.user_properties.append((_CELL, [name.removeprefix("test_").replace("_", "-"), cls.vendor, outcome]))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> Any:
    """Take a result in where it is shown: in the one process that all workers report to."""
    if isinstance(report, pytest.TestReport) and not hasattr(config, "workerinput"):
        for name, value in report.user_properties:
            if name == _CELL and isinstance(value, list):
                config.stash[_KEY].add(*value)
                report.user_properties.remove((name, value))
                break
    return (yield)


def unplayed(contracts: list[Any]) -> list[str]:
    """Give the recorded exchanges that no test has played."""
    from ._contract import load_cassette

    return [
        f"{path.parent.name}/{path.name}: exchange {place + 1}"
        for cls in contracts
        for path in sorted(cls.cassettes.glob("*.yaml"))
        for place, interaction in enumerate(load_cassette(path).interactions)
        if not interaction.played
    ]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    # Only of a contract that ran whole, in one process, can be said that an exchange was never played.
    whole = [cls for cls, ran in config.stash[_RAN].items() if ran >= {n for n in dir(cls) if n.startswith("test_")}]
    config.stash[_LEFT] += unplayed(whole)
    if hasattr(config, "workeroutput"):
        config.workeroutput[_CELL] = config.stash[_LEFT]
        return
    if exitstatus == pytest.ExitCode.OK and config.stash[_LEFT]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    card = config.stash[_KEY]
    path = session.config.getoption("--scorecard")
    if not card.cells or path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Scorecard of the provider contract\n\n{_ABOUT}\n\n{card.markdown()}", encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(card.cells, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of pytest-xdist found."""
    node.config.stash[_LEFT] += getattr(node, "workeroutput", {}).get(_CELL, [])


_ABOUT = (
    "Written by `nox -s contract`. Each cell stands for a scenario whole and streamed, played by vcrpy and by a\n"
    "loopback server in other cuts, or for a fault made from the same recordings. `–`: the vendor has no such thing."
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    card = config.stash[_KEY]
    if not card.cells:
        return
    terminalreporter.section("provider contract")
    terminalreporter.write_line(card.text())
    red = sum(outcome == "failed" for row in card.cells.values() for outcome in row.values())
    cells = sum(len(row) for row in card.cells.values())
    terminalreporter.write_line(f"contract tests: {card.tests}, cells: {cells}, red: {red}")
    for exchange in config.stash[_LEFT]:
        terminalreporter.write_line(f"recorded, but played by no test: {exchange}", red=True)
