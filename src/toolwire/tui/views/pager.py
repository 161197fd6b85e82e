"""Rows to scroll and search, in blocks that can be folded, copied and opened elsewhere."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from rich.text import Text

from toolwire.tui.views.page import Page, Surface

_GUTTER = 2


class PagerBlock(msgspec.Struct, frozen=True):
    """Rows that belong together; the first ones stay when it is folded."""

    rows: tuple[str, ...]
    source: str = ""
    """What is copied."""
    head: int = 1
    """Rows that a folded block shows; 0 for a block that cannot be folded."""


class PagerKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What a pager does beyond scrolling."""

    copy: Callable[[str], str] | None = None
    """Copies a source text; returns what happened."""
    returns: str = ""
    """Letters that close the pager and are its result."""
    words: str = ""
    """Their meaning, in the last row."""
    quiet: float = 0.0
    """Seconds that the page is shown, and without a key, before such a letter counts."""
    opens: bool = False
    """Whether `e` and `p` leave for the editor and `$PAGER`."""


def page_of(rows: Sequence[str]) -> tuple[PagerBlock, ...]:
    """Rows as one block."""
    return (PagerBlock(tuple(rows), head=0),)


class Pager(Page):
    """Blocks to scroll, search, fold and copy."""

    def __init__(
        self,
        surface: Surface,
        title: str,
        blocks: Sequence[PagerBlock],
        *,
        keys: PagerKeys | None = None,
        end: bool = True,
        folded: bool = False,
    ) -> None:
        super().__init__(surface, title)
        self._does = keys or PagerKeys()
        self._blocks = tuple(blocks)
        self._folded: set[int] = {at for at, block in enumerate(blocks) if folded and block.head}
        self._width = 0
        self._rows: list[tuple[int, str]] = []
        """Each row with the number of its block."""
        self._plain: list[str] | None = None
        self._layout()
        self._at = max(len(self._rows) - self.height, 0) if end else 0
        self._block = len(self._blocks) - 1 if end else 0
        self._query = ""
        self._searching = False
        self._result = ""
        self._armed = not self._does.quiet
        self._timer: asyncio.Handle | None = None
        self._bind()

    async def run(self) -> str:
        """Shows the rows until the user closes the page; returns the letter that closed it."""
        await self._show(self._shown, self._foot)
        return self._result

    @property
    def _marks(self) -> bool:
        return len(self._blocks) > 1

    def _layout(self) -> None:
        """The rows at the present width: long ones on several."""
        self._width = self.columns
        room = max(self._width - 1 - _GUTTER * self._marks, 8)
        self._rows = []
        for number, block in enumerate(self._blocks):
            rows = [piece for row in block.rows for piece in _fitting(self._surface, row, room)]
            if number in self._folded and block.head and len(rows) > block.head:
                left = len(rows) - block.head
                more = self._painter.line((f"    … {left} lines folded", "dim"))
                rows = [*rows[: block.head], more]
            self._rows += [(number, row) for row in rows]
        self._plain = None

    def _shown(self) -> list[str]:
        if self._width != self.columns:
            self._layout()
            self._move(0)
        if not self._armed and self._timer is None:
            # After the frame is written.
            self._timer = asyncio.get_running_loop().call_soon(self._wait)
        shown: list[str] = []
        for number, row in self._rows[self._at : self._at + self.height]:
            if self._query and not self._searching:
                row = self._marked(row)
            lead = ""
            if self._marks:
                lead = self._painter.line(("▎ ", "key")) if number == self._block else "  "
            shown.append(f"{lead}{row}")
        return shown

    def _marked(self, row: str) -> str:
        text = Text.from_ansi(row, end="")
        if self._query.lower() not in text.plain.lower():
            return row
        text.highlight_words([self._query], style="reverse", case_sensitive=False)
        return self._painter.ansi(text)

    def _foot(self) -> str:
        if self._searching:
            return f"/{self._query}▏"
        last = min(self._at + self.height, len(self._rows))
        keys = ["/ search", "N next" if "n" in self._does.returns else "n N next"]
        if self._marks:
            keys += ["[ ] block", "z fold", "Z all"]
        if self._does.copy is not None:
            keys.append("c copy")
        if self._does.opens:
            keys.append("e editor · p pager")
        words = f"{self._does.words} · " if self._does.words else ""
        return f"{last} of {len(self._rows)} · q close · {words}{' · '.join(keys)}"

    def _bind(self) -> None:
        keys = self._keys

        def page(by: int) -> Callable[[], int]:
            return lambda: by * self.height

        def whole(by: int) -> Callable[[], int]:
            return lambda: by * len(self._rows)

        moves: dict[str | Keys, Callable[[], int]] = {
            "j": lambda: 1, "k": lambda: -1, Keys.Down: lambda: 1, Keys.Up: lambda: -1,
            " ": page(1), "b": page(-1), Keys.PageDown: page(1), Keys.PageUp: page(-1),
            "g": whole(-1), "G": whole(1), Keys.Home: whole(-1), Keys.End: whole(1),
        }  # fmt: skip

        @keys.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            self._press(event.data)

        @keys.add(Keys.ControlM)
        def _(event: KeyPressEvent) -> None:
            del event
            if self._searching:
                self._searching = False
                self._find(1)
            elif self._marks:
                self._fold(self._block)

        @keys.add(Keys.ControlH)
        def _(event: KeyPressEvent) -> None:
            del event
            self._query = self._query[:-1]

        for key, by in moves.items():

            def move(event: KeyPressEvent, by: Callable[[], int] = by) -> None:
                if self._searching:
                    self._press(event.data)
                else:
                    self._message = ""
                    self._move(by())

            keys.add(key)(move)

    def _wait(self) -> None:
        """Starts the time again after which a letter may close the page."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._does.quiet, setattr, self, "_armed", True)

    def _press(self, data: str) -> None:
        if len(data) != 1 or not data.isprintable():
            return
        if not self._armed and data in self._does.returns:
            self._wait()
            return
        self._message = ""
        if self._searching:
            self._query += data
        elif data in self._does.returns or data == "q" or (self._does.opens and data in "ep"):
            self._result = "" if data == "q" else data
            self.close()
        elif data == "/":
            self._searching, self._query = True, ""
        elif data in ("n", "N"):
            self._find(1 if data == "n" else -1)
        elif data in ("[", "]") and self._marks:
            self._choose(self._block + (1 if data == "]" else -1))
        elif data == "z" and self._marks:
            self._fold(self._block)
        elif data == "Z" and self._marks:
            every = {at for at, block in enumerate(self._blocks) if block.head}
            self._folded = set() if self._folded else every
            self._layout()
            self._choose(self._block)
        elif data == "c" and self._does.copy is not None:
            self._message = self._does.copy(self._blocks[self._block].source)

    def _move(self, by: int) -> None:
        self._at = max(min(self._at + by, len(self._rows) - self.height), 0)
        if by and self._rows:
            # The chosen block stays in sight.
            seen = [number for number, _ in self._rows[self._at : self._at + self.height]]
            self._block = max(min(self._block, seen[-1]), seen[0])

    def _choose(self, block: int) -> None:
        self._block = max(min(block, len(self._blocks) - 1), 0)
        rows = [at for at, (number, _) in enumerate(self._rows) if number == self._block]
        if rows and not self._at <= rows[0] < self._at + self.height:
            self._at = max(min(rows[0], len(self._rows) - self.height), 0)

    def _fold(self, block: int) -> None:
        self._folded ^= {block}
        self._layout()
        self._choose(block)

    def _find(self, step: int) -> None:
        wanted = self._query.lower()
        if self._plain is None:
            self._plain = [Text.from_ansi(row).plain.lower() for _, row in self._rows]
        count = len(self._rows)
        for offset in range(1, count + 1):
            at = (self._at + step * offset) % count
            if wanted in self._plain[at]:
                self._at, self._block = at, self._rows[at][0]
                return
        self.notify(f"“{self._query}” is not in it")


def _fitting(surface: Surface, row: str, room: int) -> list[str]:
    """A row as rows that fit; nothing is cut off."""
    if len(row) <= room:
        return [row]
    text = Text.from_ansi(row, end="")
    if text.cell_len <= room:
        return [row]
    lines: list[str] = []
    while text.cell_len > room:
        at = room
        while Text(text.plain[:at]).cell_len > room:
            at -= 1
        head, text = text.divide([max(at, 1)])
        lines.append(surface.painter.ansi(head))
    return [*lines, surface.painter.ansi(text)]
