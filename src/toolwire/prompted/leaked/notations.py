"""Calls printed in notations other than JSON: Python expressions, arrows, Gemma's."""

import ast
import json
import re
from collections.abc import Callable
from typing import Any, cast

from toolwire.prompted.leaked.cursor import Cursor, Format, Spelled, Steps
from toolwire.prompted.leaked.marked_json import read_calls, spelled_calls


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_value_at = json.JSONDecoder(parse_constant=_refuse).raw_decode
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_WORDS = {"true": True, "false": False, "null": None}
_escape = re.compile(r"\\(.)", re.DOTALL)
_KNOWN_ESCAPES = frozenset("\\'\"abfnrtvxuU\n")


class _NoValue(Exception):
    """Text that is not a plain value."""


def literal(text: str) -> Any:
    """The value of a Python literal; raises ValueError for anything else."""
    try:
        return _value(ast.parse(_plain_escapes(text).strip(), mode="eval").body)
    except (_NoValue, SyntaxError, ValueError, RecursionError, MemoryError, UnicodeError) as error:
        raise ValueError("not a Python literal") from error


def python_calls(text: str) -> tuple[Spelled, ...] | None:
    """The calls of `[f(a=1), g()]`; None for anything else."""
    try:
        body = ast.parse(_plain_escapes(text).strip(), mode="eval").body
        items = body.elts if isinstance(body, ast.List) else []
        return tuple(map(_call, items)) or None
    except (_NoValue, SyntaxError, ValueError, RecursionError, MemoryError, UnicodeError):
        return None


def _plain_escapes(text: str) -> str:
    # Python keeps the backslash of an escape it does not know, but warns.
    return _escape.sub(lambda it: it[0] if it[1] in _KNOWN_ESCAPES else f"\\\\{it[1]}", text)


def _call(node: ast.expr) -> Spelled:
    if not isinstance(node, ast.Call) or node.args:
        raise _NoValue
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise _NoValue
        arguments[keyword.arg] = _value(keyword.value)
    return Spelled(_dotted(node.func), _dump(arguments))


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{_dotted(node.value)}.{node.attr}"
        case _:
            raise _NoValue


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() | int() | float() | None):
            return cast(Any, node.value)
        case ast.Name(id="true" | "false" | "null"):
            return _WORDS[node.id]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            return -cast(Any, node.operand).value
        case ast.List() | ast.Tuple():
            return [_value(item) for item in node.elts]
        case ast.Dict():
            return {
                _key(key): _value(item) for key, item in zip(node.keys, node.values, strict=True)
            }
        case _:
            raise _NoValue


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise _NoValue


def _either_list(cursor: Cursor, text: str) -> tuple[Spelled, ...]:
    calls = spelled_calls(text) or python_calls(text)
    if calls is None:
        raise cursor.fail("its list is not one of calls with named, plain values")
    return calls


def _lfm(cursor: Cursor) -> Steps[None]:
    yield from cursor.expect("<|tool_call_start|>")
    bracket = yield from cursor.peek()
    if bracket not in ("{", "["):
        raise cursor.fail("expected a call")
    cursor.sure = True
    if bracket == "{":
        calls = yield from read_calls(cursor)
    else:
        calls = _either_list(cursor, (yield from cursor.brackets()))
    yield from cursor.expect("<|tool_call_end|>")
    yield calls


def _pythonic(cursor: Cursor) -> Steps[None]:
    marked = yield from cursor.expect("<|python_start|>", "[")
    if marked != "[":
        yield from cursor.expect("[")
    name = yield from cursor.name()
    yield from cursor.expect("(")
    text = yield from cursor.brackets(f"[{name}(")
    cursor.sure = True
    calls = _either_list(cursor, text)
    if marked != "[":
        yield from cursor.expect("<|python_end|>")
    yield calls


_arrow = re.compile(
    r'\s*\{\s*tool\s*=>\s*"([^"\\]+)"\s*(?:,\s*args\s*=>\s*(\{.*\})\s*)?\}\s*', re.DOTALL
).fullmatch
_flag = re.compile(r'[\s,]*(?:--([\w-]+)\s+|"?([\w-]+)"?\s*:\s*)').match
_nothing_more = re.compile(r"[\s,]*\Z").match


def _minimax_arrow(cursor: Cursor) -> Steps[None]:
    yield from cursor.expect("[TOOL_CALL]")
    if (yield from cursor.peek()) != "{":
        raise cursor.fail("expected {tool => …}")
    cursor.sure = True
    found = _arrow((yield from cursor.until("[/TOOL_CALL]")))
    arguments = _arrow_arguments(found[2] or "{}") if found else None
    if found is None or arguments is None:
        raise cursor.fail("expected {tool => …, args => {…}}")
    yield (Spelled(found[1], arguments),)


