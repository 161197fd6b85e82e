"""A diff is shown with line numbers, and the words that differ are marked."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from toolwire.tui.diffs import DiffLine, LineChange, diff_lines, painted
from toolwire.tui.render import Painter
from toolwire.tui.themes import THEMES

DIFF = """\
--- a/prices.py
+++ b/prices.py
@@ -11,3 +11,3 @@ def net
 def net(price, share):
-    return price - share
+    return price * (1 - share)
 x
"""


def plain(width: int = 80) -> Painter:
    return Painter(THEMES["none"], "", width)


def test_lines_have_their_numbers():
    assert painted(diff_lines(DIFF), plain()) == [
        "  b/prices.py",
        "   ⋯ def net",
        "  11   def net(price, share):",
        "  12 -     return price - share",
        "  12 +     return price * (1 - share)",
        "  13   x",
    ]


def test_words_that_differ_are_marked():
    [added] = [line for line in diff_lines(DIFF) if line.words]
    assert [added.text[begin:end] for begin, end in added.words] == ["* (1 ", ")"]


def test_lines_with_little_in_common_are_not_compared():
    diff = "@@ -1 +1 @@\n-completely different words here\n+0x1F @ {}\n"
    assert all(line.words == () for line in diff_lines(diff))


def test_both_sides_are_shown_where_there_is_room():
    rows = painted(diff_lines(DIFF), plain(140))
    assert "12 -     return price - share" in rows[3]
    assert rows[3].rstrip().endswith("│ 12 +     return price * (1 - share)")


def test_a_line_too_long_for_its_half_makes_it_unified():
    diff = f"@@ -1 +1 @@\n-{'a' * 100}\n+{'b' * 100}\n"
    assert len(painted(diff_lines(diff), plain(140))) == 3


def test_trailing_blanks_of_added_lines_are_visible():
    [line] = painted([DiffLine(LineChange.ADDED, "x  ", new=1)], plain())
    assert line == "  1 + x··"


def test_what_is_left_out_is_counted():
    rows = painted(diff_lines(DIFF), plain(), most=2)
    assert rows[-1] == "  … 4 more lines"


def test_a_removed_line_that_looks_like_a_heading_is_no_heading():
    before, after = "-- a\nb\n", "b\n"
    diff = "".join(
        difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/x", "b/x")
    )
    removed = [line.text for line in diff_lines(diff) if line.change is LineChange.REMOVED]
    assert removed == ["-- a"]


_TEXTS = st.lists(st.text("ab -+@\\", max_size=8), max_size=12)


@given(_TEXTS, _TEXTS)
def test_every_changed_line_is_there_once(before: list[str], after: list[str]):
    rows = difflib.unified_diff(before, after, "a/x", "b/x", lineterm="")
    listed = list(rows)
    found = diff_lines("\n".join(listed))
    body = listed[2:]
    assert [line.text for line in found if line.change is LineChange.ADDED] == [
        line[1:] for line in body if line.startswith("+")
    ]
    assert [line.text for line in found if line.change is LineChange.REMOVED] == [
        line[1:] for line in body if line.startswith("-")
    ]


@given(st.text(max_size=40), st.sampled_from(list(LineChange)))
def test_no_escape_sequence_leaves(text: str, change: LineChange):
    line = DiffLine(change, text + "\x1b[31m\x9b\u202e", old=1, new=1)
    for width in (20, 200):
        for row in painted([line], plain(width)):
            assert not set(row) & {"\x1b", "\x9b", "\u202e"}
