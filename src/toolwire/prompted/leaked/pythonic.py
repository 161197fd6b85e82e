"""Calls printed as Python expressions or in a custom notation."""

import ast
import json
import re
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
    """An expression that is not a plain value."""


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
)
