import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.checkouts import Checkout
from tests.tools.workspaces import git
from toolwire.policy import Mode
from toolwire.tools.files import edit
from toolwire.tools.search.grep import ripgrep

SIZE = 300 << 20
WAYS = ["git", "own", *(["rg"] if ripgrep({}) else [])]


@pytest.fixture
def place(tmp_path: Path) -> Checkout:
    place = Checkout(tmp_path)
    path = place.put("huge.txt", "first line\n")
    os.truncate(path, SIZE)
    return place


def edits_of(path: Path) -> list[tuple[str, dict[str, Any]]]:
    name = path.name
    patches = (f"*** Update File: {name}\n-first line\n+x", f"*** Delete File: {name}")
    patches += (f"*** Update File: {name}\n*** Move to: other.txt\n-first line\n+x",)
    replaced = {"file_path": str(path), "instruction": "", "new_string": "x"}
    return [
        ("replace", {**replaced, "old_string": "first line"}),
        ("replace", {**replaced, "old_string": "not in it"}),
        ("write_file", {"file_path": str(path), "content": "x"}),
        *(("apply_patch", {"input": f"*** Begin Patch\n{one}\n*** End Patch"}) for one in patches),
    ]


def test_an_edit_of_a_huge_file_fails_at_once_and_clearly(place: Checkout) -> None:
    path = place.root / "huge.txt"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for tool, arguments in edits_of(path):
        begun = time.monotonic()
        said = place.call(tool, Mode.AUTO_EDIT, **arguments)
        assert said.startswith(f"File is too large to be edited: {path} (300.0 MB, at most 20 MB).")
        assert time.monotonic() - begun < 20
    assert path.stat().st_size == SIZE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_two_large_texts_with_nothing_in_common_are_not_compared() -> None:
    before = "".join(f"{number}\n" for number in range(20_000))
    after = "".join(f"-{number}\n" for number in range(20_000))
    diff = edit.diff_of(before, after, "a")
    assert diff.endswith("@@ about 20,000 lines become 20,000: too many to compare @@\n")
    stat = edit.stat_of(before, after)
    assert (stat.model_added, stat.model_removed) == (20_000, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_search_finds_a_line_in_a_huge_file_or_names_the_file(way: str, tmp_path: Path) -> None:
    place = Checkout(tmp_path)
    git(place.root)
    path = place.root / "sub" / "huge.txt"
    path.parent.mkdir()
    block = b"some words that fill a line of this file\n" * 25_000
    with path.open("wb") as file:
        for _ in range(270):
            file.write(block)
        file.write(b"needle here\n")
    said = place.call("search_file_content", settings={"search_with": way}, pattern="needle")
    size = path.stat().st_size >> 20
    assert "L6750001: needle here" in said or (
        f"Not searched, since they are too large: 1 (sub/huge.txt ({size} MB))." in said
    )
