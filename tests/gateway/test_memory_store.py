import asyncio
import functools
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import ParamSpec

import pytest

from tests.fakes.postgres import postgres_url
from toolwire.errors import BadInput
from toolwire.gateway.memory_store import (
    KEY_LENGTH,
    MemoryStore,
    ProcessStore,
    SqliteMemoryStore,
)

MIB = 1024 * 1024


def key(name: str, tenant: str = "t") -> bytes:
    return (tenant.encode() * 16 + b"c" + name.encode()).ljust(KEY_LENGTH, b"\0")


P = ParamSpec("P")


def run(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Runs an asynchronous test in a loop of its own."""

    @functools.wraps(test)
    def running(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return running


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def on_disk(path: Path, limit: int = MIB, clock: Clock | None = None) -> SqliteMemoryStore:
    return SqliteMemoryStore(path / "memory.sqlite", limit=limit, days=30, clock=clock or Clock())


def on_server() -> MemoryStore:
    url = postgres_url()
    from toolwire.gateway.postgres import PostgresMemoryStore

    return PostgresMemoryStore(url, limit=MIB, days=30, clock=Clock())


@pytest.fixture(params=["process", "disk", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryStore]:
    match request.param:
        case "process":
            found: MemoryStore = ProcessStore(MIB)
        case "disk":
            found = on_disk(tmp_path)
        case _:
            found = on_server()
    yield found
    found.close()


@run
async def test_an_entry_is_found_by_each_of_its_keys(store: MemoryStore):
    await store.put((key("a"), key("b")), b"body")
    await store.put((key("c"),), b"other")
    found = await store.get((key("a"), key("b"), key("c"), key("d")))
    assert found == {key("a"): b"body", key("b"): b"body", key("c"): b"other"}


@run
async def test_a_key_belongs_to_the_newest_entry(store: MemoryStore):
    await store.put((key("a"), key("b")), b"old")
    await store.put((key("b"),), b"new")
    assert await store.get((key("a"), key("b"))) == {key("a"): b"old", key("b"): b"new"}
    assert await store.delete(key("a"))
    assert await store.get((key("a"), key("b"))) == {key("b"): b"new"}


@run
async def test_deletion_removes_all_keys_of_an_entry(store: MemoryStore):
    await store.put((key("a"), key("b")), b"body")
    assert await store.delete(key("b"))
    assert not await store.delete(key("b"))
    assert await store.get((key("a"), key("b"))) == {}


@run
async def test_no_key_finds_nothing(store: MemoryStore):
    assert await store.get(()) == {}


@run
async def test_many_keys_are_found_at_once(store: MemoryStore):
    for number in range(400):
        await store.put((key(str(number)),), b"%d" % number)
    names = [key(str(number)) for number in range(0, 800, 2)]
    assert await store.get(names) == {key(str(n)): b"%d" % n for n in range(0, 400, 2)}


@run
async def test_the_entries_unused_for_longest_make_room(store: MemoryStore):
    for number in range(40):
        await store.put((key(str(number)),), b"x" * 50_000)
    found = await store.get([key(str(number)) for number in range(40)])
    assert 15 <= len(found) <= 21
    assert key("39") in found
    assert key("0") not in found


@run
async def test_what_was_used_lately_stays(tmp_path: Path):
    clock = Clock()
    store = on_disk(tmp_path, clock=clock)
    await store.put((key("used"),), b"x" * 50_000)
    for number in range(40):
        clock.now += 4_000
        await store.get((key("used"),))
        await store.put((key(str(number)),), b"x" * 50_000)
    assert key("used") in await store.get((key("used"),))
    store.close()


@run
async def test_old_entries_expire(tmp_path: Path):
    clock = Clock()
    store = on_disk(tmp_path, clock=clock)
    await store.put((key("old"),), b"x")
    clock.now += 31 * 86_400
    await store.put((key("new"),), b"y")
    assert await store.get((key("old"), key("new"))) == {key("new"): b"y"}
    store.close()


@run
async def test_the_size_of_the_file_is_bounded(tmp_path: Path):
    store = on_disk(tmp_path)
    for number in range(200):
        await store.put((key(str(number)),), os.urandom(50_000))
    store.close()
    assert (tmp_path / "memory.sqlite").stat().st_size < 3 * MIB


def test_the_file_is_private(tmp_path: Path):
    store = on_disk(tmp_path)
    asyncio.run(store.put((key("a"),), b"body"))
    modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    store.close()
    assert modes == {0o600}


@run
async def test_several_processes_share_the_file(tmp_path: Path):
    store = on_disk(tmp_path)
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=_write_many, args=(tmp_path, name)) for name in "pq"]
    for other in others:
        other.start()
    for number in range(50):
        await store.put((key(f"own{number}"),), b"own")
    for other in others:
        await asyncio.to_thread(other.join)
        assert other.exitcode == 0
    names = [key(f"{who}{number}") for who in ("own", "p", "q") for number in range(50)]
    assert len(await store.get(names)) == 150
    store.close()


def _write_many(folder: Path, name: str) -> None:
    async def write() -> None:
        store = on_disk(folder)
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                group.create_task(store.put((key(f"{name}{number}"),), b"other"))
        store.close()

    asyncio.run(write())


def test_nothing_that_was_stored_is_lost_by_sigkill(tmp_path: Path):
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= 200:
            break
    writer.send_signal(signal.SIGKILL)
    seen = [int(line) for line in writer.stdout] or [200]
    writer.wait()
    writer.stdout.close()

    async def found() -> int:
        store = on_disk(tmp_path, limit=64 * MIB)
        count = len(await store.get([key(str(n)) for n in range(seen[-1] + 1)]))
        store.close()
        return count

    assert asyncio.run(found()) == seen[-1] + 1


_WRITER = """
import asyncio, sys
from pathlib import Path
from toolwire.gateway.memory_store import SqliteMemoryStore

async def main():
    path = Path(sys.argv[1]) / "memory.sqlite"
    store = SqliteMemoryStore(path, limit=64 * 1024 * 1024, days=30, clock=lambda: 1_800_000_000.0)
    for number in range(100_000):
        key = (b"t" * 16 + b"c" + str(number).encode()).ljust(33, b"\\0")
        await store.put((key,), b"x" * 3000)
        print(number, flush=True)

asyncio.run(main())
"""


def test_a_file_that_is_not_a_database_is_refused_with_a_way_out(tmp_path: Path):
    (tmp_path / "memory.sqlite").write_bytes(b"not a database" * 1000)
    with pytest.raises(BadInput, match="move it away"):
        on_disk(tmp_path)


@run
async def test_no_body_is_readable_by_another_tenants_key(store: MemoryStore):
    await store.put((key("a", "t"),), b"body")
    assert await store.get((key("a", "u"),)) == {}


@run
async def test_keys_of_removed_entries_are_removed(tmp_path: Path):
    store = on_disk(tmp_path)
    for number in range(60):
        await store.put((key(f"{number}a"), key(f"{number}b")), b"x" * 50_000)
    store.close()
    connection = sqlite3.connect(tmp_path / "memory.sqlite")
    (dangling,) = connection.execute(
        "SELECT count(*) FROM keys WHERE entry NOT IN (SELECT id FROM entries)"
    ).fetchone()
    (size,) = connection.execute("SELECT bytes FROM size").fetchone()
    (real,) = connection.execute("SELECT sum(length(body) + 256) FROM entries").fetchone()
    connection.close()
    assert (dangling, size) == (0, real)
