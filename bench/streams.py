"""The eight streams every figure is measured on: four wire formats, as text and as tool calls."""

import json
import random
from collections.abc import Callable

import msgspec

from bench import frames_anthropic, frames_chat, frames_gemini, frames_responses
from toolwire.wire.calls import MAX_CALLS

EVENTS = 2000
CALLS = 4
DELTA_CHARS = 40
_SENTENCE = (
    'a stream of events is read once and "never twice" while\nnew lines naïve café 数据 and '
    "the function returns its index to whoever asked for value 42 or more tokens"
)
_WORDS = _SENTENCE.split(" ")


class Call(msgspec.Struct, frozen=True):
    """A call that a stream spells."""

    name: str
    arguments: str


class Stream(msgspec.Struct, frozen=True):
    """One answer as bytes, a frame each, and what it says."""

    name: str
    frames: tuple[bytes, ...]
    text: str
    calls: tuple[Call, ...]

    @property
    def wire(self) -> str:
        """The wire format's short name."""
        return self.name.partition("-")[0]

    @property
    def body(self) -> bytes:
        """All bytes of the answer."""
        return b"".join(self.frames)

    def blocks(self, size: int = 16384) -> list[bytes]:
        """The bytes as a fast server's kernel hands them over."""
        body = self.body
        return [body[at : at + size] for at in range(0, len(body), size)]


_WRITERS: dict[
    str, tuple[Callable[[list[str]], list[bytes]], Callable[[list[list[str]]], list[bytes]]]
] = {
    "chat": (frames_chat.text, frames_chat.tools),
    "responses": (frames_responses.text, frames_responses.tools),
    "anthropic": (frames_anthropic.text, frames_anthropic.tools),
    "gemini": (frames_gemini.text, frames_gemini.tools),
}
WIRES = tuple(_WRITERS)
NAMES = tuple(f"{wire}-{kind}" for wire in WIRES for kind in ("text", "tools"))


def build(name: str, events: int = EVENTS, calls: int = CALLS) -> Stream:
    """The stream of that name, about `events` frames long."""
    wire, _, kind = name.partition("-")
    text, tools = _WRITERS[wire]
    if kind == "text":
        words = _words(events)
        return Stream(name, tuple(text(words)), "".join(words), ())
    if wire == "gemini":
        # Gemini sends every call whole, so a long stream is one of many calls, up to our limit.
        pieces = [[_arguments(at, DELTA_CHARS)] for at in range(min(events, MAX_CALLS))]
    else:
        each = events // calls
        pieces = [_cut(_arguments(at, each * DELTA_CHARS), each) for at in range(calls)]
    said = tuple(Call("write_file", "".join(cut)) for cut in pieces)
    return Stream(name, tuple(tools(pieces)), "", said)


def build_call(wire: str, argument_chars: int) -> Stream:
    """One tool call whose arguments are that long, in pieces as small as ever."""
    arguments = _arguments(1, argument_chars)
    count = 1 if wire == "gemini" else argument_chars // DELTA_CHARS
    frames = _WRITERS[wire][1]([_cut(arguments, count)])
    return Stream(f"{wire}-tools", tuple(frames), "", (Call("write_file", arguments),))


def growing_arguments(chars: int, deltas: int) -> list[str]:
    """The argument text of one call, cut into that many pieces."""
    return _cut(_arguments(7, chars), deltas)


def _words(count: int) -> list[str]:
    chance = random.Random(1)
    return [" " + chance.choice(_WORDS) for _ in range(count)]


def _arguments(seed: int, chars: int) -> str:
    chance = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size < chars:
        line = "    " + " ".join(chance.choices(_WORDS, k=min(8, 1 + chars // 8))) + "\n"
        lines.append(line)
        size += len(line)
    value = {
        "path": f"src/package/file_{seed}.py",
        "content": "".join(lines),
        "flags": [1, 2.5, None],
        "options": {"dry": False, "seed": seed},
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str, count: int) -> list[str]:
    size = -(-len(text) // count)
    return [text[at : at + size] for at in range(0, len(text), size)]
