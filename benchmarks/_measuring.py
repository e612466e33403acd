"""Taking turns, timing them, and the table they end in."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Row", "Side", "Times", "as_json", "as_table", "compare", "compare_children", "run_child"]

ROOT = Path(__file__).parents[1]
Side = Callable[[], Awaitable[float]]
"""One turn of a program: it gives the CPU time that it took (`time.process_time`), what it prepared not included."""


@dataclass(frozen=True)
class Times:
    """What one side took, turn by turn (seconds)."""

    taken: Sequence[float]

    @property
    def best(self) -> float:
        """The turn that was disturbed least."""
        return min(self.taken)

    @property
    def median(self) -> float:
        """The turn in the middle."""
        return statistics.median(self.taken)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        measure, case: what was measured, and of what.
        measured: the figure that has a limit: a ratio (`x`), a time (`ms`) or a number.
        at_most: the limit; None for what is printed for information.
        figures: what it was computed from, with the unit in each name.
    """

    measure: str
    case: str
    measured: float
    unit: str = "x"
    at_most: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether the figure is within its limit."""
        return self.at_most is None or self.measured <= self.at_most

    @classmethod
    def ratio(
        cls, measure: str, case: str, times: Mapping[str, Times], *, at_most: float | None, each: int, unit: str
    ) -> Row:
        """Make a line from the times of `ours` and of a second side; sides after these two are information.

        Args:
            each: how many chunks, calls or rounds a turn had.
            unit: `us` or `ms`, for the figures.
        """
        scale = {"us": 1e6, "ms": 1e3}[unit] / each
        ours, other, *_ = times.values()
        figures = {f"{name} {unit}": turns.best * scale for name, turns in times.items()}
        figures["ratio of medians"] = ours.median / other.median
        return cls(measure, case, ours.best / other.best, "x", at_most, figures)


async def compare(sides: Mapping[str, Side], repeats: int) -> dict[str, Times]:
    """Let the sides take turns.

    Short turns, many of them: the best is one that no other process disturbed. The collector treats all alike: what
    stands before the first turn is frozen, each turn begins with a clean heap, and collections during it count.
    """
    for side in sides.values():
        await side()
    gc.collect()
    gc.freeze()
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats):
        # Whoever comes first finds colder caches, so the order turns round.
        for name in list(sides) if turn % 2 else reversed(list(sides)):
            gc.collect()
            taken[name].append(await sides[name]())
    gc.unfreeze()
    return {name: Times(times) for name, times in taken.items()}


def run_child(*arguments: str) -> str:
    """Run a fresh interpreter in the repository, which may keep compiled modules, and give what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)[:200]}\n{done.stderr}")
    return done.stdout


def compare_children(scripts: Mapping[str, str], repeats: int) -> dict[str, Times]:
    """Let fresh interpreters take turns with scripts, and time each in CPU time after the interpreter's own start."""
    timed = {
        name: f"import time\nstart = time.process_time()\n{script}\nprint(time.process_time() - start)"
        for name, script in scripts.items()
    }
    for script in timed.values():
        run_child("-c", script)  # writes what compiled modules are missing, and warms the file cache
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(repeats):
        for name in list(timed) if turn % 2 else reversed(list(timed)):
            taken[name].append(float(run_child("-c", timed[name])))
    return {name: Times(times) for name, times in taken.items()}


def as_table(rows: Sequence[Row]) -> str:
    """Write the lines as text, one column below the other."""
    cells = [("measure", "case", "measured", "at most", "", "figures")]
    for row in rows:
        mark = "" if row.at_most is None else "ok" if row.met else "OVER"
        limit = "-" if row.at_most is None else _number(row.at_most, row.unit)
        figures = ", ".join(f"{name} {value:.4g}" for name, value in row.figures.items())
        cells.append((row.measure, row.case, _number(row.measured, row.unit), limit, mark, figures))
    widths = [max(len(line[column]) for line in cells) for column in range(6)]
    return "\n".join("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)) for line in cells)


def as_json(rows: Sequence[Row]) -> str:
    """Write the lines as a JSON list."""
    return json.dumps([{**asdict(row), "met": row.met} for row in rows], indent=1)


def _number(value: float, unit: str) -> str:
    return f"{value:.2f} x" if unit == "x" else f"{value:.4g} {unit}".rstrip()
