"""No text of a model, tool, file or server reaches the terminal unsanitised, by any way in."""

import io
import random
import re
from pathlib import Path

import pytest
from prompt_toolkit.input import DummyInput

from toolwire.agent.events import (
    AgentEnded,
    AgentEvent,
    AgentStarted,
    ChildEvent,
    HistoryReplaced,
    HookRan,
    MessageAdded,
    ModelAsked,
    Noticed,
    Retrying,
    SessionOpened,
    Streaming,
    Thought,
    ToolAsked,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.agent.questions import (
    Confirmation,
    Details,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
)
from toolwire.events import (
    CitationAdded,
    MediaAdded,
    Notice,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStarted,
)
from toolwire.messages import (
    Citation,
    Media,
    MediaKind,
    Message,
    Outcome,
    Text,
    ToolCall,
    ToolResult,
)
from toolwire.tools.proposals import DiffStat
from toolwire.tui.drawing import Drawing
from toolwire.tui.live import Size
from toolwire.tui.menu import Menu
from toolwire.tui.notify import announcement, title
from toolwire.tui.output import FrameOutput
from toolwire.tui.question_rows import ReplyCalls, approval_rows, key_rows
from toolwire.tui.themes import THEMES
from toolwire.tui.views.lists import ListItem, ListView
from toolwire.tui.views.page import Surface
from toolwire.tui.views.pager import Pager, page_of

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


class Texts:
    """Hostile texts: another one for each place, or one for a whole round."""

    def __init__(self, chance: random.Random, *, same: bool = False) -> None:
        self.chance = chance
        self._same = same
        self._present = ""
        self.count = 0

    def begin(self) -> None:
        """Begins a round."""
        self._present = self._new()

    def __call__(self) -> str:
        return self._present if self._same else self._new()

    def _new(self) -> str:
        self.count += 1
        return "".join(self.chance.choices(PIECES, k=self.chance.randrange(1, 14)))


def asked(new: Texts) -> tuple[Details, ...]:
    """Every kind of question with such a text."""
    return (
        ExecDetails(command=new(), roots=(new(),), directory=new()),
        EditDetails(paths=(Path(new().replace("\0", "")),), diff=new(), stat=DiffStat()),
        McpDetails(server=new(), tool=new(), arguments=new(), description=new(), hints=(new(),)),
        InfoDetails(prompt=new()),
    )


def events(new: Texts) -> list[AgentEvent]:
    """A session in which everything is such a text."""
    media = Media(kind=MediaKind.IMAGE, mime=new(), url=new())
    return [
        SessionOpened(session="s", model=new(), style=new(), mode=new(), cwd=new(), changed=new()),
        TurnStarted(),
        MessageAdded(message=Message(role="user", parts=(Text(new()), media))),
        ModelAsked(model=new()),
        *(Streaming(ThinkingDelta(piece)) for piece in (new(), new())),
        Thought(subject=new(), description=new()),
        Streaming(ToolCallStarted("1", new())),
        Streaming(ToolCallDelta("1", new())),
        *(Streaming(TextDelta(piece)) for piece in (new(), new())),
        Streaming(CitationAdded(Citation(dialect="gemini", data="{}", url=new(), title=new()))),
        Streaming(MediaAdded(media)),
        Streaming(MediaAdded(Media(kind=MediaKind.IMAGE, mime="image/png", base64="eA=="))),
        Streaming(Notice(new(), new())),
        ToolRequested(call=ToolCall(id="1", name=new(), arguments=new())),
        ToolRequested(call=ToolCall(id="2", name=new(), arguments=f'{{"a": "{new()}"}}')),
        *(
            ToolAsked(call_id="1", confirmation=asked_about(new, details))
            for details in asked(new)[:1]
        ),
        ToolStarted(call_id="1", name=new(), arguments=f'{{"a": "{new()}"}}', effect="read"),
        ToolOutputText(call_id="1", text=new()),
        ToolFinished(
            call_id="1",
            name=new(),
            arguments=new(),
            outcome=new.chance.choice(list(Outcome)),
            success=new.chance.random() < 0.5,
            duration=1.0,
            diff=new() if new.chance.random() < 0.5 else "",
            display=new(),
            server=new(),
            result=ToolResult(call_id="1", name=new(), parts=(Text(new()),)),
        ),
        AgentStarted(call_id="2", session="c", agent=new()),
        ChildEvent(call_id="2", agent=new(), session="c", event=Streaming(TextDelta(new()))),
        AgentEnded(call_id="2", session="c", agent=new(), reason=TurnEnd.FAILED),
        HookRan(event=new(), name=new(), decision="block", reason=new()),
        Noticed(kind=new(), message=new()),
        Noticed(kind="setup", message=new()),
        Retrying(message=new(), void=new.chance.random() < 0.5),
        Streaming(RefusalDelta(new())),
        UsageCounted(model=new(), failed=True, error=new()),
        HistoryReplaced(messages=(), method=new(), before=2, after=1),
        MessageAdded(message=Message(role="assistant", parts=(Text(new()),))),
        TurnEnded(reason=TurnEnd.FAILED, detail=new(), error=new()),
    ]


def asked_about(new: Texts, details: Details) -> Confirmation:
    return Confirmation(
        call=ToolCall(id="1", name=new(), arguments=new()),
        title=new(), reason=new(), details=details, remembers=(new(),),
    )  # fmt: skip


def pages(new: Texts, drawing: Drawing) -> list[str]:
    """The rows of pages with such texts: titles, sessions, files."""
    surface = Surface(DummyInput(), FrameOutput(io.StringIO(), "xterm"), drawing.painter)
    item = ListItem(key=new(), cells=(new(), new()), about=new())
    listed = ListView(surface, new(), [item], chosen=new(), message=new(), query="")
    pager = Pager(surface, new(), page_of(drawing.whole()))
    return [*listed._rows(), listed._title, *pager._shown(), pager._title]


def shown(new: Texts, columns: int, theme: str) -> list[str]:
    """Everything that the screen prints and draws for a few events with such texts."""
    lines: list[str] = []
    colours = "standard" if theme != "none" else ""
    new.begin()
    drawing = Drawing(
        THEMES[theme], colours, columns, lines.extend, links=True, stored=lambda media: new()
    )
    size = Size(columns, 24)
    for event in events(new):
        drawing.add(event)
        lines += drawing.live(size)
    drawing.queue(new())
    drawing.note(new())
    lines += drawing.live(size)
    lines.append(drawing.status(window=1000, branch=new(), keys=new()))
    lines += drawing.whole()
    for details in asked(new):
        question = asked_about(new, details)
        lines += approval_rows(question, drawing.painter)
        lines += key_rows(question, drawing.painter, ReplyCalls(), new())
    lines.append(drawing.status(window=1000, branch="", keys="", command=new()))
    lines += drawing.last(50)
    lines += pages(new, drawing)
    menu = Menu(lambda: {new(): (new(), (new(),))}, lambda name: (new(),), lambda query: [new()])
    for typed in ("@", "/", "/x "):
        menu.update(typed, len(typed))
        lines += menu.rows(drawing.painter)
    menu.search([new()])
    lines += menu.rows(drawing.painter)
    sequences = [title(new()), announcement(new(), {"TERM_PROGRAM": "WezTerm"})]
    return lines + [one[4:-1] for one in sequences]


OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;(?:https?://[!-~]{1,2000})?\x1b\\", re.IGNORECASE)
"""What we write in a line: colours, and the two ends of a link."""


def check(seed: int, *, texts: int = 0, rounds: int = 0) -> None:
    """At least so many texts, each in one place; or rounds of one text in all of them.

    Every second round is in colours and with links.
    """
    new = Texts(random.Random(seed), same=bool(rounds))
    links = number = 0
    while number < rounds or new.count < texts:
        theme = ("none", "ansi")[number % 2]
        number += 1
        for line in shown(new, new.chance.choice((20, 60, 80, 200)), theme):
            ends = re.findall(r"\x1b\]8;;([^\x1b]*)\x1b", line)
            # Every link that begins in a line ends in it.
            assert all(bool(end) == (not at % 2) for at, end in enumerate(ends)), repr(line)
            assert not len(ends) % 2, repr(line)
            links += len(ends)
            rest = OURS.sub("", line) if theme == "ansi" else line
            assert not DANGEROUS & set(rest), repr(line)
    assert links


def test_hostile_texts_by_every_way_in():
    check(1, texts=5000)
    check(2, rounds=100)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(3, 7))
def test_a_hundred_thousand_hostile_texts(seed: int):
    check(seed, texts=25_000)


@pytest.mark.sweep
def test_many_hostile_texts_by_every_way_in():
    check(7, rounds=4000)


@pytest.mark.long
def test_a_hundred_thousand_hostile_texts_by_every_way_in():
    check(8, rounds=100_000)
