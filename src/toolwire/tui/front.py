"""The terminal side of the app: screen, composer, menu, questions, pages and notifications."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from rich.cells import cell_len

from toolwire.app.toolbox import RULES
from toolwire.errors import BadInput
from toolwire.messages import Media
from toolwire.storage.paths import state_paths
from toolwire.terminal_text import one_line
from toolwire.tui.clipboard import (
    clipboard_image,
    copied,
    image_problem,
    write_clipboard,
    writer,
)
from toolwire.tui.composer import Composer, pasted_images
from toolwire.tui.drawing import Drawing
from toolwire.tui.entries import view_options
from toolwire.tui.finder import FileNames
from toolwire.tui.heading import Heading
from toolwire.tui.history import history_file
from toolwire.tui.links import has_links
from toolwire.tui.menu import Menu
from toolwire.tui.notify import announcement, run_notifier, title
from toolwire.tui.output import FrameOutput
from toolwire.tui.own_words import short_folder
from toolwire.tui.question_rows import answers, approval_rows
from toolwire.tui.questions import QUIET, QuestionPanel
from toolwire.tui.screen import Screen
from toolwire.tui.start import Start
from toolwire.tui.terminal_input import Brightness, Focused, KittyKeys, Report, parser_of
from toolwire.tui.themes import theme_for
from toolwire.tui.views.lists import ListItem, ListView, Picked
from toolwire.tui.views.page import Page, Surface
from toolwire.tui.views.pager import Pager, PagerKeys, page_of

_ANSWER = 0.1
"""Seconds within which a terminal's answer about its background counts."""
_SPIN = 1 / 3
_UNWATCHED = 60.0
"""Seconds without the focus after which nothing moves."""
_DRAFT = 0.5
"""Seconds after a change in which what is written is stored."""


