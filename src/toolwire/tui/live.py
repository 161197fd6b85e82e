"""The rows of the live area above the composer: a pure function of the state and the size."""

from rich.cells import cell_len, set_cell_size

from toolwire.terminal_text import one_line, terminal_text
from toolwire.tui.entries import call_hint, duration
from toolwire.tui.render import Painter
from toolwire.tui.state import MODE_WORDS, RunningCall, State, Subagent

SPINNER = "◐◓◑◒"
STATUS = ("model", "style", "context", "cost", "mode", "branch", "running", "command")
"""Members of the status line, as `ui.status` names them."""
_FIRST_TO_GO = ("command", "running", "branch", "cost", "style")
OUTPUT_LINES = 3
"""Lines of a running call's output."""
_WRITTEN_LINES = 5
_SHELL = "run_shell_command"
_BACKGROUND = "   (Ctrl-B background)"
_PROPOSED = "○"
LIVE_MARKS = {
    SPINNER: "something runs",
    _PROPOSED: "a call that waits: for an answer, or for those before it",
    "›": "what you wrote, the composer, and the chosen row of a menu",
    "?": "a question",
    "$": "a command: of your own, or in a question",
    "+ −": "lines of an edit that are added and removed; words that differ are underlined",
    "⋯": "lines of a file that an edit leaves as they are",
    "…": "a notice of toolwire; at the end of a line: something is left out",
    "*": "after the branch: changes that are not committed (in a trusted folder)",
    "‹U+202E›": "a character of a command that cannot be seen, by its number",
}
"""Marks of the screen that are not outcomes of calls, and what they mean."""
_MOST_CALLS = 6
_MOST_LOOKED_AT = 8000
"""Characters at the end of a text among which its last lines are looked for."""
_NARROW = 60
"""Columns below which the less important is left out."""
_QUEUE_SHOWN = 3


class Size:
    """Columns and rows of the terminal."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows

    @property
    def open_rows(self) -> int:
        """Rows that an open block may take."""
        return max(min(12, self.rows // 3), 1)

    @property
    def live_rows(self) -> int:
        """Rows of the live area without the composer and the status line."""
        return max(self.rows - 6, 0)


def live_rows(
    state: State,
    opened: list[str],
    painter: Painter,
    size: Size,
    now: float,
    *,
    written: str = "",
    asking: bool = False,
    lines: int = OUTPUT_LINES,
) -> list[str]:
    """The rows, the open block's first; the last ones if there is not enough room.

    `written` is the text that a call writes, as far as it has arrived; `lines` are shown of the
    output of each running call. `asking`: a question below names the calls that wait.
    """
    rows = opened[-size.open_rows :]
    if state.writing is not None:
        hint = call_hint(state.writing.head, 40, state.cwd)
        words = f"{_spin(now)} writing {one_line(state.writing.name)} {hint}"
        rows.append(_cut(painter, (words, "dim"), (f"  {state.writing.size:,} characters", "dim")))
        rows.extend(_last_lines(written, _WRITTEN_LINES, painter))
    for call in state.running[:_MOST_CALLS]:
        rows.extend(running_rows(call, painter, now, lines, state.cwd))
    if len(state.running) > _MOST_CALLS:
        rows.append(painter.line((f"  … {len(state.running) - _MOST_CALLS} more calls", "dim")))
    for call in () if asking else state.proposed[:_MOST_CALLS]:
        hint = call_hint(call.arguments, 200, state.cwd)
        words = f"{_PROPOSED} {one_line(call.name)} {hint}"
        rows.append(_cut(painter, (words, "dim")))
    if state.working and not (asking or state.running or state.proposed or state.writing):
        rows.append(_spinner(state, painter, now))
    rows.extend(_cut(painter, (words, "")) for words in _plan_rows(state))
    way = "" if state.working or painter.width < _NARROW else "   (Enter sends it, Up edits it)"
    for words in state.queue[:_QUEUE_SHOWN]:
        rows.append(_cut(painter, (f"  queued: {one_line(words)}", "dim"), tail=(way, "dim")))
        way = ""
    if len(state.queue) > _QUEUE_SHOWN:
        rows.append(painter.line((f"  … {len(state.queue) - _QUEUE_SHOWN} more", "dim")))
    return rows[-size.live_rows :] if size.live_rows else []


def _spin(now: float) -> str:
    return SPINNER[int(now * 4) % len(SPINNER)]


def _spinner(state: State, painter: Painter, now: float) -> str:
    seconds = now - (state.since or now)
    about = f": {one_line(state.thinking)}" if state.thinking else ""
    return _cut(painter, (f"{_spin(now)} {state.word}{about}  {duration_whole(seconds)}", "dim"))


def duration_whole(seconds: float) -> str:
    """Whole seconds in words."""
    return f"{int(seconds)} s" if seconds < 60 else duration(float(int(seconds)))


def running_rows(
    call: RunningCall, painter: Painter, now: float, lines: int, folder: str
) -> list[str]:
    """A call with its time and the last lines of its output."""
    hint = _BACKGROUND if call.name == _SHELL and painter.width >= _NARROW else ""
    head = _cut(
        painter,
        (f"{_spin(now)} {one_line(call.name)} ", "call"),
        (call_hint(call.arguments, 200, folder), ""),
        tail=(f"  {duration_whole(now - call.since)}{hint}", "dim"),
    )
    return [head, *_last_lines(call.tail, lines, painter)]


def _last_lines(text: str, most: int, painter: Painter) -> list[str]:
    """The last lines of a growing text that hold something."""
    lines = [line for line in terminal_text(text[-_MOST_LOOKED_AT:]).split("\n") if line.strip()]
    return [_cut(painter, (f"    {line.expandtabs(4)}", "dim")) for line in lines[-most:]]


STEPS = {"done": "☑", "in_progress": "▸", "cancelled": "–"}
"""Marks of the steps of a plan; any other state is `☐`."""


def _plan_rows(state: State) -> list[str]:
    """The present step of the plan; all of them where the panel is open."""
    if state.panel:
        steps = [f"{STEPS.get(step.status, '☐')} {one_line(step.text)}" for step in state.plan]
        return [*steps, *(_agent_row(one) for one in state.agents)]
    done = sum(step.status in ("done", "cancelled") for step in state.plan)
    if done == len(state.plan):
        return []
    present = [step for step in state.plan if step.status == "in_progress"]
    waiting = [step for step in state.plan if step.status == "pending"]
    [step, *_] = [*present, *waiting]
    return [f"☐ {done} of {len(state.plan)}  {one_line(step.text)}"]


def _agent_row(one: Subagent) -> str:
    mark = STEPS["done"] if one.ended else STEPS["in_progress"]
    cost = f"  ${one.cost:.2f}" if one.cost else ""
    return f"{mark} agent {one_line(one.name)}{cost}  {one_line(one.last)}".rstrip()


def _cut(painter: Painter, *pieces: tuple[str, str], tail: tuple[str, str] | None = None) -> str:
    """One row, shortened so that it never fills the terminal's width."""
    room = painter.width - 1 - (cell_len(tail[0]) if tail else 0)
    shown: list[tuple[str, str]] = []
    for words, role in pieces:
        if cell_len(words) > room:
            words = f"{set_cell_size(words, max(room - 1, 0)).rstrip()}…"
        shown.append((words, role))
        room -= cell_len(words)
        if room <= 0:
            break
    return painter.line(*shown, *([tail] if tail else []))


