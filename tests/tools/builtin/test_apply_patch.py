from pathlib import Path
from typing import Any

import pytest

from tests.tools.one_call import done
from toolwire.tools.builtin.apply_patch import TOOL
from toolwire.tools.proposals import DiffStat
from toolwire.tools.spec import ToolContext, ToolFailed, ToolOutput, Workspace


def context(folder: Path, **more: Any) -> ToolContext:
    place = Workspace(roots=(folder,), temp=folder / "temp", home=folder)
    return ToolContext(workspace=place, **more)


def patch(*lines: str) -> dict[str, str]:
    return {"input": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


def patched(folder: Path, *lines: str) -> ToolOutput:
    return done(TOOL, patch(*lines), context(folder))


def failure(folder: Path, *lines: str) -> str:
    with pytest.raises(ToolFailed) as failed:
        patched(folder, *lines)
    return str(failed.value)


CODE = "import os\n\n\ndef f():\n    a = 1\n    return a\n\n\ndef g():\n    a = 1\n    return a\n"


def test_files_are_added_changed_moved_and_deleted_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CODE)
    (tmp_path / "old.txt").write_text("gone\n")
    (tmp_path / "here.txt").write_text("one\ntwo\n")
    output = patched(
        tmp_path,
        "*** Add File: docs/new.md",
        "+# New",
        "+",
        "+text",
        "*** Update File: app.py",
        "@@ def g():",
        "-    a = 1",
        "+    a = 2",
        "     return a",
        "*** Delete File: old.txt",
        "*** Update File: here.txt",
        "*** Move to: there.txt",
        "@@",
        " one",
        "-two",
        "+2",
    )
    assert output.text == (
        "Success. Changed these files:\nA docs/new.md\nM app.py\nD old.txt\nA there.txt\nD here.txt"
    )
    assert (tmp_path / "docs" / "new.md").read_text() == "# New\n\ntext\n"
    assert (tmp_path / "app.py").read_text() == CODE[::-1].replace("1", "2", 1)[::-1]
    assert (tmp_path / "there.txt").read_text() == "one\n2\n"
    assert not (tmp_path / "old.txt").exists()
    assert not (tmp_path / "here.txt").exists()
    assert output.stat == DiffStat(model_added=6, model_removed=4)
    assert "+    a = 2" in output.diff


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        ("a\nb\nc\n", ["@@", " a", "-b", "+B", " c"], "a\nB\nc\n"),
        ("a\nb", ["@@", " a", "-b", "+B"], "a\nB"),
        ("a\n", ["@@", "+z"], "a\nz\n"),
        ("", ["@@", "+z"], "z\n"),
        ("a\nb\n", ["@@ a", "+between"], "a\nbetween\nb\n"),
        ("x\ny\nx\n", ["@@", "-x", "+last", "*** End of File"], "x\ny\nx\n"),
        ("a  \nb\n", ["@@", " a", "-b", "+B"], "a  \nB\n"),
        (
            "    if x:\n        y()\n",
            ["@@", " if x:", "-    y()", "+    z()"],
            "    if x:\n        z()\n",
        ),
        ("a\r\nb\r\n", ["@@", "-b", "+B", "+C"], "a\r\nB\r\nC\r\n"),
        ("1\n2\n1\n2\n", ["@@", " 1", "-2", "+x", " 1"], "1\nx\n1\n2\n"),
        ("a\nb\nc\nd\n", ["@@", "-a", "@@", "-d"], "b\nc\n"),
        ("a\n\nb\n", ["@@ -1,3 +1,3 @@", " a", "", "-b", "+B"], "a\n\nB\n"),
    ],
)
def test_hunks_are_laid_on_whole_lines(
    tmp_path: Path, before: str, lines: list[str], after: str
) -> None:
    file = tmp_path / "f"
    file.write_bytes(before.encode())
    if lines[-1] == "*** End of File":
        after = "x\ny\nlast\n"
        file.write_bytes(b"x\ny\nx")
        after = "x\ny\nlast"
    patched(tmp_path, "*** Update File: f", *lines)
    assert file.read_bytes() == after.encode()


def test_lines_that_occur_more_than_once_are_refused_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CODE)
    said = failure(tmp_path, "*** Update File: app.py", "@@", "-    a = 1", "+    a = 2")
    assert "occur 2 times, at lines 5, 10" in said
    assert (tmp_path / "app.py").read_text() == CODE


def test_lines_the_file_does_not_hold_are_shown_beside_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CODE)
    said = failure(
        tmp_path, "*** Update File: app.py", "@@", " def f():", "-    b = 1", "     return a"
    )
    assert said.startswith("hunk 1 of app.py: the file does not hold these lines\n")
    assert "a = 1" in said
    assert said.endswith("\nNo file was changed.")


