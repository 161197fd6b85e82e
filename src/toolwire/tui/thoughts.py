"""The thought that the model writes now, as rows of the live area; each row is wrapped once."""

import re
from collections import deque

from rich.cells import cell_len, chop_cells

from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    ModelAsked,
    Retrying,
    Streaming,
    Thought,
    TurnEnded,
)
from toolwire.events import ThinkingDelta
from toolwire.terminal_text import TerminalText
from toolwire.tui.render import Painter

_ROWS = 12
"""Rows at the end of a thought that are kept."""
_WORDS = re.compile(r"\s*\S+|\s+")
_DENSE = 8
"""Characters that a column of a row may hold: marks without a width are many to a column."""


class LiveThought:
    """Wraps a growing thought: the work for a frame is that of what has come since the last one."""

    def __init__(self) -> None:
        self._new: list[str] = []
        self._rows: deque[str] = deque(maxlen=_ROWS)
        """Source of the last rows that later words cannot change."""
        self._open = ""
        self._width = 0
        self._safe = TerminalText()

    def add(self, event: AgentEvent) -> None:
        """Takes an event: the end of a thought removes it."""
        match event:
            case Streaming():
                if isinstance(event.event, ThinkingDelta):
                    self._new.append(event.event.text)
            case Thought() | ModelAsked() | Retrying() | MessageAdded() | TurnEnded():
                self._new.clear()
                self._rows.clear()
                self._open, self._safe = "", TerminalText()
            case _:
                pass

    def rows(self, painter: Painter, most: int) -> list[str]:
        """The last rows of the thought."""
        text = self._safe.feed("".join(self._new)).replace("\t", "    ")
        self._new.clear()
        # No row of the live area fills the width.
        width = painter.prose_width - 1
        if width != self._width:
            text, self._width = "".join((*self._rows, self._open, text)), width
            self._rows.clear()
            self._open = ""
        self._wrap(text)
        shown = [line for row in (*self._rows, self._open) if (line := _shown(row))]
        return [painter.line((line, "thinking")) for line in shown[-most:]]

    def _wrap(self, text: str) -> None:
        *lines, rest = f"{self._open}{text}".split("\n")
        for line in lines:
            if line.strip():
                *above, last = _broken(line, self._width)
                self._rows.extend((*above, f"{last}\n"))
        *above, self._open = _broken(rest, self._width)
        self._rows.extend(above)


def _shown(row: str) -> str:
    """A row as it is shown: the marks of a headline are left out, the role is enough."""
    return row.replace("**", "").strip()


def _broken(line: str, width: int) -> list[str]:
    """The rows of a line, broken at words; the last one may still grow."""
    rows, used = [""], 0
    for word in _WORDS.findall(line):
        wide = cell_len(word)
        if used + wide > width:
            word = word.lstrip() if used else word
            pieces = chop_cells(word, width) or [""]
            if used:
                # The blank before the word ends the row above.
                rows[-1] += " "
                rows.extend(pieces)
            else:
                rows[-1:] = pieces
            used = cell_len(rows[-1])
        else:
            rows[-1] += word
            used += wide
        if len(rows[-1]) > _DENSE * width:
            rows[-1:] = [rows[-1][: _DENSE * width], ""]
            used = 0
    return rows
