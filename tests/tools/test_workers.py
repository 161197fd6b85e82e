import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.tools.workspaces import context_in, put
from toolwire.tools.builtin import search_file_content
from toolwire.tools.search.regexes import BadPattern, Sieve, check, is_plain
from toolwire.tools.spec import ToolFailed, ToolSettings
from toolwire.tools.workers import Worker, WorkerFailed

LIMIT = 15.0
"""Seconds for what takes less than one on an idle machine; the patterns themselves take hours."""
LINE = "a" * 60 + "!"
HOSTILE = [
    *("(a+)+$", "(a|a)*$", "(a|aa)+$", r"(.*a){25}\d", "(?=(a+)+$)", r"((a+)+)\2$", "(a*)*$"),
    *("(?:a?){60}a{60}$", "([a-z]+)*$", r"(\w+\w+)+$", "(a+){2,}$", "(?<!(?:a)c)(a+)+$"),
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_pattern_that_backtracks_is_stopped_at_its_time(pattern: str) -> None:
    check(pattern)
    start = time.monotonic()
    with (
        Sieve(pattern, bool, seconds=0.3) as sieve,
        pytest.raises(ToolFailed, match=r"took longer than 0\.3 s and was stopped"),
    ):
        list(sieve.lines(LINE))
    assert time.monotonic() - start < LIMIT


def test_a_search_that_backtracks_ends_with_its_cancel(tmp_path: Path) -> None:
    context = context_in(tmp_path, settings=ToolSettings(search_with="own"))
    put(context, a_txt=f"{LINE}\n")

    async def scenario() -> float:
        task = asyncio.ensure_future(search_file_content.TOOL.run({"pattern": "(a+)+$"}, context))
        await asyncio.sleep(0.5)
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().shutdown_default_executor()
        return time.monotonic() - start

    assert asyncio.run(scenario()) < LIMIT


def test_a_worker_is_stopped_in_the_middle() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    start = time.monotonic()
    with (
        Worker("lines", "(a+)+$", "", seconds=60, stopped=stop.is_set) as worker,
        pytest.raises(WorkerFailed),
    ):
        worker.ask(LINE.encode())
    assert time.monotonic() - start < LIMIT


def test_a_worker_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "from toolwire.tools.workers import Worker\n"
            "worker = Worker('lines', '(a+)+$', '', seconds=600, stopped=bool)\n"
            "print(worker._start().pid, flush=True)\n"
            f"worker.ask({LINE!r}.encode())\n",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.5)
    os.kill(child, 0)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not _gone(child):
        time.sleep(0.05)
    assert _gone(child)


def _gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    # An orphan that is not yet reaped.
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_worker_that_dies_is_an_error() -> None:
    with Worker("lines", "(a+)+$", "", seconds=60, stopped=bool) as worker:
        assert worker.ask(b"aaa") == bytes(8)
        process = worker._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None
        process.send_signal(signal.SIGKILL)
        with pytest.raises(WorkerFailed):
            worker.ask(b"aaa")


@pytest.mark.parametrize("pattern", ["a" * 20_000, r"[\u0000-\uffff]" * 100, "[я-ﾀ]" * 1000])
def test_a_pattern_that_takes_long_to_compile_is_refused(pattern: str) -> None:
    start = time.monotonic()
    with pytest.raises(BadPattern, match="too large"):
        check(pattern)
    assert time.monotonic() - start < LIMIT


@pytest.mark.parametrize("pattern", ["foo", "foo|bar", r"a\.b", "^x$", r"\bfoo\b", r"foo\("])
def test_words_are_searched_without_a_process(pattern: str) -> None:
    assert is_plain(pattern)


@pytest.mark.parametrize("pattern", [*HOSTILE, "a+", "a{2}", "(a)", "[a]", r"\1", "a" * 500])
def test_what_could_backtrack_is_not_plain(pattern: str) -> None:
    assert not is_plain(pattern)
