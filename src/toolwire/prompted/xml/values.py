"""Conversion of values between tags to JSON and back."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from toolwire.messages import (
    CallKind,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    calls_without_result,
)
from toolwire.prompted.xml.shape import FREEFORM_FIELD, ITEM, Shape, XmlTool, XmlTools, is_short
from toolwire.prompted.xml.tokens import Token, TokenKind, is_tag_name, tokens_in
from toolwire.request import FreeformTool, JsonObject, ToolSpec
from toolwire.wire.json_access import dump, object_in

CDATA = "<![CDATA["
CDATA_END = "]]>"
_DEEPEST = 32
_FIRST_LINE_END = re.compile(r"[ \t]*\r?\n")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
_decode = msgspec.json.Decoder().decode


def json_of(shape: Shape, text: str, *, trim: bool = False, depth: int = 0) -> str:
    """The JSON of the text between two tags; text that does not fit the schema stays text."""
    inner = unwrapped(text)
    if inner is not None:
        structured = not shape.kinds & {"string"} and _structured(shape, inner.strip())
        return structured or dump(inner)
    stripped = text.strip()
    if not shape.plain_text:
        literal = _literal(shape, stripped)
        if literal is None and shape.tagged and depth < _DEEPEST:
            literal = _nested(shape, text, depth)
        if literal is not None:
            return literal
    return dump(stripped if trim else without_line_ends(text))


def without_line_ends(text: str) -> str:
    """Free text without the line end after its opening and before its closing tag."""
    if found := _FIRST_LINE_END.match(text):
        text = text[found.end() :]
    end = len(text.rstrip(" \t"))
    if end and text[end - 1] == "\n":
        text = text[: end - 2] if text[end - 2 : end] == "\r\n" else text[: end - 1]
    return text


def unwrapped(text: str) -> str | None:
    """The text of a CDATA value; None for any other value."""
    text = text.strip()
    if len(text) < len(CDATA) + 3 or not text.startswith(CDATA) or not text.endswith(CDATA_END):
        return None
    return text[len(CDATA) : -len(CDATA_END)].replace(CDATA_END + CDATA, "")


def wrapped(text: str) -> str:
    """The text as a CDATA value."""
    return CDATA + text.replace(CDATA_END, f"]]{CDATA_END}{CDATA}>") + CDATA_END


def tags_of(shape: Shape, value: Any, risky: re.Pattern[str], *, trim: bool = False) -> str:
    """The text between two tags for a JSON value; `risky` matches text that must be wrapped."""
    if isinstance(value, str):
        looks_wrapped = value.lstrip().startswith(CDATA)
        if looks_wrapped or risky.search(value) or json_of(shape, value, trim=trim) != dump(value):
            return wrapped(value)
        return value
    if shape.tagged and value:
        if isinstance(value, dict):
            members = cast(dict[str, Any], value)
            if all(is_tag_name(name) for name in members):
                inner = (_element(name, shape.field(name), one) for name, one in members.items())
                return "\n" + "\n".join(inner) + "\n"
        elif isinstance(value, list):
            inner = (_element(ITEM, shape.items, one) for one in cast(list[Any], value))
            return "\n" + "\n".join(inner) + "\n"
    return safe_json(value)


def safe_json(value: Any) -> str:
    """JSON text in which nothing looks like a tag."""
    return dump(value).replace("<", "\\u003c")


_ANY_TAG = re.compile("<")


def _element(name: str, shape: Shape, value: Any) -> str:
    trim = name != ITEM and is_short(name, shape)
    return f"<{name}>{tags_of(shape, value, _ANY_TAG, trim=trim)}</{name}>"


def _literal(shape: Shape, text: str) -> str | None:
    kinds = shape.kinds
    if not text:
        if "string" in kinds:
            return None
        empty = {"array": "[]", "object": "{}", "null": "null"}
        return next((literal for kind, literal in empty.items() if kind in kinds), None)
    if text == "null" and "null" in kinds:
        return "null"
    if "boolean" in kinds:
        word = text if "string" in kinds else text.lower()
        if word in ("true", "false"):
            return word
    if kinds & {"number", "integer"} and _NUMBER(text):
        return text
    return _structured(shape, text)


def _structured(shape: Shape, text: str) -> str | None:
    kind = {"[": "array", "{": "object"}.get(text[:1], "")
    if kind not in shape.kinds:
        return None
    try:
        _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return text


def _nested(shape: Shape, text: str, depth: int) -> str | None:
    is_object = "object" in shape.kinds
    found = _Elements(text, shape if is_object else None, shape.items).split()
    if found is None:
        return None
    if not is_object:
        items = (json_of(shape.items, inner, depth=depth + 1) for _, inner in found)
        return f"[{','.join(items)}]"
    members: list[str] = []
    for name, inner in found:
        below = shape.field(name)
        value = json_of(below, inner, trim=is_short(name, below), depth=depth + 1)
        members.append(f"{dump(name)}:{value}")
    return f"{{{','.join(members)}}}"


class _Elements:
    """The elements directly inside a text; each token is read once."""

    def __init__(self, text: str, of_object: Shape | None, items: Shape) -> None:
        self._text = text
        self._object = of_object
        self._items = items
        self._tokens = list(tokens_in(text))
        self._starts: list[int] = []
        self._seen: set[str] = set()
        position = 0
        for token in self._tokens:
            self._starts.append(position)
            position += len(token.raw)

    def split(self) -> list[tuple[str, str]] | None:
        """Names and inner texts; None if there is anything else."""
        found: list[tuple[str, str]] = []
        at = self._skip_space(0)
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.kind not in (TokenKind.OPEN, TokenKind.EMPTY) or token.name in self._seen:
                return None
            if self._object is not None:
                self._seen.add(token.name)
            end = at
            if token.kind is TokenKind.OPEN:
                end = self._end(at + 1, token.name)
                if end < 0:
                    return None
                found.append((token.name, self._text[self._starts[at + 1] : self._starts[end]]))
            else:
                found.append((token.name, ""))
            at = self._skip_space(end + 1)
        return found

    def _end(self, at: int, name: str) -> int:
        shape = self._items if self._object is None else self._object.field(name)
        first = self._skip_space(at)
        if first < len(self._tokens) and self._tokens[first].kind is TokenKind.CDATA:
            return self._after_cdata(first, name)
        if (
            shape.tagged
            and first < len(self._tokens)
            and self._tokens[first].kind is not TokenKind.TEXT
        ):
            return self._balanced(at, name)
        for position in range(at, len(self._tokens)):
            if _closes(self._tokens[position], name) and self._is_junction(position):
                return position
        return -1

    def _balanced(self, at: int, name: str) -> int:
        depth, position = 1, at
        while position < len(self._tokens):
            token = self._tokens[position]
            if token.kind is TokenKind.OPEN:
                depth += token.name == name
                inside = self._skip_space(position + 1)
                if inside < len(self._tokens) and self._tokens[inside].kind is TokenKind.CDATA:
                    position = self._after_cdata(inside, token.name)
                    if position < 0:
                        return -1
                    continue
            elif _closes(token, name):
                depth -= 1
                if depth == 0:
                    return position
            position += 1
        return -1

    def _after_cdata(self, at: int, name: str) -> int:
        for position in range(at, len(self._tokens)):
            if self._tokens[position].kind is TokenKind.CDATA_END:
                end = self._skip_space(position + 1)
                if end < len(self._tokens) and _closes(self._tokens[end], name):
                    return end
        return -1

    def _is_junction(self, at: int) -> bool:
        after = self._skip_space(at + 1)
        if after == len(self._tokens):
            return True
        token = self._tokens[after]
        return token.kind in (TokenKind.OPEN, TokenKind.EMPTY) and token.name not in self._seen

    def _skip_space(self, at: int) -> int:
        while (
            at < len(self._tokens)
            and self._tokens[at].kind is TokenKind.TEXT
            and not self._tokens[at].raw.strip()
        ):
            at += 1
        return at


def _closes(token: Token, name: str) -> bool:
    return token.kind is TokenKind.CLOSE and token.name == name


_decode = msgspec.json.Decoder().decode


def render_call(call: ToolCall, tools: XmlTools) -> str:
    """The text that parses as this call; an approximation for a tool that is not offered."""
    tag = tools.tag(call.name, call.namespace)
    tool = tools.by_tag.get(tag)
    if call.kind is CallKind.FREEFORM:
        if tool is None or tool.freeform is None:
            tool = XmlTool(tag, FreeformTool(name=tag))
        return call_text(tool, {FREEFORM_FIELD: call.arguments})
    if tool is None or tool.freeform is not None:
        tool = XmlTool(tag, ToolSpec(name=tag))
    arguments = arguments_of(call)
    if arguments is None:
        return f"<{tag}>\n{call.arguments.strip()}\n</{tag}>"
    return call_text(tool, arguments)


def arguments_of(call: ToolCall) -> JsonObject | None:
    """The arguments of a call; None if they are not a JSON object."""
    return object_in(call.arguments.strip() or "{}")


def call_text(tool: XmlTool, arguments: JsonObject) -> str:
    """A call in tags; in JSON where tags would not parse to the same value."""
    tag = tool.tag
    names = {tag, *tool.fields, *arguments}
    risky = re.compile(f"</?(?:{'|'.join(map(re.escape, sorted(names)))}) ?/?>")
    lines: list[str] = []
    for name, value in arguments.items():
        shape = tool.field(name)
        trim = is_short(name, shape)
        inner = tags_of(shape, value, risky, trim=trim)
        if "\n" in inner and not inner.startswith(("\n", CDATA)):
            on_own_lines = f"\n{inner}\n"
            if _reads_back(shape, on_own_lines, value, trim):
                inner = on_own_lines
        believed = tool.may_wrap(name) or unwrapped(inner) is None
        if not (is_tag_name(name) and believed and _reads_back(shape, inner, value, trim)):
            return f"<{tag}>\n{safe_json(arguments)}\n</{tag}>"
        lines.append(f"<{name}>{inner}</{name}>")
    return "\n".join((f"<{tag}>", *lines, f"</{tag}>"))


def _reads_back(shape: Shape, inner: str, value: Any, trim: bool) -> bool:
    try:
        return dump(_decode(json_of(shape, inner, trim=trim))) == dump(value)
    except (msgspec.DecodeError, UnicodeError):
        return False


_NOTHING = "(tool did not return anything)"
_LONGEST_KEY = 80
_KEYS = (
    "path",
    "file_path",
    "target_file",
    "absolute_path",
    "dir_path",
    "command",
    "query",
    "pattern",
    "regex",
    "url",
    "uri",
    "question",
    "name",
)


def as_text(messages: Iterable[Message], tools: XmlTools) -> tuple[Message, ...]:
    """The conversation with calls and results as text; nothing else changes."""
    messages = tuple(messages)
    calls: dict[str, ToolCall] = {}
    open_ids = {call.id for call in calls_without_result(messages)}
    waiting: list[Part] = []
    out: list[Message] = []
    for message in messages:
        if waiting and message.role != "user":
            out.append(Message(role="user", parts=tuple(waiting)))
            waiting = []
        for call in message.calls:
            calls[call.id] = call
        if not message.calls and not message.results and not waiting:
            out.append(message)
            continue
        rendered = tuple(_joined(_parts(message, tools, calls)))
        out.append(replace(message, parts=(*waiting, *rendered), kept=None))
        waiting = [_unanswered(call, tools) for call in message.calls if call.id in open_ids]
    if waiting:
        out.append(Message(role="user", parts=tuple(waiting)))
    return tuple(out)


def _parts(message: Message, tools: XmlTools, calls: dict[str, ToolCall]) -> Iterator[Part]:
    for part in message.parts:
        match part:
            case ToolCall():
                yield Text(render_call(part, tools), cache=part.cache)
            case ToolResult():
                yield from _result(part, calls.get(part.call_id), tools)
            case _:
                yield part


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """Joins adjacent plain texts, so that every call starts a line."""
    last: Text | None = None
    for part in parts:
        if not isinstance(part, Text):
            if last is not None:
                yield last
            last = None
            yield part
        elif last is None:
            last = part
        elif last.seal or last.kept or last.citations or last.cache:
            yield last
            last = replace(part, text=f"\n\n{part.text}")
        elif part.seal or part.kept or part.citations:
            yield replace(last, text=f"{last.text}\n\n")
            last = part
        else:
            last = replace(part, text=f"{last.text}\n\n{part.text}")
    if last is not None:
        yield last


def _result(result: ToolResult, call: ToolCall | None, tools: XmlTools) -> Iterator[Part]:
    text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    media = [part for part in result.parts if isinstance(part, Media)]
    if not text.strip():
        text = "" if media else _NOTHING
    if result.is_error:
        text = f"<error>{text or result.outcome}</error>"
    head = _head(call, result.name, tools)
    yield Text(f"{head}\n{text}" if text else head, cache=result.cache)
    yield from media


def _unanswered(call: ToolCall, tools: XmlTools) -> Text:
    why = "it was interrupted, and may have taken effect" if call.complete else "it was cut off"
    ran = "no result is known" if call.complete else "it did not run"
    return Text(f"{_head(call, call.name, tools)}\n<error>{ran}: {why}</error>")


def _head(call: ToolCall | None, name: str, tools: XmlTools) -> str:
    if call is None:
        return f"[{name or 'tool'}] Result:"
    tag = tools.tag(call.name, call.namespace)
    key = _key_argument(call)
    return f"[{tag} for '{key}'] Result:" if key else f"[{tag}] Result:"


def _key_argument(call: ToolCall) -> str:
    arguments = arguments_of(call) or {}
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    name = next((key for key in (*_KEYS, *texts) if texts.get(key)), "")
    key = " ".join(texts.get(name, "").split())
    return key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 1] + "…"
