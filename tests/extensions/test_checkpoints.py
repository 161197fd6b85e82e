"""Files as they were before a turn: recorded by real sessions, restored by the command."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.examples import ROOT
from tests.extensions.worked_folder import Worked, sh, store, tree_of, turn, work
from tests.fakes.simulated import Done, Place
from toolwire.agent.events import Checkpointed, Noticed
from toolwire.app.checkpoints.stored import informed
from toolwire.app.session import AgentSession
from toolwire.errors import SessionError
from toolwire.extensions.checkpoints.pruning import prune
from toolwire.extensions.settings import CheckpointSettings
from toolwire.simulator.script import Call

PATCH = """*** Begin Patch
*** Update File: patched.txt
@@
-old
+new
*** Delete File: deleted.txt
*** Update File: moved.txt
*** Move to: moved/there.txt
@@
-here
+there
*** Add File: made/by/patch.txt
+made
*** End Patch
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    fill(place.work)
    return place


def fill(work: Path) -> None:
    texts = {
        "a.txt": b"one\ntwo\n",
        "crlf.txt": b"a\r\nb\r\n",
        "patched.txt": b"old\n",
        "deleted.txt": b"gone soon\n",
        "moved.txt": b"here\n",
        "dir/deep/x.py": b"x = 1\n",
        "dir/y.bin": bytes(range(256)),
        "odd\nname": b"n\n",
        "tool.sh": b"#!/bin/sh\n",
        "private.txt": b"p\n",
    }
    for name, data in texts.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(data)
    (work / "link").symlink_to("a.txt")
    (work / "dir" / "empty").mkdir()
    (work / "tool.sh").chmod(0o755)
    (work / "private.txt").chmod(0o600)
    (work / "dir" / "deep").chmod(0o750)


def restore(place: Place, worked: Worked, n: int, *options: str) -> Done:
    done = place.toolwire("sessions", "restore", worked.id, str(n), "--files", *options)
    assert done.code in (0, 1), done.err
    return done


def replace(path: Path, old: str, new: str) -> Call:
    arguments = {"file_path": str(path), "old_string": old, "new_string": new, "instruction": "x"}
    return Call.of("replace", **arguments)


EDITS = (
    lambda work: replace(work / "a.txt", "two", "2"),
    lambda work: replace(work / "crlf.txt", "b", "B"),
    lambda work: Call.of("write_file", **{"file_path": str(work / "new.txt"), "content": "new\n"}),
    lambda work: Call.of(
        "write_file", **{"file_path": str(work / "private.txt"), "content": "q\n"}
    ),
    lambda work: Call.of("apply_patch", **{"input": PATCH}),
)
COMMANDS = (
    "sed -i s/one/1/ a.txt",
    "rm -rf dir",
    "mv moved.txt other.txt; rm link; ln -s tool.sh link; ln -s /etc made-link",
    "chmod 640 private.txt; chmod -x tool.sh; chmod 700 .",
    "rm 'odd\nname'; printf x > 'odd\nname'; touch \"new\nline\"; mkdir -p new/empty",
    "rm a.txt; mkdir a.txt; echo x > a.txt/inside",
)


def test_edits_patches_and_commands_are_undone_by_a_restore(place: Place) -> None:
    place.work.chmod(0o755)
    before = tree_of(place.work)
    edits = turn(*(edit(place.work) for edit in EDITS))
    worked = work(place, edits, turn(*map(sh, COMMANDS)))
    changed = tree_of(place.work)
    assert len(changed.keys() ^ before.keys()) > 8
    done = restore(place, worked, 1)
    assert done.code == 0, done.out + done.err
    assert tree_of(place.work) == before
    assert restore(place, worked, 3).code == 0
    after = tree_of(place.work)
    assert after == changed


@pytest.mark.parametrize("tree", ["auto", "never"])
def test_one_turn_is_restored_and_the_turn_before_it_stays(place: Place, tree: str) -> None:
    states: list[dict[str, Any]] = []

    def look(number: int) -> None:
        del number
        states.append(tree_of(place.work))

    turns = [turn(edit(place.work)) for edit in EDITS]
    env = {"TOOLWIRE_CHECKPOINTS_TREE": tree}
    worked = work(place, *turns, between=look, env=env)
    done = restore(place, worked, len(EDITS))
    assert done.code == 0, done.out
    now = tree_of(place.work)
    assert {k: v for k, v in now.items() if v[0] != "folder"} == {
        k: v for k, v in states[-2].items() if v[0] != "folder"
    }


