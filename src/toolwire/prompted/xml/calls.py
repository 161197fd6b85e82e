"""Reader of one call, from its first parameter to its end."""

import re
from collections.abc import Callable

from toolwire.events import Notice, ToolCallEnded, ToolCallStarted
from toolwire.prompted.xml.long import LongParameter, XmlStep
from toolwire.prompted.xml.shape import Shape, XmlTool, is_short
from toolwire.prompted.xml.tokens import Token, TokenKind, XmlOutput
from toolwire.prompted.xml.values import CDATA, CDATA_END, json_of
from toolwire.wire.json_access import dump

_FIRST_LINE_END = re.compile(r"[ \t]*\r?\n")


class ArgumentWriter:
    """Writes one JSON object, or the one text of a freeform call, piece by piece."""

    def __init__(self, output: XmlOutput, call_id: str, *, freeform: bool) -> None:
        self._output = output
        self._id = call_id
        self._freeform = freeform
        self._begun = False
        self._verbatim = False

    def open_text(self, name: str) -> None:
        """Start a text argument."""
        if not self._freeform:
            self._key(name)
            self._write('"')

    def text(self, piece: str) -> None:
        """Append to the open text argument."""
        if piece:
            self._write(piece if self._freeform else dump(piece)[1:-1])

    def close_text(self) -> None:
        """End the open text argument."""
        if not self._freeform:
            self._write('"')

    def value(self, name: str, json: str) -> None:
        """Write a complete argument."""
        if not self._freeform:
            self._key(name)
            self._write(json)

    def verbatim(self, piece: str) -> None:
        """Append to the object as the model wrote it."""
        self._verbatim = True
        self._write(piece)

    def finish(self) -> None:
        """End the arguments."""
        if not self._freeform and not self._verbatim:
            self._write("}" if self._begun else "{}")

    def _key(self, name: str) -> None:
        self._write(f"{',' if self._begun else '{'}{dump(name)}:")
        self._begun = True

    def _write(self, piece: str) -> None:
        self._output.arguments(self._id, piece)


class FreeText:
    """Writes free text without the line ends next to its tags."""

    def __init__(self, writer: ArgumentWriter) -> None:
        self._writer = writer
        self._first: list[str] | None = []
        self._last: list[str] = []

    def write(self, text: str) -> None:
        """Write text; a possible last line end is held until more arrives."""
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
        """End the text at its closing tag."""
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


