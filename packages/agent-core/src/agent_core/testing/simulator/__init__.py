"""A vendor's server without the vendor: it speaks each wire from neutral words, and refuses what the vendor refuses.

    with Simulator("mistral") as simulator:
        client = Mistral(api_key="unused", server_url=simulator.base_url)

`python -m agent_core.testing.simulator --vendor groq --port 8000` runs one by itself.

Nothing here is shared with the code that reads these wires: it is a second opinion, held against recordings.
"""

from __future__ import annotations

from ._brain import Brain
from ._failures import ErrorKind, Failure
from ._instances import instance_of
from ._rules import refusal_of
from ._server import Simulator
from ._voice import HttpAnswer, Voice
from ._voices import VENDORS, voice_for

__all__ = [
    "VENDORS",
    "Brain",
    "ErrorKind",
    "Failure",
    "HttpAnswer",
    "Simulator",
    "Voice",
    "instance_of",
    "refusal_of",
    "voice_for",
]
