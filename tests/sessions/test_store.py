import asyncio
from itertools import count
from pathlib import Path

import pytest

from tests.sessions.sample_events import a_session, a_turn, kept, opened, said
from toolwire.agent.events import AgentEvent, MessageAdded
from toolwire.errors import SessionError
from toolwire.messages import Message, Text
from toolwire.sessions.replay import replay
from toolwire.sessions.store import Sessions, Summary, project_key


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    numbers = count(1)
    return Sessions(
        tmp_path / "sessions", clock=Clock(), new_id=lambda prefix: f"{prefix}id{next(numbers)}"
    )


def made(sessions: Sessions, project: Path, events: list[AgentEvent]) -> str:
    journal = sessions.create(project)

    async def all_of_them() -> None:
        for event in events:
            await journal.append(journal.session, event)
        await journal.close()

    asyncio.run(all_of_them())
    return journal.session


def test_the_list_tells_each_session_in_a_line(sessions: Sessions, tmp_path: Path) -> None:
    first = made(sessions, tmp_path, a_session(2))
    assert sessions.list(tmp_path) == [
        Summary(
            id=first,
            project=str(tmp_path.resolve()),
            title="prompt 0 " + "p" * 60 + "…",
            model="simulator/small",
            turns=2,
            records=len(kept(a_session(2))),
            started=1002.0,
            updated=1001.0 + len(kept(a_session(2))),
        )
    ]


def test_the_last_worked_on_comes_first_and_other_folders_only_on_demand(
    sessions: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    one = made(sessions, tmp_path, a_session(1))
    two = made(sessions, tmp_path / "other", a_session(1))
    three = made(sessions, tmp_path, a_session(1))
    assert [found.id for found in sessions.list(tmp_path)] == [three, one]
    assert [found.id for found in sessions.list()] == [three, two, one]
    journal = sessions.open(one)
    asyncio.run(journal.append(one, said("more")))
    journal.close_now()
    assert [found.id for found in sessions.list()] == [one, three, two]


def test_the_latest_is_one_in_which_something_was_said(sessions: Sessions, tmp_path: Path) -> None:
    assert sessions.latest(tmp_path) is None
    one = made(sessions, tmp_path, a_session(1))
    made(sessions, tmp_path, [opened()])
    latest = sessions.latest(tmp_path)
    assert latest is not None
    assert latest.id == one


def test_a_title_is_found_behind_long_surroundings(sessions: Sessions, tmp_path: Path) -> None:
    context = MessageAdded(message=Message(role="user", parts=(Text("told"),)), context=True)
    made(sessions, tmp_path, [opened(), *[context] * 10, said("  fix\nthe   bug ")])
    assert [one.title for one in sessions.list(tmp_path)] == ["fix the bug"]


def test_an_id_or_its_only_beginning_finds_a_session(sessions: Sessions, tmp_path: Path) -> None:
    ids = [made(sessions, tmp_path, [opened()]) for _ in range(10)]
    assert ids[0] == "id1"
    assert sessions.find("id1").stem == "id1"
    assert sessions.find("id10").stem == "id10"
    assert sessions.find("id2").stem == "id2"
    with pytest.raises(SessionError, match=r'"id" begins the ids of 10 sessions: id1, .* 5 more'):
        sessions.find("id")


@pytest.mark.parametrize("name", ["nope", "", "../id1", "*"])
def test_an_unknown_id_says_where_to_look(sessions: Sessions, tmp_path: Path, name: str) -> None:
    made(sessions, tmp_path, [opened()])
    with pytest.raises(SessionError, match="see toolwire sessions list --all"):
        sessions.find(name)


def test_a_fork_goes_its_own_way(sessions: Sessions, tmp_path: Path) -> None:
    first = made(sessions, tmp_path, a_session(2))
    copy = sessions.fork(first)
    journal = sessions.open(copy)
    asyncio.run(journal.append(copy, said("only here")))
    journal.close_now()
    old, new = (replay(sessions.read(name).events) for name in (first, copy))
    assert (new.id, new.forked_from, new.model, new.cwd) == (copy, first, old.model, old.cwd)
    assert new.messages == (*old.messages, Message(role="user", parts=(Text("only here"),)))
    assert sessions.read(copy).project == sessions.read(first).project


def test_a_fork_may_stop_early(sessions: Sessions, tmp_path: Path) -> None:
    events = a_session(2)
    first = made(sessions, tmp_path, events)
    copy = sessions.fork(first, upto=5)
    assert sessions.read(copy).events[:-1] == kept(events)[:5]
    with pytest.raises(SessionError, match="no record to fork from"):
        sessions.fork(first, upto=0)


def test_a_session_in_use_can_be_forked_and_read_but_not_deleted(
    sessions: Sessions, tmp_path: Path
) -> None:
    journal = sessions.create(tmp_path)

    async def write() -> None:
        for event in a_turn(0):
            await journal.append(journal.session, event)

    asyncio.run(write())
    copy = sessions.fork(journal.session)
    assert len(sessions.read(copy).records) == len(sessions.read(journal.session).records) + 1
    with pytest.raises(SessionError, match="in use"):
        sessions.delete(journal.session)
    journal.close_now()
    assert sessions.delete(journal.session) == journal.session
    assert [one.id for one in sessions.list()] == [copy]
    assert list(journal.path.parent.glob(f"{journal.session}*")) == []


def test_a_deleted_session_does_not_take_one_with_a_longer_id_along(
    sessions: Sessions, tmp_path: Path
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


def test_only_what_is_old_and_unused_is_forgotten(sessions: Sessions, tmp_path: Path) -> None:
    old, held = made(sessions, tmp_path, a_session(1)), made(sessions, tmp_path, a_session(1))
    before = sessions.list()[0].updated + 1
    new = made(sessions, tmp_path, a_session(1))
    journal = sessions.open(held)
    assert sessions.forget(before) == (old,)
    journal.close_now()
    assert {one.id for one in sessions.list()} == {held, new}