class Front(ABC):
    """One terminal: what is written on it, and what the user types; knows no session."""

    def __init__(self, start: Start, terminal: Input, out: TextIO) -> None:
        self.start = start
        ui = start.settings.ui
        theme, colours = theme_for(ui.theme, start.environ)
        self._terminal = terminal
        self._output = FrameOutput(out, start.environ.get("TERM", ""))
        self._heading = Heading(self._output, start.version, self._first_line)
        self.composer = Composer(history_file(start.environ, start.cwd))
        self.questions = QuestionPanel(
            self._asked,
            whole=self._whole_question,
            edit=self._edit_command,
            rules_file=short_folder(state_paths(start.environ).config / RULES),
        )
        self._draft = ""
        """What was written before a command took the composer."""
        self._names: FileNames | None = None
        self._reading: asyncio.Task[None] | None = None
        self._reading_past: asyncio.Task[None] | None = None
        self.menu = Menu(self._commands, self._choices, self._files)
        self.composer.buffer.on_text_changed += self._typed
        self.composer.buffer.on_cursor_position_changed += self._typed
        self.screen = Screen(
            terminal,
            self._output,
            heading=self._heading,
            composer=self.composer.buffer,
            keys=self._bindings(),
            live=self._live,
            below=self._below,
            colours=bool(colours),
            vi=ui.keys == "vi",
            typed_ahead=self.questions.wait_again,
        )
        self.screen.set_full(ui.screen == "full", [])
        columns = self._output.get_size().columns
        self.drawing = Drawing(
            theme,
            colours,
            columns,
            self.screen.print,
            verbose=start.verbose,
            links=has_links(ui.links, start.environ),
            stored=self._stored,
        )
        self.drawing.set_options(view_options(ui, start.cwd))
        self.focused = True
        self._asked_at = 0.0
        self._left_at = 0.0
        """When the terminal's focus last changed."""
        self._saving: asyncio.TimerHandle | None = None
        self._background = 0
        """Commands that run in the background."""
        parser = parser_of(terminal)
        if parser is not None:
            parser.report = self._reported
        self._page: Page | None = None
        self._ended = False
        """Whether the user leaves the app: no page opens."""
        self._one_page = asyncio.Lock()
        self._opening: asyncio.Task[None] | None = None

    # What the session's side provides.

    @abstractmethod
    def _bindings(self) -> KeyBindings:
        """The keys."""

    @abstractmethod
    def _commands(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        """The slash commands with what they do and their other names."""

    @abstractmethod
    def _choices(self, name: str) -> tuple[str, ...]:
        """What a command may be followed by."""

    @abstractmethod
    def _below(self) -> list[str]:
        """The rows below the composer."""

    @abstractmethod
    def _about(self, folder: str) -> tuple[str, ...]:
        """The model, the folder and the mode, as far as they are known."""

    @abstractmethod
    def _takes_images(self) -> tuple[str, bool | None]:
        """The model's name, and whether it takes pictures; None if that is not known."""

    @abstractmethod
    def _stored(self, media: Media) -> str:
        """Stores a picture or sound of the model; returns its file, empty if there is none."""

    @abstractmethod
    def _count_background(self) -> int:
        """How many commands run in the background."""

    @abstractmethod
    def _prompts(self) -> list[str]:
        """The prompts of the folder's sessions, the newest first; in a thread."""

    # What keys do.

    def pasted(self, text: str) -> None:
        """Inserts pasted text; paths of pictures attach them."""
        images = pasted_images(text, self.start.cwd)
        if not images or not all(map(self._attach, images)):
            self.composer.paste(text)
        self.menu.close()

    async def attach_clipboard(self) -> None:
        """Attaches the picture in the clipboard."""
        try:
            self._attach(await clipboard_image(self.start.environ))
        except BadInput as error:
            self.say(f"error: {error}", "failed")

    def _attach(self, image: Path) -> bool:
        problem = image_problem(image, *self._takes_images())
        if problem:
            self.say(problem, "warning")
            return False
        self.composer.attach(image)
        return True

    def search_history(self) -> None:
        """Opens the search of what was written in this folder."""
        self.menu.search(self.composer.buffer.history.get_strings()[::-1])
        self._reading_past = asyncio.get_running_loop().create_task(self._search_past())

    async def _search_past(self) -> None:
        """Adds the prompts of all sessions of this folder."""
        self.menu.search_also(await asyncio.to_thread(self._prompts))
        self.screen.change()

    def toggle_panel(self) -> None:
        """Shows the whole plan above the composer, or hides it."""
        self.drawing.toggle_plan()
        self.screen.change()

    def repaint(self) -> None:
        """Clears the screen, and prints its last lines at the present width."""
        size = self.screen.size
        self.drawing.fits(size.columns)
        self.screen.repaint(self.drawing.last(max(size.rows - 6, 1)))

    def suspend(self) -> None:
        """Suspends the program."""
        self.screen.stop_process()

    def _reported(self, report: Report) -> None:
        match report:
            case Focused():
                self.focused = report.now
                self._left_at = time.monotonic()
                self.screen.change()
            case KittyKeys():
                self._output.has_kitty()
            case Brightness():
                if time.monotonic() - self._asked_at < _ANSWER:
                    ui = self.start.settings.ui
                    found = theme_for(ui.theme, self.start.environ, light=report.light)
                    self.drawing.set_theme(*found)
                    self.screen.change()

    def _ask_terminal(self) -> None:
        self._asked_at = time.monotonic()
        colours = theme_for("auto", self.start.environ)[1]
        background = self.start.settings.ui.theme == "auto" and colours not in ("", "standard")
        self._output.ask(background=background)

    # What commands use.

    def say(self, text: str, role: str = "") -> None:
        """Prints lines of our own."""
        self.screen.leave_page()
        self.drawing.note(text, role)

    def write_out(self, sequence: str) -> None:
        """Writes a sequence of our own to the terminal."""
        with self._output.frame():
            self._output.write_raw(sequence)

    def copy_text(self, text: str) -> str:
        """Puts a text on the clipboard: the terminal's, and this machine's; says what happened."""
        sequence, program = copied(text), writer(self.start.environ)
        if program:
            work = write_clipboard(program, text, self.start.environ)
            self.screen.app.create_background_task(work)
        if sequence:
            self.write_out(sequence)
        elif not program:
            return f"{len(text):,} characters are too many for the terminal; /export writes a file"
        return f"copied {len(text)} characters"

    @property
    def surface(self) -> Surface:
        """Where full-screen pages are drawn."""
        return Surface(self._terminal, self._output, self.drawing.painter)

    async def open(self, page: Page) -> Any:
        """Shows a page in the alternate screen; returns what the user chose on it."""
        async with self._one_page:
            self._page = page
            if self._ended:
                page.close()
            try:
                with self.screen.page():
                    return await page.run()
            finally:
                self._page = None

    def close_page(self) -> None:
        """Closes the open page; what it was for is left as it is."""
        if self._page is not None:
            self._page.close()

    async def page(self, heading: str, rows: list[str]) -> None:
        """Shows rows on a page of their own."""
        await self.open(Pager(self.surface, heading, page_of(rows), end=False))

    async def pick(self, heading: str, items: Sequence[tuple[str, ...]], now: str = "") -> str:
        """Lets the user choose one of the first cells; empty for none."""
        listed = [ListItem(key=cells[0], cells=cells) for cells in items]
        picked: Picked = await self.open(ListView(self.surface, heading, listed, chosen=now))
        return picked.key if picked.action else ""

    # Drawing.

    def _edit_command(self, command: str) -> None:
        self._draft = self.composer.text
        self.composer.set(command)
        self.menu.close()

    def end_edit(self, *, use: bool) -> None:
        """Ends the edit of a command in the composer: uses it, or goes back to the question."""
        command = self.composer.text
        self.composer.set(self._draft)
        if use:
            self.questions.edited(command)
        else:
            self.questions.leave_edit()
        self.screen.change()

    def _whole_question(self) -> None:
        self._opening = asyncio.get_running_loop().create_task(self._show_question())

    async def _show_question(self) -> None:
        """Shows the whole question on a page with the same keys."""
        question = self.questions.question
        if question is None:
            return
        found = answers(question)
        rows = approval_rows(question, self.drawing.painter, self.drawing.options.diff, most=0)
        words = " · ".join(f"{key} {words}" for key, (_, words) in found.items())
        keys = PagerKeys(returns="".join(found) + "n", words=f"n no · {words}", quiet=QUIET)
        page = Pager(self.surface, question.title, page_of(rows), keys=keys, end=False)
        key = await self.open(page)
        if key and self.questions.question is question:
            self.questions.choose(key)

    def _asked(self) -> None:
        if self.questions.asking:
            self._announce("a question waits")
            if self._page is not None:
                self._page.notify("a question waits: close this page to answer it")
        self.screen.change()

    def _announce(self, words: str) -> None:
        start, ui = self.start, self.start.settings.ui
        if self.focused or not ui.notify:
            return
        if ui.notify_command:
            work = run_notifier(ui.notify_command, words, start.environ)
            self.screen.app.create_background_task(work)
        else:
            self.write_out(announcement(words, start.environ))

    def _title(self, words: str) -> None:
        if self.start.settings.ui.title:
            self.write_out(title(words))

    def _first_line(self) -> str:
        """The first line, as long as the terminal is wide."""
        version, room = self.start.version, self.screen.size.columns - len("toolwire ") - 1
        about = ""
        for folder in (short_folder(self.start.cwd), f"…/{self.start.cwd.name}", ""):
            about = one_line(" · ".join(filter(None, (version, *self._about(folder)))))
            if cell_len(about) <= room:
                break
        return self.drawing.painter.line(("toolwire", "strong"), (f" {about}", "dim"))

    def _live(self) -> list[str]:
        size = self.screen.size
        self.drawing.fits(size.columns)
        rows = self.drawing.live(size, asking=self.questions.open)
        if self.questions.open:
            drawing = self.drawing
            asked = self.questions.rows(drawing.painter, size, drawing.options.diff)
            return [*rows[-3:], *asked]
        return rows

    def _typed(self, event: object = None) -> None:
        del event
        buffer = self.composer.buffer
        if self.questions.editing:
            return
        self.menu.update(buffer.text, buffer.cursor_position)
        if self._saving is None and self.screen.app.is_running:
            self._saving = asyncio.get_running_loop().call_later(_DRAFT, self._store_draft)

    def _store_draft(self) -> None:
        self._saving = None
        self.composer.store_draft()

    def _files(self, query: str) -> list[str]:
        names = self._names
        if names is None:
            return []
        if not names.fresh and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read_names(names))
        return names.best(query, more=self._mentionable())

    def _mentionable(self) -> tuple[str, ...]:
        """What may be mentioned besides files."""
        return ()

    async def _read_names(self, names: FileNames) -> None:
        await asyncio.to_thread(names.read)
        self._typed()
        self.screen.change()

    async def _spin(self) -> None:
        """Moves the spinner, unless the terminal was not watched for a minute."""
        while True:
            working = self.drawing.state.working
            await asyncio.sleep(_SPIN if working else 1.0)
            away = not self.focused and time.monotonic() - self._left_at > _UNWATCHED
            before, self._background = self._background, self._count_background()
            if (working and not away) or before != self._background:
                self.screen.change()
