import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.sessions.sample_events import a_session, a_turn, call, kept, opened, said, started
from toolwire.agent.events import (
    AgentEvent,
    ToolAsked,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.questions import Confirmation, EditDetails
from toolwire.errors import SessionError
from toolwire.sessions import files
from toolwire.sessions.files import Row, beside, write_whole
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.sqlite_journal import SqliteJournal
from toolwire.tools.proposals import DiffStat


@pytest.fixture
def sessions(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "sessions")


def write(journal: SqliteJournal, events: Sequence[AgentEvent]) -> list[int]:
    async def all_of_them() -> list[int]:
        return [await journal.append(journal.session, event) for event in events]

    return asyncio.run(all_of_them())


def read(journal: SqliteJournal, after: int = 0) -> list[AgentEvent]:
    return asyncio.run(journal.read(journal.session, after))


def test_every_kind_of_event_comes_back_equal(sessions: SqliteStore, tmp_path: Path) -> None:
    details = EditDetails(paths=(Path("/a/b c"),), diff="+x", stat=DiffStat(model_added=1))
    asked = ToolAsked(
        call_id="a",
        confirmation=Confirmation(call=call("a"), title="t", reason="r", details=details),
    )
    journal = sessions.create(str(tmp_path))
    write(journal, [asked])
    assert read(journal) == [asked]
    journal.close_now()


def test_half_a_character_is_kept_as_an_unknown_one(sessions: SqliteStore, tmp_path: Path) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, [said("a\ud800b")])
    assert read(journal) == [said("a�b")]
    journal.close_now()


def stars(secret: bytes) -> Callable[[bytes], bytes]:
    return lambda body: body.replace(secret, b"*" * len(secret))


def test_secrets_are_taken_out_of_every_file(tmp_path: Path) -> None:
    sessions = SqliteStore(tmp_path / "sessions", redact=stars(b"hush-hush"))
    journal = sessions.create(str(tmp_path))
    write(journal, [opened(), said("the key is hush-hush!")])
    assert read(journal)[1] == said("the key is *********!")
    for file in journal.path.parent.iterdir():
        assert b"hush-hush" not in file.read_bytes()
    journal.close_now()


