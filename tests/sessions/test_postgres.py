"""What only a server can do: leases, fences, commits without an answer, copies between stores."""

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.fakes.postgres import kill_and_restart, postgres_url
from tests.sessions.sample_events import a_session, kept, opened, said, started
from tests.sessions.sample_events import call as a_call
from toolwire.agent.events import AgentEvent
from toolwire.errors import SessionError, SessionInUse
from toolwire.ids import new_id
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import OpenJournal, SessionLost
from toolwire.tools.spec import Effect

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

from tests.fakes.cutting_proxy import CuttingProxy, Way  # noqa: E402 - needs psycopg
from toolwire.sessions.postgres.project import project_name  # noqa: E402
from toolwire.sessions.postgres.store import PostgresStore  # noqa: E402
from toolwire.sessions.postgres.worker import StoreWorker, worker_for  # noqa: E402


def append(journal: OpenJournal, *events: AgentEvent) -> list[int]:
    async def write() -> list[int]:
        return [await journal.append(journal.session, event) for event in events]

    return asyncio.run(write())


def another_process(url: str, lease: float = 60.0) -> PostgresStore:
    """A store with a worker of its own, as another process has."""
    store = PostgresStore(url, lease=lease)
    store._worker = StoreWorker(url, lease)  # pyright: ignore[reportPrivateUsage]
    store._link = store._worker.records  # pyright: ignore[reportPrivateUsage]
    return store


def opened_when_free(store: PostgresStore, session: str) -> OpenJournal:
    deadline = time.monotonic() + 30
    while True:
        try:
            return store.open(session)
        except SessionInUse:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_a_session_in_use_is_refused_with_its_holder_and_goes_on_elsewhere() -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    append(journal, opened(), said("one"))
    with pytest.raises(SessionInUse, match=r"in use by process \d+ on ") as refused:
        another_process(url).open(journal.session)
    assert refused.value.until is not None
    assert 0 < refused.value.until - time.time() <= 61
    asyncio.run(journal.close())
    there = another_process(url).open(journal.session)
    assert append(there, said("two")) == [3]
    asyncio.run(there.close())
    assert rows(url, "SELECT count(*) FROM workers") == [(0,)]


def test_a_taken_session_is_lost_to_its_first_holder() -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    append(journal, opened())
    taken = another_process(url).open(journal.session, take=True)
    assert append(taken, said("mine")) == [2]
    with pytest.raises(SessionLost, match="another process has taken it over"):
        append(journal, said("too late"))
    assert "taken it over" in asyncio.run(asyncio.wait_for(journal.lost(), 5))
    assert [record.event for record in PostgresStore(url).read(journal.session).records] == [
        opened(),
        said("mine"),
    ]


def test_a_silent_holder_is_given_up_and_learns_of_it(tmp_path: Path) -> None:
    url = postgres_url()
    proxy = CuttingProxy(url, tmp_path)
    stalled = another_process(proxy.url, lease=2.0)
    journal = stalled.create("p")
    append(journal, opened())
    proxy.silent = True
    assert "did not answer" in asyncio.run(asyncio.wait_for(journal.lost(), 30))
    other = opened_when_free(another_process(url, lease=2.0), journal.session)
    append(other, said("goes on"))
    proxy.silent = False
    with pytest.raises(SessionLost):
        append(journal, said("too late"))
    asyncio.run(other.close())
    assert len(PostgresStore(url).read(journal.session).records) == 2


def test_a_session_closed_in_a_silence_is_free_after_it(tmp_path: Path) -> None:
    url = postgres_url()
    proxy = CuttingProxy(url, tmp_path)
    store = another_process(proxy.url, lease=2.0)
    ended, other = store.create("p"), store.create("p")
    append(ended, opened())
    append(other, opened())
    proxy.silent = True
    asyncio.run(ended.close())
    proxy.silent = False
    # The heartbeat for the other session goes on, and with it the life of this worker.
    taken = opened_when_free(another_process(url, lease=2.0), ended.session)
    append(taken, said("goes on"))
    for journal in (taken, other):
        asyncio.run(journal.close())


@pytest.mark.parametrize("connected", [True, False])
def test_a_statement_ends_on_a_silent_server_also_before_a_session_is_held(
    request: pytest.FixtureRequest, tmp_path: Path, connected: bool
) -> None:
    url = postgres_url()
    PostgresStore(url).list()
    proxy = CuttingProxy(url, tmp_path)
    store = another_process(proxy.url, lease=2.0)
    if connected:
        store.list()
        proxy.silent = True
    else:
        request.addfinalizer(psycopg.connect(proxy.url, application_name="toolwire").close)
        # Silent from the first question on a new connection.
        proxy.hush_after("asked", proxy.count()["asked"])
    refused: list[SessionError] = []

    def listed() -> None:
        with pytest.raises(SessionError, match="cannot reach the session store") as error:
            store.list()
        refused.append(error.value)

    asking = threading.Thread(target=listed, daemon=True)
    asking.start()
    asking.join(60)
    assert refused
    assert proxy.silent


