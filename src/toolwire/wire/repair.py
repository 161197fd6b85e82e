"""Arguments of a call: strict JSON first, then a repair that reports what it changed."""

import json
import re
from typing import Any, cast

import msgspec

from toolwire.request import JsonObject

_token = re.compile(
    r"""
      (?P<space>\s++)
    | (?P<string>"(?:[^"\\]|\\.)*+")
    | (?P<single>'(?:[^'\\]|\\.)*+')
    | (?P<smart>“[^”]*+”)
    | (?P<comment>//[^\n]*+|/\*(?s:.*?)\*/|\#[^\n]*+)
    | (?P<mark>[{}\[\],:])
    | (?P<open>["'“](?s:.*+))
    | (?P<word>[^\s{}\[\],:"'“]++)
    """,
    re.VERBOSE | re.DOTALL,
).match
_escape = re.compile(
    r"""
    \\(?:
        (?P<good>["\\/bfnrt]
            | u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
            | u(?![dD][89a-fA-F])[0-9a-fA-F]{4})
        | (?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})
        | (?P<bad>.?)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_surrogate = re.compile("[\ud800-\udfff]")
_control = re.compile(r"[\x00-\x1f]")
_number = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?").fullmatch
_loose_number = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?").fullmatch
_hex_number = re.compile(r"0[xX][0-9a-fA-F]{1,16}").fullmatch
_half_escape = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").search
_WORDS = {"true": "true", "false": "false", "null": "null"}
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_NOT_JSON = frozenset({"NaN", "Infinity", "-Infinity", "undefined", "nan", "inf", "-inf"})

_KEY, _COLON, _VALUE, _AFTER, _DONE = range(5)


class Unrepairable(Exception):
    """The faults are not of the known kinds."""


class JsonRepair:
    """Repairs text that begins with `{` to JSON; `changes` reports what it did and where.

    `offset` is the position of this text in the whole.
    """

    def __init__(self, text: str, offset: int) -> None:
        self._text = text
        self._offset = offset
        self._out: list[str] = []
        self._stack: list[str] = []
        self._state = _VALUE
        self._tally: dict[str, tuple[int, int]] = {}
        self.truncated = False
        self.end = 0
        """Position after the object."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Each kind of change with its count and the position of the first."""
        return tuple(
            f"{kind} ({count} times, first at character {at})"
            if count > 1
            else f"{kind} (at character {at})"
            for kind, (count, at) in self._tally.items()
        )

    def run(self) -> str:
        """The repaired text."""
        at = 0
        while at < len(self._text) and self._state != _DONE:
            token = _token(self._text, at)
            if token is None or token.lastgroup is None:
                raise Unrepairable
            self._read(token.lastgroup, token[0], at)
            at = token.end()
        self.end = at
        if self._state != _DONE:
            self._close_all()
        return "".join(self._out)

    def _note(self, kind: str, at: int) -> None:
        count, first = self._tally.get(kind, (0, at + self._offset))
        self._tally[kind] = (count + 1, first)

    def _read(self, kind: str, text: str, at: int) -> None:
        if kind == "space":
            return
        if kind == "comment":
            self._note("removed a comment", at)
        elif kind == "mark":
            self._mark(text, at)
        elif kind == "word":
            self._word(text, at)
        elif kind == "open":
            self._open_string(text, at)
        else:
            if kind != "string":
                self._note("changed other quotes to double quotes", at)
            self._put_string(self._string(text[1:-1], kind, at), at)

    def _open_string(self, text: str, at: int) -> None:
        # A string that never closes: either the text was cut, or the quotes are in disorder.
        if text[0] != '"' or self._state == _COLON:
            raise Unrepairable
        self.truncated = True
        if self._state == _KEY:
            self._note("dropped an unfinished key", at)
            return
        body = text[1:]
        half = _half_escape(body)
        if half is not None and (half.start() == 0 or body[half.start() - 1] != "\\"):
            body = body[: half.start()]
        self._put_string(self._string(body, "string", at), at)
        self._note("closed an open string", at)

    def _string(self, body: str, kind: str, at: int) -> str:
        if kind != "string":
            body = body.replace("\\'", "'")
            body = re.sub(r'(?<!\\)((?:\\\\)*+)"', r"\1\\" + '"', body)

        def escape(found: "re.Match[str]") -> str:
            if found["good"] is not None:
                return found[0]
            if found["half"] is not None:
                self._note("replaced half of a surrogate pair", at)
                return "\ufffd"
            self._note("kept a backslash that escapes nothing", at)
            return "\\\\" + found["bad"]

        body = _escape.sub(escape, body)
        if _surrogate.search(body):
            self._note("replaced half of a surrogate pair", at)
            body = _surrogate.sub("\ufffd", body)
        if _control.search(body):
            self._note("escaped line breaks or control characters in a string", at)
            body = _control.sub(lambda found: json.dumps(found[0])[1:-1], body)
        return f'"{body}"'

    def _put_string(self, text: str, at: int) -> None:
        if self._state == _AFTER:
            self._comma(at)
        if self._state == _KEY:
            self._out.append(text)
            self._state = _COLON
        elif self._state == _VALUE:
            self._out.append(text)
            self._state = _AFTER
        else:
            raise Unrepairable

    def _comma(self, at: int) -> None:
        self._note("added a missing comma", at)
        self._mark(",", at)

    def _mark(self, char: str, at: int) -> None:
        if char in "{[":
            if self._state == _AFTER:
                self._comma(at)
            if self._state != _VALUE:
                raise Unrepairable
            self._stack.append(char)
            self._out.append(char)
            self._state = _KEY if char == "{" else _VALUE
        elif char == ":":
            if self._state != _COLON:
                raise Unrepairable
            self._out.append(":")
            self._state = _VALUE
        elif char == ",":
            if self._state != _AFTER:
                raise Unrepairable
            self._out.append(",")
            self._state = _KEY if self._stack[-1] == "{" else _VALUE
        else:
            self._close(char, at)

    def _close(self, char: str, at: int) -> None:
        if not self._stack or self._stack[-1] != ("{" if char == "}" else "["):
            raise Unrepairable
        if self._out[-1] == ",":
            self._out.pop()
            self._note("removed a trailing comma", at)
        elif self._out[-1] == ":" or self._state == _COLON:
            raise Unrepairable
        self._stack.pop()
        self._out.append(char)
        self._state = _AFTER if self._stack else _DONE

    def _word(self, text: str, at: int) -> None:
        if self._state == _AFTER:
            raise Unrepairable
        if self._state == _KEY:
            self._note("quoted a key", at)
            self._put_string(json.dumps(text), at)
            return
        if at + len(text) == len(self._text):
            # The last token of cut text may be half a number: it is not guessed.
            self.truncated = True
            self._note("dropped an unfinished value", at)
            return
        self._out.append(self._literal(text, at))
        self._state = _AFTER

    def _literal(self, text: str, at: int) -> str:
        if text in _WORDS or _number(text):
            return text
        if text in _PYTHON:
            self._note("replaced Python's True, False or None", at)
            return _PYTHON[text]
        if text in _NOT_JSON:
            self._note(f"replaced {text}, which JSON has not, by null", at)
            return "null"
        if text.lower() in _WORDS:
            self._note("wrote true, false or null in small letters", at)
            return text.lower()
        if _hex_number(text):
            self._note("rewrote a hexadecimal number", at)
            return str(int(text, 16))
        if _loose_number(text) and len(text) < 40:
            self._note("rewrote a number", at)
            return str(float(text)) if "." in text or "e" in text.lower() else str(int(text))
        self._note("quoted a bare word", at)
        return json.dumps(text)

    def _close_all(self) -> None:
        at = len(self._text)
        self.truncated = True
        while self._out and self._out[-1] in (",", ":"):
            if self._out.pop() == ":":
                self._out.pop()
                self._note("dropped a member without a value", at)
        if self._state == _COLON:
            self._out.pop()
            self._note("dropped a member without a value", at)
            if self._out[-1] == ",":
                self._out.pop()
        for opener in reversed(self._stack):
            self._note("closed an open bracket", at)
            self._out.append("}" if opener == "{" else "]")


LARGEST_REPAIR = 1_000_000
"""Characters; longer text is not repaired."""

_decode = msgspec.json.Decoder().decode
_fence = re.compile(r"\s*```[\w-]*[ \t]*\n?(.*?)\n?\s*(?:```\s*)?", re.DOTALL).fullmatch
_LONGEST_SHOWN = 60


class Parsed(msgspec.Struct, frozen=True):
    """Parsed arguments. Only `exact` ones are what the model wrote."""

    value: JsonObject | None
    """None if the text contains no object."""
    changes: tuple[str, ...] = ()
    """Descriptions of the repairs, with positions in the text."""
    error: str = ""
    """Why there is no value, or why the text was not JSON."""
    truncated: bool = False
    """Whether the text was cut; the value is then only its beginning."""

    @property
    def exact(self) -> bool:
        """Whether the text was a JSON object, or empty."""
        return self.value is not None and not self.changes and not self.error


def parse_arguments(text: str) -> Parsed:
    """Parses the arguments of a call and reports every repair."""
    if not text or text.isspace():
        return Parsed({})
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        return _repaired(text, str(error))
    except RecursionError:
        return Parsed(None, error="nested too deeply")
    if isinstance(value, dict):
        return Parsed(cast(JsonObject, value))
    return _not_an_object(value)


def _not_an_object(value: Any) -> Parsed:
    if value is None:
        return Parsed({}, ("read null as no arguments",))
    if isinstance(value, str):
        inner = parse_arguments(value)
        if inner.value is None or not value.strip():
            return Parsed(None, error="arguments are a JSON string, not an object")
        unwrapped = "unwrapped a JSON string that held the object"
        return Parsed(inner.value, (unwrapped, *inner.changes), inner.error, inner.truncated)
    name = "array" if isinstance(value, list) else "number"
    if isinstance(value, bool):
        name = "boolean"
    return Parsed(None, error=f"arguments are a JSON {name}, not an object")


def _repaired(text: str, error: str) -> Parsed:
    if len(text) > LARGEST_REPAIR:
        why = f"{len(text)} characters, and only {LARGEST_REPAIR} are repaired"
        return Parsed(None, error=f"{error}; not repaired: {why}")
    changes: list[str] = []
    offset = 0
    fence = _fence(text)
    if fence is not None:
        changes.append("removed a code fence")
        text, offset = fence[1], fence.start(1)
    start = text.find("{")
    if start < 0 or text.lstrip()[:1] == "[":
        return Parsed(None, error=f"{error}; there is no object in the text")
    if text[:start].strip():
        changes.append(f"removed text before the object: {_shown(text[:start])}")
    return _parse_repaired(text[start:], offset + start, changes, error)


def _parse_repaired(text: str, offset: int, changes: list[str], error: str) -> Parsed:
    repair = JsonRepair(text, offset)
    try:
        value = _decode(repair.run())
    except (Unrepairable, msgspec.DecodeError, UnicodeError, RecursionError):
        return Parsed(None, error=f"{error}; the text is too disordered to repair")
    rest = text[repair.end :].strip()
    if rest.startswith("{"):
        return Parsed(None, error="several objects are glued together")
    if rest:
        changes.append(f"removed text after the object: {_shown(rest)}")
    if repair.truncated:
        changes.append(f"the text stops in the middle, after {offset + len(text)} characters")
    changes.extend(repair.changes)
    return Parsed(value, tuple(changes), error, repair.truncated)


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")
