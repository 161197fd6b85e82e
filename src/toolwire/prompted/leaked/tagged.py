"""Calls printed as tags: one for the call, one for each argument."""

from collections.abc import Callable

from toolwire.prompted.leaked.cursor import Cursor, Field, Format, Spelled, Steps
from toolwire.prompted.leaked.marked_json import read_calls


def _value(cursor: Cursor, opening: str, closing: str, *after: str) -> Steps[tuple[str, str]]:
    """An argument's text, and the literal after it.

    Text that contains its own closing tag continues until the tag is followed by markup.
    """
    parts: list[str] = []
    while True:
        parts.append((yield from cursor.until(closing)))
        found = yield from cursor.ahead(*after)
        if found:
            break
        parts.append(closing)
    text = "".join(parts)
    if opening in text:
        raise cursor.fail(f"an argument contains {opening}, so where it ends is not certain")
    return text, found


def _without_line_ends(text: str) -> str:
    return text.removeprefix("\n").removesuffix("\n")


def _qwen(cursor: Cursor) -> Steps[None]:
    wrapped = yield from cursor.ahead("<tool_call>")
    yield from cursor.expect("<function=")
    cursor.sure = True
    name = yield from cursor.name()
    yield from cursor.expect(">")
    fields: list[Field] = []
    found = yield from cursor.expect("<parameter=", "</function>")
    while found == "<parameter=":
        key = yield from cursor.name()
        yield from cursor.expect(">")
        text, found = yield from _value(
            cursor, "<parameter=", "</parameter>", "<parameter=", "</function>"
        )
        fields.append(Field(key, _without_line_ends(text)))
    if wrapped:
        yield from cursor.expect("</tool_call>")
        yield (Spelled(name, fields=tuple(fields)),)
    else:
        yield (Spelled(name, fields=tuple(fields)),)
        yield from cursor.ahead("</tool_call>")


def _arguments(cursor: Cursor, found: str, closing: str) -> Steps[tuple[Field, ...]]:
    fields: list[Field] = []
    while found == "<arg_key>":
        key = yield from cursor.until("</arg_key>")
        yield from cursor.expect("<arg_value>")
        text, found = yield from _value(cursor, "<arg_key>", "</arg_value>", "<arg_key>", closing)
        fields.append(Field(key.strip(), text))
    return tuple(fields)


def _glm(cursor: Cursor) -> Steps[None]:
    yield from cursor.expect("<tool_call>")
    name = yield from cursor.name()
    found = yield from cursor.expect("<arg_key>", "</tool_call>")
    cursor.sure = True
    fields = yield from _arguments(cursor, found, "</tool_call>")
    yield (Spelled(name, fields=fields),)


def _hunyuan(cursor: Cursor) -> Steps[None]:
    found = yield from cursor.expect("<tool_calls>", "<tool_call>")
    wrapped = found == "<tool_calls>"
    if wrapped:
        found = yield from cursor.expect("<tool_call>")
    while found == "<tool_call>":
        name = yield from cursor.name()
        yield from cursor.expect("<tool_sep>")
        cursor.sure = True
        found = yield from cursor.expect("<arg_key>", "</tool_call>")
        fields = yield from _arguments(cursor, found, "</tool_call>")
        yield (Spelled(name, fields=fields),)
        found = (yield from cursor.ahead("<tool_call>", "</tool_calls>")) if wrapped else ""


def _invoke(cursor: Cursor, prefix: str) -> Steps[Spelled]:
    """Reads one `<invoke>` after its opening, up to its end."""
    ending = f"</{prefix}invoke>"
    opening = f'<{prefix}parameter name="'
    name = yield from cursor.until('"')
    if (yield from cursor.expect("/>", ">")) == "/>":
        return Spelled(name)
    if (yield from cursor.peek()) == "{":
        arguments = yield from cursor.json()
        yield from cursor.expect(ending)
        return Spelled(name, arguments)
    fields: list[Field] = []
    found = yield from cursor.expect(opening, ending)
    while found == opening:
        key = yield from cursor.until('"')
        mark = yield from cursor.expect(">", 'string="true">', 'string="false">')
        text, found = yield from _value(cursor, opening, f"</{prefix}parameter>", opening, ending)
        kind = {'string="true">': "text", 'string="false">': "json"}.get(mark, "")
        fields.append(Field(key, text if kind else _unpadded(text), kind))
    return Spelled(name, fields=tuple(fields))


