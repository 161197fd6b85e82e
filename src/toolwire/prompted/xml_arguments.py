"""The arguments of a call as growing text: what is written is never taken back."""

import re

from toolwire.prompted.xml_output import Output
from toolwire.wire.json_access import dump

_FIRST_LINE_END = re.compile(r"[ \t]*\r?\n")


class ArgumentWriter:
    """Writes one JSON object, or the one text of a freeform call, piece by piece."""

    def __init__(self, output: Output, call_id: str, *, freeform: bool) -> None:
        self._output = output
        self._id = call_id
        self._freeform = freeform
        self._begun = False
        self._verbatim = False

    def open_text(self, name: str) -> None:
        """A text argument begins."""
        if not self._freeform:
            self._key(name)
            self._write('"')

    def text(self, piece: str) -> None:
        """More of the open text argument."""
        if piece:
            self._write(piece if self._freeform else dump(piece)[1:-1])

    def close_text(self) -> None:
        """The open text argument is whole."""
        if not self._freeform:
            self._write('"')

    def value(self, name: str, json: str) -> None:
        """A whole argument."""
        if not self._freeform:
            self._key(name)
            self._write(json)

    def verbatim(self, piece: str) -> None:
        """More of the object as the model writes it itself."""
        self._verbatim = True
        self._write(piece)

    def finish(self) -> None:
        """No more arguments."""
        if not self._freeform and not self._verbatim:
            self._write("}" if self._begun else "{}")

    def _key(self, name: str) -> None:
        self._write(f"{',' if self._begun else '{'}{dump(name)}:")
        self._begun = True

    def _write(self, piece: str) -> None:
        self._output.arguments(self._id, piece)


class FreeText:
    """Free text on its way out, without the line ends next to its tags."""

    def __init__(self, writer: ArgumentWriter) -> None:
        self._writer = writer
        self._first: list[str] | None = []
        self._last: list[str] = []

    def write(self, text: str) -> None:
        """More of it; what may be its last line end is kept back."""
        if self._first is not None:
            self._first.append(text)
            if not text.strip(" \t\r"):
                return
            text = "".join(self._first)
            self._first = None
            if found := _FIRST_LINE_END.match(text):
                text = text[found.end() :]
        if self._last:
            if not text.strip(" \t") and self._last != ["\r"]:
                self._last.append(text)
                return
            text = "".join((*self._last, text))
        end = _before_last_line_end(text)
        self._last = [text[end:]] if end < len(text) else []
        self._writer.text(text[:end])

    def end(self) -> None:
        """The closing tag follows."""
        if self._first is not None:
            self._writer.text("".join(self._first))
        elif self._last == ["\r"]:
            self._writer.text("\r")
        self._last = []


def _before_last_line_end(text: str) -> int:
    if text.endswith("\r"):
        return len(text) - 1
    end = len(text.rstrip(" \t"))
    if not end or text[end - 1] != "\n":
        return len(text)
    return end - 2 if text[end - 2 : end] == "\r\n" else end - 1
