"""Rows on the screen: those that are made once a frame, and a transcript that scrolls."""

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.controls import FormattedTextControl, UIContent, UIControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.screen import Screen, WritePosition
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.utils import get_cwidth

from toolwire.tui.links import without_links

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_bindings import NotImplementedOrNone


Rows = Callable[[], list[str]]


class UnstyledWindow(Window):
    """A window without a style: none is filled into the cells of its rows."""

    def _apply_style(
        self, new_screen: Screen, write_position: WritePosition, parent_style: str
    ) -> None:
        del new_screen, write_position, parent_style


class FrameRows:
    """Rows of functions, each made and parsed once a frame."""

    def __init__(self) -> None:
        self._all: list[Rows] = []
        self._made: dict[Rows, list[str]] = {}
        """Rows of the present frame."""

    def window(self, rows: Rows) -> Window:
        """A window of such rows."""
        parsed: tuple[list[str], StyleAndTextTuples] = ([], [])
        self._all.append(rows)

        def fragments() -> StyleAndTextTuples:
            nonlocal parsed
            found = self._present(rows)
            if found != parsed[0]:
                parsed = (found, to_formatted_text(ANSI("\n".join(found))))
            return parsed[1]

        return UnstyledWindow(
            FormattedTextControl(fragments),
            dont_extend_height=True,
            height=lambda: _height(len(self._present(rows))),
            wrap_lines=False,
        )

    def count(self) -> int:
        """How many rows there are in this frame."""
        return sum(len(self._present(rows)) for rows in self._all)

    def forget(self, event: object = None) -> None:
        """Begins another frame; keys draw one without us."""
        del event
        self._made.clear()

    def _present(self, rows: Rows) -> list[str]:
        if rows not in self._made:
            self._made[rows] = rows()
        return self._made[rows]


def _height(rows: int) -> Dimension:
    """So many rows, fewer where the terminal has no room."""
    return Dimension(min=0, preferred=rows, max=rows)


class ScrolledRows(UIControl):
    """Rows that end at the bottom, unless the user scrolls up."""

    def __init__(self) -> None:
        self._past: list[str] = []
        self.added: list[str] = []
        """What was added since it began."""
        self._back = 0
        """Rows below those that are shown."""
        self.height = 1

    def begin(self, past: list[str]) -> None:
        """Shows these lines and what is added to them."""
        self._past, self.added, self._back = past, [], 0

    def add(self, lines: list[str]) -> None:
        """Adds lines; what is shown stays where the user scrolled to."""
        self.added += lines
        if self._back:
            self._back += len(lines)

    def scroll(self, by: int) -> None:
        """Goes back by some rows, or forward."""
        most = max(len(self._past) + len(self.added) - self.height, 0)
        self._back = max(min(self._back + by, most), 0)

    def create_content(self, width: int, height: int) -> UIContent:
        """The rows that fit."""
        self.height = height
        rows: list[StyleAndTextTuples] = []
        needed = height + self._back
        for line in chain(reversed(self.added), reversed(self._past)):
            shown = to_formatted_text(ANSI(without_links(line)))
            rows = [*fitted(shown, width), *rows]
            if len(rows) >= needed:
                break
        end = max(len(rows) - self._back, min(height, len(rows)))
        seen = rows[max(end - height, 0) : end]
        return UIContent(lambda at: seen[at] if at < len(seen) else [], line_count=max(height, 1))

    def mouse_handler(self, mouse_event: MouseEvent) -> "NotImplementedOrNone":
        """Scrolls with the wheel."""
        wheel = {MouseEventType.SCROLL_UP: 3, MouseEventType.SCROLL_DOWN: -3}
        if mouse_event.event_type not in wheel:
            return NotImplemented
        self.scroll(wheel[mouse_event.event_type])
        return None


def fitted(line: StyleAndTextTuples, width: int) -> list[StyleAndTextTuples]:
    """A line on as many rows as it needs; none of it is cut off."""
    rows: list[StyleAndTextTuples] = [[]]
    used = 0
    for style, text, *_ in line:
        for letter in text:
            wide = get_cwidth(letter)
            if used + wide > width and used:
                rows.append([])
                used = 0
            rows[-1].append((style, letter))
            used += wide
    return rows


def rows_of(text: str, width: int) -> int:
    """How many rows a text takes at a width."""
    return sum(max(-(-get_cwidth(line) // width), 1) for line in text.split("\n"))


def wrapped_cursor(drawn: Any, cursor: Point, columns: int) -> Point:
    """Where the cursor is after the terminal wrapped the drawn rows at a new width."""
    above = sum(max(-(-_used(drawn[row]) // columns), 1) for row in range(cursor.y))
    return Point(x=cursor.x % columns, y=above + cursor.x // columns)


def _used(row: Any) -> int:
    """Columns of a drawn row that hold something."""
    return max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
