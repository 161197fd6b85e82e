"""No text of a model, tool, file or server reaches the terminal unsanitised, by any way in."""

import random
import re
from pathlib import Path

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
    ToolRequested,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.agent.questions import (
    Confirmation,
    Details,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
)
from toolwire.events import MediaAdded, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted
from toolwire.messages import Media, MediaKind, Message, Outcome, Text, ToolCall, ToolResult
from toolwire.tools.proposals import DiffStat
from toolwire.tui.drawing import Drawing
from toolwire.tui.live import Size
from toolwire.tui.menu import Menu
from toolwire.tui.notify import announcement, title
from toolwire.tui.question_rows import ReplyCalls, approval_rows, key_rows
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
    "[b](https://y.example/\x1b]8;;)",
    "[c](http://z/?a;b) ",
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


def asked(text: str) -> tuple[Details, ...]:
    """Every kind of question with such a text."""
    return (
        ExecDetails(command=text, roots=(text,), directory=text),
        EditDetails(paths=(Path(text.replace("\0", "")),), diff=text, stat=DiffStat()),
        McpDetails(server=text, tool=text, arguments=text, description=text, hints=(text,)),
        InfoDetails(prompt=text),
    )


def shown(chance: random.Random, columns: int, theme: str = "none") -> list[str]:
    """Everything that the screen prints and draws for a few events with such texts."""
    lines: list[str] = []
    colours = "standard" if theme != "none" else ""
    drawing = Drawing(THEMES[theme], colours, columns, lines.extend, links=True)
    text = hostile(chance)
    size = Size(columns, 24)
    events = [
        SessionOpened(session="s", model=text, style=text, mode=text, cwd=text),
        TurnStarted(),
        MessageAdded(message=Message(role="user", parts=(Text(text),))),
        *(Streaming(ThinkingDelta(piece)) for piece in (text[:5], text[5:])),
        Thought(subject=text, description=text),
        Streaming(ToolCallStarted("1", text)),
        Streaming(ToolCallDelta("1", text)),
        *(Streaming(TextDelta(piece)) for piece in (text[:3], text[3:])),
        Streaming(MediaAdded(Media(kind=MediaKind.IMAGE, mime=text, url=text))),
        ToolRequested(call=ToolCall(id="1", name=text, arguments=text)),
        ToolRequested(call=ToolCall(id="2", name=text, arguments=f'{{"a": "{text}"}}')),
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
    for details in asked(text):
        question = Confirmation(
            call=ToolCall(id="1", name=text, arguments=text),
            title=text, reason=text, details=details, remembers=(text,),
        )  # fmt: skip
        lines += approval_rows(question, drawing.painter)
        lines += key_rows(question, drawing.painter, ReplyCalls(), text)
    lines.append(drawing.status(window=1000, branch="", keys="", command=text))
    lines += drawing.last(50)
    menu = Menu(lambda: {text: (text, (text,))}, lambda name: (text,), lambda query: [text])
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


OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;(?:https?://[!-~]{1,2000})?\x1b\\", re.IGNORECASE)
"""What we write in a line: colours, and the two ends of a link."""


def test_hostile_texts_in_colours_and_with_links():
    chance = random.Random(4)
    links = 0
    for _ in range(150):
        for line in shown(chance, chance.choice((20, 60, 200)), "ansi"):
            ends = re.findall(r"\x1b\]8;;([^\x1b]*)\x1b", line)
            # Every link that begins in a line ends in it.
            assert all(bool(end) == (not at % 2) for at, end in enumerate(ends)), repr(line)
            assert not len(ends) % 2
            links += len(ends)
            assert not DANGEROUS & set(OURS.sub("", line)), repr(line)
    assert links


def test_hostile_texts_by_every_way_in():
    check(300, seed=1)


@pytest.mark.sweep
def test_many_hostile_texts_by_every_way_in():
    check(8000, seed=2)


@pytest.mark.long
def test_a_hundred_thousand_hostile_texts_by_every_way_in():
    check(100_000, seed=3)