def test_a_secret_that_is_part_of_the_form_does_not_break_the_record(tmp_path: Path) -> None:
    sessions = SqliteStore(tmp_path / "sessions", redact=stars(b"message"))
    journal = sessions.create(str(tmp_path))
    write(journal, [said("a message")])
    assert read(journal) == [said("a *******")]
    journal.close_now()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_only_the_owner_reads_sessions(sessions: SqliteStore, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        journal = sessions.create(str(tmp_path))
        write(journal, a_session(1))
        files = list(journal.path.parent.iterdir())
    finally:
        os.umask(before)
    assert {file.suffix for file in files} >= {".sqlite", ".lock", ".sqlite-wal"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    folders = (journal.path.parent, journal.path.parent.parent)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    journal.close_now()


def test_nothing_is_left_of_a_session_in_which_nothing_was_kept(
    sessions: SqliteStore, tmp_path: Path
) -> None:
    journal = sessions.create(str(tmp_path))
    asyncio.run(journal.close())
    assert list(journal.path.parent.iterdir()) == []


def test_records_are_numbered_in_the_order_they_were_handed_in(
    sessions: SqliteStore, tmp_path: Path
) -> None:
    journal = sessions.create(str(tmp_path))

    async def at_once() -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(journal.append(journal.session, said(str(number))))
                for number in range(50)
            ]
        return [task.result() for task in tasks]

    assert asyncio.run(at_once()) == list(range(1, 51))
    assert read(journal) == [said(str(number)) for number in range(50)]
    journal.close_now()


def test_a_record_is_kept_though_its_writer_is_cancelled(
    sessions: SqliteStore, tmp_path: Path
) -> None:
    journal = sessions.create(str(tmp_path))

    async def cancelled() -> None:
        task = asyncio.create_task(journal.append(journal.session, said("kept")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await journal.append(journal.session, said("after"))

    asyncio.run(cancelled())
    assert read(journal) == [said("kept"), said("after")]
    journal.close_now()


def test_a_failure_no_one_waited_for_is_reported_with_the_next_record(
    sessions: SqliteStore, tmp_path: Path
) -> None:
    journal = sessions.create(str(tmp_path))
    journal.path.unlink()

    async def cancelled() -> None:
        task = asyncio.create_task(journal.append(journal.session, said("lost")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await journal.records(journal.session)

    with pytest.raises(SessionError, match="is gone"):
        asyncio.run(cancelled())
    with pytest.raises(SessionError, match="was removed"):
        write(journal, [opened()])
    journal.close_now()


def test_a_closed_session_takes_no_more(sessions: SqliteStore, tmp_path: Path) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, [opened()])
    asyncio.run(journal.close())
    asyncio.run(journal.close())
    with pytest.raises(SessionError, match="is closed"):
        write(journal, [opened()])


def test_a_file_that_cannot_be_read_now_is_not_taken_for_a_damaged_one(
    sessions: SqliteStore, tmp_path: Path
) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, a_session(1))
    journal.close_now()
    beside(journal.path, "-wal").mkdir()
    with pytest.raises(SessionError, match="cannot read session"):
        sessions.open(journal.session)
    beside(journal.path, "-wal").rmdir()
    again = sessions.open(journal.session)
    assert again.salvaged is None
    again.close_now()


def test_a_second_holder_learns_who_has_the_session(sessions: SqliteStore, tmp_path: Path) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, [opened()])
    with pytest.raises(SessionError) as refused:
        sessions.open(journal.session)
    assert f"in use by process {os.getpid()} on " in str(refused.value)
    assert f"toolwire sessions fork {journal.session}" in str(refused.value)
    journal.close_now()
    sessions.open(journal.session).close_now()


OTHER = """
import sys
from pathlib import Path
from toolwire.errors import SessionError
from toolwire.sessions.sqlite import SqliteStore
try:
    SqliteStore(Path(sys.argv[1])).open(sys.argv[2])
except SessionError as error:
    print(error)
else:
    print("opened")
"""


def test_another_process_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    sessions = SqliteStore(tmp_path / "sessions")
    journal = sessions.create(str(tmp_path))
    write(journal, [opened()])
    asks = [sys.executable, "-c", OTHER, str(tmp_path / "sessions"), journal.session]
    first = subprocess.run(asks, capture_output=True, text=True, check=True)
    assert f"in use by process {os.getpid()}" in first.stdout
    journal.close_now()
    second = subprocess.run(asks, capture_output=True, text=True, check=True)
    assert second.stdout == "opened\n"


CLOSING = """
import asyncio, sys
from pathlib import Path
from tests.sessions.sample_events import a_session
from toolwire.sessions.sqlite import SqliteStore
sessions = SqliteStore(Path(sys.argv[1]))
for _ in range(40):
    journal = sessions.create(Path(sys.argv[1]))
    async def write():
        for event in a_session(1):
            await journal.append(journal.session, event)
    asyncio.run(write())
    journal.close_now()
"""


def test_closing_right_behind_a_turn_does_not_crash(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLOSING, str(tmp_path / "sessions")],
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == 0
    assert len(SqliteStore(tmp_path / "sessions").list()) == 40


def test_a_journal_refuses_events_of_another_session(sessions: SqliteStore, tmp_path: Path) -> None:
    journal = sessions.create(str(tmp_path))
    with pytest.raises(SessionError, match='not "other"'):
        asyncio.run(journal.append("other", said("x")))
    journal.close_now()


def test_a_removed_file_is_noticed_before_an_effect(sessions: SqliteStore, tmp_path: Path) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, [opened()])
    journal.path.unlink()
    with pytest.raises(SessionError, match="was removed"):
        write(journal, [started(call("a"))])
    journal.close_now()


def test_the_log_goes_into_the_file_between_turns(sessions: SqliteStore, tmp_path: Path) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, [*a_turn(0), TurnEnded(reason=TurnEnd.DONE)])
    read(journal)  # behind the tidying, in the same thread
    copy = tmp_path / "copy" / "one" / journal.path.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(journal.path.read_bytes())
    copied = SqliteStore(tmp_path / "copy").read(journal.session)
    assert copied.events == read(journal)
    journal.close_now()


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from tests.sessions.sample_events import said
from toolwire.errors import SessionError
from toolwire.sessions.sqlite import SqliteStore

resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
journal = SqliteStore(Path(sys.argv[1])).create(str(Path.cwd()))

async def fill():
    for number in range(1, 1000):
        try:
            await journal.append(journal.session, said(f"{number} " + "x" * 5000))
        except SessionError as error:
            return number - 1, error
    raise AssertionError("the disk never became full")

kept, error = asyncio.run(fill())
print(journal.session, kept)
print(error)
sys.stdout.flush()
import os
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file size limit")
def test_a_full_disk_is_reported_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(root)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    first, message = done.stdout.splitlines()
    session, count = first.split()
    assert f'cannot write session "{session}"' in message
    assert "disk full" in message
    journal = SqliteStore(root).open(session)
    assert journal.salvaged is None
    assert [event.message.text.split()[0] for event in read(journal)] == [  # pyright: ignore[reportAttributeAccessIssue] - all are messages
        str(number) for number in range(1, int(count) + 1)
    ]
    write(journal, [said("there is room again")])
    journal.close_now()


READER = """
import os, sys
from pathlib import Path
from toolwire.errors import SessionError
from toolwire.sessions.sqlite import SqliteStore
if os.getuid() == 0:
    os.setuid(65534)  # modes do not bind the superuser
sessions = SqliteStore(Path(sys.argv[1]))
print(len(sessions.read(sys.argv[2]).records), [one.turns for one in sessions.list()])
for step in (lambda: sessions.open(sys.argv[2]), lambda: sessions.create(Path("/"))):
    try:
        step()
    except SessionError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_folder_that_cannot_be_written_is_read_and_reported(sessions: SqliteStore) -> None:
    journal = sessions.create(str(Path.cwd()))
    events = a_session(2)
    write(journal, events)
    with tempfile.TemporaryDirectory() as place:
        # As a killed process leaves it: with its log, held by nobody.
        root = Path(place) / "sessions"
        folder = root / journal.path.parent.name
        folder.mkdir(parents=True)
        for ending in ("", "-wal"):
            data = beside(journal.path, ending).read_bytes()
            beside(folder / journal.path.name, ending).write_bytes(data)
            beside(folder / journal.path.name, ending).chmod(0o444)
        for one in (folder, root, Path(place)):
            one.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READER, str(root), journal.session],
            capture_output=True,
            text=True,
            check=False,
        )
        for one in (Path(place), root, folder):
            one.chmod(0o755)
    journal.close_now()
    first, *errors = done.stdout.splitlines()
    assert first == f"{len(kept(events))} [2]", done.stderr
    assert [" ".join(error.split()[:3]) for error in errors] == [
        "cannot lock session",
        "cannot create a",
    ]


@pytest.mark.parametrize("serializes", [True, False])
def test_a_new_file_is_the_same_with_every_build_of_sqlite(
    serializes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(files, "_SERIALIZES", serializes)
    path = tmp_path / "new.sqlite"
    write_whole(path, {"project": "/p"}, [Row(seq=1, at=1.5, kind="k", body=b"{}", crc=7)])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    base = sqlite3.connect(path)
    try:
        found = [
            base.execute(sql).fetchall()
            for sql in ("PRAGMA journal_mode", "SELECT * FROM meta", "SELECT * FROM records")
        ]
    finally:
        base.close()
    assert found == [
        [("wal",)],
        [("project", "/p"), ("schema", str(files.SCHEMA))],
        [(1, 1.5, "k", b"{}", 7)],
    ]
