"""Suites that show how exactly this version reads and writes each wire format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from toolwire import dialects
from toolwire.acceptance import violations
from toolwire.codec import read_answer
from toolwire.errors import ToolwireError
from toolwire.events import (
    Finished,
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.ids import new_id
from toolwire.messages import Message, Text, ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec
from toolwire.wire.json_access import dump, parse_object
from toolwire.wire.sse import SseEncoder

_MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.5",
    "anthropic-messages": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "code-assist": "gemini-2.5-pro",
}
_TOOL = ToolSpec(
    name="read_file",
    description="Reads a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["path"],
    },
)
_PATHS = (
    *("a.txt", "ünï cödé/日本語.py", 'quotes " and \\ slashes', "line\nbreak\ttab", "  "),
    *("</tool>", "\u2028\u2029", "a" * 5_000, "🧪", "{}"),
)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a model: texts, and calls as name and arguments."""

    name: str
    texts: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    thinking: str = ""

    @property
    def events(self) -> list[ModelEvent]:
        """Its events, in small pieces."""
        found: list[ModelEvent] = []
        if self.thinking:
            found += [ThinkingDelta(self.thinking), ThinkingEnded()]
        for text in self.texts:
            found += [TextDelta(text[at : at + 7]) for at in range(0, len(text), 7)]
        for number, (name, arguments) in enumerate(self.calls):
            id = f"call_{number}"
            found.append(ToolCallStarted(id=id, name=name))
            pieces = range(0, len(arguments), 9)
            found += [ToolCallDelta(id=id, arguments=arguments[at : at + 9]) for at in pieces]
            found.append(ToolCallEnded(id=id))
        return found

    @property
    def finished(self) -> Finished:
        """Its end."""
        reason = StopReason.TOOL_CALLS if self.calls else StopReason.END
        return Finished(reason=reason, usage=Usage(input=10, output=20))

    @property
    def message(self) -> Message:
        """It as a message."""
        texts = tuple(Text(text) for text in self.texts)
        calls = tuple(
            ToolCall(id=f"call_{number}", name=name, arguments=arguments)
            for number, (name, arguments) in enumerate(self.calls)
        )
        return Message(role="assistant", parts=(*texts, *calls))


def _call(path: str, **more: object) -> tuple[str, str]:
    return "read_file", dump({"path": path, **more})


SCENARIOS = (
    *(Scenario(name=f"text {number}", texts=(text,)) for number, text in enumerate(_PATHS)),
    *(Scenario(name=f"call {number}", calls=(_call(text),)) for number, text in enumerate(_PATHS)),
    Scenario(name="three calls", calls=tuple(_call(f"f{n}", lines=n) for n in range(3))),
    Scenario(name="text and a call", texts=("I read it.",), calls=(_call("a"),)),
    Scenario(name="large number", calls=(_call("a", lines=2**53 + 1),)),
    Scenario(name="thinking and text", thinking="hm", texts=("so",)),
)


class CaseFailure(msgspec.Struct, frozen=True):
    """A case that is not as it should be."""

    case: str
    message: str


