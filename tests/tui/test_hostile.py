"""No text of a model, tool, file or server reaches the terminal unsanitised, by any way in."""

import random

import pytest

from toolwire.agent.events import (
    MessageAdded,
    Noticed,
    Retrying,
    SessionOpened,
    Streaming,
    Thought,
    ToolFinished,
    ToolOutputText,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.events import TextDelta, ToolCallDelta, ToolCallStarted
from toolwire.messages import Message, Outcome, Text, ToolResult
from toolwire.tui.drawing import Drawing
from toolwire.tui.live import Size
from toolwire.tui.menu import Menu
from toolwire.tui.notify import announcement, title
from toolwire.tui.themes import THEMES

DANGEROUS = {
    *map(chr, (*range(0x00, 0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))),
    *"\u2028\u2029\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    *map(chr, range(0xE0000, 0xE0080)),
}
PIECES = [
    "\x1b[2J",
    "\x1b]0;t\x07",
    "\x1b]52;c;eA==\x07",
    "\x1bP q\x1b\\",
    "\x9b2J",
    "\x90",
    "\x08",
    "\x7f",
    "\r",
    "\r\n",
    "\u202e",
    "\u2066",
    "\u2028",
    "\U000e0041",
    "\ud800",
    "\x00",
    "word ",
    "**",
    "`",
    "```\n",
    "# h\n",
    "| a | b |\n",
    "|--|--|\n",
    "- x\n",
    "1. y\n",
    "> q\n",
    "[a](http://x",
    ")",
    "\n\n",
    "\n",
    "\t",
    "日本",
    "é",
    "\u200d",
    "<b>",
    "\\",
    "_",
    "~~",
    "![i](j)",
    "&#27;",
    "&#x1b;[2J",
    "\x1b",
    "{",
    '"',
    "@@ -1 +1 @@\n",
    "-old\n",
    "+new\n",
    "--- a\n",
    "+++ b\n",
]


def hostile(chance: random.Random) -> str:
    return "".join(chance.choices(PIECES, k=chance.randrange(1, 14)))


def shown(chance: random.Random, columns: int) -> list[str]:
    """Everything that the screen prints and draws for a few events with such texts."""
    lines: list[str] = []
    drawing = Drawing(THEMES["none"], "", columns, lines.extend)
    text = hostile(chance)
    size = Size(columns, 24)
    events = [
        SessionOpened(session="s", model=text, style=text, mode=text, cwd=text),
        TurnStarted(),
        MessageAdded(message=Message(role="user", parts=(Text(text),))),
        Thought(subject=text, description=text),
        Streaming(ToolCallStarted("1", text)),
        Streaming(ToolCallDelta("1", text)),
        *(Streaming(TextDelta(piece)) for piece in (text[:3], text[3:])),
        ToolStarted(call_id="1", name=text, arguments=f'{{"a": "{text}"}}', effect="read"),
        ToolOutputText(call_id="1", text=text),
        ToolFinished(
            call_id="1",
            name=text,
            arguments=text,
            outcome=chance.choice(list(Outcome)),
            success=chance.random() < 0.5,
            duration=1.0,
            diff=text if chance.random() < 0.5 else "",
            display=text,
            result=ToolResult(call_id="1", name=text, parts=(Text(text),)),
        ),
        Noticed(kind="x", message=text),
        Retrying(message=text),
        TurnEnded(reason=TurnEnd.FAILED, detail=text),
    ]
    for event in events:
        drawing.add(event)
        lines += drawing.live(size)
    drawing.queue(text)
    lines += drawing.live(size)
    lines.append(drawing.status(window=1000, branch=text, keys=text))
    lines += drawing.whole()
    lines.append(drawing.status(window=1000, branch="", keys="", command=text))
    lines += drawing.last(50)
    menu = Menu(lambda: {text: text}, lambda name: (text,), lambda query: [text])
    for typed in ("@", "/", "/x "):
        menu.update(typed, len(typed))
        lines += menu.rows(drawing.painter)
    menu.search([text])
    lines += menu.rows(drawing.painter)
    sequences = [title(text), announcement(text, {"TERM_PROGRAM": "WezTerm"})]
    return lines + [one[4:-1] for one in sequences]


def check(rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(rounds):
        for line in shown(chance, chance.choice((20, 60, 80, 200))):
            assert not DANGEROUS & set(line), repr(line)


def test_hostile_texts_by_every_way_in():
    check(300, seed=1)


@pytest.mark.sweep
def test_many_hostile_texts_by_every_way_in():
    """13 ways in for each text: 10⁵ texts."""
    check(8000, seed=2)
