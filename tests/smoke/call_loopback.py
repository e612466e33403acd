"""A real call through what is installed: load the OpenAI adapter by name, ask a loopback server, whole and streamed.

Run by `nox -s smoke` in an environment that has `agent-core[openai]` and nothing of this repository:

    python tests/smoke/call_loopback.py 0.1.0
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

from agent_core import load_model

ANSWER = "Hello from loopback."
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


class ChatServer(BaseHTTPRequestHandler):
    """Answers one chat completion, in the form that was asked for."""

    seen: list[tuple[str, str, dict[str, Any]]]

    def do_POST(self) -> None:
        """Note the request, answer it."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append((self.path, self.headers["authorization"], body))
        frame = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
        if body.get("stream"):
            pieces = [{"content": word} for word in ("Hello ", "from ", "loopback.")]
            chunks: list[dict[str, Any]] = [
                *({"choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces),
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": USAGE},
            ]
            events = [json.dumps(frame | {"object": "chat.completion.chunk"} | chunk) for chunk in chunks]
            self._send("text/event-stream", "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]))
        else:
            message = {"role": "assistant", "content": ANSWER}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            whole = frame | {"object": "chat.completion", "choices": choices, "usage": USAGE}
            self._send("application/json", json.dumps(whole))

    def _send(self, content_type: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output to the one line at the end."""


async def ask(base_url: str) -> None:
    """Ask twice and hold both answers against what the server sent."""
    async with load_model("openai:gpt-smoke", api_key="unused", base_url=base_url) as model:
        whole = await model.complete("Say hello.")
        async with model.stream("Say hello.") as stream:
            texts = [delta.text async for delta in stream if delta.text]
            streamed = stream.completion
    assert whole.text == streamed.text == "".join(texts) == ANSWER, (whole, streamed)
    assert whole.finish_reason == streamed.finish_reason == "stop", (whole, streamed)
    assert whole.usage == streamed.usage, (whole.usage, streamed.usage)
    assert whole.usage is not None
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (3, 4), whole.usage


def main() -> None:
    """Check what is installed, serve, ask, say what happened."""
    version = sys.argv[1]
    installed = {name: metadata.version(name) for name in ("agent-core", "agent-core-openai", "openai")}
    assert installed["agent-core"] == installed["agent-core-openai"] == version, installed
    made_by = metadata.metadata("agent-core")["Author"]
    assert made_by == "agent-core contributors", f"another project's agent-core was installed, by {made_by!r}"
    repository = Path(__file__).resolve().parents[2]
    loaded = Path(sys.modules["agent_core"].__file__ or "")
    assert not loaded.is_relative_to(repository / "packages"), f"{loaded} is the source tree, not the wheel"

    ChatServer.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), ChatServer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        asyncio.run(ask(f"http://127.0.0.1:{server.server_port}/v1"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [path for path, _, _ in ChatServer.seen] == ["/v1/chat/completions"] * 2, ChatServer.seen
    assert {key for _, key, _ in ChatServer.seen} == {"Bearer unused"}, ChatServer.seen
    said = ", ".join(f"{name} {number}" for name, number in installed.items())
    print(f"smoke: {said}: one whole and one streamed completion over loopback, both {ANSWER!r}")


if __name__ == "__main__":
    main()