def run(suite: str, dialect: str) -> tuple[int, list[CaseFailure]]:
    """Runs a suite for one format; returns how many cases it has, and those that failed."""
    total, failures = 0, list[CaseFailure]()
    for name, check in SUITES[suite](dialect):
        total += 1
        try:
            problem = check()
        except (ToolwireError, ValueError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            failures.append(CaseFailure(name, problem))
    return total, failures


Case = tuple[str, Callable[[], str]]


def _round_trips(dialect: str) -> Iterator[Case]:
    for scenario in SCENARIOS:
        yield (
            f"{scenario.name}, streamed",
            lambda one=scenario: _compared(one, dialect, (_streamed(one, dialect),)),
        )
        yield f"{scenario.name}, whole", lambda one=scenario: _whole(one, dialect)
        # Vendors refuse a message of blanks alone, so none is sent.
        if not scenario.thinking and (scenario.calls or "".join(scenario.texts).strip()):
            yield f"{scenario.name}, in a request", lambda one=scenario: _requested(one, dialect)


def _torture(dialect: str) -> Iterator[Case]:
    for scenario in SCENARIOS:
        if (
            sum(map(len, scenario.texts)) > 1_000
            or len(scenario.calls and scenario.calls[0][1]) > 1_000
        ):
            continue
        yield (
            f"{scenario.name}, byte by byte",
            lambda one=scenario: _compared(
                one, dialect, [bytes([byte]) for byte in _streamed(one, dialect)]
            ),
        )
        yield f"{scenario.name}, cut", lambda one=scenario: _cut(one, dialect)
        yield (
            f"{scenario.name}, CR LF",
            lambda one=scenario: _compared(
                one, dialect, (_streamed(one, dialect).replace(b"\n", b"\r\n"),)
            ),
        )


SUITES: dict[str, Callable[[str], Iterator[Case]]] = {
    "round-trip": _round_trips,
    "torture": _torture,
}


def _streamed(scenario: Scenario, dialect: str) -> bytes:
    encoder = dialects.get(dialect).encoder(_MODELS[dialect], new_id)
    frames = [frame for event in scenario.events for frame in encoder.feed(event)]
    frames += [*encoder.feed(scenario.finished), *encoder.close()]
    sse = SseEncoder()
    return b"".join(sse.encode(frame) for frame in frames)


def _compared(scenario: Scenario, dialect: str, chunks: Sequence[bytes]) -> str:
    answer = read_answer(dialect, chunks)
    if answer.error is not None:
        return str(answer.error)
    return _difference(scenario, answer.message)


def _whole(scenario: Scenario, dialect: str) -> str:
    codec = dialects.get(dialect)
    body = codec.encode_whole(scenario.message, scenario.finished, _MODELS[dialect], new_id)
    answer = read_answer(dialect, body, whole=True)
    return str(answer.error) if answer.error is not None else _difference(scenario, answer.message)


def _difference(scenario: Scenario, message: Message) -> str:
    texts = "".join(scenario.texts)
    if message.text != texts:
        return f"text is {message.text[:100]!r}, expected {texts[:100]!r}"
    calls = [(call.name, _normal(call.arguments)) for call in message.calls]
    expected = [(name, _normal(arguments)) for name, arguments in scenario.calls]
    return "" if calls == expected else f"calls are {calls!r:.200}, expected {expected!r:.200}"


def _normal(arguments: str) -> str:
    return dump(msgspec.json.decode(arguments or "{}"))


def _requested(scenario: Scenario, dialect: str) -> str:
    """The conversation survives the format, and its vendor would accept it."""
    message = scenario.message
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, parts=(Text("done"),)) for call in message.calls
    )
    messages = [Message(role="user", parts=(Text("do it"),)), message]
    if results:
        messages.append(Message(role="user", parts=results))
    else:
        messages.append(Message(role="user", parts=(Text("go on"),)))
    model = _MODELS[dialect]
    request = ModelRequest(model=model, messages=tuple(messages), tools=(_TOOL,))
    codec = dialects.get(dialect)
    body = codec.encode_request(request).http.body
    back = codec.decode_request(body, model)
    found = [one for one in back.messages if one.role == "assistant"]
    parts = tuple(part for one in found for part in one.parts)
    problem = _difference(scenario, Message(role="assistant", parts=parts))
    if problem:
        return problem
    wrong = list(violations(dialect, parse_object(body, "request"), model, in_address=True))
    return f"the vendor would refuse it: {wrong[0].message}" if wrong else ""


def _cut(scenario: Scenario, dialect: str) -> str:
    """An answer that stops in its middle is never taken for a complete one."""
    data = _streamed(scenario, dialect)
    answer = read_answer(dialect, data[: len(data) // 2])
    return "" if answer.error is not None else "a cut answer was taken for a complete one"
