from pathlib import Path

import pytest

from tests.tools.workspaces import context_in, git, put, write
from toolwire.tools.search.ignore import Ignored, IgnoreRules
from toolwire.tools.search.walk import Entry, Listing, breadth_first


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
