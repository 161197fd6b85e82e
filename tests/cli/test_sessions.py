import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.fakes.postgres import postgres_url
from tests.sessions.sample_events import a_session, said
from toolwire.agent.events import AgentEvent
from toolwire.cli.sessions import sessions_command as command
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.sqlite_journal import SqliteJournal


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLWIRE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return tmp_path


def store(home: Path) -> SqliteStore:
    return SqliteStore(home / "home" / "sessions")


def made(home: Path, turns: int = 2, folder: Path | None = None) -> str:
    journal = store(home).create(str(folder or Path.cwd()))
    write(journal, a_session(turns, journal.session))
    journal.close_now()
    return journal.session


def write(journal: SqliteJournal, events: Sequence[AgentEvent]) -> None:
    async def all_of_them() -> None:
        for event in events:
            await journal.append(journal.session, event)

    asyncio.run(all_of_them())


def run(*args: str) -> Result:
    return CliRunner().invoke(command, args)


def test_no_sessions_is_reported_and_no_failure(home: Path) -> None:
    done = run("list")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "no sessions in this folder; --all looks everywhere\n"
    assert json.loads(run("list", "--json").stdout) == []
    assert not (home / "home").exists()


def test_the_list_shows_this_folder_or_all(home: Path) -> None:
    here, there = made(home), made(home, folder=home)
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["ID", "LAST", "USED", "TURNS", "MODEL", "TITLE"]
    assert [line.split()[0] for line in lines[1:]] == [here]
    assert [line.split()[0] for line in run("list", "--all").stdout.splitlines()[1:]] == [
        there,
        here,
    ]
    (told,) = json.loads(run("list", "--json").stdout)
    assert (told["id"], told["turns"], told["model"]) == (here, 2, "simulator/small")
    assert told["project"] == str(home / "project")
    assert told["updated"].endswith("+00:00")


def test_show_reports_a_line_a_turn(home: Path) -> None:
    session = made(home)
    lines = run("show", session).stdout.splitlines()
    assert lines[0].startswith("prompt 0 ppp")
    assert lines[1].split() == ["Session", session]
    turns = [line.split() for line in lines if line[:1].isdigit()]
    assert [(turn[0], turn[3], turn[4], turn[6]) for turn in turns] == [
        ("1", "2", "done", "0"),
        ("2", "2", "done", "1"),
    ]
    told = json.loads(run("show", session[:15], "--json").stdout)
    assert [turn["calls"] for turn in told["turns"]] == [2, 2]
    assert (told["messages"], told["open_calls"], told["damage"]) == (10, [], None)


@pytest.mark.parametrize("name", ["show", "export", "fork", "delete"])
def test_an_unknown_session_is_a_failure_that_says_where_to_look(home: Path, name: str) -> None:
    made(home)
    done = run(name, "nope", *(["--yes"] if name == "delete" else []))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == 'toolwire: no session "nope"; see toolwire sessions list --all\n'


@pytest.mark.parametrize(
    ("form", "start"), [("json", "{"), ("markdown", "# prompt 0"), ("html", "<!doctype html>")]
)
def test_export_prints_or_writes_a_file(home: Path, form: str, start: str) -> None:
    session = made(home)
    done = run("export", session, "--format", form)
    assert done.exit_code == 0
    assert done.stdout.startswith(start)
    assert run("export", session, "--format", form, "-o", "out").stdout == ""
    assert Path("out").read_text("utf-8") == done.stdout


def test_a_file_that_cannot_be_written_is_reported(home: Path) -> None:
    session = made(home)
    done = run("export", session, "-o", "missing/out")
    assert done.exit_code == 1
    assert done.stderr == "toolwire: cannot write missing/out: No such file or directory\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_disk_is_reported(home: Path) -> None:
    session = made(home)
    done = run("export", session, "-o", "/dev/full")
    assert (done.exit_code, done.stderr) == (
        1,
        "toolwire: cannot write /dev/full: No space left on device\n",
    )
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "toolwire", "sessions", "export", session],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode != 0
    assert "cannot write standard output: No space left on device" in ended.stderr


def test_a_fork_prints_its_id_and_stops_where_told(home: Path) -> None:
    session = made(home, turns=3)
    whole, one, none = (
        run("fork", session, *more).stdout.strip() for more in ([], ["--at", "1"], ["--at", "0"])
    )
    turns = {one.id: one.turns for one in store(home).list()}
    assert turns == {session: 3, whole: 3, one: 1, none: 0}
    done = run("fork", session, "--at", "9")
    assert done.exit_code == 1
    assert "has 3 turns; name a turn from 0 to 3" in done.stderr


def test_delete_asks_first_and_takes_all_or_none(home: Path) -> None:
    one, two = made(home), made(home)
    refused = run("delete", one)
    assert refused.exit_code == 2
    assert "use --yes" in refused.stderr
    assert run("delete", one, "nope", "--yes").exit_code == 1
    assert len(store(home).list()) == 2
    done = run("delete", one, two, one, "--yes")
    assert (done.exit_code, done.stdout) == (0, "")
    assert store(home).list() == []


def test_a_session_in_use_is_not_deleted_but_can_be_shown(home: Path) -> None:
    journal = store(home).create(str(Path.cwd()))
    write(journal, [said("hello")])
    done = run("delete", journal.session, "--yes")
    assert done.exit_code == 1
    assert "is in use by process" in done.stderr
    assert "hello" in run("export", journal.session).stdout
    journal.close_now()


def test_damage_is_reported_and_the_rest_shown(home: Path) -> None:
    session = made(home, turns=9)
    (path,) = (home / "home" / "sessions").glob(f"*/{session}.sqlite")
    path.write_bytes(path.read_bytes()[:30_000])
    done = run("show", session, "--json")
    assert done.exit_code == 0
    assert "the session's file was damaged" in done.stderr
    told = json.loads(done.stdout)
    assert told["damage"]
    assert 0 < len(told["turns"]) < 9


def test_sessions_are_copied_to_a_server_and_back(home: Path) -> None:
    url, id = postgres_url(), made(home)
    first = run("copy", "--to", url, "--all")
    assert (first.exit_code, first.stdout) == (0, "")
    assert first.stderr == f"copied {id}: 41 records, 41 of them new\n"
    assert "41 records, 0 of them new" in run("copy", "--to", url, id).stderr
    before = store(home).export_rows(id)
    run("delete", id, "--yes")
    assert run("copy", "--from", url, "--to", "files", id[:12]).exit_code == 0
    assert store(home).export_rows(id) == before


def test_a_copy_needs_to_know_what_and_where(home: Path) -> None:
    made(home)
    assert run("copy", "--to", "files").exit_code == 2
    wrong = run("copy", "--to", "mysql://me:secret@db/x", "--all")
    assert wrong.exit_code != 0
    assert "use postgresql://" in wrong.stderr
    assert "secret" not in wrong.stderr


def test_what_is_old_is_listed_then_deleted(home: Path) -> None:
    id = made(home)
    assert run("prune").exit_code == 2
    assert run("prune", "--days", "1").stderr == ""
    old = SqliteStore(home / "home" / "sessions", clock=lambda: 1_000.0)
    journal = old.create(str(Path.cwd()))
    write(journal, a_session(1, journal.session))
    journal.close_now()
    listed = run("prune", "--days", "1", "--dry-run")
    assert listed.stdout.startswith(journal.session)
    assert listed.stderr == "1 sessions would be deleted\n"
    assert run("prune", "--days", "1").stderr == f"deleted {journal.session}\n"
    assert [one.id for one in store(home).list()] == [id]