def test_no_effect_starts_without_a_fresh_heartbeat(tmp_path: Path) -> None:
    url = postgres_url()
    proxy = CuttingProxy(url, tmp_path)
    journal = another_process(proxy.url).create("p")
    append(journal, opened(), started(a_call("a"), Effect.WRITE))
    worker = journal._worker  # pyright: ignore[reportPrivateUsage]
    worker._last_good -= 50  # pyright: ignore[reportPrivateUsage] - as if frozen for so long
    append(journal, started(a_call("b"), Effect.WRITE))
    assert worker.fresh, "it asked for another heartbeat first"
    asyncio.run(journal.close())


def test_a_call_does_not_run_without_a_heartbeat_though_its_start_is_stored() -> None:
    url = postgres_url()
    journal = another_process(url).create("p")
    append(journal, opened())
    worker = journal._worker  # pyright: ignore[reportPrivateUsage]
    # As if frozen for so long, and then without a way to renew the lease.
    worker._last_good -= 50  # pyright: ignore[reportPrivateUsage]
    worker._beats.close()  # pyright: ignore[reportPrivateUsage]
    worker._beats.url = "postgresql:///x?host=/nowhere"  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(SessionLost, match="cannot be reached"):
        append(journal, started(a_call("a"), Effect.WRITE))
    with pytest.raises(SessionLost):
        append(journal, said("nothing more is written"))
    # What the next holder reads: started without an end, so its outcome is unknown.
    assert PostgresStore(url).read(journal.session).events == [
        opened(),
        started(a_call("a"), Effect.WRITE),
    ]
    asyncio.run(journal.close())


@pytest.mark.parametrize("way", ["asked", "answered"])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.sweep), 61])
def test_an_append_cut_at_any_byte_is_written_once(tmp_path: Path, way: Way, step: int) -> None:
    url = postgres_url()
    proxy = CuttingProxy(url, tmp_path)
    store = PostgresStore(proxy.url)
    journal = store.create("p")
    written: list[AgentEvent] = [opened(), said("first")]
    append(journal, *written)
    proxy.count()
    append(journal, said("measured"))
    written.append(said("measured"))
    size = proxy.count()[way]
    for place in range(0, size + 1, step):
        proxy.cut_after(way, place)
        append(journal, said(f"cut at {place}"))
        written.append(said(f"cut at {place}"))
    contents = PostgresStore(url).read(journal.session)
    assert contents.events == written
    assert [record.seq for record in contents.records] == list(range(1, len(written) + 1))
    assert proxy.cuts >= size // step
    asyncio.run(journal.close())


@pytest.mark.parametrize("forgotten", [1, 2, 3])
def test_records_that_a_crashed_server_forgot_are_written_again(forgotten: int) -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    events = [opened(), said("one"), *(started(a_call(name), Effect.READ) for name in "abc")]
    append(journal, *events)
    # As after a crash: what was not waited for is gone.
    last = len(events) - forgotten
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM records WHERE seq > %s", (last,))
        connection.execute("UPDATE sessions SET last_seq = %s", (last,))
    assert append(journal, said("two")) == [len(events) + 1]
    assert PostgresStore(url).read(journal.session).events == [*events, said("two")]
    asyncio.run(journal.close())


def test_a_record_that_was_waited_for_and_is_gone_is_a_lost_session() -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    append(journal, opened(), said("one"), started(a_call("a"), Effect.READ))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM records WHERE seq > 1")
        connection.execute("UPDATE sessions SET last_seq = 1")
    with pytest.raises(SessionLost):
        append(journal, said("two"))


@pytest.mark.sweep
def test_a_session_goes_on_after_a_crash_of_the_server() -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    events: list[AgentEvent] = [opened(), said("one")]
    append(journal, *events)
    for crash in range(8):
        soon = [started(a_call(f"{crash}.{n}"), Effect.READ) for n in range(crash + 1)]
        append(journal, *soon)
        kill_and_restart()
        events += [*soon, said(f"after crash {crash}")]
        append(journal, events[-1])
    assert PostgresStore(url).read(journal.session).events == events
    asyncio.run(journal.close())


def test_a_claim_cut_at_any_byte_is_one_claim(tmp_path: Path) -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    append(journal, opened())
    asyncio.run(journal.close())
    proxy = CuttingProxy(url, tmp_path)
    store = PostgresStore(proxy.url)
    asyncio.run(store.open(journal.session).close())
    for way in ("asked", "answered"):
        for place in range(0, 900, 90):
            proxy.cut_after(way, place)
            again = store.open(journal.session)
            assert append(again, said(f"{way} {place}")) != []
            asyncio.run(again.close())
    assert len(store.read(journal.session).records) == 21


def test_processes_that_claim_at_once_get_one_winner() -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    append(journal, opened())
    asyncio.run(journal.close())
    won: list[OpenJournal] = []
    refused: list[str] = []

    def claim() -> None:
        try:
            won.append(another_process(url).open(journal.session))
        except SessionInUse as error:
            refused.append(error.holder)

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(refused)) == (1, 7)
    asyncio.run(won[0].close())


