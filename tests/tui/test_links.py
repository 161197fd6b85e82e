"""Links that the terminal opens: where, and to which addresses."""

import pytest

from toolwire.agent.events import Streaming
from toolwire.events import TextDelta
from toolwire.tui.drawing import Drawing
from toolwire.tui.links import has_links, link_address, without_links
from toolwire.tui.live import Size
from toolwire.tui.rows import ScrolledRows
from toolwire.tui.themes import THEMES

TMUX = {"TERM": "tmux-256color", "TMUX": "/tmp/tmux-1/default,1,0", "TERM_PROGRAM": "tmux"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "xterm-256color", "WT_SESSION": "x"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "5000"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4205"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "\u0665"}, False),
        ({"TERM": "dumb", "TERM_PROGRAM": "vscode"}, False),
        ({"TERM_PROGRAM": "vscode"}, False),
        ({"TERM": "screen", "STY": "1.x", "KITTY_WINDOW_ID": "1"}, False),
        ({**TMUX, "TERM_PROGRAM_VERSION": "3.4"}, True),
        ({**TMUX, "TERM_PROGRAM_VERSION": "3.3a", "VTE_VERSION": "7000"}, False),
        ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1"}, False),
    ],
)
def test_links_are_written_where_the_terminal_is_known_to_have_them(
    environ: dict[str, str], expected: bool
):
    assert has_links("auto", environ) is expected
    assert has_links("always", environ)
    assert not has_links("never", environ)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("https://a.example/b?c;d#e", True),
        ("HTTP://A.example", True),
        ("file:///etc/passwd", False),
        ("javascript:x", False),
        ("https://", False),
        ("https://a b", False),
        ("https://a\x1b]8;;", False),
        ("https://a\n", False),
        ("https://a\u202e", False),
        (f"https://{'a' * 2000}", True),
        (f"https://{'a' * 2001}", False),
    ],
)
def test_only_printable_addresses_of_the_web_are_sent(address: str, allowed: bool):
    assert link_address(address) == (address if allowed else "")


SOURCE = "See [the page](https://a.example/x) and [this](ftp://b.example).\n\n"
SHOWN = "See the page (https://a.example/x) and this (ftp://b.example)."


def test_a_printed_link_has_its_address_and_the_live_area_has_none():
    lines: list[str] = []
    drawing = Drawing(THEMES["ansi"], "standard", 100, lines.extend, links=True)
    drawing.add(Streaming(TextDelta(SOURCE.strip())))
    assert all("\x1b]" not in row for row in drawing.live(Size(100, 24)))
    drawing.add(Streaming(TextDelta("\n\n")))
    [line] = [line for line in lines if line]
    begins, ends = "\x1b]8;;https://a.example/x\x1b\\", "\x1b]8;;\x1b\\"
    assert line.count("\x1b]8;") == 2
    inner = line.split(begins)[1].split(ends)[0]
    assert "the page" in inner
    assert "\x1b]" not in without_links(line)
    assert all("\x1b]" not in row for row in drawing.whole())
    # Full screen, the library that draws the rows would show the marks.
    rows = ScrolledRows()
    rows.begin(lines)
    content = rows.create_content(100, 5)
    shown = ["".join(text for _, text, *_ in content.get_line(at)) for at in range(5)]
    assert SHOWN in shown


def test_without_links_or_colours_nothing_is_written_for_them():
    for theme, colours, links in (("ansi", "standard", False), ("none", "", True)):
        lines: list[str] = []
        drawing = Drawing(THEMES[theme], colours, 100, lines.extend, links=links)
        drawing.add(Streaming(TextDelta(SOURCE)))
        assert lines
        assert all("\x1b]" not in line for line in lines)
