"""`toolwire serve` as a real process before a simulator."""

import contextlib
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.simulated import LONGEST, Place, Simulated
from toolwire.simulator import Answering, Script

UPSTREAMS = {
    "chat": ("openai-chat", "served-model", "reasoning_content"),
    "responses": ("openai-responses", "gpt-5.5", "reasoning_content"),
    "anthropic": ("anthropic-messages", "claude-sonnet-4-5", "reasoning_content"),
    "gemini": ("gemini", "gemini-3-pro", "reasoning_content"),
    "chat-details": ("openai-chat", "served-model", "reasoning_details"),
    "chat-google": ("openai-chat", "served-model", "thought_signature"),
}
"""Name → wire format, model, and where a chat server puts its thinking (OpenRouter in details,
Gemini's chat address in a signature).
"""
_ADDRESS = re.compile(r"(https?://(?:127\.0\.0\.1|\[::1\]|localhost):\d+)")


class Served(msgspec.Struct, frozen=True):
    """A gateway at `origin` before the simulator `upstream`."""

    origin: str
    upstream: Simulated
    dialect: str
    process: Any
    printed: list[str]
    """The lines it has printed so far."""


@contextlib.contextmanager
def served(
    name: str,
    answering: Answering | Script,
    *args: str,
    folder: Path | None = None,
    token: str = "",
) -> Generator[Served]:
    """Runs a simulator of the upstream of that name and a gateway before it."""
    dialect, model, thinking = UPSTREAMS[name]
    with Simulated(answering, chat_thinking=thinking) as sim, _folder(folder) as place:
        words = ("--upstream", sim.upstream(dialect, model=model), *args)
        with serving(place, words, token=token) as (origin, process, printed):
            yield Served(origin, sim, dialect, process, printed)


@contextlib.contextmanager
def serving(
    place: Place, words: Iterable[str], *, token: str = "", port: int = 0, **more: Any
) -> Generator[tuple[str, Any, list[str]]]:
    """Runs `toolwire serve`, on a free port by default; yields its address."""
    guard = ("--token", token) if token else ("--no-token",)
    process = place.start(
        "serve", "--port", str(port), *guard, *words, stderr=subprocess.STDOUT, text=True, **more
    )
    printed: list[str] = []
    reader = threading.Thread(target=_read, args=(process.stdout, printed), daemon=True)
    reader.start()
    try:
        yield _origin(process, printed), process, printed
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(LONGEST)
        finally:
            process.kill()
            reader.join(LONGEST)
            process.stdout.close()


def _read(stream: Any, printed: list[str]) -> None:
    printed.extend(iter(stream.readline, ""))


def _origin(process: Any, printed: list[str]) -> str:
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        for line in tuple(printed):
            found = _ADDRESS.search(line)
            if found:
                return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise AssertionError(f"toolwire serve did not start:\n{''.join(printed)}")


@contextlib.contextmanager
def _folder(folder: Path | None) -> Generator[Place]:
    if folder is not None:
        yield Place(folder)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        yield Place(Path(made))