def test_many_processes_make_the_tables_once() -> None:
    url = postgres_url()
    stores = [another_process(url) for _ in range(6)]
    failed: list[Exception] = []

    def look(store: PostgresStore) -> None:
        try:
            store.list()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=look, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_tables_of_a_newer_version_are_left_alone() -> None:
    url = postgres_url()
    PostgresStore(url).list()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(SessionError, match=r"tables of version 99.*update toolwire"):
        another_process(url).list()


def test_a_record_changed_on_the_server_is_reported() -> None:
    url = postgres_url()
    journal = PostgresStore(url).create("p")
    append(journal, opened(), said("one"), said("two"))
    asyncio.run(journal.close())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE records SET body = 'x' WHERE seq = 2")
    contents = PostgresStore(url).read(journal.session)
    assert contents.events == [opened()]
    assert "record 2 has a wrong checksum" in contents.notices[0]


def test_a_copy_there_and_back_is_equal_record_by_record(tmp_path: Path) -> None:
    files, server = SqliteStore(tmp_path / "a"), PostgresStore(postgres_url())
    journal = files.create(str(tmp_path))
    append(journal, *a_session(2))
    asyncio.run(journal.close())
    fork = files.fork(journal.session)
    back = SqliteStore(tmp_path / "b")
    for id in (journal.session, fork):
        copied = files.export_rows(id)
        assert server.import_rows(copied) == len(copied.rows)
        assert server.import_rows(copied) == 0
        assert server.export_rows(id) == copied
        back.import_rows(server.export_rows(id))
        assert back.export_rows(id) == copied
    assert {one.id: one for one in server.list()} == {one.id: one for one in files.list()}
    more = server.open(journal.session)
    append(more, said("on the server"))
    with pytest.raises(SessionInUse):
        server.export_rows(journal.session)
    asyncio.run(more.close())
    assert files.import_rows(server.export_rows(journal.session)) == 1
    assert files.read(journal.session).events == [*kept(a_session(2)), said("on the server")]


def test_sessions_that_went_different_ways_are_not_mixed(tmp_path: Path) -> None:
    files, server = SqliteStore(tmp_path / "a"), PostgresStore(postgres_url())
    journal = files.create(str(tmp_path))
    append(journal, opened())
    asyncio.run(journal.close())
    server.import_rows(files.export_rows(journal.session))
    for store, words in ((files, "here"), (server, "there")):
        other = store.open(journal.session)
        append(other, said(words))
        asyncio.run(other.close())
    with pytest.raises(SessionError, match="differs in the two stores from record 2"):
        server.import_rows(files.export_rows(journal.session))
    assert server.read(journal.session).events[-1] == said("there")


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    url = "postgresql://me:pa55word@127.0.0.1:1/db"
    with pytest.raises(SessionError, match="cannot reach the session store") as failed:
        PostgresStore(url, lease=1.0).list()
    assert "pa55word" not in str(failed.value)


@pytest.mark.parametrize("here", [True, False])
def test_a_killed_holder_is_followed_when_its_end_is_known(here: bool) -> None:
    url = postgres_url()
    code = (
        "import asyncio, os, signal, sys\n"
        "from toolwire.sessions.postgres.store import PostgresStore\n"
        "from tests.sessions.sample_events import opened\n"
        "journal = PostgresStore(sys.argv[1], lease=60.0 if sys.argv[2] else 2.0).create('p')\n"
        "asyncio.run(journal.append(journal.session, opened()))\n"
        "print(journal.session, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, url, "here" if here else ""],
        capture_output=True,
        text=True,
        check=False,
    )
    session = done.stdout.strip()
    assert session, done.stderr
    if not here:
        rows(url, "UPDATE workers SET place = 'another machine' RETURNING 1")
    store = another_process(url, lease=2.0)
    journal = store.open(session) if here else opened_when_free(store, session)
    assert append(journal, said("goes on")) == [2]
    asyncio.run(journal.close())


def test_one_process_has_one_worker_for_a_store() -> None:
    url = postgres_url() + f"&application_name={new_id('a')}"
    assert worker_for(url) is worker_for(url)
    assert worker_for(url, 2.0) is not worker_for(url)


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("https://me:token@git.example.org/team/app.git", "git.example.org/team/app"),
        ("git@git.example.org:team/app.git", "git.example.org/team/app"),
        ("ssh://git@git.example.org:2222/team/app", "git.example.org:2222/team/app"),
        ("/srv/git/app.git", "/srv/git/app.git"),
    ],
)
def test_clones_of_a_repository_are_one_project(tmp_path: Path, remote: str, name: str) -> None:
    clone = tmp_path / "clone"
    (clone / "src").mkdir(parents=True)
    assert project_name(str(clone)) == str(clone)
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    assert project_name(str(clone)) == str(clone)
    subprocess.run(["git", "-C", str(clone), "remote", "add", "origin", remote], check=True)
    assert project_name(str(clone)) == name
    assert project_name(str(clone / "src")) == f"{name}#src"
