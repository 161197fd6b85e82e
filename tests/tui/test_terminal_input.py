"""Keys, pastes and reports of the terminal, however their bytes are cut."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.keys import Keys

from toolwire.tui.terminal_input import Brightness, Focused, Report, TerminalParser

STREAM = (
    "a\x1b[Ab\x1b[200~pasted \x1b[31m\r\ntext\x1b[201~\x1b[I\x1b[13;2u\x1b[99;5u"
    "\x1b]11;rgb:ffff/ffff/dddd\x1b\\c\x1b[120;3u\x1b[27;2;13~\x1b[O\x1b[?62;4c\x1bOPz"
)


def parsed(*pieces: str) -> tuple[list[Any], list[Report]]:
    """The keys, pastes as their text, and the reports."""
    keys: list[Any] = []
    reports: list[Report] = []
    parser = TerminalParser(
        lambda press: keys.append(press.data if press.key == Keys.BracketedPaste else press.key),
        reports.append,
    )
    for piece in pieces:
        parser.feed(piece)
    parser.flush()
    return keys, reports


def test_keys_pastes_and_reports_are_told_apart():
    assert parsed(STREAM) == (
        [
            "a", Keys.Up, "b", "pasted \x1b[31m\r\ntext", Keys.Escape, Keys.ControlM, Keys.ControlC,
            "c", Keys.Escape, "x", Keys.Escape, Keys.ControlM, Keys.F1, "z",
        ],
        [Focused(True), Brightness(True), Focused(False)],
    )  # fmt: skip


@given(st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted))
def test_where_the_bytes_are_cut_does_not_matter(cuts: list[int]):
    edges = [0, *cuts, len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(edges)]
    assert parsed(*pieces) == parsed(STREAM)


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("\x1b", [Keys.Escape]),
        ("\x1b[27u", [Keys.Escape]),
        ("\x1bx", [Keys.Escape, "x"]),
        ("\x1b\r", [Keys.Escape, Keys.ControlM]),
        ("\x1b[13;5u", [Keys.Escape, Keys.ControlM]),
        ("\x1b[9;2u", [Keys.BackTab]),
        ("\x1b[Z", [Keys.BackTab]),
        ("\x1b[57414u", [Keys.ControlM]),
        ("\x1b[57400u", ["1"]),
        ("\x1b[97;6u", [Keys.ControlA]),
        ("\x1b[228;3u", [Keys.Escape, "ä"]),
        ("\x1b[1;5D", [Keys.ControlLeft]),
        ("\x1b[57441u", []),
        ("\x1b[?2026;2$y", []),
        ("\x1b[24;80R", []),
        ("\x1bP>|tmux 3.4\x1b\\", []),
        ("\x1b_Gi=1;OK\x1b\\", []),
        ("\x1b]10;rgb:0000/0000/0000\x07", []),
        ("\x1b[99999999999u", []),
    ],
)
def test_sequences_and_their_keys(typed: str, keys: list[Any]):
    assert parsed(typed) == (keys, [])


def test_a_dark_background_is_reported():
    assert parsed("\x1b]11;rgb:1e/1e/2e\x07")[1] == [Brightness(False)]


def test_the_work_on_a_paste_grows_with_its_length():
    class Counted(str):
        seen = 0

        def find(self, *args: Any) -> int:
            Counted.seen += len(self)
            return super().find(*args)

        def __radd__(self, other: str) -> "Counted":
            return Counted(str(other) + str(self))

        def __getitem__(self, key: Any) -> "Counted":
            return Counted(super().__getitem__(key))

    def work(count: int) -> int:
        Counted.seen = 0
        parsed("\x1b[200~", *(Counted("x" * 1024) for _ in range(count)), "\x1b[201~")
        return Counted.seen

    assert work(512) <= 2.2 * work(256)


def test_five_megabytes_are_one_paste():
    text = "line of text\n" * (5 << 20 >> 4)
    whole = f"\x1b[200~{text}\x1b[201~"
    keys, _ = parsed(*(whole[at : at + 1024] for at in range(0, len(whole), 1024)))
    assert keys == [text]
