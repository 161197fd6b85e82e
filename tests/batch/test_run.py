"""`toolwire batch` as a process, before a simulated model."""

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.batch.batches import Bench, answer, lines_of, until, write_tasks
from tests.fakes.simulated import Done, Simulated
from toolwire.batch.results import State
from toolwire.batch.spec import read_spec
from toolwire.batch.sqlite import SqliteBatch
from toolwire.batch.workspaces import Workspaces

SECRET = "sk-batch-0123456789abcdef"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulated]:
    with Simulated(answer) as running:
        yield running


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("first\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    (folder / "a.txt").write_text("the fix\n")
    git(folder, "commit", "-qam", "two")
    return folder


def tasks_of(repository: Path, hidden: Path) -> list[dict[str, Any]]:
    return [
        {
            "id": "pass",
            "prompt": "RUN echo yes > out.txt\nRUN cat in.txt",
            "workspace": {"files": {"in.txt": "input"}},
            "check": {"command": "grep -q yes out.txt"},
            "artefacts": ["*.txt"],
            "tags": ["easy"],
        },
        {"id": "fail", "prompt": "SAY", "check": {"command": "test -e out.txt"}, "tags": ["easy"]},
        {"id": "plain", "prompt": "SAY"},
        {"id": "refused", "prompt": "REFUSE", "check": {"command": "true"}},
        {"id": "turns", "prompt": "LOOP", "limits": {"turns": 2}, "check": {"command": "false"}},
        {
            "id": "git",
            "prompt": "RUN git log --all --format=%s; cat a.txt; echo new > a.txt; echo b > b.txt",
            "workspace": {"git": str(repository), "commit": "main~1"},
            "check": {"command": "grep -q new a.txt"},
        },
        {
            "id": "folder",
            "prompt": "RUN cat a.txt; rm a.txt",
            "workspace": {"folder": str(repository)},
        },
        {"id": "commit", "prompt": "SAY", "workspace": {"git": str(repository), "commit": "nine"}},
        {"id": "setup", "prompt": "SAY", "setup": "echo broken; exit 7"},
        {
            "id": "secret",
            "prompt": f"RUN cat {hidden}; cat {hidden.parent}/*; ls tests; env; ls ../*",
            "check": {
                "command": "cat tests/hidden.txt && test ! -L tests",
                "copy": {"tests/hidden.txt": str(hidden)},
            },
        },
        {
            "id": "link",
            "prompt": "RUN ln -s /tmp tests",
            "check": {"command": "test ! -L tests && test -f tests/t", "files": {"tests/t": "x"}},
        },
        {
            "id": "reward",
            "prompt": "SAY",
            "check": {"command": "echo 0.25 > score; exit 1", "reward": "score"},
        },
    ]


class Ran(msgspec.Struct, frozen=True):
    done: Done
    bench: Bench
    lines: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def ran(sim: Simulated, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    root = tmp_path_factory.mktemp("batch")
    (root / "private").mkdir()
    hidden = root / "private" / "hidden.txt"
    hidden.write_text("THE-HIDDEN-TEST")
    bench = Bench(root, sim)
    upstream = sim.upstream(key=SECRET)
    done = bench.run(tasks_of(repository, hidden), "--upstream", upstream, "--retries", "1")
    assert not done.err, done.err
    return Ran(done, bench, lines_of(bench.out))


def test_each_task_ends_in_its_state(ran: Ran):
    assert {id: line["state"] for id, line in ran.lines.items()} == {
        "pass": "passed",
        "fail": "failed",
        "plain": "finished",
        "refused": "refused",
        "turns": "limit",
        "git": "passed",
        "folder": "finished",
        "commit": "error",
        "setup": "error",
        "secret": "passed",
        "link": "passed",
        "reward": "failed",
    }
    assert ran.done.code == 1
    assert "passed 4 of 8 (50 %" in ran.done.out
    assert "2 errors" in ran.done.out


def test_a_result_line_says_what_an_attempt_did(ran: Ran):
    line = ran.lines["pass"]
    assert (line["stop"], line["score"], line["check"]["code"]) == ("done", 1.0, 0)
    assert (line["requests"], line["calls"], line["tries"]) == (3, 2, 1)
    assert line["patch"] == {"files": 1, "added": 1, "removed": 0, "path": "tasks/pass/patch.diff"}
    assert line["usage"]["input"] > 0
    assert ran.lines["reward"]["score"] == 0.25
    assert ran.lines["turns"]["stop"] == "turn_limit"
    assert ran.lines["commit"]["error"]["where"] == "workspace"
    assert ran.lines["setup"]["error"]["message"].startswith("setup ended with code 7: broken")


def test_an_attempt_leaves_its_files(ran: Ran):
    folder = ran.bench.out / "tasks" / "pass"
    assert sorted(path.name for path in folder.iterdir() if path.name != "patch.json") == [
        "artefacts",
        "check.log",
        "patch.diff",
        "result.json",
        "session",
        "stdout",
    ]
    assert (folder / "artefacts" / "out.txt").read_text() == "yes\n"
    assert msgspec.json.decode((folder / "result.json").read_bytes()) == ran.lines["pass"]


def test_a_checkout_shows_nothing_after_its_commit(ran: Ran):
    assert ran.lines["git"]["response"].count("two") == 0
    assert "first" in ran.lines["git"]["response"]
    patch = (ran.bench.out / "tasks" / "git" / "patch.diff").read_text()
    assert "-first\n+new\n" in patch
    assert ran.lines["git"]["patch"]["files"] == 2


def test_the_folder_itself_is_not_changed(ran: Ran, repository: Path):
    assert (repository / "a.txt").read_text() == "the fix\n"
    assert ran.lines["folder"]["patch"]["removed"] == 1


def test_the_check_is_out_of_the_agents_reach(ran: Ran):
    assert "THE-HIDDEN-TEST" not in ran.lines["secret"]["response"]
    assert ran.lines["secret"]["calls"] == 1
    log = (ran.bench.out / "tasks" / "secret" / "check.log").read_text()
    assert "THE-HIDDEN-TEST" in log


def test_no_secret_is_stored(ran: Ran):
    for path in ran.bench.out.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_nothing_is_left_behind(ran: Ran):
    assert list((ran.bench.out / "work").iterdir()) == []
    assert list((ran.bench.out / "hosts").iterdir()) == []
    left = subprocess.run(["pgrep", "-f", str(ran.bench.out)], capture_output=True, text=True)
    assert left.stdout == ""


def test_the_report_has_every_form(ran: Ran):
    out = str(ran.bench.out)
    found = ran.bench.inside("report", out, "--json", "--against", out)
    report = msgspec.json.decode(found.out)
    assert (report["passed"]["passed"], report["passed"]["n"]) == (4, 8)
    assert report["errors"] == {"workspace: commit": 1, "setup: setup": 1}
    assert report["against"]["shared"] == 8
    assert report["against"]["p"] == 1.0
    assert "| tag easy | 1 of 2" in ran.bench.inside("report", out).out
    assert "<h1>Batch report</h1>" in ran.bench.inside("report", out, "--html").out
    log = msgspec.json.decode(ran.bench.inside("report", out, "--inspect").out)
    assert (log["version"], len(log["samples"])) == (2, 12)


def test_one_task_is_shown_with_its_session(ran: Ran):
    out = str(ran.bench.out)
    shown = ran.bench.inside("show", out, "pass")
    assert "passed" in shown.out
    assert "+1 -0 in 1 files" in shown.out
    assert "RUN echo yes" in ran.bench.inside("show", out, "pass", "--session").out
    missing = ran.bench.inside("show", out, "pas")
    assert (missing.code, missing.err) == (
        42,
        'toolwire: unknown task "pas"; did you mean "pass"?\n',
    )


def test_the_status_of_a_batch_that_is_done(ran: Ran):
    found = ran.bench.inside("status", str(ran.bench.out))
    assert found.out.startswith("12/12 · 50 % passed ±")
    assert found.out.endswith("does not run\n")
    assert ran.bench.inside("stop", str(ran.bench.out)).code == 42


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("run", "none.jsonl"), "no file none.jsonl"),
        (("resume", "nowhere"), "is not the folder of a batch"),
        (("run", "t.jsonl", "--sandbox", "jail"), 'unknown sandbox "jail"'),
        (("run", "t.jsonl", "--sandbox", "none"), "add --yes"),
        (("run", "t.jsonl", "--executor", "dask"), 'unknown executor "dask"'),
        (("retry", "nowhere"), "name tasks, or use --failed or --errors"),
        (("import", "harbor", "nowhere"), "is not a folder"),
    ],
)
def test_bad_input_is_one_line(
    ran: Ran, args: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(ran.bench.place.work)
    write_tasks(ran.bench.place.work / "t.jsonl", [{"prompt": "SAY"}])
    upstream = ("--upstream", ran.bench.sim.upstream()) if args[0] == "run" else ()
    done = ran.bench.inside(*args, *upstream)
    assert done.code == 42
    last = done.err.splitlines()[-1]
    assert last.startswith("toolwire: ")
    assert words in last
    assert "Traceback" not in done.err


def test_a_broken_file_makes_no_batch(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    done = bench.run([{"prompt": "SAY"}, {"promt": "SAY"}])
    assert (done.code, done.err) == (
        42,
        'toolwire: tasks.jsonl:2: unknown member "promt"; did you mean "prompt"?\n',
    )
    assert not (bench.out / "batch.sqlite").exists()


def waits(out: Path, count: int) -> dict[str, Any]:
    """A task that is in a call until the test lets it go on."""
    return {
        "id": f"w{count}",
        "prompt": f"RUN echo {count} >> {out.parent}/marks/{count}; "
        f"while [ ! -e {out.parent}/marks/go ]; do sleep 0.05; done\nRUN echo end",
        "check": {"command": "true"},
    }


def test_ctrl_c_twice_stops_and_a_resume_goes_on(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    marks = tmp_path / "marks"
    marks.mkdir()
    tasks = [waits(bench.out, n) for n in range(3)]
    file = write_tasks(bench.place.work / "tasks.jsonl", tasks)
    options = ("-o", str(bench.out), "--upstream", sim.upstream(), "-j", "2", "--sandbox", "copy")
    (bench.place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    process = bench.place.start("batch", "run", str(file), *options)
    until(lambda: len(list(marks.iterdir())) == 2)
    second = bench.batch("resume", str(bench.out))
    assert second.code == 42
    assert "is being run by process" in second.err
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"go on with toolwire batch resume" in err
    (marks / "go").touch()
    done = bench.batch("resume", str(bench.out), "-q")
    assert done.code == 0, done.err
    lines = lines_of(bench.out)
    assert {line["state"] for line in lines.values()} == {"passed"}
    # What ran when it was stopped is not run again: its outcome is unknown.
    assert sorted(path.read_text() for path in marks.glob("[0-9]")) == ["0\n", "1\n", "2\n"]
    assert sum(line["unknown"] for line in lines.values()) == 2


def test_an_attempt_killed_before_its_result_was_stored_is_not_run_again(
    sim: Simulated, tmp_path: Path
):
    bench = Bench(tmp_path, sim)
    (bench.place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    marks = tmp_path / "marks"
    marks.mkdir()
    tasks = [
        {"id": id, "prompt": f"RUN echo x >> {marks}/{id}", "check": {"command": "true"}}
        for id in ("there", "gone")
    ]
    assert bench.run(tasks, "--keep").code == 0
    store = SqliteBatch(bench.out)
    shutil.rmtree(bench.out / "work" / store_token(store, bench.out, "gone"))
    store.close()
    with contextlib.closing(sqlite3.connect(bench.out / "batch.sqlite")) as connection:
        connection.execute("UPDATE runs SET state = 'running', result = NULL")
        connection.commit()
    assert bench.batch("resume", str(bench.out), "-q", "--upstream", sim.upstream()).code == 1
    lines = lines_of(bench.out)
    assert (lines["there"]["state"], lines["there"]["calls"]) == ("passed", 1)
    assert lines["gone"]["error"]["type"] == "workspace_lost"
    assert {path.name: path.read_text() for path in marks.iterdir()} == {
        "there": "x\n",
        "gone": "x\n",
    }


def store_token(store: SqliteBatch, out: Path, id: str) -> str:
    trial = store.of_task(id)[0][0]
    return Workspaces(out, read_spec(out).id).token(trial.n)


@pytest.mark.sweep
def test_a_changed_file_is_named_and_rerun_only_if_the_user_says_so(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    first = [{"id": "a", "prompt": "SAY"}, {"id": "b", "prompt": "SAY"}]
    assert bench.run(first).code == 0
    write_tasks(
        bench.place.work / "tasks.jsonl",
        [{"id": "a", "prompt": "RUN echo changed"}, {"id": "c", "prompt": "SAY"}],
    )
    refused = bench.batch("resume", str(bench.out))
    assert refused.code == 42
    assert "1 added (c), 1 removed (b), 1 changed (a); go on" in refused.err
    assert bench.batch("resume", str(bench.out), "--changed", "keep", "-q").code == 0
    assert bench.batch("resume", str(bench.out), "--changed", "rerun", "-q").code == 0
    store = SqliteBatch(bench.out)
    assert sorted(store.ids()) == ["a", "c"]
    assert {one.id: one.calls for one in store.results()} == {"a": 1, "c": 0}


@pytest.mark.sweep
def test_failed_tasks_are_tried_again_from_their_start(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    flag = tmp_path / "flag"
    task = {"id": "a", "prompt": "SAY", "check": {"command": f"test -e {flag}"}}
    assert bench.run([task], "--attempts", "2").code == 0
    flag.touch()
    assert bench.batch("retry", str(bench.out), "--failed").code == 0
    done = bench.batch("resume", str(bench.out), "--json")
    report = msgspec.json.decode(done.out)
    assert report["states"] == {"passed": 2}
    assert report["pass_at"] == {"1": 1.0, "2": 1.0}
    assert (bench.out / "tasks" / "a~1.before").is_dir()


@pytest.mark.sweep
def test_a_budget_of_tokens_stops_within_one_task(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    tasks = [{"id": f"t{n}", "prompt": "SAY"} for n in range(6)]
    probe = Bench(tmp_path / "probe", sim)
    probe.place.root.mkdir()
    assert probe.run(tasks[:1]).code == 0
    usage = lines_of(probe.out)["t0"]["usage"]
    each = usage["input"] + usage["output"]
    done = bench.run(tasks, "--budget-tokens", str(int(each * 3.5)))
    assert done.code == 3
    assert len(lines_of(bench.out)) == 3
    states = SqliteBatch(bench.out).totals().states
    assert states == {State.FINISHED: 3, State.WAITING: 3}


def test_the_command_loads_nothing_of_it_unless_it_is_called():
    code = (
        "import sys; from toolwire.cli.commands import toolwire as t; t.main(['--help'], "
        "standalone_mode=False); import toolwire.cli.run; "
        "print([m for m in sys.modules if m.startswith(('toolwire.batch', 'ray', 'psycopg'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_repository_around_the_batch_is_not_that_of_a_task(
    sim: Simulated, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, sim)
    git(tmp_path, "init", "-q")
    (tmp_path / "AGENTS.md").write_text("NOTES-AROUND-THE-BATCH")
    (tmp_path / ".gitignore").write_text("out/\n")
    task = {
        "id": "t",
        "prompt": "RUN git rev-parse --show-toplevel\nRUN ls",
        "workspace": {"files": {"in.txt": "input"}},
    }
    before = len(sim.bodies)
    assert bench.run([task]).code == 0
    said = msgspec.json.encode(sim.bodies[before:]).decode()
    assert "NOTES-AROUND-THE-BATCH" not in said
    assert "not a git repository" in said
    # Nor do its ignore rules hide the files of the task from the listing that opens a session.
    assert "in.txt" in msgspec.json.encode(sim.bodies[before]).decode()
