"""Making cassettes: a scenario is had through the adapter and its real SDK, and vcrpy writes down what went by.

    python -m agent_core.testing.record tests/contract/test_groq.py:TestGroq [--from live] [scenario ...]

From where: `live` (the vendor itself, where its key is set), `local` (a real llama.cpp server), or `simulator`. The
address of a simulator or local server is replaced by the vendor's own, and only harmless headers are kept. A cassette
that holds anything like a credential is not written.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from .._completion import Completion, Usage
from ..errors import AgentCoreError
from ._cassettes import KEPT_HEADERS, Cassette, Interaction
from ._contract import ProviderContract, run_scenario
from ._scenarios import SCENARIOS, Scenario, scenario

__all__ = ["main", "record_scenario"]


def record_scenario(
    contract: ProviderContract, scenario: Scenario, *, address: str, source: str, **options: Any
) -> Cassette:
    """Record one scenario, whole and streamed, and write its cassette.

    Args:
        contract: tells folder, provider, model and the vendor's own address, which is written in place of `address`.
        address: where the answers come from now.
        options: for the provider, such as a live key.

    Raises:
        ProviderError: the scenario could not be had; nothing is written.
        ValueError: the recording holds something like a credential; nothing is written.
    """
    import vcr

    path = contract.cassettes / f"{scenario.name}.yaml"
    recorder = vcr.VCR(record_mode="all", decode_compressed_response=True)
    completions: dict[str, list[Completion]] = {}
    with TemporaryDirectory() as scratch, recorder.use_cassette(str(Path(scratch) / "tape.yaml")) as tape:
        for mode in ("whole", "streamed"):
            have = functools.partial(
                run_scenario,
                scenario,
                scenario.turns,
                model=contract.model,
                mode=mode,
                options=contract.options_for(scenario),
            )
            completions[mode] = contract.run(have, address, **options)
        pairs = list(zip(tape.requests, tape.responses, strict=True))
    header: dict[str, Any] = {
        "scenario": scenario.name,
        "vendor": contract.vendor,
        "recorded_from": source,
        "sdk": f"{contract.sdk} {version(contract.sdk)}",
        "date": date.today().isoformat(),
        "base_url": contract.official_url,
    }
    if source != "simulator":
        header["expected"] = [_words(completion) for completion in completions["whole"]]
    taken = [_interaction(request, response, address, contract.official_url) for request, response in pairs]
    cassette = Cassette(path, header, taken)
    cassette.save()
    return cassette


def _interaction(request: Any, response: Mapping[str, Any], address: str, base_url: str) -> Interaction:
    here, there = urlsplit(address), urlsplit(base_url)
    uri = urlsplit(request.uri)._replace(scheme=there.scheme, netloc=there.netloc)
    path = uri.path.removeprefix(here.path.rstrip("/"))
    headers = {name.lower(): str(_first(values)) for name, values in response["headers"].items()}
    body = response["body"]["string"]
    return Interaction(
        request.method,
        uri._replace(path=there.path.rstrip("/") + path).geturl(),
        json.loads(request.body),
        response["status"]["code"],
        {name: value for name, value in headers.items() if name in KEPT_HEADERS},
        body if isinstance(body, bytes) else body.encode(),
    )


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, Sequence) and not isinstance(values, str) else values


def _words(completion: Completion) -> list[dict[str, Any]]:
    """Write down what a real model said, in the form of `Said`."""
    usage = completion.usage or Usage()
    words: list[dict[str, Any]] = []
    for choice in completion.choices:
        message = choice.message
        words.append(
            {
                "text": message.text,
                "reasoning": message.reasoning,
                "calls": [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls],
                "refusal": message.refusal,
                "finish_reason": choice.finish_reason,
                "logprobs": choice.logprobs is not None,
                "input_tokens": usage.input_tokens,
                # Usage is told once for all choices, and not by every server as their sum: the first one carries it.
                "output_tokens": 0 if words else usage.output_tokens,
            }
        )
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the scenarios of a contract class. Gives the exit code: 1 where one could not be had."""
    parser = argparse.ArgumentParser(prog="python -m agent_core.testing.record", description=__doc__)
    parser.add_argument("contract", help="file and class, such as tests/contract/test_groq.py:TestGroq")
    parser.add_argument("scenarios", nargs="*", help="names of scenarios; all that the capabilities allow if left out")
    parser.add_argument("--from", dest="source", choices=["live", "local", "simulator"], default="simulator")
    chosen = parser.parse_args(arguments)
    contract = _contract_named(chosen.contract)
    wanted = [scenario(name) for name in chosen.scenarios] or [
        each for each in SCENARIOS if each.needs <= contract.capabilities
    ]
    failed = 0
    for each in wanted:
        try:
            with contract.source(each, chosen.source) as (address, source, options):
                cassette = record_scenario(contract, each, address=address, source=source, **options)
        except (AgentCoreError, AssertionError, ValueError) as error:
            failed += 1
            print(f"{each.name}: not recorded: {error}", file=sys.stderr)  # noqa: T201  a command
        else:
            told = f"{len(cassette.interactions)} exchanges from {source}"
            print(f"{cassette.path}: {told}")  # noqa: T201
    return 1 if failed else 0


def _contract_named(place: str) -> ProviderContract:
    file, _, name = place.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path[:0] = [str(parent) for parent in Path(file).resolve().parents[:2]]  # a contract may share a module
    spec.loader.exec_module(module)
    contract: ProviderContract = getattr(module, name)()
    return contract


if __name__ == "__main__":
    raise SystemExit(main())
