import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, put, refused
from toolwire.tools.builtin import write_file
from toolwire.tools.files.edit import write_new, write_over
from toolwire.tools.files.text import read_document, stamp_of
from toolwire.tools.spec import ToolContext, ToolFailed

KILLS = 200
# One process forks a writer, lets it write for a moment, kills it, and says so; then the next.
WRITERS = """
import os, random, signal, sys, time
from pathlib import Path
from toolwire.tools.files.edit import write_over
from toolwire.tools.spec import Workspace
from toolwire.tools.files.text import stamp_of

path = Path(sys.argv[1])
place = Workspace(roots=(path.parent,), temp=path.parent, home=path.parent)
texts = [letter * 300_000 + b"\\n" for letter in (b"a", b"b")]
chance = random.Random(4)
for _ in sys.stdin:
    writer = os.fork()
    while not writer:
        chance.shuffle(texts)
        for text in texts:
            write_over(path, text, place, stamp_of(path.stat()))
    time.sleep(chance.random() * 0.03)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    print("killed", flush=True)
"""
WHOLE = {letter * 300_000 + b"\n" for letter in (b"a", b"b")}


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(min(WHOLE))
    found: set[bytes] = set()
    with subprocess.Popen(
        [sys.executable, "-c", WRITERS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        for _ in range(KILLS):
            writers.stdin.write("go\n")
            writers.stdin.flush()
            assert writers.stdout.readline() == "killed\n"
            now = path.read_bytes()
            assert now in WHOLE
            found.add(now)
        writers.stdin.close()
    assert found == WHOLE


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o664])
def test_the_mode_of_a_file_is_kept(mode: int, context: ToolContext) -> None:
    path = put(context, a_sh="old\n") / "a.sh"
    path.chmod(mode)
    call(write_file.TOOL, context, file_path=str(path), content="new\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_extended_attributes_are_kept(context: ToolContext) -> None:
    path = put(context, a_txt="old\n") / "a.txt"
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no attributes of users")
    call(write_file.TOOL, context, file_path=str(path), content="new\n")
    assert os.getxattr(path, "user.note") == b"mine"


def test_a_new_file_has_the_usual_mode_and_its_folders(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "a" / "b" / "c.txt"
    call(write_file.TOOL, context, file_path=str(path), content="x")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert [file.name for file in path.parent.iterdir()] == ["c.txt"]


def test_a_file_made_by_others_in_the_meantime_is_not_replaced(context: ToolContext) -> None:
    path = put(context, a_txt="theirs\n") / "a.txt"
    with pytest.raises(FileExistsError):
        write_new(path, b"ours\n", context.workspace)
    assert path.read_text() == "theirs\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_changed_between_reading_and_writing_is_not_replaced(context: ToolContext) -> None:
    path = put(context, a_txt="one\n") / "a.txt"
    document = read_document(path, context.workspace)
    path.write_text("theirs\n")
    with pytest.raises(ToolFailed, match="changed while it was being edited"):
        write_over(path, b"ours\n", context.workspace, document.stamp)
    assert path.read_text() == "theirs\n"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_refused(context: ToolContext) -> None:
    path = put(context, a_txt="old\n") / "a.txt"
    path.chmod(0o444)
    said = refused(write_file.TOOL, context, file_path=str(path), content="new\n")
    assert said == f"Permission denied writing to file: {path} (EACCES)"


def test_the_stamp_returned_is_that_of_the_file(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "a.txt"
    made = write_new(path, b"1\n", context.workspace)
    assert made == stamp_of(path.stat())
    assert write_over(path, b"2\n", context.workspace, made) == stamp_of(path.stat())
