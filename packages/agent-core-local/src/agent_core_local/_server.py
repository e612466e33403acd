"""llama.cpp's own HTTP server, inside this process, on a loopback port.

Decides how it is started, known to be ready, and stopped. Who shares a server is left to `_shared`.

What xllamacpp 2026.10 does, and what is made of it here:

- Its constructor and destructor hold the interpreter's lock, so every Python thread stands still while a model loads.
- A server that is destroyed before its main loop has begun never ends; so the start waits for one task's answer.
- A server that is destroyed while a connection waits for an answer never ends; so a stop first closes the port and
  every connection. Their sockets are found among this process's own, as llama.cpp gives no handle to them.
- It logs to standard error unless its verbosity is below zero, and says of a failed start only that it failed.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import os
import secrets
import socket
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self

from agent_core.errors import ConfigError, ProviderConnectionError

from ._gguf import read_metadata
from ._template import given_template, template_for

__all__ = ["LlamaServer", "load_xllamacpp"]

_HOST = "127.0.0.1"
_CONTEXT = 4096  # tokens; the most a server reserves memory for unless told otherwise
_MOST_THREADS = 4
_PROMPT_CACHE = 512  # MiB; llama.cpp's own 8192 is meant for a machine that does nothing else
_QUIET, _TOLD = -1, 3  # verbosity: nothing, and what llama-server prints by default
_DESCRIPTORS = Path("/dev/fd")  # every POSIX system has it; Windows has not

_running: weakref.WeakSet[LlamaServer] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stop what nobody stopped, while an interpreter that is about to end can still do so."""
    for server in list(_running):
        server.stop()