def test_what_the_user_changed_meanwhile_is_listed_and_left(place: Place) -> None:
    file, other = place.work / "a.txt", place.work / "mine.txt"

    def person(number: int) -> None:
        if number == 0:
            other.write_text("mine\n")
        if number == 1:
            file.write_text("the user's own\n")

    worked = work(
        place,
        turn(replace(file, "two", "2"), sh("echo x >> patched.txt")),
        turn(sh("echo y >> patched.txt")),
        between=person,
    )
    shown = restore(place, worked, 1, "--dry-run")
    assert file.read_text() == "the user's own\n"
    done = restore(place, worked, 1)
    assert done.code == 1
    for one in (shown, done):
        assert "a.txt: changed since then" in one.out
        assert "mine.txt: not changed by this session" in one.out
    assert file.read_text() == "the user's own\n"
    assert other.read_text() == "mine\n"
    assert (place.work / "patched.txt").read_text() == "old\n"
    assert restore(place, worked, 1, "--force").code == 0
    assert file.read_text() == "one\ntwo\n"
    assert not other.exists()
    trash = next(place.home.rglob("trash/*/mine.txt"))
    assert trash.read_text() == "mine\n"


def test_the_users_own_repository_is_untouched_and_its_ignore_rules_hold(place: Place) -> None:
    root = place.work

    def git(*words: str) -> bytes:
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=root, env=place.environ(), capture_output=True, check=True,
        ).stdout  # fmt: skip

    git("init", "-q")
    (root / ".gitignore").write_text("ignored/\n*.log\n")
    (root / ".gitattributes").write_text("* text=auto eol=lf\n")
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho ran > hook-ran\n")
    hook.chmod(0o755)
    (root / "ignored").mkdir()
    (root / "ignored" / "big").write_text("i\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first", "--no-verify")
    (root / "untracked.txt").write_text("u\n")
    (root / "a.txt").write_text("staged\n")
    git("add", "a.txt")
    git("status")
    own = {str(p): p.read_bytes() for p in sorted((root / ".git").rglob("*")) if p.is_file()}
    worked = work(
        place,
        turn(
            sh("echo changed > untracked.txt; echo changed > ignored/big; echo l > new.log"),
            Call.of("write_file", **{"file_path": str(root / "edited.log"), "content": "log\n"}),
            replace(root / "crlf.txt", "b", "B"),
        ),
    )
    done = restore(place, worked, 1)
    assert done.code == 0, done.out
    assert (root / "untracked.txt").read_text() == "u\n"
    assert (root / "ignored" / "big").read_text() == "changed\n"
    assert (root / "new.log").read_text() == "l\n"
    assert not (root / "edited.log").exists()
    assert (root / "crlf.txt").read_bytes() == b"a\r\nb\r\n"
    assert own == {
        str(p): p.read_bytes() for p in sorted((root / ".git").rglob("*")) if p.is_file()
    }
    assert not (root / "hook-ran").exists()
    assert b"untracked.txt" in git("status", "--short")


def test_a_folder_of_a_repository_and_repositories_in_it(place: Place) -> None:
    root = place.work
    nested = root / "nested"
    nested.mkdir()
    for folder in (place.root, nested):
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (place.root / ".gitignore").write_text("work/secret\n")
    (nested / "n.txt").write_text("n\n")
    (root / "secret").write_text("s\n")
    worked = work(
        place,
        turn(
            replace(nested / "n.txt", "n", "changed"),
            sh("echo x > a.txt; echo x > secret; echo x > ../outside"),
        ),
    )
    assert restore(place, worked, 1).code == 0
    assert (nested / "n.txt").read_text() == "n\n"
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert (root / "secret").read_text() == "x\n"
    assert (place.root / "outside").read_text() == "x\n"


