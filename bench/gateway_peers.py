"""Gateways as processes: ours, and those of others that are installed below the user's cache.

`python -m bench.gateway_peers install` installs LiteLLM's proxy and claude-code-router there.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

FOLDER = Path(
    os.environ.get("TOOLWIRE_BENCH_PEERS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolwire-bench"
)
"""Where the peers are installed; the variable names another folder."""
MODEL = "bench-chat-text-fifty"
KEY = "sk-bench"
_START_SECONDS = 600
_ROUTER = "@musistudio/claude-code-router@2.0.0"
_INSTALL = "python -m bench.gateway_peers install"


class Gateway(msgspec.Struct, frozen=True):
    """A gateway that runs."""

    name: str
    origin: str
    pid: int


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway of others."""

    name: str
    program: Path
    command: Callable[[Path, Path, str, int], tuple[list[str], dict[str, str]]]
    """(program, folder, upstream, port) → words and variables; settings go into the folder."""

    @property
    def missing(self) -> str:
        """Returns why it is left out; empty if it is not."""
        return "" if self.program.exists() else f"not installed; {_INSTALL}"


def _litellm(
    program: Path, folder: Path, upstream: str, port: int
) -> tuple[list[str], dict[str, str]]:
    settings = folder / "litellm.yaml"
    settings.write_text(
        "model_list:\n"
        f"  - model_name: {MODEL}\n"
        "    litellm_params:\n"
        f"      model: hosted_vllm/{MODEL}\n"
        f"      api_base: {upstream}/v1\n"
        "      api_key: none\n"
        "general_settings:\n"
        f"  master_key: {KEY}\n"
    )
    words = [str(program), "--config", str(settings), "--port", str(port), "--host", "127.0.0.1"]
    return words, {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def _router(
    program: Path, folder: Path, upstream: str, port: int
) -> tuple[list[str], dict[str, str]]:
    provider = {
        "name": "bench",
        "api_base_url": f"{upstream}/v1/chat/completions",
        "api_key": "none",
        "models": [MODEL],
    }
    settings = {
        "PORT": port,
        "HOST": "127.0.0.1",
        "LOG": False,
        "APIKEY": KEY,
        "Providers": [provider],
        "Router": {"default": f"bench,{MODEL}"},
    }
    path = folder / ".claude-code-router" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(settings))
    return [str(program), "start"], {"SERVICE_PORT": str(port)}


PEERS = (
    Peer(name="LiteLLM", program=FOLDER / "litellm" / "bin" / "litellm", command=_litellm),
    Peer(
        name="claude-code-router",
        program=FOLDER / "ccr" / "node_modules" / ".bin" / "ccr",
        command=_router,
    ),
)


@contextmanager
def peer_running(peer: Peer, folder: Path, upstream: str) -> Generator[Gateway]:
    """Runs a peer in a home of its own until the block ends."""
    folder.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words, variables = peer.command(peer.program, folder, upstream, port)
    environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), **variables}
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(words, env=environ, cwd=folder, stdout=out, stderr=out)
    try:
        origin = f"http://127.0.0.1:{port}"
        _await_answer(origin, process, log)
        yield Gateway(peer.name, origin, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def ours_running(folder: Path, *words: str, settings: str = "") -> Generator[Gateway]:
    """Runs `toolwire serve` in a home of its own until the block ends."""
    (folder / "toolwire").mkdir(parents=True)
    if settings:
        (folder / "toolwire" / "config.toml").write_text(settings)
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TOOLWIRE_HOME": str(folder / "toolwire"),
    }
    command = [sys.executable, "-m", "toolwire", "serve", "--port", "0", "--token", KEY, *words]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environ, cwd=folder, stdout=out, stderr=out)
    try:
        yield Gateway("toolwire", _printed_origin(process, log), process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _printed_origin(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text(errors="replace"))
        if found:
            return found[0]
        time.sleep(0.01)
    raise RuntimeError(f"toolwire serve did not start: {log.read_text(errors='replace')[-500:]}")


def _await_answer(origin: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits for the first whole answer."""
    message = {"role": "user", "content": "hi"}
    body = msgspec.json.encode({"model": MODEL, "max_tokens": 9, "messages": [message]})
    headers = {"content-type": "application/json", "x-api-key": KEY, "authorization": KEY}
    headers |= {"anthropic-version": "2023-06-01", "authorization": f"Bearer {KEY}"}
    until = time.monotonic() + _START_SECONDS
    problem = "no answer"
    while time.monotonic() < until and process.poll() is None:
        try:
            request = urllib.request.Request(f"{origin}/v1/messages", body, headers)
            with urllib.request.urlopen(request, timeout=30):
                return
        except urllib.error.HTTPError as error:
            problem = f"{error.code} {error.read()[:300]!r}"
        except OSError as error:
            problem = str(error)
        time.sleep(0.5)
    raise RuntimeError(f"{problem}\n{log.read_text(errors='replace')[-800:]}")


_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu(pid: int) -> float:
    """Returns the CPU seconds of a process and its children, user and system."""
    total = 0.0
    for one in _tree(pid):
        fields = _stat(one)
        total += sum(map(int, fields[11:15])) / _TICK if fields else 0.0
    return total


def rss(pid: int) -> float:
    """Returns the resident memory of a process and its children, in MB of 10⁶ bytes."""
    return sum(int(fields[21]) for one in _tree(pid) if (fields := _stat(one))) * _PAGE / 1e6


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _tree(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += _tree(int(child))
    return found


def install() -> int:
    """Installs the peers; what cannot be installed is named."""
    failed: list[str] = []
    environment = FOLDER / "litellm"
    if not (environment / "bin" / "litellm").exists():
        failed += _run([sys.executable, "-m", "venv", str(environment)])
        pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        failed += _run([*pip, "litellm[proxy]"])
    npm = shutil.which("npm")
    if npm is None:
        failed.append("npm is not installed")
    elif not (FOLDER / "ccr" / "node_modules").exists():
        words = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER / "ccr")]
        failed += _run([*words, _ROUTER])
    for problem in failed:
        print(problem, file=sys.stderr)
    return 1 if failed else 0


def _run(words: list[str]) -> list[str]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return [f"{words[0]}: {done.stderr.strip()[-300:]}"] if done.returncode else []


if __name__ == "__main__":
    if sys.argv[1:] != ["install"]:
        sys.exit(f"usage: {_INSTALL}")
    sys.exit(install())
