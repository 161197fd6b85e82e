import asyncio
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest

from tests.fakes.memory_store import MemoryStore
from tests.fakes.postgres import postgres_url
from tests.sessions.sample_events import a_session, a_turn, kept, opened, said
from toolwire.agent.events import AgentEvent, MessageAdded, ParentCall, Streaming, ToolOutputText
from toolwire.errors import SessionError
from toolwire.events import TextDelta
from toolwire.messages import Message, Text
from toolwire.sessions.replay import replay
from toolwire.sessions.sqlite import SqliteStore, project_key
from toolwire.sessions.store import OpenJournal, SessionStore, Summary


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> SessionStore:
    """Every store: what follows is what another one has to do."""
    numbers, clock = count(1), Clock()

    def new_id(prefix: str) -> str:
        return f"{prefix}id{next(numbers)}"

    if request.param == "memory":
        return MemoryStore(clock, new_id)
    if request.param == "postgres":
        from toolwire.sessions.postgres.store import PostgresStore

        return PostgresStore(postgres_url(), clock=clock, new_id=new_id)
    return SqliteStore(tmp_path / "sessions", clock=clock, new_id=new_id)


def write(journal: OpenJournal, events: Iterable[AgentEvent], *, close: bool = True) -> list[int]:
    async def all_of_them() -> list[int]:
        numbers = [await journal.append(journal.session, event) for event in events]
        if close:
            await journal.close()
        return numbers

    return asyncio.run(all_of_them())


def made(sessions: SessionStore, project: Path, events: list[AgentEvent]) -> str:
    journal = sessions.create(str(project.resolve()))
    write(journal, events)
    return journal.session


def test_what_is_written_is_read_again(sessions: SessionStore, tmp_path: Path) -> None:
    events = a_session(3)
    journal = sessions.create(str(tmp_path))
    numbers = write(journal, events)
    assert max(numbers) == len(kept(events))
    contents = sessions.read(journal.session)
    assert (contents.events, contents.notices) == (kept(events), [])
    assert [record.seq for record in contents.records] == list(range(1, len(kept(events)) + 1))
    again = sessions.open(journal.session)

    async def both() -> tuple[list[AgentEvent], list[AgentEvent]]:
        whole = await again.read(again.session)
        last = await again.read(again.session, after=numbers[-1] - 1)
        await again.close()
        return whole, last

    assert asyncio.run(both()) == (kept(events), events[-1:])
    assert again.notices == []


def test_what_is_only_displayed_is_not_stored(sessions: SessionStore, tmp_path: Path) -> None:
    seen = [opened(), Streaming(TextDelta("x")), ToolOutputText(call_id="a", text="x"), said("x")]
    journal = sessions.create(str(tmp_path))
    assert write(journal, seen) == [1, 1, 1, 2]
    assert sessions.read(journal.session).events == [seen[0], seen[3]]


def test_an_empty_session_leaves_nothing(sessions: SessionStore, tmp_path: Path) -> None:
    write(sessions.create(str(tmp_path)), [])
    assert sessions.list() == []
    with pytest.raises(SessionError):
        sessions.find("id1")


def test_a_session_has_one_writer_and_a_closed_journal_has_none(
    sessions: SessionStore, tmp_path: Path
) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, [opened()], close=False)
    with pytest.raises(SessionError, match="in use"):
        sessions.open(journal.session)
    with pytest.raises(SessionError, match="belongs to session"):
        asyncio.run(journal.append("another", opened()))
    write(journal, [])
    with pytest.raises(SessionError, match="closed; open it again"):
        asyncio.run(journal.append(journal.session, opened()))


def test_the_list_reports_each_session_in_a_line(sessions: SessionStore, tmp_path: Path) -> None:
    first = made(sessions, tmp_path, a_session(2))
    first_record, *_, last_record = sessions.read(first).records
    assert sessions.list(str(tmp_path)) == [
        Summary(
            id=first,
            project=str(tmp_path.resolve()),
            title="prompt 0 " + "p" * 60 + "…",
            model="simulator/small",
            turns=2,
            records=len(kept(a_session(2))),
            started=first_record.at,
            updated=last_record.at,
        )
    ]
    assert last_record.at - first_record.at == len(kept(a_session(2))) - 1


