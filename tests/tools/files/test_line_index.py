import os
import random
from array import array
from pathlib import Path

import pytest

from tests.tools.workspaces import context_in
from toolwire.tools.files.text import STEP, LineIndex, LineIndexes, Lines, read_lines
from toolwire.tools.spec import ToolContext


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


def lines(path: Path, start: int, context: ToolContext, indexes: LineIndexes) -> Lines:
    with path.open("rb") as file:
        return read_lines(file.fileno(), start, 3, context, path, indexes)


def known(path: Path, indexes: LineIndexes) -> bool:
    return indexes.get(path.stat()) is not None


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_lines_found_by_the_index_are_those_found_by_counting(
    bom: bytes, context: ToolContext
) -> None:
    chosen = random.Random(7)
    lengths = [chosen.choice([0, 3, 80, 1500, 70_000]) for _ in range(300)] + [2 * STEP, 5, 0, 9]
    path = context.workspace.roots[0] / "long.txt"
    path.write_bytes(bom + b"\n".join(b"%d " % at + b"x" * size for at, size in enumerate(lengths)))
    indexes = LineIndexes(tick=0)
    lines(path, 0, context, indexes)
    assert known(path, indexes)
    seen = dict(context.seen)
    for start in (*range(0, len(lengths), 7), *range(len(lengths) - 6, len(lengths) + 3)):
        assert lines(path, start, context, indexes) == lines(path, start, context, LineIndexes())
    assert context.seen == seen


def test_line_ends_on_the_very_step_are_counted_once(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "even.txt"
    path.write_bytes(b"12345678901234\n\n" * (STEP // 16 * 3))
    indexes = LineIndexes(tick=0)
    for start in (0, STEP // 8 - 1, STEP // 8, STEP // 8 + 1, STEP // 4, STEP * 3 // 8 - 1):
        found = lines(path, start, context, indexes)
        assert found == lines(path, start, context, LineIndexes())


@pytest.mark.parametrize("same_times", [False, True])
def test_a_file_that_changed_is_counted_anew(same_times: bool, context: ToolContext) -> None:
    path = context.workspace.roots[0] / "long.txt"
    path.write_bytes(b"one\n" * STEP)
    indexes = LineIndexes(tick=0)
    before = path.stat()
    lines(path, 0, context, indexes)
    path.write_bytes(b"two\n\n\n\n\n" * (STEP // 2))
    if same_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert lines(path, STEP, context, indexes) == lines(path, STEP, context, LineIndexes())


def test_a_file_written_a_moment_ago_is_not_remembered(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "long.txt"
    path.write_bytes(b"one\n" * STEP)
    indexes = LineIndexes(tick=3_600_000_000_000)
    lines(path, 0, context, indexes)
    assert not known(path, indexes)


def test_only_the_files_read_last_are_remembered(context: ToolContext) -> None:
    root = context.workspace.roots[0]
    indexes = LineIndexes(tick=0)
    index = LineIndex(ends=0, before=array("Q", [0]), digest="")
    for number in range(40):
        path = root / f"{number}.txt"
        with path.open("wb") as file:
            file.truncate(STEP + 1)
        found = path.stat()
        indexes.keep(found, max(found.st_mtime_ns, found.st_ctime_ns), index)
    assert [number for number in range(40) if known(root / f"{number}.txt", indexes)] == [
        *range(8, 40)
    ]