class _Collected:
    """Collects text until its parameter is complete."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def write(self, text: str) -> None:
        self.pieces.append(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class CallReader:
    """One per call. `take` every token until the call ends, then `watch` until it is certain."""

    def __init__(
        self, tool: XmlTool, tags: frozenset[str], output: XmlOutput, new_id: Callable[[], str]
    ) -> None:
        self.tool = tool
        self._tags = tags
        self._output = output
        self._id = new_id()
        self._seen: set[str] = set()
        self._name = ""
        self._shape: Shape = tool.field("")
        self._repeated = False
        self._long: LongParameter | None = None
        self._kept = _Collected()
        self._free: FreeText | None = None
        self._state: Callable[[Token], XmlStep] = self._between
        self._maybe_end: list[str] = []
        self._words_dropped = False
        started = ToolCallStarted(self._id, tool.name, tool.kind, tool.namespace, made_id=True)
        output.add(started)
        self._writer = ArgumentWriter(output, self._id, freeform=tool.freeform is not None)

    def take(self, token: Token) -> XmlStep:
        """The next token."""
        return self._state(token)

    def watch(self, token: Token) -> bool:
        """Whether a token after the end shows that the call continued up to here."""
        return self._long is not None and self._long.watch(token)

    def begin_json(self) -> None:
        """The arguments are written as one JSON object, without tags."""
        self._state = self._in_json

    def finish(self, *, cut: bool) -> bool:
        """End the call; returns whether it is complete."""
        whole = self._long is not None and not cut and self._long.end()
        if whole and self._long is not None:
            self._write_long(self._long)
            self._writer.finish()
        self.end(complete=whole)
        return whole

    def end(self, *, complete: bool) -> None:
        """Emit the end event."""
        self._output.add(ToolCallEnded(self._id, complete=complete))

    @property
    def waits(self) -> bool:
        """Whether the end of a free text may still move."""
        return self._long is not None

    @property
    def between(self) -> bool:
        """Whether no parameter is open."""
        return self._state == self._between

    def _between(self, token: Token) -> XmlStep:
        if token.kind is TokenKind.CLOSE and token.name == self.tool.tag:
            self._writer.finish()
            self.end(complete=True)
            return XmlStep.CALL_ENDED
        if token.kind in (TokenKind.OPEN, TokenKind.EMPTY):
            self._begin(token.name)
            if token.kind is TokenKind.EMPTY:
                self._end_value("")
        elif not token.raw.isspace() and not self._words_dropped:
            self._words_dropped = True
            self._notice("stray_text", "text between its parameters was left out")
        return XmlStep.GOES_ON

    def _begin(self, name: str) -> None:
        self._name = name
        self._shape = self.tool.field(name)
        self._repeated = name in self._seen
        self._seen.add(name)
        self._kept = _Collected()
        self._state = self._at_start
        if self._repeated:
            self._notice("repeated_parameter", f'"{name}" is repeated; the first one counts')

    def _at_start(self, token: Token) -> XmlStep:
        """After the opening tag: decides between a CDATA, short or long value."""
        if token.kind is TokenKind.TEXT and token.raw.isspace():
            self._kept.write(token.raw)
            return XmlStep.GOES_ON
        live = self._shape.plain_text and not self._repeated
        if token.kind is TokenKind.CDATA:
            self._kept = _Collected()
            if live:
                self._writer.open_text(self._name)
            self._state = self._in_cdata
            return XmlStep.GOES_ON
        if self._repeated or is_short(self._name, self._shape):
            self._state = self._in_short
            return self._in_short(token)
        if live:
            self._writer.open_text(self._name)
            self._free = FreeText(self._writer)
            self._free.write(self._kept.text)
        self._long = LongParameter(self._name, self.tool, self._tags, self._seen)
        self._state = self._in_long
        return self._in_long(token)

    def _in_short(self, token: Token) -> XmlStep:
        if self._closes(token):
            self._end_value(self._kept.text)
        else:
            self._kept.write(token.raw)
        return XmlStep.GOES_ON

    def _in_long(self, token: Token) -> XmlStep:
        assert self._long is not None  # noqa: S101 - set together with this state
        return self._long.take(token, self._free or self._kept)

    def _write_long(self, long: LongParameter) -> None:
        others = long.parameters(self._free or self._kept)
        if self._free is not None:
            self._free.end()
            self._writer.close_text()
        else:
            self._writer.value(self._name, json_of(self._shape, self._kept.text))
        for name, text in others:
            shape = self.tool.field(name)
            self._writer.value(name, json_of(shape, text, trim=is_short(name, shape)))

    def _in_cdata(self, token: Token) -> XmlStep:
        if self._maybe_end:
            if self._closes(token):
                self._end_cdata()
                return XmlStep.GOES_ON
            if token.kind is TokenKind.TEXT and token.raw.isspace():
                self._maybe_end.append(token.raw)
                return XmlStep.GOES_ON
            ended, self._maybe_end = self._maybe_end, []
            if token.kind is TokenKind.CDATA and len(ended) == 1:
                return XmlStep.GOES_ON
            self._write_cdata("".join(ended))
        if token.kind is TokenKind.CDATA_END:
            self._maybe_end = [token.raw]
        else:
            self._write_cdata(token.raw)
        return XmlStep.GOES_ON

    def _write_cdata(self, text: str) -> None:
        if self._shape.plain_text and not self._repeated:
            self._writer.text(text)
        else:
            self._kept.write(text)

    def _end_cdata(self) -> None:
        self._maybe_end = []
        if self._shape.plain_text and not self._repeated:
            self._writer.close_text()
            self._state = self._between
        else:
            # A joined text may look like two; only the outermost CDATA marks are real.
            joined = self._kept.text.replace(CDATA_END, f"]]{CDATA_END}{CDATA}>")
            self._end_value(CDATA + joined + CDATA_END)

    def _end_value(self, text: str) -> None:
        if not self._repeated:
            trim = is_short(self._name, self._shape)
            self._writer.value(self._name, json_of(self._shape, text, trim=trim))
        self._state = self._between

    def _in_json(self, token: Token) -> XmlStep:
        """Passes the object on as it arrives; it ends at its last brace before the closing tag."""
        if self._maybe_end and token.kind is TokenKind.CLOSE and token.name == self.tool.tag:
            self._writer.verbatim(self._maybe_end[0])
            self.end(complete=True)
            return XmlStep.CALL_ENDED
        body = token.raw.rstrip()
        if not body and self._maybe_end:
            self._maybe_end.append(token.raw)
            return XmlStep.GOES_ON
        self._writer.verbatim("".join(self._maybe_end))
        self._maybe_end = []
        if body.endswith("}"):
            self._writer.verbatim(body[:-1])
            self._maybe_end = ["}", token.raw[len(body) :]]
        else:
            self._writer.verbatim(token.raw)
        return XmlStep.GOES_ON

    def _closes(self, token: Token) -> bool:
        return token.kind is TokenKind.CLOSE and token.name == self._name

    def _notice(self, kind: str, message: str) -> None:
        self._output.add(Notice(kind, f'call of "{self.tool.name}": {message}'))
