"""The rows of the live area above the composer: a pure function of the state and the size."""

from rich.cells import cell_len, set_cell_size

from toolwire.terminal_text import one_line, terminal_text
from toolwire.tui.entries import call_hint, duration
from toolwire.tui.render import Painter
from toolwire.tui.state import RunningCall, State, Subagent

SPINNER = "◐◓◑◒"
STATUS = ("model", "style", "context", "cost", "mode", "branch", "running", "command")
"""Members of the status line, as `ui.status` names them."""
_FIRST_TO_GO = ("command", "running", "branch", "cost", "style")
_OUTPUT_LINES = 3
_MOST_CALLS = 6
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
    state: State, opened: list[str], painter: Painter, size: Size, now: float
) -> list[str]:
    """The rows, the open block's first; the last ones if there is not enough room."""
    rows = opened[-size.open_rows :]
    if state.writing is not None:
        hint = call_hint(state.writing.head, 40)
        words = f"{_spin(now)} writing {one_line(state.writing.name)} {hint}"
        rows.append(_cut(painter, (words, "dim"), (f"  {state.writing.size:,} characters", "dim")))
    for call in state.running[:_MOST_CALLS]:
        rows.extend(_running(call, painter, now))
    if len(state.running) > _MOST_CALLS:
        rows.append(painter.line((f"  … {len(state.running) - _MOST_CALLS} more calls", "dim")))
    if state.working and not state.running and state.writing is None:
        rows.append(_spinner(state, painter, now))
    rows.extend(_cut(painter, (words, "")) for words in _plan_rows(state))
    for words in state.queue[:_QUEUE_SHOWN]:
        rows.append(_cut(painter, (f"  queued: {one_line(words)}", "dim")))
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


def _running(call: RunningCall, painter: Painter, now: float) -> list[str]:
    head = _cut(
        painter,
        (f"{_spin(now)} {one_line(call.name)} ", "call"),
        (call_hint(call.arguments, 200), ""),
        tail=(f"  {duration_whole(now - call.since)}", "dim"),
    )
    lines = [line for line in terminal_text(call.tail).split("\n") if line.strip()]
    shown = lines[-_OUTPUT_LINES:]
    return [head, *(_cut(painter, (f"    {line.expandtabs(4)}", "dim")) for line in shown)]


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
) -> str:
    """The status line: members fall away from the right where the terminal is narrow."""
    share = f"{state.tokens * 100 // window}% of {_thousands(window)}" if window else ""
    shown = {
        "model": state.model.rpartition("/")[2],
        "style": state.style,
        "context": share,
        "cost": f"${state.cost:.2f}{'?' if state.unpriced else ''}" if state.cost else "",
        "mode": state.mode,
        "branch": branch,
        "running": f"{len(state.running)} running" if len(state.running) > 1 else "",
        "command": command,
    }
    listed = [(name, one_line(shown[name])) for name in members if shown.get(name)]
    for name in _FIRST_TO_GO:
        if _wide(listed) < painter.width and painter.width >= 60:
            break
        listed = [one for one in listed if one[0] != name]
    left = " · ".join(words for _, words in listed)
    room = painter.width - 1 - cell_len(left) - cell_len(keys)
    if room >= 2 and keys:
        left = f"{left}{' ' * room}{keys}"
    return _cut(painter, (left, _warning(state, window)))


def _wide(listed: list[tuple[str, str]]) -> int:
    return sum(cell_len(words) + 3 for _, words in listed)


def _warning(state: State, window: int) -> str:
    share = state.tokens / window if window else 0.0
    if share >= 0.85:
        return "failed"
    return "warning" if share >= 0.7 else "dim"


def _thousands(count: int) -> str:
    return f"{count / 1_000_000:.0f}M" if count >= 1_000_000 else f"{count // 1000}k"
