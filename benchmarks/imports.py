"""Imports, in CPU time of a fresh interpreter after its own start, with compiled modules and a warm file cache.

`import`: this library, against pydantic and one model class (which makes pydantic load what it puts off).
`load`: a provider by name from a cold start, against what the bare SDK needs to be as far: its import, its client, and
the resource `client.chat.completions`.
"""

from __future__ import annotations

from ._measuring import Row, compare_children
from ._server import Server
from ._vendors import available

__all__ = ["measure_import", "measure_load"]

_AT_MOST_IMPORT = 1.35
_AT_MOST_LOAD = 1.1

_SDK = {
    "openai": "import openai; openai.AsyncOpenAI(api_key='unused').chat.completions",
    "groq": "import groq; groq.AsyncGroq(api_key='unused').chat.completions",
    "mistral": "from mistralai.client import Mistral; Mistral(api_key='unused').chat",
    "together": "import together; together.AsyncTogether(api_key='unused').chat.completions",
}


async def measure_import(server: Server, quick: bool) -> list[Row]:
    """Compare `import agent_core` with pydantic and one class."""
    scripts = {
        "ours": "import agent_core",
        "pydantic": "import pydantic\nclass Model(pydantic.BaseModel):\n    name: str",
    }
    times = compare_children(scripts, repeats=6 if quick else 40)
    return [Row.ratio("import", "agent_core", times, at_most=_AT_MOST_IMPORT, each=1, unit="ms")]


async def measure_load(server: Server, quick: bool) -> list[Row]:
    """Compare `load_provider` with the SDK, for each adapter that is installed."""
    rows = []
    for vendor in available(adapter=True):
        scripts = {
            "ours": f"from agent_core import load_provider; load_provider({vendor.name!r}, api_key='unused')",
            "sdk": _SDK[vendor.name],
        }
        times = compare_children(scripts, repeats=2 if quick else 20)
        rows.append(Row.ratio("load", vendor.name, times, at_most=_AT_MOST_LOAD, each=1, unit="ms"))
    return rows
