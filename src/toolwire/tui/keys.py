"""The keys of the terminal app: names in the settings, what they do, and in which situation."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

from toolwire.config.schema import keys as settings
from toolwire.config.settings import KeySettings
from toolwire.errors import BadInput, UnknownName
from toolwire.tui.questions import AnswerKey

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_QUESTION_KEYS = {
    Keys.ControlM: AnswerKey.ENTER,
    Keys.Escape: AnswerKey.ESCAPE,
    Keys.ControlI: AnswerKey.TAB,
    Keys.ControlH: AnswerKey.BACKSPACE,
}
_WORKING = ("queue", "stop", "background")
"""Actions that exist only while the model works; `_IDLE` only while it does not."""
_IDLE = ("complete", "rewind")
_ALWAYS = ("interrupt", "mode", "repaint", "suspend")
"""Actions whose keys are theirs while a question takes all others."""
_PLAIN = {
    "enter": Keys.ControlM, "tab": Keys.ControlI, "escape": Keys.Escape, "up": Keys.Up,
    "down": Keys.Down, "left": Keys.Left, "right": Keys.Right, "home": Keys.Home, "end": Keys.End,
    "pageup": Keys.PageUp, "pagedown": Keys.PageDown, "insert": Keys.Insert,
    "delete": Keys.Delete, "backspace": Keys.ControlH, "space": " ",
}  # fmt: skip
_TWICE = 1.0
"""Seconds within which a second Escape counts as the second."""

Pressed: TypeAlias = tuple[Keys | str, ...]


def key_of(name: str) -> Pressed:
    """The key presses of a name such as `ctrl-o` or `ctrl-x ctrl-e`."""
    return tuple(press for word in name.split(" ") for press in _presses(word))


def _presses(word: str) -> Pressed:
    *held, base = word.split("-")
    if "alt" in held or word == "shift-enter":
        # Terminals that report Shift-Enter are read as if it were Alt-Enter.
        rest = "-".join([*(one for one in held if one not in ("alt", "shift")), base])
        return (Keys.Escape, *_presses(rest))
    if not held:
        found = _PLAIN.get(base) or (base if len(base) == 1 else None)
    elif held == ["shift"] and len(base) == 1:
        found = base.upper()
    else:
        short = "".join({"ctrl": "c-", "shift": "s-"}[one] for one in held) + base
        found = next((key for key in Keys if key.value == short), None)
    if found is None and word in {key.value for key in Keys}:
        found = Keys(word)
    if found is None:
        names = (*_PLAIN, *(f"ctrl-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"))
        raise UnknownName("key", word, names)
    return (found,)


def chosen_keys(chosen: KeySettings) -> dict[str, list[Pressed]]:
    """The presses of every action; BadInput where one key has two meanings."""
    found: dict[str, list[Pressed]] = {}
    used: dict[tuple[Pressed, bool], str] = {}
    for action, names in msgspec.structs.asdict(chosen).items():
        found[action] = []
        for name in names:
            try:
                presses = key_of(name)
            except UnknownName as error:
                raise BadInput(f"keys.{action}: {error}") from error
            if presses in found[action]:
                continue
            found[action].append(presses)
            for working in (True, False):
                if action in (_IDLE if working else _WORKING):
                    continue
                other = used.setdefault((presses, working), action)
                if other != action:
                    raise BadInput(f"keys.{action}: {name} is the key of keys.{other} already")
    return found


def listed(chosen: KeySettings) -> list[tuple[str, str]]:
    """Every key with what it does, for `/help` and the documentation."""
    return [
        (", ".join(map(_shown, names)), settings()[f"keys.{action}"].doc)
        for action, names in msgspec.structs.asdict(chosen).items()
        if names
    ]


def _shown(name: str) -> str:
    return " ".join(
        "-".join(part.capitalize() for part in word.replace("escape", "esc").split("-"))
        for word in name.split(" ")
    )


def bindings(app: "TerminalApp") -> KeyBindings:
    """The bindings of an app."""
    keys = KeyBindings()
    found = chosen_keys(app.start.settings.keys)
    _bind_questions(keys, app)
    _bind_menu(keys, app, found)
    for action, (when, run) in _actions(app).items():
        for presses in found[action]:
            keys.add(*presses, filter=when, eager=action in _ALWAYS)(_handler(run))

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        app.pasted(event.data)

    return keys


def _handler(run: Callable[[KeyPressEvent], None]) -> Callable[[KeyPressEvent], None]:
    def handle(event: KeyPressEvent) -> None:
        run(event)

    return handle


def _actions(
    app: "TerminalApp",
) -> dict[str, tuple[Filter, Callable[[KeyPressEvent], None]]]:
    """What each action does, and when."""
    calm = Condition(lambda: not app.questions.asking)
    writing = Condition(lambda: not app.menu.open and not app.questions.asking)
    working = Condition(lambda: app.working)
    empty = Condition(lambda: not app.composer.text)
    searching = Condition(lambda: app.menu.searching)
    escapes = Condition(lambda: _escapes(app))

    def command(line: str) -> Callable[[KeyPressEvent], None]:
        return lambda event: _done(event, app.start_command(line))

    def call(method: Callable[[], object]) -> Callable[[KeyPressEvent], None]:
        return lambda event: _done(event, method())

    return {
        "send": (writing, lambda event: _send(event, app)),
        "new_line": (calm, lambda event: event.current_buffer.insert_text("\n")),
        "complete": (writing & ~working, lambda event: None),
        "queue": (writing & working, call(app.queue)),
        "stop": (writing & working & escapes, call(app.stop_turn)),
        "rewind": (writing & ~working & empty & escapes, _twice(app)),
        "interrupt": (Condition(lambda: True), call(app.interrupt)),
        "leave": (empty & calm, call(app.quit)),
        "back": (writing, lambda event: _back(event, app)),
        "forward": (writing, lambda event: event.current_buffer.auto_down()),
        "search": (calm & ~searching, call(app.search_history)),
        "mode": (Condition(lambda: True), call(app.cycle_mode)),
        "transcript": (calm, command("/transcript")),
        "background": (working & calm, call(app.to_background)),
        "panel": (calm, call(app.toggle_panel)),
        "repaint": (Condition(lambda: True), call(app.repaint)),
        "image": (calm, lambda event: _start(event, app.attach_clipboard())),
        "editor": (calm, lambda event: _start(event, app.write_in_editor())),
        "copy": (calm, command("/copy")),
        "suspend": (Condition(lambda: True), call(app.suspend)),
    }


def _start(event: KeyPressEvent, work: object) -> None:
    event.app.create_background_task(work)  # pyright: ignore[reportArgumentType]


def _done(event: KeyPressEvent, result: object) -> None:
    del event, result


def _escapes(app: "TerminalApp") -> bool:
    """Whether Escape is ours: in vi mode it leaves the insert mode first."""
    shown = app.screen.app
    return (
        shown.editing_mode is not EditingMode.VI
        or shown.vi_state.input_mode is InputMode.NAVIGATION
        or not app.composer.text
    )


def _twice(app: "TerminalApp") -> Callable[[KeyPressEvent], None]:
    last = [0.0]

    def press(event: KeyPressEvent) -> None:
        del event
        now = time.monotonic()
        again, last[0] = now - last[0] < _TWICE, now
        if again:
            last[0] = 0.0
            app.start_command("/rewind")

    return press


def _send(event: KeyPressEvent, app: "TerminalApp") -> None:
    buffer = event.current_buffer
    if app.composer.unfold():
        return
    if buffer.document.text_before_cursor.endswith("\\"):
        buffer.delete_before_cursor()
        buffer.insert_text("\n")
    else:
        app.submit()


def _back(event: KeyPressEvent, app: "TerminalApp") -> None:
    if app.composer.text or not app.take_back():
        event.current_buffer.auto_up()


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


def _bind_menu(keys: KeyBindings, app: "TerminalApp", found: dict[str, list[Pressed]]) -> None:
    choosing = Condition(lambda: app.menu.open and not app.questions.asking)
    searching = Condition(lambda: app.menu.searching and not app.questions.asking)

    def choose(*, send: bool) -> None:
        if app.menu.choose(app.composer.buffer) and send:
            app.submit()

    moves = {Keys.Up: -1, Keys.Down: 1, Keys.ControlP: -1, Keys.ControlN: 1}
    for key, by in moves.items():
        keys.add(key, filter=choosing)(_handler(lambda event, by=by: app.menu.move(by)))
    keys.add(Keys.ControlI, filter=choosing)(_handler(lambda event: choose(send=False)))
    keys.add(Keys.ControlM, filter=choosing)(_handler(lambda event: choose(send=True)))
    keys.add(Keys.Escape, filter=choosing)(_handler(lambda event: app.menu.close()))
    for presses in found["search"]:
        keys.add(*presses, filter=searching)(_handler(lambda event: app.menu.move(1)))
    keys.add(Keys.Any, filter=searching)(_handler(lambda event: app.menu.type(event.data)))
    keys.add(Keys.ControlH, filter=searching)(_handler(lambda event: app.menu.erase()))
    for key in (Keys.ControlC, Keys.ControlG):
        keys.add(key, filter=searching, eager=True)(_handler(lambda event: app.menu.close()))
