"""A server inside the process: what keeps it from starting is told, and what it took is given back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic_core import to_json

from agent_core.errors import ConfigError, ProviderConnectionError
from agent_core_local import LlamaServer, LocalProvider
from agent_core_local._shared import acquire, release
from local.helpers import LONG, PATIENCE, entry, eventually, gguf, text

OPTIONS: dict[str, Any] = {"threads": 1, "context": 512}


@pytest.fixture
def no_model(tmp_path: Path) -> Path:
    """A file that is GGUF by its metadata, and holds no model."""
    path = tmp_path / "empty.gguf"
    path.write_bytes(gguf(entry("general.architecture", 8, text("llama"))))
    return path


def is_refused(port: int) -> bool:
    """Whether nobody listens at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


# What keeps a server from starting


@pytest.mark.parametrize("option", ["port", "context", "threads", "slots"])
def test_a_number_below_one_is_refused(no_model: Path, option: str) -> None:
    """The option is named."""
    with pytest.raises(ConfigError, match=f"local model: {option} must be at least 1, got 0"):
        LlamaServer(no_model, **{"slots": 1, option: 0})  # type: ignore[arg-type]


def test_a_file_that_llama_cpp_cannot_load_is_told(no_model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """llama.cpp gives no reason, so the likely ones are listed, and how to see its log. It prints nothing itself."""
    with pytest.raises(ConfigError, match=r"llama\.cpp cannot run .*empty\.gguf: it may be cut off.*verbose=True"):
        LlamaServer(no_model)
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_told(no_model: Path) -> None:
    """A port that was asked for and is taken is named; nothing is loaded first."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is in use by another program: pass another, or leave"):
            LlamaServer(no_model, port=port)


def test_a_port_that_is_none_is_told(no_model: Path) -> None:
    """There are 65535 of them."""
    with pytest.raises(ConfigError, match="there is no port 65536"):
        LlamaServer(no_model, port=65536)


def test_a_missing_xllamacpp_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the adapter was installed without its engine, the message says how to get it."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match=r"xllamacpp is not installed: pip install 'agent-core\[local\]'"):
        LocalProvider()


def test_a_server_that_never_gets_ready_is_given_up(no_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait has a limit, and what had started by then is stopped."""
    destroyed = threading.Event()

    class Native:
        with socket.create_server(("127.0.0.1", 0)) as free:
            listening_address = f"http://127.0.0.1:{free.getsockname()[1]}"

        def __init__(self, parameters: object) -> None: ...

        def handle_metrics(self) -> str:
            return ""

        def __del__(self) -> None:
            destroyed.set()

    class Parameters:
        def __init__(self) -> None:
            self.model, self.cpuparams, self.cpuparams_batch = (ModuleType("any") for _ in range(3))

    fake = ModuleType("xllamacpp")
    fake.Server, fake.CommonParams = Native, Parameters  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)
    with pytest.raises(ProviderConnectionError, match=r"not ready within 0 s \(health: no answer\)"):
        LlamaServer(no_model, startup_timeout=0)
    assert destroyed.is_set()


@pytest.mark.local_model
def test_a_broken_template_is_told(smollm2: Path) -> None:
    """llama.cpp refuses it, and the message has it among the likely reasons."""
    with pytest.raises(ConfigError, match="the chat template may be wrong"):
        LlamaServer(smollm2, **OPTIONS, chat_template="{% if %}")


# What a server gives back


