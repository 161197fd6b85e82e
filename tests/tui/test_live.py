"""The live area fits every size, and its rows carry nothing dangerous."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from toolwire.tui.entries import call_hint
from toolwire.tui.live import STATUS, Size, live_rows, status_row
from toolwire.tui.render import Painter
from toolwire.tui.state import ProposedCall, RunningCall, State, TodoStep, Writing
from toolwire.tui.themes import THEMES

_WORDS = st.text(max_size=60)
_STATES = st.builds(
    State,
    model=_WORDS,
    style=st.sampled_from(["native", "xml"]),
    mode=st.sampled_from(["ask", "yolo"]),
    since=st.one_of(st.none(), st.just(1.0)),
    word=st.just("thinking"),
    thinking=_WORDS,
    writing=st.one_of(st.none(), st.builds(Writing, _WORDS, _WORDS, _WORDS, st.integers(0, 9999))),
    running=st.lists(
        st.builds(RunningCall, _WORDS, _WORDS, _WORDS, st.just(1.0), _WORDS), max_size=9
    ).map(tuple),
    proposed=st.lists(st.builds(ProposedCall, _WORDS, _WORDS, _WORDS), max_size=3).map(tuple),
    plan=st.lists(
        st.builds(TodoStep, _WORDS, st.sampled_from(["pending", "done", "in_progress"])), max_size=4
    ).map(tuple),
    queue=st.lists(_WORDS, max_size=5).map(tuple),
    tokens=st.integers(0, 300_000),
    cost=st.floats(0, 100),
)


@given(_STATES, st.lists(st.text("ab", max_size=20), max_size=30), st.integers(20, 300),
       st.integers(6, 90))  # fmt: skip
def test_no_row_fills_the_width_and_the_area_fits(
    state: State, opened: list[str], columns: int, rows: int
):
    painter = Painter(THEMES["none"], "", columns)
    size = Size(columns, rows)
    found = live_rows(state, [line[: columns - 1] for line in opened], painter, size, 9.0)
    found.append(status_row(state, painter, window=200_000, branch="main*", keys="esc stops"))
    assert len(found) <= rows - 2
    for row in found:
        assert cell_len(row) < columns
        assert not set(row) & {"\n", "\x1b", "\u202e"}


def test_a_running_call_shows_the_end_of_its_output():
    call = RunningCall("1", "run_shell_command", '{"command": "make"}', 1.0, "a\nb\nc\nd\n")
    rows = live_rows(
        State(since=0.0, running=(call,)), [], Painter(THEMES["none"], "", 60), Size(60, 24), 4.0
    )
    assert rows == [
        "◐ run_shell_command make  3 s   (Ctrl-B background)", "    b", "    c", "    d",
    ]  # fmt: skip


def test_a_call_that_waits_and_the_end_of_what_a_call_writes_are_shown():
    text = "\n".join(f"line {number}" for number in range(9))
    state = State(
        since=0.0,
        writing=Writing("1", "write_file", '{"file_path": "a.py", "content', 80),
        proposed=(ProposedCall("2", "read_file", '{"path": "b.py"}'),),
    )
    painter = Painter(THEMES["none"], "", 60)
    rows = live_rows(state, [], painter, Size(60, 24), 0.0, written=text)
    assert rows == [
        "◐ writing write_file a.py  80 characters",
        *(f"    line {number}" for number in range(4, 9)),
        "○ read_file b.py",
    ]


def test_the_share_of_the_window_alone_warns_and_says_when_it_is_shortened():
    painter = Painter(THEMES["ansi"], "standard", 100)
    state = State(model="p/m", mode="default", tokens=150_000)
    row = status_row(
        state, painter, window=200_000, branch="main*", keys="", shells=2, shortened_from=0.8
    )
    assert "\x1b[33m75% of 200k, shortened at 80%" in row
    assert "m · " in row.partition("\x1b[33m")[0]
    plain = re.sub("\x1b\\[[0-9;]*m", "", row)
    assert plain == "m · 75% of 200k, shortened at 80% · ask · main* · 2 shells"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ('{"file_path": "/shop/a.py", "old_string": "x"}', "a.py"),
        ('{"paths": ["/shop/a.py", "b.py"]}', "a.py, b.py"),
        ('{"limit": 3, "todos": [{"text": "x"}], "pattern": "y"}', "y"),
        ('{"command": "cat /shop/a.py\\nls"}', "cat /shop/a.py ls"),
        ('{"file_path": "/shop', "/shop"),
        ("[1]", ""),
    ],
)
def test_a_call_is_hinted_at_by_its_first_text(arguments: str, hint: str):
    assert call_hint(arguments, 40, "/shop") == hint


def test_the_plan_shows_the_present_step():
    state = State(plan=(TodoStep("read", "done"), TodoStep("run the tests", "in_progress")))
    rows = live_rows(state, [], Painter(THEMES["none"], "", 60), Size(60, 24), 0.0)
    assert rows == ["☐ 1 of 2  run the tests"]


@given(st.lists(st.sampled_from(STATUS), unique=True), st.text(max_size=90), st.integers(20, 300))
def test_the_status_line_fits_with_any_members(members: list[str], command: str, columns: int):
    state = State(model="p/日本語-model-with-a-long-name", style="native", mode="ask", cost=1.0)
    painter = Painter(THEMES["none"], "", columns)
    row = status_row(
        state,
        painter,
        window=200_000,
        branch="b" * 40,
        keys="esc stops",
        members=tuple(members),
        command=command,
    )
    assert cell_len(row) < columns
    assert not set(row) & {"\n", "\x1b", "\u202e"}
