"""Streaming reader of answers that are one JSON object: a reply or calls."""

import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias, TypeVar

import msgspec

from toolwire.events import Finished, ModelEvent, Notice, StopReason, TextDelta, TextEnded
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.names import ToolNames
from toolwire.wire.partial import JsonValue, high_surrogate, unfinished_escape
from toolwire.wire.surrogates import without_halves

_MOST_SHOWN = 2000
_BY_ITSELF = (StopReason.END, StopReason.TOOL_CALLS)
_OTHER_ENDS = (StopReason.REFUSAL, StopReason.CONTENT_FILTER, StopReason.ERROR, StopReason.PAUSE)

_blanks = re.compile(r"[ \t\n\r]*").match
_body = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+').match
_unescape = json.JSONDecoder().raw_decode
_decode = msgspec.json.Decoder().decode

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""Yields to wait for more text."""


class _Invalid(Exception):
    """The answer does not match the requested form."""


class JsonAnswer:
    """One per answer; `raw_reply` passes a reply's JSON on unchanged, for replies with a schema."""

    def __init__(
        self, new_id: Callable[[], str], names: ToolNames, *, raw_reply: bool = False
    ) -> None:
        self._tracker = ToolCallTracker(new_id, names)
        self._raw_reply = raw_reply
        self._text = ""
        self._at = 0
        self._out: list[ModelEvent] = []
        self._steps = self._answer()
        self._shown: list[str] = []
        self._size = 0
        self._complete = False
        self._broken = ""
        self._extra = False

    def read(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """The events for one event of the model."""
        match event:
            case TextDelta():
                yield from self._feed(event.text)
            case TextEnded():
                # Its seal belongs to the JSON text, which is not passed on.
                return
            case Finished():
                yield from self._finish(event)
            case _:
                yield event

    def _feed(self, text: str) -> list[ModelEvent]:
        if self._size < _MOST_SHOWN:
            self._shown.append(text)
        self._size += len(text)
        if self._broken:
            return []
        self._text = self._text[self._at :] + text
        self._at = 0
        if not self._complete:
            self._advance()
        if self._complete:
            self._extra = self._extra or bool(self._text[self._at :].strip())
            self._at = len(self._text)
        out, self._out = self._out, []
        return out

    def _advance(self) -> None:
        try:
            next(self._steps)
        except StopIteration:
            self._complete = True
        except _Invalid as error:
            self._broken = str(error)
            self._out += self._tracker.end_all(complete=False)

    def _finish(self, event: Finished) -> Iterator[ModelEvent]:
        yield from self._tracker.end_all(complete=False)
        reason, detail = event.reason, event.detail
        problem = self._broken
        if not problem and not self._complete and reason in _BY_ITSELF and self._size:
            problem = "the JSON stops in the middle"
        if not self._size and reason is StopReason.END:
            problem = "the answer is empty"
        if problem:
            yield Notice("malformed_answer", f"{problem}; the answer was: {self._excerpt()}")
            if reason not in _OTHER_ENDS:
                reason, detail = StopReason.MALFORMED_CALL, problem
        elif self._extra:
            yield Notice("extra_text", f"text after the answer was left out: {self._excerpt()}")
        if reason is StopReason.END and len(self._tracker):
            reason = StopReason.TOOL_CALLS
        yield msgspec.structs.replace(event, reason=reason, detail=detail)

    def _excerpt(self) -> str:
        text = "".join(self._shown)
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

    def _answer(self) -> Steps[None]:
        yield from self._char("{")
        key = yield from self._key()
        if key == "reply":
            yield from self._reply()
            yield from self._char("}")
        elif key == "calls":
            yield from self._char("[")
            found = ","
            while found == ",":
                yield from self._char("{")
                yield from self._call((yield from self._key()))
                found = yield from self._char(",]")
            yield from self._char("}")
        else:
            yield from self._call(key)

    def _call(self, key: str) -> Steps[None]:
        """Reads a call after its first member's name, up to its closing brace."""
        handle = len(self._tracker)
        name = ""
        waiting: str | None = None
        given = False
        while True:
            if key == "tool" and not name:
                name = yield from self._name()
                self._out += self._tracker.start(handle, name, None)
                if waiting is not None:
                    self._out += self._tracker.append(handle, waiting)
            elif key == "arguments" and not given:
                given = True
                waiting = yield from self._arguments(handle if name else None)
            else:
                raise _Invalid(f'unexpected member "{key}"')
            if (yield from self._char(",}")) == "}":
                break
            key = yield from self._key()
        if not name or not given:
            raise _Invalid('a call needs "tool" and "arguments"')
        self._out += self._tracker.end(handle)

    def _arguments(self, handle: int | None) -> Steps[str]:
        if (yield from self._peek()) != "{":
            raise _Invalid('"arguments" is not an object')
        value = JsonValue()
        while True:
            start = self._at
            end = value.feed(self._text, start)
            self._at = len(self._text) if end < 0 else end
            if handle is not None and self._at > start:
                self._out += self._tracker.append(handle, self._text[start : self._at])
            if end >= 0:
                break
            yield
        return _checked(value, "arguments")

    def _reply(self) -> Steps[None]:
        opening = yield from self._peek()
        if self._raw_reply and opening in ("{", "["):
            yield from self._raw()
        elif opening == '"' and not self._raw_reply:
            yield from self._string(lambda text: self._out.append(TextDelta(text)))
        else:
            raise _Invalid('"reply" does not have the requested type')

    def _raw(self) -> Steps[None]:
        value = JsonValue()
        while True:
            start = self._at
            end = value.feed(self._text, start)
            self._at = len(self._text) if end < 0 else end
            if self._at > start:
                self._out.append(TextDelta(self._text[start : self._at]))
            if end >= 0:
                break
            yield
        _checked(value, "reply")

    def _key(self) -> Steps[str]:
        parts: list[str] = []
        yield from self._string(parts.append)
        yield from self._char(":")
        return "".join(parts)

    def _name(self) -> Steps[str]:
        parts: list[str] = []
        yield from self._string(parts.append)
        if not any(parts):
            raise _Invalid("a call has no name")
        return "".join(parts)

    def _string(self, take: Callable[[str], object]) -> Steps[None]:
        """Reads a string; each piece is passed to `take` as soon as it is complete."""
        yield from self._char('"')
        while True:
            found = _body(self._text, self._at)
            end = found.end() if found else self._at
            body = self._text[self._at : end]
            rest = self._text[end : end + 7]
            is_open = not rest or (rest[0] == "\\" and unfinished_escape(rest) is not None)
            if is_open and body[-6:-5] == "\\" and (high := high_surrogate(body)) is not None:
                # A lone surrogate waits for its other half.
                body = body[: high.start(1)]
            if body:
                take(without_halves(_unescape(f'"{body}"')[0]) if "\\" in body else body)
            self._at += len(body)
            if not is_open:
                break
            yield
        if rest[0] != '"':
            raise _Invalid("a string contains a character or an escape that JSON does not allow")
        self._at = end + 1

    def _peek(self) -> Steps[str]:
        while True:
            found = _blanks(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            yield

    def _char(self, allowed: str) -> Steps[str]:
        char = yield from self._peek()
        if char not in allowed:
            raise _Invalid(f"expected {' or '.join(allowed)}, got {char}")
        self._at += 1
        return char


def _checked(value: JsonValue, member: str) -> str:
    text = value.text
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _Invalid(f'"{member}" is not valid JSON: {error}') from error
    return text
