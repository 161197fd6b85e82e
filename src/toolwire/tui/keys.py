"""The keys of the terminal app."""

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from toolwire.tui import commands
from toolwire.tui.questions import AnswerKey

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

# Shift-Enter where the terminal tells it apart, and focus, which would else be read as words.
_ADDED = {
    "\x1b[13;2u": (Keys.Escape, Keys.ControlM),
    "\x1b[27;2;13~": (Keys.Escape, Keys.ControlM),
    "\x1b[I": Keys.F23,
    "\x1b[O": Keys.F24,
}
_QUESTION_KEYS = {
    Keys.ControlM: AnswerKey.ENTER,
    Keys.Escape: AnswerKey.ESCAPE,
    Keys.ControlI: AnswerKey.TAB,
    Keys.ControlH: AnswerKey.BACKSPACE,
}


def bindings(app: "TerminalApp") -> KeyBindings:
    """The bindings of an app."""
    ANSI_SEQUENCES.update(_ADDED)
    keys = KeyBindings()
    _bind_questions(keys, app)
    _bind_menu(keys, app)
    _bind_composer(keys, app)
    _bind_pages(keys, app)
    return keys


def _bind_questions(keys: KeyBindings, app: "TerminalApp") -> None:
    asking = Condition(lambda: app.questions.asking)

    def press(event: KeyPressEvent) -> None:
        found = event.key_sequence[0]
        key = (
            _QUESTION_KEYS.get(found.key, found.data) if isinstance(found.key, Keys) else found.key
        )
        if not app.questions.press(key) and len(key) == 1 and key.isprintable():
            app.composer.buffer.insert_text(key)

    keys.add(Keys.Any, filter=asking, eager=True)(press)
    for key in _QUESTION_KEYS:
        keys.add(key, filter=asking, eager=True)(press)

    @keys.add(Keys.BracketedPaste, filter=asking, eager=True)
    def _(event: KeyPressEvent) -> None:
        if not app.questions.paste(event.data):
            app.composer.paste(event.data)


def _bind_menu(keys: KeyBindings, app: "TerminalApp") -> None:
    choosing = Condition(lambda: app.menu.open and not app.questions.asking)

    def choose() -> bool:
        """Inserts the chosen entry; returns whether it can be sent at once."""
        item = app.menu.items[app.menu.chosen]
        buffer = app.composer.buffer
        after = buffer.text[buffer.cursor_position :]
        before = buffer.text[: item.start] + item.insert
        buffer.text = before + after
        buffer.cursor_position = len(before)
        return item.complete

    @keys.add(Keys.Up, filter=choosing)
    def _(event: KeyPressEvent) -> None:
        del event
        app.menu.move(-1)

    @keys.add(Keys.Down, filter=choosing)
    def _(event: KeyPressEvent) -> None:
        del event
        app.menu.move(1)

    @keys.add(Keys.ControlI, filter=choosing)
    def _(event: KeyPressEvent) -> None:
        del event
        choose()

    @keys.add(Keys.ControlM, filter=choosing)
    def _(event: KeyPressEvent) -> None:
        del event
        if choose():
            app.submit()

    @keys.add(Keys.Escape, filter=choosing)
    def _(event: KeyPressEvent) -> None:
        del event
        app.menu.close(app.composer.text, app.composer.buffer.cursor_position)


def _bind_composer(keys: KeyBindings, app: "TerminalApp") -> None:
    writing = Condition(lambda: not app.menu.open and not app.questions.asking)
    working = Condition(lambda: app.working)
    empty = Condition(lambda: not app.composer.text)

    @keys.add(Keys.ControlM, filter=writing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            app.submit()

    @keys.add(Keys.Escape, Keys.ControlM)
    @keys.add(Keys.ControlJ)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add(Keys.ControlI, filter=writing & working & ~empty)
    def _(event: KeyPressEvent) -> None:
        del event
        app.queue()

    @keys.add(Keys.ControlI, filter=writing & (~working | empty))
    def _(event: KeyPressEvent) -> None:
        del event

    @keys.add(Keys.Escape, filter=writing & working)
    def _(event: KeyPressEvent) -> None:
        del event
        app.stop_turn()

    @keys.add(Keys.ControlC, eager=True)
    def _(event: KeyPressEvent) -> None:
        del event
        app.interrupt()

    @keys.add(Keys.ControlD, filter=empty)
    def _(event: KeyPressEvent) -> None:
        del event
        app.quit()

    @keys.add(Keys.BackTab)
    def _(event: KeyPressEvent) -> None:
        del event
        app.cycle_mode()

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        app.composer.paste(event.data)

    @keys.add(Keys.Up, filter=writing & empty)
    def _(event: KeyPressEvent) -> None:
        if not app.take_back():
            event.current_buffer.auto_up()


def _bind_pages(keys: KeyBindings, app: "TerminalApp") -> None:
    calm = Condition(lambda: not app.questions.asking)

    def start(event: KeyPressEvent, command: str) -> None:
        event.app.create_background_task(commands.run(app, command))

    @keys.add(Keys.ControlO, filter=calm)
    def _(event: KeyPressEvent) -> None:
        start(event, "/transcript")

    @keys.add(Keys.ControlY, filter=calm)
    def _(event: KeyPressEvent) -> None:
        start(event, "/copy")

    @keys.add(Keys.ControlG, filter=calm)
    def _(event: KeyPressEvent) -> None:
        event.app.create_background_task(app.write_in_editor())

    @keys.add(Keys.ControlL)
    def _(event: KeyPressEvent) -> None:
        del event
        app.screen.clear()

    @keys.add(Keys.ControlZ)
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add(Keys.F23)
    def _(event: KeyPressEvent) -> None:
        del event
        app.focused = True

    @keys.add(Keys.F24)
    def _(event: KeyPressEvent) -> None:
        del event
        app.focused = False
