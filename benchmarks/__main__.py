"""`python -m benchmarks [measure ...] [--quick] [--json FILE]`; what is measured is told in the package's docstring."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from . import __doc__ as _explained
from . import closing, completions, imports, installs, loops, memory, streams
from ._measuring import Row, as_json, as_table
from ._server import Server

_MEASURES = {
    "stream": streams.measure,
    "whole": completions.measure,
    "loop": loops.measure,
    "import": imports.measure_import,
    "load": imports.measure_load,
    "memory": memory.measure,
    "close": closing.measure,
    "installs": installs.measure,
}


def main() -> int:
    """Run the measures that were named, or all; print the table. 1 where a limit is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=_explained, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "measures", nargs="*", metavar="measure", help=f"one of: {', '.join(_MEASURES)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats: under a minute, and less certain")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file too")
    options = parser.parse_args()
    if unknown := set(options.measures) - set(_MEASURES):
        parser.error(f"no measure named {', '.join(sorted(unknown))}; there are: {', '.join(_MEASURES)}")
    rows: list[Row] = []
    with Server.started() as server:
        for name in options.measures or _MEASURES:
            start = time.perf_counter()
            rows += asyncio.run(_MEASURES[name](server, options.quick))
            print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    print(as_table(rows))
    if options.json:
        options.json.write_text(as_json(rows) + "\n", "utf-8")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