def test_nothing_is_written_when_one_change_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b\n")
    lines = ("*** Add File: a.txt", "+a", "*** Update File: b.txt", "@@", "-nope", "+x")
    assert "No file was changed" in failure(tmp_path, *lines)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.txt"]


def test_what_was_written_is_taken_back_when_a_later_write_fails(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "blocked").write_text("a file where a folder is needed")
    lines = (
        "*** Update File: a.txt",
        "@@",
        "-a",
        "+b",
        "*** Add File: new.txt",
        "+n",
        "*** Add File: blocked/x.txt",
        "+x",
    )
    assert failure(tmp_path, *lines).endswith("\nNo file was changed.")
    assert (tmp_path / "a.txt").read_text() == "a\n"
    assert not (tmp_path / "new.txt").exists()


class Meddler(dict[str, str]):
    """What a session has seen; another program takes a file away when the first is forgotten."""

    def __init__(self, takes: Path) -> None:
        self._takes = takes

    def pop(self, *key: Any) -> Any:
        self._takes.unlink(missing_ok=True)
        return super().pop(*key)


def test_a_deleted_file_that_comes_back_keeps_its_mode(tmp_path: Path) -> None:
    for name, mode in (("a.sh", 0o750), ("b.txt", 0o644)):
        (tmp_path / name).write_text(f"{name}\n")
        (tmp_path / name).chmod(mode)
    given = patch("*** Delete File: a.sh", "*** Delete File: b.txt")
    with pytest.raises(ToolFailed, match=r"b\.txt cannot be deleted: .*\nNo file was changed"):
        done(TOOL, given, context(tmp_path, seen=Meddler(tmp_path / "b.txt")))
    assert (tmp_path / "a.sh").read_text() == "a.sh\n"
    assert (tmp_path / "a.sh").stat().st_mode & 0o7777 == 0o750


def test_a_moved_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("one\n")
    (tmp_path / "run.sh").chmod(0o700)
    patched(tmp_path, "*** Update File: run.sh", "*** Move to: bin/go.sh", "@@", "-one", "+two")
    assert (tmp_path / "bin" / "go.sh").read_text() == "two\n"
    assert (tmp_path / "bin" / "go.sh").stat().st_mode & 0o7777 == 0o700
    assert not (tmp_path / "run.sh").exists()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["*** Add File: there.txt", "+x"], "there.txt exists already; update it instead"),
        (["*** Update File: no.txt", "@@", "-x"], "File not found: no.txt"),
        (["*** Delete File: no.txt"], "File not found: no.txt"),
        (
            ["*** Update File: there.txt", "*** Move to: other.txt"],
            "other.txt exists already; nothing is moved over it",
        ),
        (["*** Update File: there.txt", "@@ nowhere", "-x"], "no line reads: nowhere"),
    ],
)
def test_what_cannot_be_done_is_reported(tmp_path: Path, lines: list[str], words: str) -> None:
    (tmp_path / "there.txt").write_text("x\n")
    (tmp_path / "other.txt").write_text("y\n")
    assert words in failure(tmp_path, *lines)
    assert (tmp_path / "there.txt").read_text() == "x\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'must begin with the line "*** Begin Patch"'),
        ("*** Begin Patch\n*** Add File: a", 'must end with the line "*** End Patch"'),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        ("*** Begin Patch\nhello\n*** End Patch", "line 2: expected"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "line 3: every line"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "line 2: nothing is changed in a"),
        ("*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch", "line 4: must begin with"),
        ("*** Begin Patch\n*** Delete File: a\nx\n*** End Patch", "a section that deletes"),
        (
            "*** Begin Patch\n*** Delete File: a\n*** Add File: a\n+x\n*** End Patch",
            "names a twice",
        ),
        ("*** Begin Patch\n*** Delete File: ../a\n*** End Patch", "must be within one of"),
        ("*** Begin Patch\n*** Delete File: /etc/passwd\n*** End Patch", "must be within one of"),
    ],
)
def test_a_patch_that_cannot_be_read_is_reported_before_it_is_ruled_on(
    tmp_path: Path, text: str, words: str
) -> None:
    assert words in TOOL.check({"input": text}, context(tmp_path))


def test_policy_and_people_see_every_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    given = patch("*** Update File: a.txt", "*** Move to: b.txt", "*** Add File: c.txt", "+c")
    names = {path.name for path in TOOL.touches(given, context(tmp_path))}
    assert names == {"a.txt", "b.txt", "c.txt"}
    assert TOOL.preview is not None
    shown = TOOL.preview(given, context(tmp_path))
    assert [(one.path.name, one.before, one.after) for one in shown] == [
        ("b.txt", "", "a\n"),
        ("a.txt", "a\n", ""),
        ("c.txt", "", "c\n"),
    ]