def _unpadded(text: str) -> str:
    # A value on separate lines.
    own_lines = len(text) > 1 and text.startswith("\n") and text.endswith("\n")
    return text[1:-1] if own_lines else text


def _invokes(wrappers: dict[str, str], prefix: str, *, bare: bool) -> Callable[..., Steps[None]]:
    start = f'<{prefix}invoke name="'

    def read(cursor: Cursor) -> Steps[None]:
        found = yield from cursor.expect(*wrappers, *([start] if bare else []))
        closing = wrappers.get(found, "")
        if closing:
            yield from cursor.expect(start)
        cursor.sure = True
        while True:
            yield ((yield from _invoke(cursor, prefix)),)
            # Some wrap each call, some wrap all calls once.
            found = yield from cursor.ahead(start, closing) if closing else cursor.ahead(start)
            if found != start:
                return

    return read


def _dots(cursor: Cursor) -> Steps[None]:
    start, closing = '<invoke name="', "</dots_function_call>"
    yield from cursor.expect("<dots_function_call>")
    if (yield from cursor.peek()) == "{":
        cursor.sure = True
        calls = yield from read_calls(cursor)
        yield from cursor.expect(closing)
        yield calls
        return
    yield from cursor.expect(start)
    cursor.sure = True
    found = start
    while found == start:
        yield ((yield from _invoke(cursor, "")),)
        found = yield from cursor.ahead(start, closing)


def _step(cursor: Cursor) -> Steps[None]:
    yield from cursor.expect("<｜tool_calls_begin｜>")
    yield from cursor.expect("<｜tool_call_begin｜>")
    found = "<｜tool_call_begin｜>"
    while found == "<｜tool_call_begin｜>":
        yield from cursor.expect('<steptml:invoke name="')
        cursor.sure = True
        call = yield from _invoke(cursor, "steptml:")
        yield from cursor.expect("<｜tool_call_end｜>")
        yield (call,)
        yield from cursor.ahead("<｜tool_sep｜>")
        found = yield from cursor.ahead("<｜tool_call_begin｜>", "<｜tool_calls_end｜>")


_CLAUDE = {
    "<function_calls>": "</function_calls>",
    "<tool_calls>": "</tool_calls>",
}
_MINIMAX = {"<minimax:tool_call>": "</minimax:tool_call>"}
_DSML = {f"<｜DSML｜{word}>": f"</｜DSML｜{word}>" for word in ("function_calls", "tool_calls")}

FORMATS = (
    Format(
        name="qwen3-coder",
        models="Qwen3-Coder, Step 3.5",
        openers=("<tool_call>", "<function="),
        read=_qwen,
        closers=("</tool_call>", "</function>"),
    ),
    Format(
        name="glm",
        models="GLM 4.5 and later, Poolside",
        openers=("<tool_call>",),
        read=_glm,
        closers=("</tool_call>",),
    ),
    Format(
        name="hunyuan",
        models="Hunyuan",
        openers=("<tool_calls>", "<tool_call>"),
        read=_hunyuan,
        closers=("</tool_calls>", "</tool_call>"),
    ),
    Format(
        name="invoke",
        models="Claude and models taught by its examples",
        openers=(*_CLAUDE, '<invoke name="'),
        read=_invokes(_CLAUDE, "", bare=True),
        closers=("</invoke>",),
    ),
    Format(
        name="minimax",
        models="MiniMax M2",
        openers=tuple(_MINIMAX),
        read=_invokes(_MINIMAX, "", bare=False),
        closers=("</minimax:tool_call>",),
    ),
    Format(
        name="dsml",
        models="DeepSeek 3.2 and later",
        openers=tuple(_DSML),
        read=_invokes(_DSML, "｜DSML｜", bare=False),
        closers=tuple(_DSML.values()),
    ),
    Format(
        name="dots",
        models="dots",
        openers=("<dots_function_call>",),
        read=_dots,
        closers=("</dots_function_call>",),
    ),
    Format(
        name="step3",
        models="Step 3",
        openers=("<｜tool_calls_begin｜>",),
        read=_step,
        closers=("<｜tool_calls_end｜>",),
    ),
)
