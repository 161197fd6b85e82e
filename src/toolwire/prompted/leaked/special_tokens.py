"""Calls printed with the special tokens of a chat template."""

from toolwire.prompted.leaked.cursor import Cursor, Format, Spelled, Steps

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


FORMATS = (
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