@pytest.mark.local_model
def test_a_stopped_server_is_gone(smollm2: Path) -> None:
    """Its port is closed, it may be stopped again, and signals are Python's own all the while."""
    names = threading.enumerate()
    server = LlamaServer(smollm2, **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    server.stop()
    server.stop()
    assert is_refused(server.port)
    assert repr(server) == "<LlamaServer SmolLM2-135M-Instruct.Q4_1 stopped>"
    with pytest.raises(ProviderConnectionError, match="no metrics"):
        server.metrics()
    assert set(threading.enumerate()) <= set(names)


COUNTS = """
from pathlib import Path
seen = set()
for _ in range(3):
    server = LlamaServer(path, threads=1, context=512)
    server.requests_running()
    server.stop()
    seen.add((len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))))
print(len(seen), seen.pop()[0])
"""


@pytest.mark.local_model
@pytest.mark.skipif(sys.platform != "linux", reason="threads and descriptors are counted as Linux tells them")
def test_no_thread_and_no_descriptor_is_left(smollm2: Path) -> None:
    """llama.cpp keeps one thread for its log, from the first server on; no other server adds one."""
    done = run_python(COUNTS, smollm2)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 2\n", "")


@pytest.mark.local_model
def test_a_port_can_be_used_again(smollm2: Path) -> None:
    """A fixed port is taken as told, refused to another while it is in use, and free after the stop."""
    with LlamaServer(smollm2, **OPTIONS) as server:
        port = server.port
        with pytest.raises(ConfigError, match=f"port {port} is in use"):
            LlamaServer(smollm2, **OPTIONS, port=port)
    with LlamaServer(smollm2, **OPTIONS, port=port) as server:
        assert server.url == f"http://127.0.0.1:{port}"


@pytest.mark.local_model
def test_a_stranger_is_refused(llama: LlamaServer) -> None:
    """The port is open to every user of the machine and every page in a browser, so each server has a key."""
    connection = HTTPConnection("127.0.0.1", llama.port, timeout=PATIENCE)
    connection.request("POST", "/v1/chat/completions", to_json(LONG), {"content-type": "application/json"})
    assert connection.getresponse().status == 401
    connection.close()
    assert llama.api_key not in repr(llama)


@pytest.mark.local_model
@pytest.mark.parametrize("stream", [True, False])
def test_a_stop_does_not_wait_for_an_answer(smollm2: Path, stream: bool) -> None:
    """Clients that still wait, one of them for a slot, are cut off; left alone they would hold the stop for ever."""
    server = LlamaServer(smollm2, threads=1, context=2048, slots=1)
    body = to_json({**LONG, "ignore_eos": True, "stream": stream})
    headers = {"content-type": "application/json", "authorization": f"Bearer {server.api_key}"}
    cut_off: list[BaseException | bytes] = []

    def ask() -> None:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/v1/chat/completions", body, headers)
            cut_off.append(connection.getresponse().read())
        except (OSError, HTTPException) as error:
            cut_off.append(error)
        finally:
            connection.close()

    idle = socket.create_connection(("127.0.0.1", server.port))
    clients = [threading.Thread(target=ask) for _ in range(3)]
    for client in clients:
        client.start()
    eventually(lambda: server.requests_running() == 3)
    server.stop()
    for client in clients:
        client.join(PATIENCE)
    idle.close()
    assert [type(error) for error in cut_off if not isinstance(error, bytes)] and len(cut_off) == 3
    assert not any(isinstance(answer, bytes) and b"[DONE]" in answer for answer in cut_off)
    assert is_refused(server.port)


# One server for a file


@pytest.mark.local_model
def test_users_of_a_file_share_its_server(smollm2: Path, tmp_path: Path) -> None:
    """Many threads at once get one server, also by another path to the same file; it stops with the last of them."""
    link = tmp_path / "link.gguf"
    link.symlink_to(smollm2)
    got: list[LlamaServer] = []
    askers = [
        threading.Thread(target=lambda path=path: got.append(acquire(path, OPTIONS)))
        for path in (str(smollm2), str(link)) * 2
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(PATIENCE)
    (server,) = set(got)
    other = acquire(str(smollm2), {**OPTIONS, "slots": 1})
    assert other is not server
    release(other)
    for _ in range(3):
        release(server)
    assert not is_refused(server.port)
    release(server)
    assert is_refused(server.port)
    again = acquire(str(smollm2), OPTIONS)
    assert again is not server and not is_refused(again.port)
    release(again)


# The end of the process


def run_python(script: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a script whose first argument is the model; it must end by itself."""
    start = "import sys, os; from agent_core_local import LlamaServer, LocalProvider; path = sys.argv[1]\n"
    return subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", start + script, str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


FORK = """
server = LlamaServer(path, threads=1, context=512)
child = os.fork()
if child == 0:
    server.stop()
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), server.requests_running())
"""


@pytest.mark.local_model
@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("server = LlamaServer(path, threads=1, context=512)", 0, ""),
        ("LocalProvider(threads=1, context=512).preload(path); sys.exit(3)", 3, ""),
        ("LlamaServer(path, threads=1, context=512); print('collected')", 0, "collected\n"),
        (FORK, 0, "5 0\n"),
    ],
    ids=["unstopped", "unclosed", "collected", "forked"],
)
def test_a_process_ends_by_itself_and_in_silence(smollm2: Path, script: str, code: int, out: str) -> None:
    """Nobody has to stop a server before the end; nothing hangs, nothing is printed. A forked child stops nothing."""
    if "fork" in script and not hasattr(os, "fork"):
        pytest.skip("this system cannot fork")
    done = run_python(script, smollm2)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, "")


@pytest.mark.local_model
def test_a_process_ends_in_the_midst_of_an_answer(smollm2: Path) -> None:
    """An error while an answer streams ends the process, as it would anywhere else."""
    script = (
        "import anyio; from agent_core import CompletionRequest\n"
        "async def main():\n"
        "    provider = LocalProvider(threads=1, context=2048)\n"
        "    request = CompletionRequest(model=path, messages=[{'role': 'user', 'content': 'Count.'}],\n"
        "                                extra={'ignore_eos': True})\n"
        "    async with provider.stream(request) as stream:\n"
        "        async for delta in stream:\n"
        "            if delta.text: sys.exit(4)\n"
        "anyio.run(main)"
    )
    done = run_python(script, smollm2)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


@pytest.mark.local_model
def test_the_log_is_there_where_it_is_asked_for(smollm2: Path) -> None:
    """`verbose` shows llama.cpp's own words, on standard error."""
    done = run_python("LlamaServer(path, threads=1, context=512, verbose=True).stop()", smollm2)
    assert "model loaded" in done.stderr
    assert done.stdout == ""
