"""Run a simulated vendor for any client: `python -m agent_core.testing.simulator --vendor groq --port 8000`."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence

from .._scenarios import SCENARIOS
from ._server import Simulator
from ._voices import VENDORS

__all__ = ["directions", "main"]

_PREFIXES = {"openai": "OPENAI", "groq": "GROQ", "mistral": "MISTRAL", "together": "TOGETHER", "local": "OPENAI"}
_CLIENTS = {
    "openai": 'openai.OpenAI(base_url="{url}", api_key="unused")',
    "groq": 'groq.Groq(base_url="{url}", api_key="unused")',
    "mistral": 'mistralai.client.Mistral(server_url="{url}", api_key="unused")',
    "together": 'together.Together(base_url="{url}", api_key="unused")',
    "local": 'openai.OpenAI(base_url="{url}", api_key="unused")',
}


def directions(vendor: str, base_url: str) -> str:
    """Tell how a client finds the simulator: by the environment, where its SDK looks there, or by an argument."""
    prefix = _PREFIXES[vendor]
    lines = [f"{vendor} is simulated at {base_url}", ""]
    # Mistral's own SDK takes no address from the environment; the adapter does.
    lines += [f"  export {prefix}_BASE_URL={base_url}"]
    lines += [f"  export {prefix}_API_KEY=unused", "", f"  {_CLIENTS[vendor].format(url=base_url)}", ""]
    return "\n".join([*lines, "Ctrl-C ends it."])


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C. Gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m agent_core.testing.simulator",
        description="A vendor's server without the vendor: it speaks that wire, and refuses what the vendor refuses.",
    )
    parser.add_argument("--vendor", choices=VENDORS, required=True)
    parser.add_argument("--port", type=int, default=0, help="a free one if left out")
    parser.add_argument(
        "--scenario",
        choices=[scenario.name for scenario in SCENARIOS],
        metavar="NAME",
        help="play a scenario of the contract instead of replying by rules; one of: %(choices)s",
    )
    chosen = parser.parse_args(arguments)
    simulator = Simulator(chosen.vendor, chosen.scenario, port=chosen.port)
    try:
        simulator.start()
    except OSError as error:
        print(f"port {chosen.port} cannot be had: {error.strerror}", file=sys.stderr)  # noqa: T201  a command
        return 1
    try:
        print(directions(chosen.vendor, simulator.base_url), flush=True)  # noqa: T201
        threading.Event().wait()
    except KeyboardInterrupt:
        print()  # noqa: T201  after the ^C
    finally:
        simulator.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