def test_checkpoints_are_listed_and_the_conversation_is_restored_as_a_copy(place: Place) -> None:
    worked = work(
        place,
        turn(replace(place.work / "a.txt", "two", "2")),
        turn(sh("true"), sh("echo x > made.txt")),
        turn(Call.of("read_file", **{"absolute_path": str(place.work / "a.txt")})),
    )
    listed = place.toolwire("sessions", "checkpoints", worked.id, "--json")
    found = json.loads(listed.out)
    assert [(one["n"], one["turn"], one["kind"], one["calls"]) for one in found] == [
        (1, 1, "tree", ["replace"]),
        (2, 2, "tree", ["run_shell_command"]),
    ]
    assert found[0]["files"] == [str(place.work / "a.txt")]
    assert found[0].keys() == {"n", "turn", "at", "kind", "files", "calls"}
    stored = [one for one in worked.events if isinstance(one, Checkpointed)]
    assert [(one.n, bool(one.tree), one.files) for one in stored] == [
        (1, True, ()),
        (1, True, (str(place.work / "a.txt"),)),
        (2, True, ()),
    ]
    assert [e for e in store(place).read(worked.id).events if isinstance(e, Checkpointed)] == stored
    done = place.toolwire("sessions", "restore", worked.id, "2", "--conversation")
    assert done.code == 0, done.err
    copy = done.out.split()[-1]
    assert (place.work / "made.txt").exists()
    past = store(place).read(copy)
    assert (
        json.loads(place.toolwire("sessions", "show", copy, "--json").out)["turns"][0]["turn"] == 1
    )
    assert len(json.loads(place.toolwire("sessions", "show", copy, "--json").out)["turns"]) == 1
    assert past.project == str(place.work)
    again = Worked(copy, [], [])
    assert restore(place, again, 1).code == 0
    assert (place.work / "a.txt").read_text() == "one\ntwo\n"
    place.toolwire("sessions", "delete", "--yes", worked.id, copy)
    assert not list(place.home.rglob("*.files"))


def test_wrong_numbers_and_sessions_are_one_line(place: Place) -> None:
    worked = work(place, turn(replace(place.work / "a.txt", "two", "2")))
    done = place.toolwire("sessions", "restore", worked.id, "7")
    assert (done.code, done.out) == (1, "")
    assert done.err == "toolwire: no checkpoint 7; there is only 1\n"
    done = place.toolwire("sessions", "restore", "nothing", "1")
    assert (done.code, done.err.count("\n")) == (1, 1)


def test_nothing_is_recorded_if_it_is_off_or_nothing_is_changed(place: Place) -> None:
    env = {"TOOLWIRE_CHECKPOINTS_ENABLED": "false"}
    work(place, turn(replace(place.work / "a.txt", "two", "2")), env=env)
    work(place, turn(Call.of("read_file", **{"absolute_path": str(place.work / "a.txt")})))
    assert not list(place.home.rglob("*.files"))
    assert not list(place.home.rglob("tree.git"))


def test_a_folder_with_too_much_is_reported_and_its_edits_are_restored(place: Place) -> None:
    huge = place.work / "huge"
    with huge.open("wb") as file:
        os.truncate(file.fileno(), 2_100_000_000)
    worked = work(place, turn(sh("echo x > made"), replace(place.work / "a.txt", "two", "2")))
    notices = [one.message for one in worked.events if isinstance(one, Noticed)]
    assert sum("more than 2 GB" in one for one in notices) == 1
    huge.unlink()
    done = restore(place, worked, 1)
    assert done.code == 0
    assert (place.work / "a.txt").read_text() == "one\ntwo\n"
    assert (place.work / "made").exists()


def test_undo_goes_back_turn_by_turn_and_the_model_reads_of_it(place: Place) -> None:
    file = place.work / "a.txt"
    seen: list[bytes] = []

    async def undo(session: AgentSession) -> None:
        checkpoints = session.checkpoints
        assert checkpoints is not None
        for _ in range(2):
            done = await checkpoints.restore(checkpoints.undoable())
            seen.append(file.read_bytes())
            assert str(file) in informed(done)
        with pytest.raises(SessionError, match="no turn of this session is left"):
            checkpoints.undoable()

    turns = turn(replace(file, "two", "2")), turn(sh("sed -i s/one/1/ a.txt"))
    work(place, *turns, then=undo)
    assert seen == [b"one\n2\n", b"one\ntwo\n"]


def test_old_checkpoints_are_removed_and_those_in_use_stay(place: Place) -> None:
    first = work(place, turn(sh("echo 1 > a.txt")))
    second = work(place, turn(sh("echo 2 > a.txt")))
    [folder] = {one.parent for one in place.home.rglob("*.files")}
    old = folder / f"{first.id}.files"
    long_ago = time.time() - 40 * 86_400
    for one in (*old.iterdir(), old):
        os.utime(one, (long_ago, long_ago))
    names = folder / "tree.git" / "refs" / "toolwire"
    prune(folder, CheckpointSettings(keep_days=0, max_mb=0), time.time(), always=True)
    assert old.exists()
    prune(folder, CheckpointSettings(keep_days=30), time.time(), always=True)
    assert not old.exists()
    assert not (names / first.id / "1").exists()
    assert (names / second.id / "1").exists()
    assert restore(place, second, 1).code == 0
    assert (place.work / "a.txt").read_text() == "1\n"
    third = work(place, turn(sh("echo 3 > a.txt")))
    prune(folder, CheckpointSettings(max_mb=0), time.time(), always=True)
    assert (folder / f"{second.id}.files").exists()
    large = folder / f"{second.id}.files"
    (large / "filler").write_bytes(bytes(2_000_000))
    for one in (*large.iterdir(), large):
        os.utime(one, (time.time() - 900, time.time() - 900))
    prune(folder, CheckpointSettings(max_mb=1), time.time(), always=True)
    assert [one.stem for one in folder.glob("*.files")] == [third.id]