class LlamaServer:
    """A running server for one model file. It takes requests once this has returned; `stop()` ends it.

    Use it from any OpenAI client: `AsyncOpenAI(base_url=server.base_url, api_key=server.api_key)`.

    Args:
        model_path: the GGUF file.
        port: a fixed port; by default a free one.
        context: tokens that one conversation may have; by default the model's own length, at most 4096.
        threads: by default one for every two CPUs, at most 4. More than there are idle CPUs makes it slower by far.
        slots: how many requests are answered at a time; others wait.
        chat_template: a Jinja template, or the path of one; by default the file's own, taught tools where it has none.
        verbose: whether llama.cpp prints its log to standard error.
        startup_timeout: how long to wait for the server to be ready once the model is loaded (seconds).

    Raises:
        ConfigError: the file, the port, an option or the installation is wrong; the message names it and the fix.
        ProviderConnectionError: the server started, but was not ready in time.
    """

    def __init__(
        self,
        model_path: str | Path,
        *,
        port: int | None = None,
        context: int | None = None,
        threads: int | None = None,
        slots: int = 2,
        chat_template: str | Path | None = None,
        verbose: bool = False,
        startup_timeout: float = 60.0,
    ) -> None:
        for name, number in (("port", port), ("context", context), ("threads", threads), ("slots", slots)):
            if number is not None and number < 1:
                raise ConfigError(f"local model: {name} must be at least 1, got {number}")
        xllamacpp = load_xllamacpp()
        self.path = Path(model_path).expanduser().absolute()  # not resolved: parts of one model are found by name
        self.model = self.path.stem
        self.api_key = secrets.token_urlsafe(24)  # for no one else on this machine, nor for a page in its browser
        metadata = read_metadata(self.path)
        template = template_for(metadata) if chat_template is None else given_template(chat_template)
        length = next((value for key, value in metadata.items() if key.endswith(".context_length")), _CONTEXT)
        threads = threads or max(1, min(_MOST_THREADS, (os.cpu_count() or 1) // 2))

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(self.path)
        parameters.model_alias = {self.model}
        parameters.port = port or 0
        parameters.api_keys = [self.api_key]
        parameters.n_ctx = (context or min(_CONTEXT, int(length))) * slots  # llama.cpp shares it among the slots
        parameters.n_parallel = slots
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        parameters.cache_ram_mib = _PROMPT_CACHE
        parameters.ui, parameters.endpoint_slots = False, False
        parameters.endpoint_metrics = parameters.use_jinja = True
        parameters.verbosity = _TOLD if verbose else _QUIET
        if template is not None:
            parameters.chat_template = template
        if port is not None and _is_taken(port):
            raise ConfigError(_port_taken(port))
        self._stopping = threading.Lock()
        self._process = os.getpid()
        self._native = self._start(xllamacpp, parameters, port)
        self.port = int(self._native.listening_address.rpartition(":")[2])
        _running.add(self)
        try:
            self._native.handle_metrics()  # answered by the main loop, which therefore runs
            self._wait_until_ready(startup_timeout)
        except BaseException:
            self.stop()
            raise

    def __repr__(self) -> str:
        state = "stopped" if self._native is None else f"at {self.url}"
        return f"<LlamaServer {self.model} {state}>"

    @property
    def url(self) -> str:
        """The server's address, such as `http://127.0.0.1:34713`."""
        return f"http://{_HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """The address as OpenAI's SDK takes it."""
        return f"{self.url}/v1"

    def metrics(self) -> dict[str, float]:
        """Give llama.cpp's counters by name, such as `tokens_predicted_total`.

        Raises:
            ProviderConnectionError: the server does not answer.
        """
        try:
            status, text = self._get("/metrics")
        except (OSError, HTTPException) as error:
            status, text = 0, str(error)
        if status != 200:
            raise ProviderConnectionError(f"no metrics ({status or text})", provider="local", model=self.model)
        lines = (line.removeprefix("llamacpp:").split() for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}

    def requests_running(self) -> int:
        """Count the requests that are being answered or wait for it. Raises what `metrics` raises."""
        counters = self.metrics()
        return int(counters["requests_processing"] + counters["requests_deferred"])

    def stop(self) -> None:
        """Close the port, break off what is being answered, and end the server's threads. May be called again."""
        with self._stopping:
            native, self._native = self._native, None
        if native is None:
            return
        if os.getpid() != self._process or not _hang_up(self.port, self._is_idle):
            _keep_for_ever(native)
        _running.discard(self)
        del native  # the last reference: the destructor waits for the server's threads

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __del__(self) -> None:
        if getattr(self, "_native", None) is not None:
            self.stop()

    def _start(self, xllamacpp: Any, parameters: Any, port: int | None) -> Any:
        try:
            return xllamacpp.Server(parameters)
        except RuntimeError:  # without a reason, which only the log has
            pass
        if port is not None and _is_taken(port):
            raise ConfigError(_port_taken(port))
        raise ConfigError(
            f"llama.cpp cannot run {self.path}: it may be cut off, of a kind this llama.cpp does not know, or too "
            "large for the memory, or the chat template may be wrong. verbose=True shows llama.cpp's own words"
        )

    def _wait_until_ready(self, seconds: float) -> None:
        """Ask for its health until it is well: at once, where xllamacpp returns with the model loaded."""
        deadline = time.monotonic() + seconds
        for pause in _pauses():
            status = 0
            with suppress(OSError, HTTPException):
                status, _ = self._get("/health")
            if status == 200:
                return
            if time.monotonic() > deadline:
                raise ProviderConnectionError(
                    f"the server for {self.path} was not ready within {seconds:g} s (health: {status or 'no answer'})",
                    provider="local",
                    model=self.model,
                )
            time.sleep(pause)  # llama.cpp tells nobody when it is ready: it can only be asked

    def _get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection(_HOST, self.port, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.api_key}", "Connection": "close"})
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        finally:
            connection.close()

    def _is_idle(self) -> bool:
        try:
            return self.requests_running() == 0
        except ProviderConnectionError:
            return False


def load_xllamacpp() -> Any:
    """Import xllamacpp.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import xllamacpp
    except ModuleNotFoundError as error:
        if error.name != "xllamacpp":
            raise
        raise ConfigError("xllamacpp is not installed: pip install 'agent-core[local]'") from None
    return xllamacpp


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        if os.name == "posix":  # as the server itself does it; on Windows the option means another thing
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OverflowError:
            raise ConfigError(f"there is no port {port}: take one from 1 to 65535") from None
        except OSError as error:
            if error.errno == errno.EACCES:
                raise ConfigError(f"port {port} may not be used by this user: take one above 1023") from None
            return True
    return False


def _port_taken(port: int) -> str:
    return f"port {port} is in use by another program: pass another, or leave `port` out to get a free one"


def _pauses() -> Iterator[float]:
    pause = 0.005
    while True:
        yield pause
        pause = min(2 * pause, 0.25)


def _hang_up(port: int, is_idle: Callable[[], bool]) -> bool:
    """Shut this process's sockets on a server's port, the listening one first. False where a stop would never end."""
    if not _DESCRIPTORS.is_dir():
        return is_idle()
    for only_listening in (True, False):
        for shared in _sockets_at(port):
            with suppress(OSError):  # it was closed from the other side meanwhile
                if not only_listening or shared.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    shared.shutdown(socket.SHUT_RDWR)
    return True


def _sockets_at(port: int) -> Iterator[socket.socket]:
    """Give a second handle to every socket of this process whose own end is the port."""
    for entry in list(_DESCRIPTORS.iterdir()):
        with suppress(OSError):  # closed meanwhile, as the descriptor that this list was read from
            if not stat.S_ISSOCK(os.fstat(int(entry.name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as shared:
                if shared.getsockname()[:2] == (_HOST, port):
                    yield shared


def _keep_for_ever(native: Any) -> None:
    """Never destroy a server: in a forked process its threads do not exist, and waiting for them would not end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))
