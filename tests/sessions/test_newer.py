"""Journals with kinds of events that only a newer version knows."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.fakes.simulated import Place, Simulated
from tests.sessions.sample_events import a_session, kept, said
from toolwire.agent.events import AgentEvent, Noticed, Retrying, ToolStarted
from toolwire.errors import SessionError
from toolwire.messages import Loss
from toolwire.sessions import records
from toolwire.sessions.export import FORMATS
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.transcript import record_after
from toolwire.simulator import Reply
from toolwire.simulator.script import Say

EVENTS = kept(a_session(2))
FUTURE = b'{"type":"agent_dreamt","about":["sheep",{"deep":1}]}'


def insert(path: Path, kind: str, body: bytes) -> None:
    """A record as a newer version would write it, at the end."""
    with closing(sqlite3.connect(path)) as connection:
        (last,) = connection.execute("SELECT max(seq) FROM records").fetchone()
        row = ((last or 0) + 1, 5.0, kind, body)
        connection.execute(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?)", (*row, records.checksum(*row))
        )
        connection.commit()


def written(folder: Path, *events: AgentEvent) -> Path:
    journal = SqliteStore(folder).create(str(folder))

    async def write() -> None:
        for event in events:
            await journal.append(journal.session, event)

    asyncio.run(write())
    journal.close_now()
    return journal.path


def bodies(path: Path) -> list[bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return [body for (body,) in connection.execute("SELECT body FROM records ORDER BY seq")]


def test_a_kind_from_the_future_is_skipped_named_and_left_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, *EVENTS)
    insert(path, "agent_dreamt", FUTURE)
    insert(path, "agent_dreamt", FUTURE)
    insert(path, "agent\x1b[2Jwoke", b'{"type":"agent\\u001b[2Jwoke"}')
    sessions = SqliteStore(tmp_path)
    journal = sessions.open(path.stem)
    assert journal.salvaged is None
    assert asyncio.run(journal.read(path.stem)) == EVENTS
    assert journal.skipped is not None
    assert journal.skipped.records == 3
    assert (
        '3 records of a newer toolwire that this version cannot read: "agent_dreamt", "agent'
        in (journal.skipped.message)
    )
    assert "\x1b" not in journal.skipped.message
    assert asyncio.run(journal.append(path.stem, said("on"))) == len(EVENTS) + 4
    assert asyncio.run(journal.read(path.stem)) == [*EVENTS, said("on")]
    assert asyncio.run(journal.read(path.stem, len(EVENTS) + 3)) == [said("on")]
    assert journal.skipped is None
    journal.close_now()
    assert bodies(path)[len(EVENTS)] == FUTURE
    assert not list(path.parent.glob("*.damaged-*"))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("turn_ended", b'{"type":"turn_ended","reason":"enlightened"}'),
        (
            "message_added",
            b'{"type":"message_added","message":{"role":"user","parts":[{"type":"smell"}]}}',
        ),
        ("session_opened", b'{"type":"session_opened","session":{"new":"shape"}}'),
        ("", b'{"type":7}'),
        ("nothing", b"null"),
        ("packed", b"\x93\xff\x00"),
    ],
)
def test_a_known_kind_in_a_shape_of_the_future_is_skipped_too(
    tmp_path: Path, kind: str, body: bytes
) -> None:
    path = written(tmp_path, *EVENTS)
    insert(path, kind, body)
    sessions = SqliteStore(tmp_path)
    contents = sessions.read(path.stem)
    assert contents.events == EVENTS
    assert contents.salvaged is None
    assert contents.skipped is not None
    assert contents.skipped.kinds == (kind,)
    (listed,) = sessions.list()
    assert listed.title.startswith("prompt 0")
    assert (listed.damaged, listed.records) == (False, len(EVENTS) + 1)
    sessions.open(path.stem).close_now()


def test_a_session_that_begins_with_the_future_opens(tmp_path: Path) -> None:
    path = written(tmp_path, *EVENTS[:1])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM records")
        connection.commit()
    insert(path, "agent_dreamt", FUTURE)
    sessions = SqliteStore(tmp_path)
    assert sessions.read(path.stem).events == []
    journal = sessions.open(path.stem)
    assert asyncio.run(journal.read(path.stem)) == []
    assert asyncio.run(journal.append(path.stem, said("hello"))) == 2
    journal.close_now()
    assert len(bodies(path)) == 2


def test_a_fork_takes_the_records_of_the_future_along(tmp_path: Path) -> None:
    path = written(tmp_path, *EVENTS)
    insert(path, "agent_dreamt", FUTURE)
    sessions = SqliteStore(tmp_path)
    fork = sessions.fork(path.stem)
    assert FUTURE in bodies(path.with_name(f"{fork}.sqlite"))
    assert sessions.read(fork).events[:-1] == EVENTS


def test_the_turns_of_a_fork_are_counted_over_the_gap(tmp_path: Path) -> None:
    before = EVENTS[:1]
    path = written(tmp_path, *before)
    insert(path, "agent_dreamt", FUTURE)
    insert(path, "message_added", records.encode(said("words")))
    contents = SqliteStore(tmp_path).read(path.stem)
    assert record_after(contents.records, 0) == 3
    with pytest.raises(SessionError, match="has 0 turns"):
        record_after(contents.records, 1)


@pytest.mark.parametrize("form", list(FORMATS))
def test_an_export_says_what_it_leaves_out(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, *EVENTS)
    insert(path, "agent_dreamt", FUTURE)
    text = FORMATS[form](SqliteStore(tmp_path).read(path.stem))
    # Markdown escapes the underscore.
    assert "agent_dreamt" in text.replace("\\", "")


def test_a_call_with_an_effect_this_version_does_not_know_still_counts_as_started() -> None:
    # Else the model would be told that it never ran.
    started = ToolStarted(call_id="1", name="beam", arguments="{}", effect="teleport")
    assert records.decode(records.encode(started)) == started


def test_the_agent_goes_on_and_says_what_it_skipped(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with Simulated([Reply(pieces=(Say("first"),)), Reply(pieces=(Say("second"),))]) as sim:
        assert place.run(sim, "one").code == 0
        (path,) = place.home.rglob("*.sqlite")
        insert(path, "agent_dreamt", FUTURE)
        ended = place.run(sim, "two", "--continue")
    assert (ended.code, ended.out) == (0, "second\n")
    assert 'skipped 1 record of a newer toolwire that this version cannot read: "agent_dreamt"' in (
        ended.err
    )
    texts = json.dumps(sim.bodies[1]["messages"])
    assert texts.index("one") < texts.index("first") < texts.index("two")
    assert FUTURE in bodies(path)
    shown = place.toolwire("sessions", "show", path.stem)
    assert shown.code == 0
    assert "agent_dreamt" in shown.err


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (
            b'{"type":"retrying","message":"429 slow down; waiting 1.5 s","void":false}',
            Retrying(message="429 slow down; waiting 1.5 s"),
        ),
        (b'{"type":"noticed","kind":"x","message":"y"}', Noticed(kind="x", message="y")),
    ],
)
def test_a_record_without_the_values_of_a_retry_or_a_loss_is_read(
    body: bytes, event: AgentEvent
) -> None:
    assert records.decode(body) == event


def test_a_notice_without_a_loss_is_stored_as_before() -> None:
    assert records.encode(Noticed(kind="x", message="y")) == (
        b'{"type":"noticed","kind":"x","message":"y"}'
    )
    lost = Noticed(kind="loss", message="a: b: c", loss=Loss("a", "b", "c"))
    assert records.decode(records.encode(lost)) == lost