KILLED = """
import os, signal, sys
from pathlib import Path
from toolwire.extensions.checkpoints import folder, restore
from toolwire.app.checkpoints.stored import restorer_of
left = int(sys.argv[3])
names = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod"}
def look(name, arguments):
    global left
    if name in names and str(arguments[0]).find("site-packages") < 0:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
restorer = restorer_of(Path(sys.argv[1]), dict(os.environ))
sys.addaudithook(look)
restorer.restore(int(sys.argv[2]))
names = set()
print(int(sys.argv[3]) - left)
"""
MANY = 1_000_000


@pytest.mark.sweep
def test_a_restore_killed_at_50_points_is_complete_or_reported(tmp_path: Path) -> None:
    seed = Place(tmp_path)
    fill(seed.work)
    before = tree_of(seed.work)
    edits = turn(*(edit(seed.work) for edit in EDITS))
    worked = work(seed, edits, turn(*map(sh, COMMANDS)))
    changed = tree_of(seed.work)
    saved = tmp_path / "saved"
    shutil.copytree(seed.work, saved / "work", symlinks=True)
    shutil.copytree(seed.home, saved / "home", symlinks=True)

    def restored(point: int) -> "subprocess.CompletedProcess[bytes]":
        for name in ("work", "home"):
            shutil.rmtree(tmp_path / name)
            shutil.copytree(saved / name, tmp_path / name, symlinks=True)
        journal = next(seed.home.rglob(f"{worked.id}.sqlite"))
        return subprocess.run(
            [sys.executable, "-c", KILLED, str(journal), "1", str(point)],
            env=seed.environ(), capture_output=True, check=False,
        )  # fmt: skip

    last = int(restored(MANY).stdout)
    killed = unfinished = 0
    for point in sorted({1 + number * last // 60 for number in range(60)}):
        done = restored(point)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        killed += 1
        now = tree_of(seed.work)
        reported = seed.toolwire("sessions", "checkpoints", worked.id).err
        if now not in (before, changed):
            assert "a restore of checkpoint 1 was interrupted" in reported
            unfinished += 1
        finished = restore(seed, worked, 1)
        assert finished.code == 0, finished.out
        assert tree_of(seed.work) == before
    print(f"killed {killed} times, {unfinished} times in the middle")
    assert killed >= 50
    assert unfinished > 10


@pytest.mark.sweep
def test_a_large_file_and_ten_thousand_small_ones_are_restored(place: Place) -> None:
    piece = os.urandom(1_000_000)
    with (place.work / "large").open("wb") as file:
        for number in range(200):
            file.write(number.to_bytes(8, "big") + piece[8:])
    for number in range(10_000):
        folder = place.work / f"many/{number % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(f"{number}\n")
    before = tree_of(place.work)
    worked = work(place, turn(sh("printf x >> large; rm -r many/1; sed -i s/1/2/ many/2/102.txt")))
    assert restore(place, worked, 1).code == 0
    assert tree_of(place.work) == before


def test_the_page_shows_what_the_commands_print(place: Place) -> None:
    worked = work(
        place,
        turn(replace(place.work / "a.txt", "two", "2")),
        turn(sh("echo x > made.txt")),
    )
    page = (ROOT / "docs" / "checkpoints.md").read_text("utf-8")
    shown = page.split("```console\n")[1].split("```")[0]
    printed = ""
    for line in shown.splitlines():
        if line.startswith("$ toolwire "):
            done = place.toolwire(*line.split()[2:3], *line.split("ID")[0].split()[3:], worked.id,
                                  *line.partition("ID")[2].split())  # fmt: skip
            printed += f"{line}\n{done.out}"
    printed = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE", printed)
    printed = re.sub(r"the trash is .*", "the trash is FOLDER", printed)
    assert printed == re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE", shown)
