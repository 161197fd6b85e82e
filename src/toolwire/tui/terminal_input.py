"""Bytes of the terminal as keys, pastes and reports; nothing a terminal answers is typed text."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

import msgspec
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from toolwire.tui.early_prompt import EarlyPrompt

if TYPE_CHECKING:
    from prompt_toolkit.input import Input

_PASTE_BEGINS = "\x1b[200~"
_PASTE_ENDS = "\x1b[201~"
_CSI = re.compile(r"\x1b\[([0-?]*)[ -/]*([@-~])")
_CSI_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*)?")
_STRING = re.compile(r"\x1b([\]P_^])([^\x07\x1b]*)(?:\x07|\x1b\\)")
_STRING_BEGUN = re.compile(r"\x1b[\]P_^](?:[0-9>=|!{$G][^\x07\x1b]*\x1b?)?")
_BACKGROUND = re.compile(r"11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_MOST_HELD = 1 << 16
_AT_ONCE = 1 << 20
"""Characters that are read before keys are handled."""
_SHIFT, _ALT, _CONTROL = 1, 2, 4
_NEW_LINE = (Keys.Escape, Keys.ControlM)
_NAMED: dict[int, Keys | str] = {
    9: Keys.ControlI, 13: Keys.ControlM, 27: Keys.Escape, 127: Keys.ControlH,
    57414: Keys.ControlM, 57417: Keys.Left, 57418: Keys.Right, 57419: Keys.Up, 57420: Keys.Down,
    57421: Keys.PageUp, 57422: Keys.PageDown, 57423: Keys.Home, 57424: Keys.End,
    57425: Keys.Insert, 57426: Keys.Delete,
    **{57399 + digit: str(digit) for digit in range(10)},
    57409: ".", 57410: "/", 57411: "*", 57412: "-", 57413: "+", 57415: "=",
}  # fmt: skip
"""Keys of the kitty protocol that are not characters; those of the key pad as what they print."""


class Focused(msgspec.Struct, frozen=True):
    """The terminal got or lost the focus."""

    now: bool


class Brightness(msgspec.Struct, frozen=True):
    """The terminal reported the colour of its background."""

    light: bool


class KittyKeys(msgspec.Struct, frozen=True):
    """The terminal reported that it has the kitty protocol for keys."""


Report = Focused | Brightness | KittyKeys


class TerminalParser(Vt100Parser):
    """Cuts the input into keys, pastes and reports, at a cost linear in its length."""

    def __init__(
        self, key: Callable[[KeyPress], None], report: Callable[[Report], None] = lambda one: None
    ) -> None:
        self._held = ""
        """The beginning of a sequence whose end has not arrived."""
        self._pasted: list[str] | None = None
        """The pieces of a paste that is under way."""
        self._tail = ""
        self.fed = 0
        """How often characters arrived."""
        self.report = report
        super().__init__(key)

    def feed(self, data: str) -> None:
        """Takes characters, cut anywhere."""
        self.fed += 1
        while data:
            pieces = self._pasted
            data = self._paste(data, pieces) if pieces is not None else self._keys(data)

    def flush(self) -> None:
        """Takes what is held as keys: the escape key, if nothing followed it."""
        if self._pasted is None and len(self._held) <= 2:
            held, self._held = self._held, ""
            for letter in held:
                self._input_parser.send(letter)
            super().flush()

    def _paste(self, data: str, pieces: list[str]) -> str:
        """Collects pasted text; returns what follows its end."""
        # The end mark may be cut: only its length is looked at again.
        joined = self._tail + data
        end = joined.find(_PASTE_ENDS)
        if end < 0:
            keep = len(_PASTE_ENDS) - 1
            pieces.append(joined[:-keep])
            self._tail = joined[-keep:]
            return ""
        pieces.append(joined[:end])
        self._pasted, self._tail = None, ""
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, "".join(pieces)))
        return joined[end + len(_PASTE_ENDS) :]

    def _keys(self, data: str) -> str:
        """Handles one sequence, or the text before it; returns the rest."""
        if self._held:
            data, self._held = self._held + data, ""
        begins = data.find("\x1b")
        if begins:
            plain = data if begins < 0 else data[:begins]
            for letter in plain:
                self._input_parser.send(letter)
            return data[len(plain) :]
        return self._sequence(data)

    def _sequence(self, data: str) -> str:
        if found := _CSI.match(data):
            self._csi(found[0], found[1], found[2])
            return data[found.end() :]
        if found := _STRING.match(data):
            self._string(found[2])
            return data[found.end() :]
        begun = _CSI_BEGUN.fullmatch(data) or _STRING_BEGUN.fullmatch(data)
        if begun and len(data) < _MOST_HELD:
            self._held = data
            return ""
        # A key with Alt, or one of the old sequences: its letters are read one by one.
        end = data.find("\x1b", 1)
        plain = data if end < 0 else data[:end]
        for letter in plain[:3]:
            self._input_parser.send(letter)
        return data[len(plain[:3]) :]

    def _csi(self, whole: str, parameters: str, final: str) -> None:
        # What was pending is a key of its own: the sequence is complete.
        super().flush()
        if whole == _PASTE_BEGINS:
            self._pasted = []
        elif whole in ("\x1b[I", "\x1b[O"):
            self.report(Focused(final == "I"))
        elif final == "u" and parameters.startswith("?"):
            self.report(KittyKeys())
        elif final == "u":
            self._press(_key(*_numbers(parameters)))
        elif final == "~" and parameters.startswith("27;"):
            _, modifiers, code = (*_numbers(parameters), 1, 13)[:3]
            self._press(_key(code, modifiers))
        elif whole in ANSI_SEQUENCES:
            self._call_handler(ANSI_SEQUENCES[whole], whole)
        elif final == "M" or parameters.startswith("<"):
            self._call_handler(Keys.Vt100MouseEvent, whole)

    def _press(self, key: Keys | str | tuple[Keys | str, ...] | None) -> None:
        for one in key if isinstance(key, tuple) else (key,):
            if one is not None:
                data = one if not isinstance(one, Keys) else ""
                self.feed_key_callback(KeyPress(one, data))

    def _string(self, text: str) -> None:
        found = _BACKGROUND.match(text)
        if found:
            red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
            self.report(Brightness(0.299 * red + 0.587 * green + 0.114 * blue > 0.5))


def _numbers(parameters: str) -> tuple[int, ...]:
    """The first number of each parameter; what follows a colon is a variant of it."""
    parts = (part.partition(":")[0] for part in parameters.split(";"))
    return tuple(int(part) if part.isdigit() else 1 for part in parts)


def _key(code: int, modifiers: int = 1, *_: int) -> Keys | str | tuple[Keys | str, ...] | None:
    """The key of a code and its modifiers in the kitty protocol."""
    held = (modifiers - 1) & 7
    if code == 13 and held:
        return _NEW_LINE
    if code == 9 and held & _SHIFT:
        return Keys.BackTab
    base = _NAMED.get(code)
    if base is None:
        if code < 32 or 0xD800 <= code < 0xF900 or code > 0x10FFFF:
            return None
        base = chr(code)
        control = ANSI_SEQUENCES.get(chr(code & 0x1F)) if held & _CONTROL else None
        if isinstance(control, Keys) and 0x40 <= code < 0x80:
            base = control
        elif held & _SHIFT:
            base = base.upper()
    return (Keys.Escape, base) if held & _ALT and base is not Keys.Escape else base


def terminal_input(stdin: TextIO, early: EarlyPrompt | None = None) -> "Input":
    """The input of a terminal; what was typed into the early prompt comes first."""
    from prompt_toolkit.input.vt100 import Vt100Input  # noqa: PLC0415 - not on Windows

    class TerminalInput(Vt100Input):
        """Reads a whole paste before its keys are handled."""

        def __init__(self, stdin: TextIO) -> None:
            super().__init__(stdin)
            self.vt100_parser = TerminalParser(self._buffer_key)
            self._early = early

        def _buffer_key(self, key: KeyPress) -> None:
            self._buffer.append(key)

        def read_keys(self) -> list[KeyPress]:
            """Reads what there is."""
            ahead, self._early = self._early, None
            if ahead is not None:
                # Its last character may be incomplete.
                decoder = self.stdin_reader._stdin_decoder  # pyright: ignore[reportPrivateUsage]
                self.vt100_parser.feed(decoder.decode(ahead.take()))
            read = 0
            while read < _AT_ONCE:
                data = self.stdin_reader.read(65536)
                if not data:
                    break
                read += len(data)
                self.vt100_parser.feed(data)
            found, self._buffer = self._buffer, []
            return found

    return TerminalInput(stdin)


def parser_of(terminal: "Input") -> TerminalParser | None:
    """The parser of an input that `terminal_input` made."""
    found = getattr(terminal, "vt100_parser", None)
    return found if isinstance(found, TerminalParser) else None