def status_row(
    state: State,
    painter: Painter,
    *,
    window: int,
    branch: str,
    keys: str,
    members: tuple[str, ...] = STATUS,
    command: str = "",
    shells: int = 0,
    shortened_from: float = 0.0,
) -> str:
    """The status line: members fall away from the right where the terminal is narrow.

    `shells` run in the background; from that share of the window on it is shortened.
    """
    level = _warning(state, window)
    share = f"{state.tokens * 100 // window}% of {_thousands(window)}" if window else ""
    if level != "dim" and shortened_from:
        share += f", shortened at {shortened_from * 100:.0f}%"
    shown = {
        "model": state.model.rpartition("/")[2],
        "style": state.style,
        "context": share,
        "cost": f"${state.cost:.2f}{'?' if state.unpriced else ''}" if state.cost else "",
        "mode": MODE_WORDS.get(state.mode, state.mode),
        "branch": branch,
        "running": _counts(state, shells),
        "command": command,
    }
    listed = [(name, one_line(shown[name])) for name in members if shown.get(name)]
    for name in _FIRST_TO_GO:
        if _wide(listed) < painter.width and painter.width >= _NARROW:
            break
        listed = [one for one in listed if one[0] != name]
    left = " · ".join(words for _, words in listed)
    room = painter.width - 1 - cell_len(left) - cell_len(keys)
    end = " " * room + keys if room >= 2 and keys else ""
    if level == "dim" or share not in left:
        return _cut(painter, (left + end, "dim"))
    before, _, after = left.partition(share)
    return _cut(painter, (before, "dim"), (share, level), (after + end, "dim"))


def _counts(state: State, shells: int) -> str:
    """How many calls, subagents and background commands run; one call is seen above."""
    agents = sum(not one.ended for one in state.agents) if state.working else 0
    calls = len(state.running)
    words = [f"{calls} running"] if calls > 1 else []
    words += [f"{agents} agent{'s' if agents > 1 else ''}"] if agents else []
    words += [f"{shells} shell{'s' if shells > 1 else ''}"] if shells else []
    return ", ".join(words)


def _wide(listed: list[tuple[str, str]]) -> int:
    return sum(cell_len(words) + 3 for _, words in listed)


def _warning(state: State, window: int) -> str:
    share = state.tokens / window if window else 0.0
    if share >= 0.85:
        return "failed"
    return "warning" if share >= 0.7 else "dim"


def _thousands(count: int) -> str:
    return f"{count / 1_000_000:.0f}M" if count >= 1_000_000 else f"{count // 1000}k"
