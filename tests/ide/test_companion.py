"""A chat in the terminal of an IDE: its diffs, both answers, and what the user looks at."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.companion import TOKEN, IdeServer
from tests.fakes.screen import ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from tests.fakes.terminal import PATIENCE, Terminal
from toolwire.agent.events import ToolFinished
from toolwire.app.stored_sessions import stored_sessions
from toolwire.ide.context import IdeState, OpenFile, context_text, read_state
from toolwire.ide.discovery import PORT, WORKSPACE, find_companions, open_companion
from toolwire.simulator import Call, Reply, Say


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def ide(place: Place) -> Iterator[IdeServer]:
    with IdeServer(place.root, str(place.work)) as ide:
        yield ide


def until(what: Callable[[], Any], about: Callable[[], object] = lambda: "") -> Any:
    stop = time.monotonic() + PATIENCE
    while time.monotonic() < stop:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"it did not happen: {about()}")


class Chat(Terminal):
    """`toolwire chat` in the terminal of the IDE."""

    def __init__(self, place: Place, sim: Simulated, *args: str, **env: str) -> None:
        options = ["chat", "--upstream", sim.upstream(), *args]
        environ = place.environ(TERM="dumb", TMPDIR=str(place.root), **env)
        super().__init__(options, cwd=place.work, env=environ)

    def until(self, what: Callable[[], Any]) -> Any:
        def tried() -> Any:
            self.read()
            return what()

        return until(tried, lambda: self.all)


def writes(path: Path, content: str) -> Reply:
    return Reply(pieces=(Call.of("write_file", file_path=str(path), content=content),))


def says(text: str) -> Reply:
    return Reply(pieces=(Say(text),))


def finished(place: Place) -> list[ToolFinished]:
    store = stored_sessions(place.environ())
    events = store.read(store.list()[0].id).events
    return [event for event in events if isinstance(event, ToolFinished)]


def test_answers_of_the_ide_and_of_the_terminal_count_and_close_the_other(
    place: Place, ide: IdeServer
):
    path = place.work / "x.txt"
    replies = [
        *(writes(path, "one\n"), says("first done")),
        *(writes(path, "two\n"), says("second done")),
        *(writes(path, "three\n"), says("third done")),
        *(writes(path, "four\n"), says("fourth done")),
        *(writes(path, "five\n"), says("fifth done")),
    ]
    with Simulated(replies) as sim:
        chat = Chat(place, sim)
        chat.wait_for("edits are also shown in Fake Code")
        chat.wait_for("> ")
        # Accepted in the IDE, with text of the user's own.
        chat.type("write")
        chat.until(lambda: ide.diffs.get(str(path)) == "one\n")
        chat.wait_for("run it?")
        ide.accept(path, "one, as I like it\n")
        chat.wait_for("(accepted in Fake Code)")
        chat.wait_for("first done")
        assert path.read_text() == "one, as I like it\n"
        [done] = finished(place)
        assert done.decision == "modify"
        assert done.stat is not None
        assert (done.stat.model_added, done.stat.user_added, done.stat.user_removed) == (1, 1, 1)
        assert "User modified" in json.dumps(sim.bodies[-1]["messages"][-1])
        # Answered in the terminal: the diff is closed.
        chat.type("again")
        chat.wait_for("run it?")
        assert ide.diffs == {str(path): "two\n"}
        chat.type("y")
        chat.wait_for("second done")
        assert path.read_text() == "two\n"
        assert ide.diffs == {}
        assert ide.calls[-1] == ("closeDiff", {"filePath": str(path)})
        assert finished(place)[-1].decision == "accept"
        # Rejected, and closed, in the IDE.
        for words, method in (("third", "ide/diffRejected"), ("fourth", "ide/diffClosed")):
            chat.type("again")
            chat.wait_for("run it?")
            ide.reject(path, method)
            chat.wait_for("(rejected in Fake Code)")
            chat.wait_for(f"{words} done")
            assert path.read_text() == "two\n"
        # A yes in the terminal takes the text that was left in the IDE.
        ide.left[str(path)] = "left in the IDE\n"
        chat.type("again")
        chat.wait_for("run it?")
        chat.type("y")
        chat.wait_for("fifth done")
        assert path.read_text() == "left in the IDE\n"
        assert TOKEN not in chat.all
        assert ide.refused == []
        offered = json.dumps(sim.bodies[0]["tools"])
        assert "openDiff" not in offered
        assert chat.leave() == 0
        chat.close()


def test_the_terminal_app_asks_in_both_places(place: Place, ide: IdeServer):
    path = place.work / "x.txt"
    replies = [writes(path, "one\n"), says("it is done"), writes(path, "two\n"), says("again done")]
    with Simulated(replies) as sim:
        env = place.environ(TERM="xterm-256color", TMPDIR=str(place.root))
        options = ["chat", "--upstream", sim.upstream()]
        app = ScreenTerminal(options, cwd=place.work, env=env)
        app.wait("›", "Fake Code")
        ide.tell("ide/contextUpdate", workspaceState=looking(place, "a.py", 3, "picked"))
        app.press("write it\r")
        app.wait("yes, once")
        until(lambda: ide.diffs)
        ide.accept(path)
        app.wait("accepted in Fake Code", "it is done")
        assert path.read_text() == "one\n"
        context, prompt = sim.bodies[0]["messages"][-2:]
        assert "editor context" in json.dumps(context)
        assert "picked" in json.dumps(context)
        assert "write it" in json.dumps(prompt)
        after = sim.bodies[1]["messages"]
        assert after[-1]["role"] == "tool"
        assert json.dumps(after).count("editor context") == 1
        ide.tell("ide/contextUpdate", workspaceState=looking(place, "a.py", 9))
        app.settle()
        app.press("and again\r")
        app.wait("yes, once")
        app.answer("y")
        app.wait("again done")
        assert path.read_text() == "two\n"
        assert ide.diffs == {}
        changes, prompt = sim.bodies[2]["messages"][-2:]
        assert "summary of changes" in json.dumps(changes)
        assert "cursorMoved" in json.dumps(changes)
        assert "and again" in json.dumps(prompt)
        assert sim.refusals == []
        app.close()


def looking(place: Place, name: str, line: int, selected: str = "") -> dict[str, Any]:
    return {
        "openFiles": [
            {
                "path": str(place.work / name),
                "timestamp": 20,
                "isActive": True,
                "cursor": {"line": line, "character": 1},
                "selectedText": selected,
            },
            {"path": str(place.work / "other.py"), "timestamp": 10, "isActive": True},
        ],
        "isTrusted": True,
    }


def test_an_ide_with_another_folder_is_not_used(place: Place):
    async def opened(enabled: str, folder: Path) -> tuple[bool, str]:
        async with AsyncExitStack() as stack:
            environ = place.environ(TMPDIR=str(place.root))
            found, words = await open_companion(enabled, environ, folder, stack)
            return found is not None, words

    parent = os.getppid()
    with IdeServer(place.root, str(place.work), pid=parent) as ide:
        assert asyncio.run(opened("never", place.work)) == (False, "")
        assert asyncio.run(opened("auto", place.home)) == (False, "")
        found, words = asyncio.run(opened("always", place.home))
        assert (found, words.startswith("no IDE is used: ")) == (False, True)
        assert not ide.connected
        words = "edits are also shown in Fake Code"
        assert asyncio.run(opened("auto", place.work)) == (True, words)
    # The file of an IDE that has ended is still there, and another refuses the token.
    with IdeServer(place.root, str(place.work), pid=parent, token="another") as ide:
        assert asyncio.run(opened("auto", place.work)) == (False, "")
        assert "does not answer" in asyncio.run(opened("always", place.work))[1]
        assert ide.refused
        with IdeServer(place.root, str(place.work), pid=parent):
            assert asyncio.run(opened("auto", place.work))[0]


def test_companions_are_found_by_ancestor_port_and_folder(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    folder = tmp_path / "gemini" / "ide"

    def announce(pid: int, port: int, workspace: str) -> Path:
        file = folder / f"gemini-ide-server-{pid}-{port}.json"
        file.write_text(json.dumps({"port": port, "workspacePath": workspace, "authToken": "t"}))
        file.chmod(0o600)
        return file

    def ports(**more: str) -> list[int]:
        return [one.port for one in find_companions({"TMPDIR": str(tmp_path), **more}, work)[0]]

    assert ports() == []
    folder.mkdir(parents=True)
    parent = os.getppid()
    announce(999_999, 1001, str(work))
    assert ports() == []
    first = announce(parent, 1002, str(tmp_path))
    announce(parent, 1003, os.pathsep.join((str(tmp_path / "none"), str(work))))
    announce(parent, 1004, str(tmp_path / "none"))
    assert ports() == [1002, 1003]
    assert ports(**{PORT: "1003"}) == [1003]
    assert ports(**{PORT: "1004"}) == []
    why = find_companions({"TMPDIR": str(tmp_path), PORT: "1004"}, work)[1]
    assert "is not in the folder" in why
    older = {"TMPDIR": str(tmp_path / "empty"), PORT: "1009", WORKSPACE: str(work)}
    assert ports(**older) == [1009]
    # A file that others may write, or that is not JSON, counts for nothing.
    first.chmod(0o602)
    assert ports() == [1003]
    first.chmod(0o600)
    first.write_text("[")
    assert ports() == [1003]
    [found] = find_companions({"TMPDIR": str(tmp_path)}, work)[0]
    assert found.token == "t"
    assert "token" not in repr(found)


def test_limits_of_the_context():
    files = [
        {"path": f"/f{number}", "timestamp": number, "isActive": number in (3, 14)}
        for number in range(15)
    ]
    files[14]["selectedText"] = "x" * 20_000
    state = read_state({"workspaceState": {"openFiles": files}})
    assert state.active is not None
    assert state.active.path == "/f14"
    assert len(state.active.selected) == 16 * 1024 + len("... [TRUNCATED]")
    assert state.others == tuple(f"/f{number}" for number in range(13, 4, -1))
    for broken in ({}, {"workspaceState": []}, {"workspaceState": {"openFiles": [1, {"path": 2}]}}):
        assert read_state(broken) == IdeState()
    assert context_text(None, IdeState()) == ""
    before = IdeState(active=OpenFile(path="/a"), others=("/b",))
    assert context_text(before, before) == ""
    changed = context_text(before, IdeState(others=("/c",)))
    for word in ("filesOpened", "filesClosed", "activeFileChanged"):
        assert word in changed
