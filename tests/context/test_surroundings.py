import sys
from datetime import date
from pathlib import Path

import pytest

from tests.tools.workspaces import git, write
from toolwire.context.surroundings import ACKNOWLEDGED, folder_tree, long_date, surroundings
from toolwire.messages import Message, Text
from toolwire.tools.spec import Workspace

DAY = date(2025, 12, 5)
PLAIN = "Showing up to 200 items (files + folders)."
CUT = (
    f"{PLAIN} Folders or files indicated with ... contain more items not shown, were ignored, "
    "or the display limit (200 items) was reached."
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def workspace(*roots: Path) -> Workspace:
    home = roots[0].parent
    return Workspace(roots=roots, temp=home / "temp", home=home)


def tree(root: Path) -> tuple[str, list[str]]:
    """The summary, and the lines below the directory's own name."""
    summary, blank, top, *lines = folder_tree(root, workspace(root)).split("\n")
    assert (blank, top) == ("", f"{root}/")
    return summary, lines


def test_the_environment_is_described_in_the_words_of_the_original(root: Path):
    write(root / "a.txt", "x")
    write(root / "src/main.py", "x")
    told = surroundings(workspace(root), today=DAY, system="linux")
    text = f"""This is toolwire. We are setting up the context for our chat.
Today's date is Friday, December 5, 2025 (formatted according to the user's locale).
My operating system is: linux
I'm currently working in the directory: {root}
Here is the folder structure of the current working directories:

Showing up to 200 items (files + folders).

{root}/
├───a.txt
└───src/
    └───main.py"""
    assert told == (
        Message(role="user", parts=(Text(text),)),
        Message(role="assistant", parts=(Text(ACKNOWLEDGED),)),
    )


def test_several_directories_are_listed_one_by_one(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    write(one / "a", "x")
    write(two / "b", "x")
    text = surroundings(workspace(one, two), today=DAY, system="darwin")[0].text
    lines = text.split("\n")[3:]
    assert lines == [
        "I'm currently working in the following directories:",
        f"  - {one}",
        f"  - {two}",
        "Here is the folder structure of the current working directories:",
        "",
        PLAIN,
        "",
        f"{one}/",
        "└───a",
        PLAIN,
        "",
        f"{two}/",
        "└───b",
    ]


def test_the_same_folder_gives_the_same_bytes(root: Path):
    for name in ("b/c/d", "a", "Z", "é"):
        write(root / name, "x")
    first = surroundings(workspace(root), today=DAY, system=sys.platform)
    assert surroundings(workspace(root), today=DAY, system=sys.platform) == first


@pytest.mark.parametrize(
    ("day", "written"),
    [
        (date(2026, 1, 1), "Thursday, January 1, 2026"),
        (date(2024, 2, 29), "Thursday, February 29, 2024"),
        (date(2025, 9, 21), "Sunday, September 21, 2025"),
    ],
)
def test_dates_are_written_out_whatever_the_locale(day: date, written: str):
    assert long_date(day) == written


def test_files_come_before_folders_and_ignored_folders_are_named_only(root: Path):
    git(root)
    write(root / ".gitignore", "build/\nsecret.txt\n")
    write(root / ".geminiignore", "own/\n")
    for name in ("build/x", "own/x", "dist/x", "node_modules/m/x", "src/b/c.py", "src/a.py"):
        write(root / name, "x")
    write(root / "secret.txt", "x")
    assert tree(root) == (
        CUT,
        [
            "├───.geminiignore",
            "├───.gitignore",
            "├───.git/...",
            "├───build/...",
            "├───dist/...",
            "├───node_modules/...",
            "├───own/...",
            "└───src/",
            "    ├───a.py",
            "    └───b/",
            "        └───c.py",
        ],
    )


def test_what_git_ignores_is_shown_on_demand(root: Path):
    git(root)
    write(root / ".gitignore", "build/\n")
    write(root / "build/x", "x")
    text = surroundings(workspace(root), today=DAY, system="linux", respect_git_ignore=False)[
        0
    ].text
    assert "└───build/\n    └───x" in text
    assert "├───.git/..." in text


def test_the_nearest_200_items_are_shown(root: Path):
    for number in range(150):
        write(root / f"near/{number:03}", "x")
        write(root / f"far/deep/{number:03}", "x")
    summary, lines = tree(root)
    assert summary == CUT
    assert len([line for line in lines if not line.endswith("...")]) == 200
    assert lines[:3] == ["├───far/", "│   └───deep/", "│       ├───000"]
    # 3 folders, 150 near files, 47 of the far ones.
    assert lines[47:51] == ["│       ├───045", "│       ├───046", "│       └───...", "└───near/"]


def test_a_folder_too_many_is_shown_as_dots(root: Path):
    for number in range(201):
        (root / f"{number:03}").mkdir()
    summary, lines = tree(root)
    assert summary == CUT
    assert lines[-2:] == ["├───199/", "└───..."]


def test_links_are_neither_shown_nor_followed(root: Path):
    write(root.parent / "outside/secret", "x")
    (root / "link").symlink_to(root.parent / "outside")
    (root / "loop").symlink_to(root)
    assert tree(root) == (PLAIN, [""])


def test_a_name_that_is_not_text_stays_one_line_that_can_be_kept(root: Path):
    (root / "two\nlines").write_bytes(b"")
    (root / "bad\udcff").write_bytes(b"")
    (root / "Screen 3.00\u202fPM.png").write_bytes(b"")
    assert tree(root) == (
        PLAIN,
        ["├───bad\ufffd", "├───Screen 3.00\u202fPM.png", "└───two\ufffdlines"],
    )


def test_a_directory_that_is_gone_is_reported(root: Path):
    gone = root / "gone"
    assert folder_tree(gone, workspace(gone)) == (
        f'Error: Could not read directory "{gone}". Check path and permissions.'
    )
