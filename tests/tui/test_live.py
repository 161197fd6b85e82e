"""The live area fits every size, and its rows carry nothing dangerous."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from toolwire.tui.live import STATUS, Size, live_rows, status_row
from toolwire.tui.render import Painter
from toolwire.tui.state import RunningCall, State, TodoStep, Writing
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
    assert rows == ["◐ run_shell_command make  3 s", "    b", "    c", "    d"]


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
