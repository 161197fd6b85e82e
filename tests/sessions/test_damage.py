import asyncio
import random
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.sessions.sample_events import a_session, a_turn, kept, said
from toolwire.agent.events import AgentEvent
from toolwire.errors import SessionError
from toolwire.sessions import records
from toolwire.sessions.files import PAGE, Row, beside
from toolwire.sessions.read_file import records_in, rows_in_pages, scan
from toolwire.sessions.replay import replay
from toolwire.sessions.sqlite import SqliteStore

EVENTS = kept([*a_session(12), *list(a_turn(12))[:-3]])
LEAF = 0x0D
STATES = ("closed", "killed")
"""Everything in the file; or most of it still in the log, as a killed process leaves it."""


class Whole:
    """A good session of each state, to be damaged copy by copy."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        sessions = SqliteStore(folder)
        journal = sessions.create(str(folder))

        async def write() -> None:
            for event in EVENTS:
                await journal.append(journal.session, event)
            await journal.read(journal.session)

        asyncio.run(write())
        self.name = f"{journal.path.parent.name}/{journal.path.name}"
        self.files["killed"] = {
            ending: beside(journal.path, ending).read_bytes() for ending in ("", "-wal")
        }
        journal.close_now()
        self.files["closed"] = {"": journal.path.read_bytes()}

    def put(self, folder: Path, files: dict[str, bytes]) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        path = folder / self.name
        path.parent.mkdir(parents=True)
        for ending, data in files.items():
            beside(path, ending).write_bytes(data)
        return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("whole"))


def good(path: Path) -> list[AgentEvent]:
    return events_in(scan(path, path.stem).rows)


def events_in(rows: Iterable[Row]) -> list[AgentEvent]:
    found, skipped = records_in(rows)
    assert skipped is None
    return [record.event for record in found]


def assert_prefix(found: list[AgentEvent]) -> None:
    assert found == EVENTS[: len(found)]


def cuts(whole: Whole, state: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    files = whole.files[state]
    for ending, data in files.items():
        for size in range(0, len(data), 512):
            yield f"{state}{ending} cut at {size}", {**files, ending: data[:size]}


def flips(whole: Whole, state: str, times: int) -> Iterator[tuple[str, dict[str, bytes]]]:
    chance = random.Random(7)
    files = whole.files[state]
    for ending, data in files.items():
        for number in range(times):
            # Half of them in the heads, where a byte does the most harm.
            place = chance.randrange(len(data) if number % 2 else min(len(data), 2 * PAGE))
            flipped = bytearray(data)
            flipped[place] ^= 1 << chance.randrange(8)
            yield f"{state}{ending} bit at {place}", {**files, ending: bytes(flipped)}


@pytest.mark.parametrize("state", STATES)
def test_a_good_file_is_read_whole(whole: Whole, tmp_path: Path, state: str) -> None:
    path = whole.put(tmp_path / "a", whole.files[state])
    assert good(path) == EVENTS
    assert scan(path, path.stem).damage == ""


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_a_file_cut_anywhere_gives_what_stood_before_the_cut(
    whole: Whole, tmp_path: Path, state: str
) -> None:
    for what, files in cuts(whole, state):
        path = whole.put(tmp_path / "a", files)
        found = good(path)
        assert found == EVENTS[: len(found)], what


def test_nothing_before_a_cut_is_lost(whole: Whole, tmp_path: Path) -> None:
    data = whole.files["closed"][""]
    bodies = [records.encode(event) for event in EVENTS]
    # Only a body that stands there once has a place to look for.
    places = {at: data.index(body) for at, body in enumerate(bodies) if data.count(body) == 1}
    assert len(places) > 10
    for cut in range(8 * PAGE, len(data), 3 * PAGE):
        path = whole.put(tmp_path / "a", {"": data[:cut]})
        last = max(at for at, place in places.items() if place < cut - PAGE)
        assert len(good(path)) > last, cut


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_a_flipped_bit_never_changes_or_reorders_what_is_read(
    whole: Whole, tmp_path: Path, state: str
) -> None:
    for what, files in flips(whole, state, 300):
        path = whole.put(tmp_path / "a", files)
        found = good(path)
        assert found == EVENTS[: len(found)], what


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_a_damaged_session_goes_on_after_its_salvage(
    whole: Whole, tmp_path: Path, state: str
) -> None:
    damaged = [*[*cuts(whole, state)][::9], *flips(whole, state, 40)]
    for what, files in damaged:
        path = whole.put(tmp_path / "a", files)
        sessions = SqliteStore(tmp_path / "a")
        journal = sessions.open(path.stem)
        before = asyncio.run(journal.read(path.stem))
        assert before == EVENTS[: len(before)], what
        replay(before)
        asyncio.run(journal.append(path.stem, said("after all")))
        journal.close_now()
        again = sessions.open(path.stem)
        assert asyncio.run(again.read(path.stem)) == [*before, said("after all")], what
        assert again.salvaged is None, what
        again.close_now()
        if journal.salvaged is not None:
            assert Path(journal.salvaged.kept_as).exists() or not files[""], what
            assert journal.salvaged.records == len(before)


def test_a_cut_file_is_salvaged_and_reported(whole: Whole, tmp_path: Path) -> None:
    data = whole.files["closed"][""]
    path = whole.put(tmp_path, {"": data[: len(data) // 2]})
    sessions = SqliteStore(tmp_path)
    seen = sessions.read(path.stem)
    assert seen.salvaged is not None
    assert seen.salvaged.kept_as == ""
    journal = sessions.open(path.stem)
    salvaged = journal.salvaged
    assert salvaged is not None
    assert 10 < salvaged.records < len(EVENTS)
    assert salvaged.lost_after == seen.records[-1].at
    assert salvaged.kept_as == str(path.with_suffix(".damaged-1"))
    assert Path(salvaged.kept_as).read_bytes() == data[: len(data) // 2]
    assert f"{salvaged.records} records up to" in salvaged.message
    assert_prefix(asyncio.run(journal.read(path.stem)))
    journal.close_now()
    assert sessions.read(path.stem).salvaged is None
    assert sessions.read(path.stem).project != ""


@pytest.mark.parametrize("state", STATES)
def test_no_page_is_needed_but_those_with_records(whole: Whole, tmp_path: Path, state: str) -> None:
    files = whole.files[state]
    data = files[""]
    lost = 0
    for at in range(0, len(data), PAGE):
        if data[at] == LEAF:
            continue
        path = whole.put(tmp_path / "a", {**files, "": data[:at] + bytes(PAGE) + data[at + PAGE :]})
        assert good(path) == EVENTS
        lost += 1
    # The head, what the file says of itself, and the page that leads to the others.
    assert lost == 3


def test_a_salvaged_session_still_knows_its_folder(whole: Whole, tmp_path: Path) -> None:
    data = whole.files["closed"][""]
    path = whole.put(tmp_path, {"": bytes(2 * PAGE) + data[2 * PAGE :]})
    sessions = SqliteStore(tmp_path)
    sessions.open(path.stem).close_now()
    (one,) = sessions.list()
    assert (one.project, one.turns, one.damaged) == ("/home/me", 13, False)


@pytest.mark.parametrize("size", [0, 3_900, 4_000, 4_060, 4_100, 9_000, 300_000])
def test_records_of_any_size_are_found_without_sqlite(tmp_path: Path, size: int) -> None:
    numbers = iter([1.5, 2.0, 0.0, -3.0, 2**40 + 0.25, 1.0, 1e300])
    sessions = SqliteStore(tmp_path, clock=lambda: next(numbers, 4.0))
    journal = sessions.create(str(tmp_path))
    events = [said(letter * (size + at)) for at, letter in enumerate("abcde\u2028é")]

    async def write() -> None:
        for event in events:
            await journal.append(journal.session, event)

    asyncio.run(write())
    expected = scan(journal.path, journal.session).rows
    files = [beside(journal.path, ending).read_bytes() for ending in ("", "-wal")]
    assert rows_in_pages(files[0], files[1]) == expected
    journal.close_now()
    assert rows_in_pages(journal.path.read_bytes(), b"", 2) == expected[2:]
    assert len(expected) == len(events)


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_any_bytes_give_a_beginning_of_what_was_written(whole: Whole, state: str) -> None:
    chance = random.Random(11)
    files = whole.files[state]
    for _ in range(150):
        data, log = bytearray(files[""]), bytearray(files.get("-wal", b""))
        for _ in range(chance.choice((1, 3, 30, 300))):
            target = chance.choice([one for one in (data, log) if one])
            target[chance.randrange(len(target))] = chance.randrange(256)
        rows = rows_in_pages(bytes(data), bytes(log))
        assert_prefix(events_in(rows))


@pytest.mark.parametrize("data", [b"", b"no database at all", b"SQLite format 3\0", bytes(9000)])
def test_a_file_that_is_not_a_session_gives_an_empty_one_and_is_kept(
    whole: Whole, tmp_path: Path, data: bytes
) -> None:
    path = whole.put(tmp_path, {"": data})
    sessions = SqliteStore(tmp_path)
    assert [(one.id, one.damaged, one.records) for one in sessions.list()] == [(path.stem, True, 0)]
    journal = sessions.open(path.stem)
    assert journal.salvaged is not None
    assert "nothing of it could be saved" in journal.salvaged.message
    assert Path(journal.salvaged.kept_as).read_bytes() == data
    asyncio.run(journal.append(path.stem, said("new")))
    journal.close_now()
    assert good(path) == [said("new")]


def test_a_second_rescue_keeps_the_first_damaged_file(whole: Whole, tmp_path: Path) -> None:
    path = whole.put(tmp_path, {"": b"first"})
    SqliteStore(tmp_path).open(path.stem).close_now()
    path.write_bytes(b"second")
    SqliteStore(tmp_path).open(path.stem).close_now()
    kept_files = {file.suffix: file.read_bytes() for file in path.parent.glob("*.damaged-*")}
    assert kept_files == {".damaged-1": b"first", ".damaged-2": b"second"}


def test_a_rescue_that_was_itself_interrupted_is_finished(whole: Whole, tmp_path: Path) -> None:
    path = whole.put(tmp_path, whole.files["closed"])
    path.rename(path.with_suffix(".rescued"))
    sessions = SqliteStore(tmp_path)
    assert sessions.read(path.stem).events == EVENTS
    assert [one.turns for one in sessions.list()] == [13]
    # The damaged file's log was left behind; it must not be read into the salvaged file.
    beside(path, "-wal").write_bytes(whole.files["killed"]["-wal"])
    journal = sessions.open(path.stem)
    assert asyncio.run(journal.read(path.stem)) == EVENTS
    journal.close_now()


def test_a_session_of_a_newer_version_is_refused_and_left_alone(
    whole: Whole, tmp_path: Path
) -> None:
    path = whole.put(tmp_path, whole.files["closed"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'schema'")
        connection.commit()
    before = path.read_bytes()
    for step in (
        SqliteStore(tmp_path).open,
        SqliteStore(tmp_path).read,
        SqliteStore(tmp_path).fork,
    ):
        with pytest.raises(SessionError, match=r"newer toolwire \(format 2.*update toolwire"):
            step(path.stem)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
