"""Every Python block of README.md runs as it stands, against a simulated vendor on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_core.testing.simulator import Simulator

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^## (.+?)$|^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)

# How each adapter is told where its vendor is and what its key is, as a user would set it.
VENDORS = {"openai": "OPENAI", "groq": "GROQ", "mistral": "MISTRAL", "together": "TOGETHER"}


def named_blocks() -> Iterator[tuple[str, str]]:
    """Give each block with the heading it stands under."""
    heading = "quick start"
    for title, code in BLOCKS:
        heading = title or heading
        if code:
            yield heading, code


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The environment of a user whose keys and addresses lead to simulators."""
    with ExitStack() as running:
        env = {key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL"))}
        for vendor, prefix in VENDORS.items():
            simulator = running.enter_context(Simulator(vendor))
            env |= {f"{prefix}_API_KEY": "unused", f"{prefix}_BASE_URL": simulator.base_url}
        yield env


@pytest.mark.parametrize(("heading", "code"), list(named_blocks()), ids=[heading for heading, _ in named_blocks()])
def test_readme_block(heading: str, code: str, environment: dict[str, str]) -> None:
    """The block ends well and prints something."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), f"the block under {heading!r} prints nothing"
