"""Requests on their way into the ledger: on disk before their answers, and booked once."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.test_ledger import record
from toolwire.gateway.ledger import Ledger, SqliteLedger
from toolwire.gateway.request_journal import read_entries
from toolwire.gateway.store import Entry

FOLDER = "ledger.sqlite.journals"


def entry(number: int) -> Entry:
    return Entry(record(number), "k1", reserved=False)


def files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / FOLDER).iterdir())]


def with_ledger(folder: Path, work: Callable[[Ledger], Awaitable[None]]) -> None:
    async def run() -> None:
        ledger = SqliteLedger(folder / "ledger.sqlite")
        try:
            await work(ledger)
        finally:
            ledger.close()

    asyncio.run(run())


def ids(rows: list[dict[str, object]]) -> list[str]:
    return sorted(str(row["id"]) for row in rows)


def test_what_ends_in_one_turn_is_written_at_once(tmp_path: Path) -> None:
    async def work(ledger: Ledger) -> None:
        for number in range(3):
            await ledger.book(entry(number))
        assert files(tmp_path) == [b"", b""]
        ledger.write()
        found, empty = files(tmp_path)
        assert len([*read_entries(found)]) == 3
        assert empty == b""

    with_ledger(tmp_path, work)


def test_it_is_written_by_itself_too(tmp_path: Path) -> None:
    async def work(ledger: Ledger) -> None:
        await ledger.book(entry(1))
        await asyncio.sleep(0)
        assert len([*read_entries(files(tmp_path)[0])]) == 1

    with_ledger(tmp_path, work)


def test_entries_are_booked_and_their_files_emptied(tmp_path: Path) -> None:
    async def work(ledger: Ledger) -> None:
        for number in range(250):
            await ledger.book(entry(number))
            if number % 50 == 0:
                await asyncio.sleep(0.03)
        rows = await ledger.requests(limit=1000)
        assert ids(rows) == sorted(f"r{number}" for number in range(250))
        assert files(tmp_path) == [b"", b""]

    with_ledger(tmp_path, work)
    assert files(tmp_path) == []


def test_entries_are_booked_without_a_reader(tmp_path: Path) -> None:
    async def work(ledger: Ledger) -> None:
        base = sqlite3.connect(tmp_path / "ledger.sqlite")
        for number in range(400):
            await ledger.book(entry(number))
            # Some come while others are being booked, and after the last ones none.
            await asyncio.sleep(0.001)
        for _ in range(1500):
            if base.execute("SELECT count(*) FROM requests").fetchone() == (400,):
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("they were not booked")
        base.close()

    with_ledger(tmp_path, work)


def test_a_request_that_is_added_twice_is_booked_once(tmp_path: Path) -> None:
    async def work(ledger: Ledger) -> None:
        for number in (1, 2, 1):
            await ledger.book(entry(number))
        assert ids(await ledger.requests()) == ["r1", "r2"]
        (spent,) = await ledger.usage("key")
        assert spent.requests == 2

    with_ledger(tmp_path, work)


KILLED = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.gateway.test_request_journal import entry
from toolwire.gateway.ledger import SqliteLedger

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]))
    for number in range(5):
        await ledger.book(entry(number))
    ledger.write()
    await ledger.book(entry(99))
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_the_next_process_books_what_a_killed_one_wrote(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", KILLED, str(tmp_path / "ledger.sqlite"), str(root)]
    assert subprocess.run(words, check=False).returncode == -9
    assert len(files(tmp_path)) == 2

    async def work(ledger: Ledger) -> None:
        await ledger.sweep()
        # The last one had not been written: nothing of its answer had gone out.
        assert ids(await ledger.requests()) == [f"r{number}" for number in range(5)]

    with_ledger(tmp_path, work)
    assert files(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    write = os.write

    async def work(ledger: Ledger) -> None:
        await ledger.book(entry(1))
        ledger.write()
        before = files(tmp_path)[0]
        # The file system of the test has room: the system's own refusal comes from that device.
        monkeypatch.setattr(os, "write", lambda file, data: write(full, data))
        await ledger.book(entry(2))
        ledger.write()
        monkeypatch.setattr(os, "write", write)
        assert files(tmp_path)[0] == before
        await ledger.book(entry(3))
        ledger.write()
        assert len([*read_entries(files(tmp_path)[0])]) == 2
        assert ids(await ledger.requests()) == ["r1", "r2", "r3"]

    with_ledger(tmp_path, work)
    os.close(full)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_end_after_the_last_whole_entry(tail: bytes, cut: int) -> None:
    import struct
    import zlib

    entries = [b"one", b"two" * 20, b"three" * 30]
    data = b"".join(struct.pack("<II", len(one), zlib.crc32(one)) + one for one in entries)
    found = [*read_entries(data[:cut] + tail)]
    whole = [*read_entries(data[:cut])]
    assert found[: len(whole)] == whole == entries[: len(whole)]
    assert [*read_entries(data)] == entries
