"""JSON text that is still arriving: its end, and a live view that is never used to run a call."""

import json
import re
from typing import Any, NoReturn, cast

EXACT = 1000
"""Up to this many characters an open string is shown whole."""
LAG = 0.15
"""Beyond, at most this share of it is not shown."""
DEEPEST = 500
"""Maximum nesting."""

_VALUE, _FIRST_ITEM, _KEY, _FIRST_KEY, _COLON, _AFTER, _STRING, _SCALAR, _DONE = range(9)

_plain = re.compile(r'[^"\\]*+').match
_body = re.compile(r'(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+').match
unfinished_escape = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").fullmatch
high_surrogate = re.compile(r"(?<!\\)(?:\\\\)*+(\\u[dD][89abAB][0-9a-fA-F]{2})\Z").search
_space = re.compile(r"[ \t\n\r]*+").match
_scalar = re.compile(r"[-+.0-9A-Za-z]*+").match
_number = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][-+]?[0-9]++)?").fullmatch
_LITERALS = {"true": True, "false": False, "null": None}
_unescape = json.JSONDecoder(strict=False).raw_decode


def _integer(word: str) -> int:
    if len(word) > EXACT:
        raise ValueError("too long a number")
    return int(word)


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_whole = json.JSONDecoder(strict=False, parse_int=_integer, parse_constant=_constant).decode


class PartialJson:
    """Scans each character once, in any chunking, and only when the view is read.

    `value` is the tree so far: members appear when their value begins, numbers and words when they
    are whole, strings grow. It is the live tree, to be looked at and not kept. An open string of
    up to 1,000 characters is shown whole, a longer one lags behind by at most 15 %, so that a look
    after each piece costs what the piece costs; `exact()` shows all of it.
    """

    def __init__(self) -> None:
        self._fed: list[str] = []
        """Text received since the last read."""
        self._broken = False
        self._root: Any = None
        self._stack: list[dict[str, Any] | list[Any]] = []
        self._state = _VALUE
        self._key = ""
        self._is_key = False
        self._parts: list[str] = []
        self._shown = 0
        self._waiting = 0
        self._held = ""

    @property
    def value(self) -> Any:
        """The tree so far; None at the start."""
        if self._fed:
            self._read()
        if self._waiting and (
            self._shown + self._waiting <= EXACT or self._waiting > self._shown * LAG
        ):
            self.exact()
        return self._root

    @property
    def complete(self) -> bool:
        """Whether the outermost value has ended."""
        if self._fed:
            self._read()
        return self._state == _DONE and not self._broken

    @property
    def broken(self) -> bool:
        """Whether the text can no longer become JSON; the view is then final."""
        if self._fed:
            self._read()
        return self._broken

    def exact(self) -> Any:
        """The tree with all of the open string, at the cost of its whole length."""
        if self._fed:
            self._read()
        if self._waiting and not self._is_key:
            text = "".join(self._parts)
            self._parts = [text]
            self._shown = len(text)
            self._waiting = 0
            self._put(text, replace=True)
        return self._root

    def feed(self, text: str) -> None:
        """Adds text; it is scanned when the view is read."""
        self._fed.append(text)

    def _read(self) -> None:
        fed = self._fed
        text = fed[0] if len(fed) == 1 else "".join(fed)
        fed.clear()
        if self._state == _STRING and not self._held:
            end = cast("re.Match[str]", _plain(text)).end()
            if end == len(text):
                self._parts.append(text)
                self._waiting += end
                return
        if self._broken or not text:
            return
        if self._state == _VALUE and not self._stack and self._read_whole(text):
            return
        if self._held:
            text = self._held + text
            self._held = ""
        at = 0
        while at < len(text) and not self._broken:
            at = self._step(text, at)

    def _read_whole(self, text: str) -> bool:
        """Whether the whole text arrived before the first read and was parsed at once."""
        # The parser has another limit of nesting than the scanner.
        if text[-1] not in "}]" or text.count("{") + text.count("[") > DEEPEST:
            return False
        try:
            self._root = _whole(text)
        except (ValueError, RecursionError):
            return False
        self._state = _DONE
        return True

    def _step(self, text: str, at: int) -> int:
        state = self._state
        if state == _STRING:
            return self._read_string(text, at)
        if state == _SCALAR:
            return self._read_scalar(text, at)
        at = cast("re.Match[str]", _space(text, at)).end()
        if at == len(text):
            return at
        char = text[at]
        if state == _AFTER:
            self._after(char)
        elif state == _COLON:
            self._expect(char == ":", _VALUE)
        elif state in (_KEY, _FIRST_KEY):
            if char == '"':
                self._open_string(is_key=True)
            elif char == "}" and state == _FIRST_KEY:
                self._close()
            else:
                self._broken = True
        elif state == _DONE:
            self._broken = True
        else:
            return self._begin(char, at)
        return at + 1

    def _begin(self, char: str, at: int) -> int:
        if char == '"':
            self._put("")
            self._open_string(is_key=False)
        elif char == "{":
            self._open({}, _FIRST_KEY)
        elif char == "[":
            self._open([], _FIRST_ITEM)
        elif char == "]" and self._state == _FIRST_ITEM:
            self._close()
        elif char == "-" or char.isalnum():
            self._state = _SCALAR
            return at
        else:
            self._broken = True
        return at + 1

    def _after(self, char: str) -> None:
        top = self._stack[-1]
        if char == ",":
            self._state = _KEY if isinstance(top, dict) else _VALUE
        elif char == ("}" if isinstance(top, dict) else "]"):
            self._close()
        else:
            self._broken = True

    def _expect(self, found: bool, state: int) -> None:
        if found:
            self._state = state
        else:
            self._broken = True

    def _put(self, value: Any, *, replace: bool = False) -> None:
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        if isinstance(top, dict):
            top[self._key] = value
        elif replace:
            top[-1] = value
        else:
            top.append(value)

    def _open(self, container: "dict[str, Any] | list[Any]", state: int) -> None:
        if len(self._stack) >= DEEPEST:
            self._broken = True
            return
        self._put(container)
        self._stack.append(container)
        self._state = state

    def _close(self) -> None:
        self._stack.pop()
        self._ended()

    def _ended(self) -> None:
        self._state = _AFTER if self._stack else _DONE

    def _open_string(self, *, is_key: bool) -> None:
        self._is_key = is_key
        self._state = _STRING

    def _read_string(self, text: str, at: int) -> int:
        end = cast("re.Match[str]", _body(text, at)).end()
        body = text[at:end]
        open_still = end == len(text) or text[end] == "\\"
        if open_still:
            self._held = text[end:]
            if self._held and unfinished_escape(self._held) is None:
                self._broken = True
                self._held = ""
            # Wait for the other half of a surrogate pair.
            elif body[-6:-5] == "\\" and (high := high_surrogate(body)) is not None:
                self._held = high[1] + self._held
                body = body[: high.start(1)]
        if body:
            if "\\" in body:
                body = _unescape(f'"{body}"')[0]
            self._parts.append(body)
            self._waiting += len(body)
        if open_still:
            return len(text)
        self._close_string()
        return end + 1

    def _close_string(self) -> None:
        text = "".join(self._parts)
        self._parts.clear()
        self._shown = self._waiting = 0
        if self._is_key:
            self._key = text
            self._is_key = False
            self._state = _COLON
        else:
            self._put(text, replace=True)
            self._ended()

    def _read_scalar(self, text: str, at: int) -> int:
        end = cast("re.Match[str]", _scalar(text, at)).end()
        self._parts.append(text[at:end])
        if end == len(text):
            return end
        word = "".join(self._parts)
        self._parts.clear()
        number = _number(word)
        if word in _LITERALS:
            self._put(_LITERALS[word])
        elif number is None:
            self._broken = True
        elif number[1] or number[2]:
            self._put(float(word))
        elif len(word) > EXACT:
            self._broken = True
        else:
            self._put(int(word))
        self._ended()
        return end