def test_the_last_worked_on_comes_first_and_other_folders_only_on_demand(
    sessions: SessionStore, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    one = made(sessions, tmp_path, a_session(1))
    two = made(sessions, tmp_path / "other", a_session(1))
    three = made(sessions, tmp_path, a_session(1))
    assert [found.id for found in sessions.list(str(tmp_path))] == [three, one]
    assert [found.id for found in sessions.list()] == [three, two, one]
    write(sessions.open(one), [said("more")])
    assert [found.id for found in sessions.list()] == [one, three, two]


def test_the_latest_is_one_with_a_turn(sessions: SessionStore, tmp_path: Path) -> None:
    assert sessions.latest(str(tmp_path)) is None
    one = made(sessions, tmp_path, a_session(1))
    made(sessions, tmp_path, [opened()])
    latest = sessions.latest(str(tmp_path))
    assert latest is not None
    assert latest.id == one


def test_a_title_is_found_behind_long_surroundings(sessions: SessionStore, tmp_path: Path) -> None:
    context = MessageAdded(message=Message(role="user", parts=(Text("told"),)), context=True)
    made(sessions, tmp_path, [opened(), *[context] * 10, said("  fix\nthe   bug ")])
    assert [one.title for one in sessions.list(str(tmp_path))] == ["fix the bug"]


def test_an_id_or_its_only_beginning_finds_a_session(
    sessions: SessionStore, tmp_path: Path
) -> None:
    ids = [made(sessions, tmp_path, [opened()]) for _ in range(10)]
    assert ids[0] == "id1"
    assert sessions.find("id1") == "id1"
    assert sessions.find("id10") == "id10"
    assert sessions.find("id2") == "id2"
    with pytest.raises(SessionError, match=r'"id" matches 10 sessions: id1, .* 5 more'):
        sessions.find("id")


@pytest.mark.parametrize("name", ["nope", "", "../id1", "*"])
def test_an_unknown_id_says_where_to_look(
    sessions: SessionStore, tmp_path: Path, name: str
) -> None:
    made(sessions, tmp_path, [opened()])
    with pytest.raises(SessionError, match="see toolwire sessions list --all"):
        sessions.find(name)


def test_a_fork_goes_its_own_way(sessions: SessionStore, tmp_path: Path) -> None:
    first = made(sessions, tmp_path, a_session(2))
    copy = sessions.fork(first)
    write(sessions.open(copy), [said("only here")])
    old, new = (replay(sessions.read(name).events) for name in (first, copy))
    assert (new.id, new.forked_from, new.model, new.cwd) == (copy, first, old.model, old.cwd)
    assert new.messages == (*old.messages, Message(role="user", parts=(Text("only here"),)))
    assert sessions.read(copy).project == sessions.read(first).project


def test_a_fork_may_stop_early(sessions: SessionStore, tmp_path: Path) -> None:
    events = a_session(2)
    first = made(sessions, tmp_path, events)
    copy = sessions.fork(first, upto=5)
    assert sessions.read(copy).events[:-1] == kept(events)[:5]
    with pytest.raises(SessionError, match="no record to fork from"):
        sessions.fork(first, upto=0)


def test_a_session_in_use_can_be_forked_and_read_but_not_deleted(
    sessions: SessionStore, tmp_path: Path
) -> None:
    journal = sessions.create(str(tmp_path))
    write(journal, a_turn(0), close=False)
    copy = sessions.fork(journal.session)
    assert len(sessions.read(copy).records) == len(sessions.read(journal.session).records) + 1
    with pytest.raises(SessionError, match="in use"):
        sessions.delete(journal.session)
    write(journal, [])
    assert sessions.delete(journal.session) == journal.session
    assert [one.id for one in sessions.list()] == [copy]
    assert list(tmp_path.rglob(f"{journal.session}*")) == []


def test_a_deleted_session_does_not_take_one_with_a_longer_id_along(
    sessions: SessionStore, tmp_path: Path
) -> None:
    ids = [made(sessions, tmp_path, [opened()]) for _ in range(10)]
    sessions.delete("id1")
    assert {one.id for one in sessions.list()} == set(ids) - {"id1"}


def test_folders_of_one_name_have_their_own_sessions(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "My App!", tmp_path / "b" / "My App!"
    for folder in (one, two):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(one)
    assert project_key(one).startswith("my-app-")
    assert project_key(one) != project_key(two)
    assert project_key(tmp_path / "link") == project_key(one)
    assert project_key(Path("/")).startswith("root-")


def test_only_what_is_old_and_unused_is_forgotten(sessions: SessionStore, tmp_path: Path) -> None:
    old, held = made(sessions, tmp_path, a_session(1)), made(sessions, tmp_path, a_session(1))
    before = sessions.list()[0].updated + 1
    new = made(sessions, tmp_path, a_session(1))
    journal = sessions.open(held)
    assert sessions.forget(before) == (old,)
    write(journal, [])
    assert {one.id for one in sessions.list()} == {held, new}


def test_sessions_of_subagents_are_hidden_and_go_with_their_parent(
    sessions: SessionStore, tmp_path: Path
) -> None:
    first = made(sessions, tmp_path, a_session(1, "id1"))
    parent = ParentCall(session=first, call_id="c", agent="explore")
    child = made(sessions, tmp_path, [opened("id2", parent=parent), *a_turn(1)])
    assert [one.id for one in sessions.list()] == [first]
    assert [(one.id, one.parent) for one in sessions.list(children=True)] == [
        (child, first),
        (first, ""),
    ]
    latest = sessions.latest(str(tmp_path.resolve()))
    assert latest is not None
    assert latest.id == first
    copy = sessions.fork(child)
    assert [one.id for one in sessions.list()] == [copy, first]
    sessions.delete(first)
    assert [one.id for one in sessions.list(children=True)] == [copy]


def test_sessions_are_found_by_words_of_their_messages(
    sessions: SessionStore, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    one = made(sessions, tmp_path, a_session(2))
    two = made(sessions, tmp_path / "other", a_session(1))
    assert sessions.search("PROMPT 1") == {one}
    assert sessions.search("prompt 0") == {one, two}
    assert sessions.search("prompt 0", str(tmp_path / "other")) == {two}
    assert sessions.search("no such words") == set()
    found = [one.text[:8] for one in sessions.prompts(str(tmp_path), 10)]
    assert found == ["prompt 1", "prompt 0"]
    assert len(sessions.prompts(str(tmp_path), 1)) == 1


def test_a_reader_asks_only_for_what_is_new(sessions: SessionStore, tmp_path: Path) -> None:
    id = made(sessions, tmp_path, list(a_turn(0)))
    whole = sessions.read(id).records
    assert sessions.read(id, after=3).records == whole[3:]
    assert sessions.read(id, after=len(whole)).records == ()
    with pytest.raises(SessionError):
        sessions.cancel(id)
