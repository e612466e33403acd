"""One server for each model file and set of options, shared by all that ask for it and stopped with the last.

Starting and stopping hold one lock: a port that is being closed is free once the next server wants it, and llama.cpp
loads one model at a time here anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._server import LlamaServer

__all__ = ["acquire", "release"]

_lock = threading.Lock()
_servers: dict[tuple[object, ...], LlamaServer] = {}
_users: dict[LlamaServer, int] = {}


def acquire(path: str, options: Mapping[str, Any]) -> LlamaServer:
    """Give the running server for a file, or start one. Each call needs a `release`. Blocks while a model loads.

    Raises:
        ConfigError, ProviderConnectionError: as `LlamaServer` does.
    """
    key = (Path(path).expanduser().resolve(), *sorted(options.items()))
    with _lock:
        server = _servers.get(key)
        if server is None:
            server = _servers[key] = LlamaServer(path, **options)
        _users[server] = _users.get(server, 0) + 1
        return server


def release(server: LlamaServer) -> None:
    """Give a server back. It stops with the last that used it."""
    with _lock:
        _users[server] -= 1
        if _users[server]:
            return
        del _users[server]
        for key in [key for key, running in _servers.items() if running is server]:
            del _servers[key]
        server.stop()
