"""Sessions in the terminal app: chosen, searched, copied, exported, deleted."""

from pathlib import Path

import pytest

from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import Apps, answered, says
from toolwire.messages import Media, MediaKind
from toolwire.sessions.sqlite import SqliteStore
from toolwire.simulator import Reply
from toolwire.simulator.script import Say, Show
from toolwire.storage.paths import state_paths

pytestmark = pytest.mark.sweep


def stored(place: Place) -> SqliteStore:
    return SqliteStore(state_paths(place.environ()).sessions)


def three(apps: Apps, sim: Simulated) -> None:
    """Three sessions with other titles and answers."""
    app = apps.start(sim)
    for word in ("apples", "pears", "plums"):
        app.press(f"about {word}\r")
        answered(app, f"answer on {word}")
        app.press("/new\r")
        app.settle(1.0)
    app.press("\x04")
    app.end()


ANSWERS = [says(f"the answer on {word}") for word in ("apples", "pears", "plums")]


def test_a_session_is_found_by_its_words_and_goes_on(apps: Apps, place: Place):
    with Simulated([*ANSWERS, says("more of it")]) as sim:
        three(apps, sim)
        app = apps.start(sim)
        app.press("/resume\r")
        rows = app.wait("sessions of this folder (3)", "about apples", "about plums", "1 turn")
        assert any("/ filters" in row for row in rows)
        app.press("/answer on pea")
        app.wait_gone("about plums")
        app.wait("about pears")
        app.press("\r")
        app.settle(0.2)
        app.press("\r")
        app.wait("› about pears", "the answer on pears")
        app.press("go on\r")
        app.wait("more of it")
        assert "the answer on pears" in str(sim.bodies[3]["messages"])
        assert "plums" not in str(sim.bodies[3]["messages"])


def test_a_session_is_exported_copied_and_deleted_from_the_list(apps: Apps, place: Place):
    with Simulated(ANSWERS) as sim:
        three(apps, sim)
        app = apps.start(sim)
        app.press("/sessions\r")
        app.wait("› now", "about plums")
        app.press("x")
        app.wait("exported to")
        [file] = place.work.glob("session-*.md")
        assert "the answer on plums" in file.read_text()
        app.press("\x1b[B")
        app.settle(0.2)
        app.press("\x1b[3~")
        app.wait("Del again deletes it")
        assert len([one for one in stored(place).list() if one.turns]) == 3
        app.press("\x1b[3~")
        app.wait("deleted", "(2)")
        app.wait_gone("about pears")
        app.press("f")
        app.wait("› about apples")
        assert sum(one.title == "about apples" for one in stored(place).list()) == 2


def test_sessions_of_other_folders_are_listed_on_demand(apps: Apps, place: Place):
    other = place.root / "other"
    other.mkdir()
    with Simulated([says("elsewhere")]) as sim:
        process = place.start("run", "--upstream", sim.upstream(), "work there", cwd=other)
        process.communicate(timeout=60)
        app = apps.start(sim)
        app.press("/sessions\r")
        app.wait("sessions of this folder (0)")
        app.press("\x01")
        app.wait("sessions of all folders (1)", "work there")
        app.press("\x1b")
        app.wait("default")


def test_a_turn_is_taken_back_in_a_copy(apps: Apps, place: Place):
    with Simulated([says("first answer"), says("second answer"), says("third answer")]) as sim:
        app = apps.start(sim)
        app.press("one\r")
        answered(app, "first answer")
        app.press("two\r")
        answered(app, "second answer")
        app.press("/rewind\r")
        app.wait("go back to before this turn", "› 2  two")
        app.press("\r")
        app.wait("› two", "default")
        app.settle()
        app.press(" again\r")
        answered(app, "third answer")
        sent = str(sim.bodies[2]["messages"])
        assert "first answer" in sent
        assert "second answer" not in sent
        assert "two again" in sent
        assert len([one for one in stored(place).list() if one.turns]) == 2


def test_a_copy_ends_with_the_named_turn(apps: Apps):
    with Simulated([says("first answer"), says("second answer"), says("third answer")]) as sim:
        app = apps.start(sim)
        app.press("one\r")
        answered(app, "first answer")
        app.press("two\r")
        answered(app, "second answer")
        app.press("/fork 1\r")
        app.settle(1.5)
        app.press("three\r")
        answered(app, "third answer")
        assert "second answer" not in str(sim.bodies[2]["messages"])
        app.press("/fork 9\r")
        app.wait('unknown turn "9"')


def test_the_session_is_exported_by_name(apps: Apps, place: Place):
    with Simulated([says("the answer")]) as sim:
        app = apps.start(sim, columns=160)
        app.press("one\r")
        answered(app, "the answer")
        app.press("/export talk.html\r")
        app.wait("exported to")
        assert "the answer" in (place.work / "talk.html").read_text()
        app.press("/export talk.html\r")
        app.wait("exists already")
        app.press("/export talk.pdf\r")
        app.wait("name a file that ends in")


def test_a_long_session_is_resumed_with_its_last_two_screens(apps: Apps):
    answers = [says("\n\n".join(f"turn {turn} line {n}" for n in range(20))) for turn in range(8)]
    with Simulated(answers) as sim:
        app = apps.start(sim)
        for turn in range(8):
            app.press(f"prompt {turn}\r")
            answered(app, f"turn {turn} line 19")
        app.press("\x04")
        app.end()
        app = apps.start(sim, "--continue")
        app.wait("turn 7 line 19")
        printed = app.all()
        assert any("earlier turns: /transcript" in row for row in printed)
        assert not any("turn 1 line" in row for row in printed)
        app.press("\x0f")
        app.wait("turn 7 line 19", "q close")
        app.press("g")
        app.wait("prompt 0", "turn 0 line 3")


def test_every_prompt_of_the_folder_is_searched_and_the_first_line_names_the_place(
    apps: Apps, place: Place
):
    (place.work / ".git").mkdir()
    (place.work / ".git" / "HEAD").write_text("ref: refs/heads/side\n")
    with Simulated([says("one"), says("two"), says("three")]) as sim:
        assert place.run(sim, "a headless prompt").code == 0
        assert place.run(sim, "--continue", "the second of them").code == 0
        app = apps.start(sim, columns=120)
        # A session that takes long to open is named in a line of its own.
        rows = app.wait("~/work (side)", "upstream/default", "default")
        assert rows[0].startswith("toolwire ")
        assert "~/work (side)" in rows[0]
        app.press("\x12second")
        app.wait("search: second", "› the second of them")
        app.press("\r")
        app.wait("› the second of them")


def test_a_picture_of_the_model_is_stored_below_the_session(apps: Apps, place: Place):
    picture = Media(kind=MediaKind.IMAGE, mime="image/png", base64="aGVsbG8=")
    reply = Reply(pieces=(Say("Here it is."), Show(picture)))
    with Simulated([reply, says("more")]) as sim:
        app = apps.start(sim, columns=200, dialect="gemini")
        app.press("draw\r")
        rows = answered(app, "Here it is.", "[image saved: ")
        (row,) = [row for row in rows if "[image saved: " in row]
        file = Path(row.partition("saved: ")[2].rstrip("]"))
        assert file.read_bytes() == b"hello"
        assert file.stat().st_mode & 0o077 == 0
        (session,) = stored(place).list()
        assert file.parent.name == session.id
        app.press("\x04")
        app.end()
        app = apps.start(sim, "--continue", columns=200, dialect="gemini")
        app.wait("Here it is.", f"[image saved: {file}]")
        app.press("\x04")
        app.end()
    stored(place).delete(session.id)
    assert not file.parent.exists()
