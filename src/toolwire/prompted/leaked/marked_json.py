"""Calls printed as JSON: after a mark, between two marks, in a code fence, or bare."""

from collections.abc import Callable
from typing import Any

import msgspec

from toolwire.prompted.leaked.cursor import Cursor, Format, Spelled, Steps

NAME_KEYS = ("name", "tool", "tool_name", "function")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
KEYS = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, "type", "id", "tool_call_id"})
"""Members that may be first in a call's object."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)


def spelled_calls(text: str) -> tuple[Spelled, ...] | None:
    """The calls of an object or a list of objects; None if one of them is not a call."""
    try:
        items = _items(text) if text.startswith("[") else [msgspec.Raw(text.encode())]
        calls = [_call(item) for item in items]
    except _UNREADABLE:
        return None
    whole = tuple(call for call in calls if call is not None)
    return whole if whole and len(whole) == len(calls) else None


def _call(raw: msgspec.Raw) -> Spelled | None:
    members = _members(raw)
    function = members.get("function")
    if function is not None and bytes(function).lstrip()[:1] == b"{":
        members = _members(function)
    name = next((members[key] for key in NAME_KEYS if key in members), None)
    given = [members[key] for key in ARGUMENT_KEYS if key in members]
    if name is None or len(given) != 1:
        return None
    word = _decode(name)
    arguments = _object_text(given[0])
    return Spelled(word, arguments) if isinstance(word, str) and arguments is not None else None


def _object_text(raw: msgspec.Raw) -> str | None:
    value: Any = _decode(raw)
    if isinstance(value, dict):
        return bytes(raw).decode().strip()
    if isinstance(value, str) and isinstance(_decode(value), dict):
        # OpenAI's own shape: the arguments are JSON inside a string.
        return value
    return None


def read_calls(cursor: Cursor) -> Steps[tuple[Spelled, ...]]:
    """Reads one object, or a list of them."""
    text = yield from cursor.json()
    calls = spelled_calls(text)
    if calls is None:
        raise cursor.fail("its JSON is not a call with a name and an object of arguments")
    return calls


def _between(
    openers: tuple[str, ...], closers: tuple[str, ...], brackets: str = "{["
) -> Callable[[Cursor], Steps[None]]:
    def read(cursor: Cursor) -> Steps[None]:
        yield from cursor.expect(*openers)
        found = yield from cursor.peek()
        if not found or found not in brackets:
            raise cursor.fail("expected JSON")
        cursor.sure = True
        calls = yield from read_calls(cursor)
        yield from cursor.expect(*closers)
        yield calls

    return read


def _after(
    openers: tuple[str, ...], brackets: str, optional: tuple[str, ...] = ()
) -> Callable[[Cursor], Steps[None]]:
    def read(cursor: Cursor) -> Steps[None]:
        yield from cursor.expect(*openers)
        found = yield from cursor.peek()
        if not found or found not in brackets:
            raise cursor.fail("expected JSON")
        cursor.sure = True
        yield (yield from read_calls(cursor))
        if optional:
            yield from cursor.ahead(*optional)

    return read


def _llama(cursor: Cursor) -> Steps[None]:
    yield from cursor.expect("<|python_tag|>")
    if (yield from cursor.peek()) != "{":
        raise cursor.fail("expected JSON")
    cursor.sure = True
    yield (yield from read_calls(cursor))
    while (yield from cursor.ahead(";")):
        yield (yield from read_calls(cursor))
    yield from cursor.ahead("<|eom_id|>", "<|eot_id|>")


def _mistral(cursor: Cursor) -> Steps[None]:
    yield from cursor.expect("[TOOL_CALLS]")
    if (yield from cursor.peek()) in ("[", "{"):
        cursor.sure = True
        yield (yield from read_calls(cursor))
        return
    while True:
        name = yield from cursor.name()
        if (yield from cursor.ahead("[CALL_ID]")):
            yield from cursor.name()
            yield from cursor.expect("[ARGS]")
        else:
            yield from cursor.ahead("[ARGS]")
        if (yield from cursor.peek()) != "{":
            raise cursor.fail("expected JSON")
        cursor.sure = True
        yield (Spelled(name, (yield from cursor.json())),)
        if not (yield from cursor.ahead("[TOOL_CALLS]")):
            return


def _fenced(cursor: Cursor) -> Steps[None]:
    fence = yield from cursor.expect("```")
    if (yield from cursor.peek()) != "{":
        word = yield from cursor.name()
        if word not in ("json", "tool_call", "tool_code", "tool"):
            raise cursor.fail("expected a fence of JSON")
    text = yield from cursor.json(KEYS)
    yield from cursor.expect(fence)
    calls = spelled_calls(text)
    if calls is None:
        raise cursor.fail("its JSON is not a call with a name and an object of arguments")
    yield calls


def _bare(cursor: Cursor) -> Steps[None]:
    calls = spelled_calls((yield from cursor.json(KEYS)))
    if calls is None:
        raise cursor.fail("its JSON is not a call with a name and an object of arguments")
    yield calls
    yield from cursor.ahead("<|eom_id|>", "<|eot_id|>")


_ACTION = ("<|action_start|><|plugin|>",)

FORMATS = (
    Format(
        name="hermes",
        models="Hermes, Qwen 2.5 and 3, ERNIE, xLAM",
        openers=("<tool_call>",),
        read=_between(("<tool_call>",), ("</tool_call>",)),
        closers=("</tool_call>",),
    ),
    Format(
        name="longcat",
        models="LongCat",
        openers=("<longcat_tool_call>",),
        read=_between(("<longcat_tool_call>",), ("</longcat_tool_call>",)),
        closers=("</longcat_tool_call>",),
    ),
    Format(
        name="jamba",
        models="Jamba, Hunyuan A13B",
        openers=("<tool_calls>",),
        read=_between(("<tool_calls>",), ("</tool_calls>",), "["),
        closers=("</tool_calls>",),
    ),
    Format(
        name="internlm",
        models="InternLM 2",
        openers=_ACTION,
        read=_between(_ACTION, ("<|action_end|>",), "{"),
        closers=("<|action_end|>",),
    ),
    Format(
        name="cohere",
        models="Command",
        openers=("<|START_ACTION|>",),
        read=_between(("<|START_ACTION|>",), ("<|END_ACTION|>",)),
        closers=("<|END_ACTION|>",),
    ),
    Format(
        name="granite",
        models="Granite 3",
        openers=("<|tool_call|>", "<tool_call>"),
        read=_after(("<|tool_call|>", "<tool_call>"), "[", ("</tool_call>",)),
    ),
    Format(
        name="granite-20b",
        models="Granite 20B function calling",
        openers=("<function_call>",),
        read=_after(("<function_call>",), "{"),
    ),
    Format(
        name="phi",
        models="Phi 4 mini",
        openers=("functools[",),
        read=_after(("functools",), "["),
        quiet=True,
    ),
    Format(name="llama", models="Llama 3", openers=("<|python_tag|>",), read=_llama),
    Format(name="mistral", models="Mistral", openers=("[TOOL_CALLS]",), read=_mistral),
    Format(
        name="fenced",
        models="small models without a format of their own",
        openers=("```",),
        read=_fenced,
        closers=("```",),
        where="fence",
        quiet=True,
    ),
    Format(
        name="bare-json",
        models="Llama 3 and small models",
        openers=("{",),
        read=_bare,
        where="start",
        quiet=True,
    ),
)