def _arrow_arguments(text: str) -> str | None:
    """JSON arguments, or flags: `--path "x" --limit 5`."""
    try:
        _, end = _value_at(text)
    except (ValueError, RecursionError):
        end = 0
    if end == len(text):
        return text
    inside = text[1:-1]
    values: dict[str, Any] = {}
    at = 0
    while not _nothing_more(inside, at):
        key = _flag(inside, at)
        name = key and (key[1] or key[2])
        if not key or not name or name in values:
            return None
        try:
            values[name], at = _value_at(inside, key.end())
        except (ValueError, RecursionError):
            return None
    return _dump(values)


_DEEPEST = 50
_bare_key = re.compile(r"\s*([\w.$-]+)\s*:\s*").match
_scalar = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null").match
_blanks = re.compile(r"\s*").match


class _Notation:
    """Reads one value; each character is read once."""

    def __init__(self, text: str, quote: str) -> None:
        self._text = text
        self._quote = quote
        self._at = 0

    def whole(self) -> Any:
        """The value of the complete text."""
        value = self._value(_DEEPEST)
        self._skip()
        if self._at != len(self._text):
            raise _NoValue
        return value

    def _value(self, depth: int) -> Any:
        if not depth:
            raise _NoValue
        self._skip()
        if self._taken("{"):
            return self._object(depth)
        if self._taken("["):
            return self._list(depth)
        if self._taken(self._quote):
            end = self._text.find(self._quote, self._at)
            if end < 0:
                raise _NoValue
            text = self._text[self._at : end]
            self._at = end + len(self._quote)
            return text
        found = _scalar(self._text, self._at)
        if found is None:
            raise _NoValue
        self._at = found.end()
        return json.loads(found[0])

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._skip()
        if self._taken("}"):
            return members
        while True:
            key = _bare_key(self._text, self._at)
            if key is None or key[1] in members:
                raise _NoValue
            self._at = key.end()
            members[key[1]] = self._value(depth - 1)
            if self._closes("}"):
                return members

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self._skip()
        if self._taken("]"):
            return items
        while True:
            items.append(self._value(depth - 1))
            if self._closes("]"):
                return items

    def _closes(self, bracket: str) -> bool:
        self._skip()
        if self._taken(bracket):
            return True
        if not self._taken(","):
            raise _NoValue
        return False

    def _skip(self) -> None:
        found = _blanks(self._text, self._at)
        self._at = found.end() if found else self._at

    def _taken(self, literal: str) -> bool:
        found = self._text.startswith(literal, self._at)
        self._at += len(literal) if found else 0
        return found


def _reader(opener: str, closer: str, quote: str) -> Callable[[Cursor], Steps[None]]:
    def read(cursor: Cursor) -> Steps[None]:
        yield from cursor.expect(opener)
        yield from cursor.expect("call:")
        name = yield from cursor.name()
        if (yield from cursor.peek()) != "{":
            raise cursor.fail("expected {")
        cursor.sure = True
        text = yield from cursor.until(closer)
        try:
            arguments = _dump(_Notation(text, quote).whole())
        except (_NoValue, ValueError) as error:
            raise cursor.fail("its arguments are broken") from error
        yield (Spelled(name, arguments),)

    return read


def _format(name: str, models: str, opener: str, closer: str, quote: str) -> Format:
    return Format(
        name=name,
        models=models,
        openers=(opener,),
        read=_reader(opener, closer, quote),
        closers=(closer,),
    )


FORMATS = (
    Format(
        name="lfm",
        models="LFM 2",
        openers=("<|tool_call_start|>",),
        read=_lfm,
        closers=("<|tool_call_end|>",),
    ),
    Format(
        name="pythonic",
        models="Llama 4, marked",
        openers=("<|python_start|>",),
        read=_pythonic,
        closers=("<|python_end|>",),
    ),
    Format(
        name="bare-pythonic",
        models="Llama 3.2 and 4",
        openers=("[",),
        read=_pythonic,
        where="start",
        quiet=True,
    ),
    Format(
        name="minimax-arrow",
        models="MiniMax M2.5 and later",
        openers=("[TOOL_CALL]",),
        read=_minimax_arrow,
        closers=("[/TOOL_CALL]",),
    ),
    _format("gemma", "Gemma 4", "<|tool_call>", "<tool_call|>", '<|"|>'),
    _format(
        "functiongemma",
        "FunctionGemma",
        "<start_function_call>",
        "<end_function_call>",
        "<escape>",
    ),
)