_JSON = (re.compile(r'["{}\[\]]').search, {'"': re.compile(r'["\\]').search})
_PYTHON = (
    re.compile(r"""["'()\[\]{}]""").search,
    {quote: re.compile(rf"[{quote}\\]").search for quote in "\"'"},
)


class BracketScanner:
    """Finds the end of a bracketed JSON value or Python expression; scans each character once."""

    def __init__(self, *, python: bool = False) -> None:
        self._outside, self._inside = _PYTHON if python else _JSON
        self._parts: list[str] = []
        self._depth = 0
        self._quote = ""
        self._escaped = False

    @property
    def text(self) -> str:
        """The scanned text, unchanged."""
        return "".join(self._parts)

    def feed(self, text: str, at: int = 0) -> int:
        """The index after the end of the value, or -1 if it is incomplete."""
        end = self._find_end(text, at)
        self._parts.append(text[at:] if end < 0 else text[at:end])
        return end

    def _find_end(self, text: str, at: int) -> int:
        while at < len(text):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (self._inside[self._quote] if self._quote else self._outside)(text, at)
            if found is None:
                return -1
            at = found.end()
            match found[0]:
                case "\\":
                    self._escaped = True
                case '"' | "'":
                    self._quote = "" if self._quote else found[0]
                case "(" | "[" | "{":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth <= 0:
                        return at
        return -1


class JsonValue(BracketScanner):
    """One JSON object or array, with a live view of it."""

    def __init__(self) -> None:
        super().__init__()
        self._view = PartialJson()

    @property
    def broken(self) -> bool:
        """Whether the text can no longer become JSON."""
        return self._view.broken

    @property
    def first_key(self) -> str | None:
        """Name of the first member, or of the first object in an array; None while unknown."""
        value: Any = self._view.value
        if isinstance(value, list):
            items = cast(list[Any], value)
            value = items[0] if items else None
        return next(iter(cast(dict[str, Any], value)), None) if isinstance(value, dict) else None

    def feed(self, text: str, at: int = 0) -> int:
        """The index after the end of the value, or -1 if it is incomplete."""
        end = super().feed(text, at)
        self._view.feed(self._parts[-1])
        return end
