import os
import time
from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, put, refused, write
from toolwire.tools.builtin import glob
from toolwire.tools.spec import ToolContext, Workspace


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


def names(context: ToolContext, **arguments: object) -> list[str]:
    text = call(glob.TOOL, context, **arguments).text
    root = context.workspace.roots[0]
    return [str(Path(line).relative_to(root)) for line in text.split("\n")[1:]]


def test_files_of_the_last_day_come_first_newest_first_then_names(context: ToolContext) -> None:
    root, now = put(context, b_py="", a_py="", z_py="", Y_py="", x_py=""), time.time()
    ages = {"b.py": 60, "a.py": 3600, "z.py": 90_000, "Y.py": 200_000, "x.py": 100_000}
    for name, age in ages.items():
        os.utime(root / name, (now - age, now - age))
    assert names(context, pattern="*.py") == ["b.py", "a.py", "x.py", "Y.py", "z.py"]


def test_a_pattern_that_is_a_path_is_taken_literally(context: ToolContext) -> None:
    root = context.workspace.roots[0]
    write(root / "app/[id]/page.tsx", "")
    write(root / "app/i/page.tsx", "")
    assert names(context, pattern="app/[id]/page.tsx") == ["app/[id]/page.tsx"]
    assert names(context, pattern=f"{root}/app/i/*") == ["app/i/page.tsx"]


def test_hidden_files_count_and_dependencies_do_not(context: ToolContext) -> None:
    put(context, a_txt="")
    root = context.workspace.roots[0]
    write(root / ".hidden/b.txt", "")
    for name in ("node_modules", ".git", "bower_components", ".svn", ".hg"):
        write(root / "sub" / name / "c.txt", "")
    assert sorted(names(context, pattern="**/*.txt")) == [".hidden/b.txt", "a.txt"]


def test_several_directories_are_searched_together(tmp_path: Path) -> None:
    roots = (tmp_path / "one", tmp_path / "two")
    for root in roots:
        write(root / "a.py", "")
        os.utime(root / "a.py", (1, 1))
    place = Workspace(roots=roots, temp=tmp_path / "temp", home=tmp_path)
    context = ToolContext(workspace=place)
    assert call(glob.TOOL, context, pattern="*.py").text == (
        'Found 2 file(s) matching "*.py" across 2 workspace directories, sorted by modification '
        f"time (newest first):\n{roots[0]}/a.py\n{roots[1]}/a.py"
    )
    assert call(glob.TOOL, context, pattern="*.c").text == (
        'No files found matching pattern "*.c" within 2 workspace directories'
    )


def test_a_search_path_that_is_a_file_is_refused(context: ToolContext) -> None:
    path = put(context, a_txt="") / "a.txt"
    said = refused(glob.TOOL, context, pattern="*", path=str(path))
    assert said == f"Search path is not a directory: {path}"


def test_a_relative_search_path_begins_at_the_working_directory(context: ToolContext) -> None:
    root = put(context, sub__a_txt="")
    assert f"within {root}/sub," in call(glob.TOOL, context, pattern="*", path="sub").text
