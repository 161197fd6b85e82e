import os
import time
from pathlib import Path

import pytest

from tests.tools.workspaces import context_in, git, put, write
from toolwire.tools.search.ignore import Ignored, IgnoreRules
from toolwire.tools.search.walk import Entry, Listing, RememberedFolders, breadth_first


def listed(folder: Path, *, git: bool = True) -> list[Listing]:
    context = context_in(folder)
    root = context.workspace.roots[0]
    return list(breadth_first(root, context.workspace, IgnoreRules(root), git=git))


def test_nearer_directories_come_first_and_ignored_ones_are_not_entered(tmp_path: Path):
    root = put(context_in(tmp_path), a__deep__x="", b__y="", node_modules="")
    git(root)
    write(root / ".gitignore", "out/\n*.log\n")
    write(root / "out/z", "")
    write(root / "b/m.log", "")
    write(root / "b/node_modules/n", "")
    found = [(one.path, [entry.name for entry in one.files]) for one in listed(tmp_path)]
    assert found == [
        ("", [".gitignore", "node.modules"]),
        ("a", []),
        ("b", ["m.log", "y"]),
        ("a/deep", ["x"]),
    ]
    (b,) = (one for one in listed(tmp_path) if one.path == "b")
    assert b == Listing(
        path="b",
        files=(Entry("m.log", Ignored.GIT), Entry("y", Ignored.NO)),
        folders=(Entry("node_modules", Ignored.NO),),
    )


def test_rules_that_do_not_count_hide_nothing(tmp_path: Path):
    root = put(context_in(tmp_path), out__z="")
    git(root)
    write(root / ".gitignore", "out/\n")
    assert "out" in [one.path for one in listed(tmp_path, git=False)]


def test_links_are_not_listed(tmp_path: Path):
    root = put(context_in(tmp_path), a="")
    (root / "b").symlink_to(tmp_path / "outside")
    (root / "c").symlink_to(root / "a")
    assert listed(tmp_path) == [
        Listing(path="", files=(Entry("a", Ignored.NO),), folders=()),
    ]


def test_a_start_that_is_not_a_directory_is_an_error(tmp_path: Path):
    context = context_in(tmp_path)
    gone = context.workspace.roots[0] / "gone"
    with pytest.raises(OSError, match="gone"):
        list(breadth_first(gone, context.workspace, IgnoreRules(gone)))


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def with_dots(names: list[str]) -> list[str]:
    return [name for name in names if "." in name]


def test_a_remembered_directory_is_read_again_after_each_change(tmp_path: Path):
    reads: list[list[str]] = []

    def picks(names: list[str]) -> list[str]:
        reads.append(sorted(names))
        return with_dots(names)

    listing = RememberedFolders(picks, settled=0)
    write(tmp_path / "plain", "")
    folder = os.open(tmp_path, os.O_RDONLY)
    above = os.open(tmp_path.parent, os.O_RDONLY)
    try:
        for change in (
            lambda: write(tmp_path / ".env", ""),
            lambda: (tmp_path / ".env").rename(tmp_path / ".npmrc"),
            lambda: (tmp_path / ".link").symlink_to("plain"),
            lambda: (tmp_path / ".npmrc").unlink(),
            lambda: (tmp_path / ".link").unlink(),
            lambda: (tmp_path / "below").mkdir(),
        ):
            # Times of a file system move in steps of the system's clock.
            time.sleep(0.05)
            known = listing(folder)
            count = len(reads)
            assert listing(folder) is known
            assert len(reads) == count
            empty = not with_dots(names_in(tmp_path)) and not (tmp_path / "below").exists()
            assert listing.holds_nothing(tmp_path.name, above) is empty
            change()
            assert not listing.holds_nothing(tmp_path.name, above)
            found = listing(folder)
            assert len(reads) == count + 1
            assert sorted(found.files) == sorted(with_dots(names_in(tmp_path)))
            assert found.links == {".link"} & set(names_in(tmp_path))
    finally:
        os.close(folder)
        os.close(above)
    assert found.folders == ["below"]


def test_a_directory_that_changed_just_now_is_not_remembered(tmp_path: Path):
    reads: list[int] = []
    listing = RememberedFolders(lambda names: reads.append(1) or names)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(3):
            listing(folder)
    finally:
        os.close(folder)
    assert len(reads) == 3
