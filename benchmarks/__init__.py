"""What this library costs, measured against what a user would have without it.

    nox -s bench                              every measure, a table of ratios
    nox -s bench -- stream import             two of them
    nox -s bench -- --quick --json out.json   fewer repeats (under a minute), figures as JSON

Each measure compares two programs in one run, turn by turn, and prints the ratio of their best times beside the most
that the design allows. The vendor's part is played by a server in a process of its own, on the loopback interface,
which sends the same canned bytes to both programs. What is counted is the client's CPU time: it hardly depends on what
else the machine does, and not at all on the server.

| measure  | what is measured                                             | against                                |
| -------- | ------------------------------------------------------------ | -------------------------------------- |
| stream   | one chunk of a stream: text, reasoning, tool arguments       | bare HTTP library + orjson, same bytes |
| whole    | one whole completion                                         | the vendor SDK's own `create()`        |
| loop     | a question, a tool call and the answer by `run_tool_loop`    | the same loop over the SDK, by hand    |
| import   | `import agent_core` in a fresh interpreter                   | `import pydantic` and one model class  |
| load     | `load_provider(name)` in a fresh interpreter                 | the SDK's import, client and resource  |
| memory   | resident memory of 1,000 open streams                        | the same streams opened by the SDK     |
| close    | time until the server sees the socket close, after the block | a limit (ms)                           |
| installs | distributions that `agent-core` brings, itself included      | a limit                                |

Vendors whose adapter is installed are measured through it; one whose SDK alone is there, through
`OpenAICompatibleProvider`; others are left out. Absolute figures belong to the machine; only ratios can be compared.
"""

from __future__ import annotations

__all__: list[str] = []
