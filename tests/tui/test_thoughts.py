"""The thought that is being written: seen live, wrapped once, gone when it ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    ModelAsked,
    Retrying,
    Streaming,
    Thought,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.events import TextDelta, ThinkingDelta
from toolwire.messages import Message
from toolwire.tui import thoughts
from toolwire.tui.drawing import Drawing
from toolwire.tui.entries import ViewOptions
from toolwire.tui.live import Size
from toolwire.tui.render import Painter
from toolwire.tui.themes import THEMES
from toolwire.tui.thoughts import LiveThought

PAINTER = Painter(THEMES["none"], "", 31)


def think(*pieces: str) -> list[AgentEvent]:
    return [Streaming(ThinkingDelta(piece)) for piece in pieces]


def rows_after(*pieces: str, painter: Painter = PAINTER, most: int = 12) -> list[str]:
    """The rows where each piece had a frame of its own."""
    live, rows = LiveThought(), list[str]()
    for event in think(*pieces):
        live.add(event)
        rows = live.rows(painter, most)
    return rows


def test_a_thought_is_wrapped_at_words_and_keeps_its_lines():
    words = "**Look around**\n\nFirst the tests, then the code that they\tcall.\nThen more"
    assert rows_after(words) == [
        "Look around",
        "First the tests, then the code",
        "that they    call.",
        "Then more",
    ]


@given(st.lists(st.text(" ab\n\t\r日é-", max_size=40), min_size=1, max_size=12))
def test_the_rows_do_not_depend_on_frames_and_never_fill_the_width(pieces: list[str]):
    painter = Painter(THEMES["none"], "", 20)
    found = rows_after(*pieces, painter=painter)
    assert found == rows_after("".join(pieces), painter=painter)
    assert all(cell_len(row) < 20 for row in found)


def test_a_frame_wraps_only_what_has_come_since_the_last_one(monkeypatch: pytest.MonkeyPatch):
    work: list[int] = []
    broken = thoughts._broken  # pyright: ignore[reportPrivateUsage]

    def counted(line: str, width: int) -> list[str]:
        work.append(len(line))
        return broken(line, width)

    monkeypatch.setattr(thoughts, "_broken", counted)
    for text in ("word " * 4000, "x" * 20_000, "\u0301" * 20_000, "a" + " " * 19_999):
        work.clear()
        pieces = [text[at : at + 10] for at in range(0, len(text), 10)]
        assert len(rows_after(*pieces)) <= 12
        # One row at most is read again: 30 columns of 8 characters and what came.
        assert max(work) <= 8 * 30 + 10


@pytest.mark.parametrize(
    "end",
    [
        Thought(subject="Look", description="x"),
        ModelAsked(model="m"),
        Retrying(message="again"),
        MessageAdded(message=Message(role="assistant", parts=())),
        TurnEnded(reason=TurnEnd.CANCELLED),
    ],
)
def test_its_end_removes_it(end: AgentEvent):
    live = LiveThought()
    for event in (*think("half a thought", " more"), end):
        live.add(event)
    assert live.rows(PAINTER, 5) == []


def test_another_width_wraps_it_anew():
    live = LiveThought()
    for event in think("one two three four five six seven"):
        live.add(event)
    assert live.rows(PAINTER, 9) == ["one two three four five six", "seven"]
    wide = Painter(THEMES["none"], "", 60)
    assert live.rows(wide, 9) == ["one two three four five six seven"]
    assert live.rows(PAINTER, 9) == ["one two three four five six", "seven"]


@pytest.mark.parametrize(
    ("thinking", "while_it_comes", "after"),
    [
        ("headline", ["Plan", "Read it."], ["Plan"]),
        ("shown", ["Plan", "Read it."], ["Plan", "Read it."]),
        ("hidden", [], []),
    ],
)
def test_the_setting_decides_what_is_seen_and_what_stays(
    thinking: str, while_it_comes: list[str], after: list[str]
):
    lines: list[str] = []
    drawing = Drawing(THEMES["none"], "", 60, lines.extend)
    drawing.set_options(ViewOptions(thinking=thinking))
    for event in (TurnStarted(), *think("**Plan**\n", "Read it.")):
        drawing.add(event)
    *rows, spinner = drawing.live(Size(60, 24))
    assert (rows, lines) == (while_it_comes, [])
    assert "thinking" in spinner
    drawing.add(Thought(subject="Plan", description="Read it."))
    drawing.add(Streaming(TextDelta("So")))
    assert lines == after
    assert drawing.live(Size(60, 24))[:-1] == ["So"]


def test_it_takes_no_more_than_the_share_of_an_open_block():
    drawing = Drawing(THEMES["ansi"], "standard", 60, list[str]().extend)
    for event in (TurnStarted(), *think("".join(f"line {n}\n" for n in range(40)))):
        drawing.add(event)
    rows = drawing.live(Size(60, 12))
    assert len(rows) == 5
    # Dim italic.
    assert rows[0] == "\x1b[2;3mline 36\x1b[0m"
