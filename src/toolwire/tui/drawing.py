"""What the screen shows of a session: finished entries once, the rest as rows of the live area."""

import time
from collections.abc import Callable, Iterable

import msgspec

from toolwire.agent.events import AgentEvent
from toolwire.messages import Media
from toolwire.tui.blocks import Block, BlockKind
from toolwire.tui.entries import EntryLines, ViewOptions
from toolwire.tui.live import OUTPUT_LINES, STATUS, Size, live_rows, running_rows, status_row
from toolwire.tui.render import MarkdownLines, Painter
from toolwire.tui.state import State, fold
from toolwire.tui.themes import Theme
from toolwire.tui.thoughts import LiveThought
from toolwire.tui.transcript import Entry, NoteEntry, ProseEntry, Said, TranscriptFold

_MORE_OUTPUT = 15
"""Lines of a running call's output where results are shown whole."""
_HELD = 2
"""Wrapped lines of an open paragraph that later words may still change."""


class Drawing:
    """Folds events, and renders each entry once at the terminal's present width."""

    def __init__(
        self,
        theme: Theme,
        colours: str,
        columns: int,
        write: Callable[[list[str]], None],
        *,
        verbose: bool = False,
        links: bool = False,
        stored: Callable[[Media], str] = lambda media: "",
    ) -> None:
        """`stored` stores a picture or sound of the model, and returns its file.

        With `links` the lines that are written have links, those of the live area and pages never.
        """
        self._theme = theme
        self._verbose = verbose
        self._colours = colours
        self._links = links
        self._write = write
        self.state = State()
        self.options = ViewOptions()
        self.painter = Painter(theme, colours, columns)
        self._stored = stored
        self._transcript = TranscriptFold(verbose=verbose, stored=stored)
        self._thought = LiveThought()
        self._lines = self._printer()
        self._printed = 0
        """Lines of the open block that are already above the live area."""
        self.entries: list[Entry] = []

    def add(self, event: AgentEvent, *, silent: bool = False) -> None:
        """Takes an event, and prints what it finishes, unless that is to be read elsewhere."""
        self.state = fold(self.state, event, time.monotonic())
        self._thought.add(event)
        for entry in self._transcript.add(event):
            if not silent:
                self._print(entry)

    def reset(self) -> None:
        """Forgets the session, for another one; what is printed stays."""
        self.state = State(queue=self.state.queue)
        self._transcript = TranscriptFold(verbose=self._verbose, stored=self._stored)
        self._thought = LiveThought()
        self._printed = 0
        self.entries = []

    def replay(self, events: Iterable[AgentEvent], rows: int) -> None:
        """Takes the past of a session, and prints the end of it."""
        now = time.monotonic()
        past: list[Entry] = []
        for event in events:
            self.state = fold(self.state, event, now)
            past += self._transcript.add(event)
        self.state = msgspec.structs.replace(
            self.state, since=None, proposed=(), running=(), writing=None
        )
        self.entries.extend(past)
        shown = _begins(past, max(len(past) - rows, 0))
        lines = [line for entry in past[shown:] for line in self._lines.lines(entry)]
        left = sum(isinstance(entry, Said) for entry in past[:shown])
        if shown or len(lines) > rows:
            turns = "1 earlier turn" if left == 1 else f"{left} earlier turns"
            self._write([self.painter.line((f"… {turns}: /transcript (Ctrl-O)", "dim"))])
        self._write(lines[-rows:])

    def note(self, text: str, role: str = "") -> None:
        """Prints lines of our own."""
        for line in text.split("\n"):
            self._print(NoteEntry(line, role))

    def fits(self, columns: int) -> None:
        """Renders for this width from now on."""
        if self.painter.width != max(columns, 8):
            self.painter = Painter(self._theme, self._colours, columns)
            self._lines = self._printer()

    @property
    def theme_name(self) -> str:
        """The name of the theme in use."""
        return self._theme.name

    def set_theme(self, theme: Theme, colours: str) -> None:
        """Shows later entries in other colours."""
        self._theme, self._colours = theme, colours
        self.painter = Painter(theme, colours, self.painter.width)
        self._lines = self._printer()

    def last(self, rows: int) -> list[str]:
        """The last lines of the transcript at the present width."""
        found: list[str] = []
        for entry in reversed(self.entries):
            found = [*self._printer().lines(entry), *found]
            if len(found) >= rows:
                break
        return found[-rows:]

    def set_options(self, options: ViewOptions) -> None:
        """Shows later entries in another way."""
        self.options = options
        self._lines = self._printer()

    def queue(self, text: str) -> None:
        """Shows a message that waits."""
        self.state = msgspec.structs.replace(self.state, queue=(*self.state.queue, text))

    def unqueue(self, text: str) -> None:
        """Removes a message that waits no longer."""
        left = list(self.state.queue)
        if text in left:
            left.remove(text)
            self.state = msgspec.structs.replace(self.state, queue=tuple(left))

    def toggle_plan(self) -> None:
        """Shows every step of the plan, or only the present one."""
        self.state = msgspec.structs.replace(self.state, panel=not self.state.panel)

    @property
    def answers(self) -> list[str]:
        """The source texts of the model's answers, the last at the end."""
        return self._transcript.answers

    def blocks(self) -> list[tuple[list[Entry], list[str]]]:
        """All entries with their rows, results and thoughts whole; each answer is one block."""
        now = self.options
        options = msgspec.structs.replace(_WHOLE, diff=now.diff, folder=now.folder)
        lines = EntryLines(self.painter, options)
        found: list[tuple[list[Entry], list[str]]] = []
        for entry in self.entries:
            rows = lines.lines(entry)
            joins = isinstance(entry, ProseEntry) and not entry.first
            joins = joins or isinstance(entry, NoteEntry)
            if found and joins and isinstance(found[-1][0][-1], type(entry)):
                found[-1][0].append(entry)
                found[-1][1].extend(rows)
            elif rows:
                found.append(([entry], rows))
        return found

    def running(self) -> list[list[str]]:
        """The rows of each running call, with more of its output than the live area shows."""
        now = time.monotonic()
        return [
            running_rows(call, self.painter, now, _MORE_OUTPUT, self.state.cwd)
            for call in self.state.running
        ]

    def shown(self) -> list[str]:
        """The rows of all entries as they were printed, at the present width."""
        lines = EntryLines(self.painter, self.options)
        return [row for entry in self.entries for row in lines.lines(entry)]

    def whole(self) -> list[str]:
        """The rows of all entries."""
        return [row for _, rows in self.blocks() for row in rows]

    def live(self, size: Size, *, asking: bool = False) -> list[str]:
        """The rows above the composer; `asking` while a question is below them."""
        return live_rows(
            self.state,
            [*self._opened(size), *self._thinking(size)],
            self.painter,
            size,
            time.monotonic(),
            written=self._transcript.written if self.state.writing is not None else "",
            asking=asking,
            lines=OUTPUT_LINES if self.options.lines else _MORE_OUTPUT,
        )

    def status(
        self,
        *,
        window: int,
        branch: str,
        keys: str,
        members: tuple[str, ...] = STATUS,
        command: str = "",
        shells: int = 0,
        shortened_from: float = 0.0,
    ) -> str:
        """The status line."""
        return status_row(
            self.state,
            self.painter,
            window=window,
            branch=branch,
            keys=keys,
            members=members,
            command=command,
            shells=shells,
            shortened_from=shortened_from,
        )

    def _print(self, entry: Entry) -> None:
        self.entries.append(entry)
        lines = self._lines.lines(entry)
        if isinstance(entry, ProseEntry) and self._printed:
            lines, self._printed = lines[self._printed :], 0
        self._write(lines)

    def _opened(self, size: Size) -> list[str]:
        block = self._transcript.open
        if block is None:
            self._printed = 0
            return []
        if block.kind is BlockKind.CODE:
            return [self.painter.line(block.text)]
        rows = self._rendered(block, self.painter)
        if len(rows) - self._printed > size.open_rows and block.kind is BlockKind.PARAGRAPH:
            whole = msgspec.structs.replace(block, text=settled(block.text))
            final = self._rendered(whole, self._writer())
            ready = final[self._printed : -_HELD]
            if ready:
                self._printed += len(ready)
                self._write(ready)
        return rows[self._printed :]

    def _thinking(self, size: Size) -> list[str]:
        if self.options.thinking == "hidden":
            return []
        return self._thought.rows(self.painter, size.open_rows)

    def _rendered(self, block: Block, painter: Painter) -> list[str]:
        wrap = self.options.wrap == "words"
        return MarkdownLines(painter, wrap=wrap).lines(block)

    def _writer(self) -> Painter:
        """Paints what is written for good."""
        if not self._links:
            return self.painter
        return Painter(self._theme, self._colours, self.painter.width, links=True)

    def _printer(self) -> EntryLines:
        return EntryLines(self._writer(), self.options)


def _begins(entries: list[Entry], at: int) -> int:
    """Where the answer begins that an entry belongs to: its code is coloured from there."""
    while at and isinstance(entries[at], ProseEntry) and not getattr(entries[at], "first", False):
        at -= 1
    return at


_WHOLE = ViewOptions(lines=0, thinking="shown")


def settled(text: str) -> str:
    """The beginning of a growing paragraph in which no emphasis, code or link is still open."""
    open_marks: set[str] = set()
    safe = 0
    for at, letter in enumerate(text):
        if letter.isspace():
            if not open_marks:
                safe = at
        elif letter in "*_~`":
            if not _lone(text, at):
                open_marks ^= {letter}
        elif letter == "[":
            open_marks.add("[")
        elif letter == "]":
            open_marks.discard("[")
            if text[at + 1 : at + 2] == "(":
                open_marks.add("(")
        elif letter == ")":
            open_marks.discard("(")
    return text[:safe]


def _lone(text: str, at: int) -> bool:
    """Whether a mark means itself: blanks around it, or within a word for `_`."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] == "_" and before.isalnum() and after.isalnum():
        return True
    return (not before or before.isspace()) and (not after or after.isspace())
