"""Calls printed as JSON between markers or the special tokens of a chat template."""

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


_HEAD = ("<|start|>assistant", "<|channel|>")


def _harmony(cursor: Cursor) -> Steps[None]:
    name = ""
    if (yield from cursor.expect(*_HEAD)) == "<|start|>assistant":
        if (yield from cursor.ahead("to=")):
            name = yield from cursor.name()
        yield from cursor.expect("<|channel|>")
    yield from cursor.expect("commentary", "analysis")
    if not name:
        yield from cursor.expect("to=")
        name = yield from cursor.name()
    cursor.sure = True
    if (yield from cursor.ahead("<|constrain|>")):
        yield from cursor.name()
    else:
        yield from cursor.ahead("json", "code")
    yield from cursor.expect("<|message|>")
    arguments = yield from cursor.json()
    # `<|call|>` is the token at which the model stops, and servers leave it out of the text.
    yield from cursor.expect_or_end("<|call|>")
    yield (Spelled(name.removeprefix("functions."), arguments),)


_CALLS, _CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL, _SEPARATOR, _CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"


def _deepseek(cursor: Cursor) -> Steps[None]:
    yield from cursor.expect(_CALLS)
    found = yield from cursor.expect(_CALL)
    cursor.sure = True
    while found == _CALL:
        name = yield from cursor.name()
        yield from cursor.expect(_SEPARATOR)
        if name == "function" and (yield from cursor.peek()) != "{":
            # V3 and R1: the kind of call first, then its name and a fence of JSON.
            name = yield from cursor.name()
            yield from cursor.expect("```json")
            arguments = yield from cursor.json()
            yield from cursor.expect("```")
        else:
            arguments = yield from cursor.json()
        yield from cursor.expect(_CALL_END)
        yield (Spelled(name, arguments),)
        found = yield from cursor.ahead(_CALL, _CALLS_END)


def _kimi(cursor: Cursor) -> Steps[None]:
    begin, end = "<|tool_call_begin|>", "<|tool_call_end|>"
    if (yield from cursor.expect("<|tool_calls_section_begin|>", begin)) != begin:
        yield from cursor.expect(begin)
    cursor.sure = True
    found = begin
    while found == begin:
        name = yield from cursor.name()
        yield from cursor.expect("<|tool_call_argument_begin|>")
        arguments = yield from cursor.json()
        yield from cursor.expect(end)
        yield (Spelled(_without_index(name), arguments),)
        found = yield from cursor.ahead(begin, "<|tool_calls_section_end|>")


def _without_index(name: str) -> str:
    head, colon, tail = name.removeprefix("functions.").rpartition(":")
    return head if colon and tail.isdecimal() else name.removeprefix("functions.")


def _enclosed(name: str, models: str, opener: str, closer: str, brackets: str = "{[") -> Format:
    return Format(
        name=name,
        models=models,
        openers=(opener,),
        read=_between((opener,), (closer,), brackets),
        closers=(closer,),
    )


FORMATS = (
    _enclosed("hermes", "Hermes, Qwen 2.5 and 3, ERNIE, xLAM", "<tool_call>", "</tool_call>"),
    _enclosed("longcat", "LongCat", "<longcat_tool_call>", "</longcat_tool_call>"),
    _enclosed("jamba", "Jamba, Hunyuan A13B", "<tool_calls>", "</tool_calls>", "["),
    _enclosed("internlm", "InternLM 2", "<|action_start|><|plugin|>", "<|action_end|>", "{"),
    _enclosed("cohere", "Command", "<|START_ACTION|>", "<|END_ACTION|>"),
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
    Format(
        name="harmony",
        models="gpt-oss",
        openers=_HEAD,
        read=_harmony,
        closers=("<|call|>", "<|end|>"),
        quiet=True,
    ),
    Format(
        name="deepseek",
        models="DeepSeek V3, V3.1, R1",
        openers=(_CALLS,),
        read=_deepseek,
        closers=(_CALLS_END,),
    ),
    Format(
        name="kimi",
        models="Kimi K2",
        openers=("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        read=_kimi,
        closers=("<|tool_calls_section_end|>", "<|tool_call_end|>"),
    ),
)
