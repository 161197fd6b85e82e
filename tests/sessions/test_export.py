import json
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.sample_events import (
    a_session,
    call,
    finished,
    kept,
    opened,
    reply,
    said,
    sessions,
    started,
)
from toolwire.agent.events import (
    AgentEvent,
    HistoryReplaced,
    Noticed,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.messages import Media, MediaKind, Message, Text, Thinking
from toolwire.sessions import records
from toolwire.sessions.export import FORMATS, to_html, to_json, to_markdown
from toolwire.sessions.store import Contents, Record, Salvaged
from toolwire.sessions.transcript import (
    Called,
    Note,
    TextBlock,
    Thoughts,
    TurnBegan,
    shortened,
    transcript,
)

NASTY = "<script>alert(1)</script></details>\n```\n# x\x1b[31m\u202e"


def contents(events: list[AgentEvent], salvaged: Salvaged | None = None) -> Contents:
    kept_ones = [
        Record(seq=at, at=1_700_000_000.0 + at, event=event)
        for at, event in enumerate(kept(events), 1)
    ]
    return Contents(id="s1", project="/home/me", records=tuple(kept_ones), salvaged=salvaged)


class Tags(HTMLParser):
    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def test_json_holds_every_event_whole() -> None:
    events = a_session(2)
    told = json.loads(to_json(contents(events)))
    again = [records.decode(json.dumps(one["event"]).encode()) for one in told["records"]]
    assert again == kept(events)
    assert told["records"][0]["at"] == "2023-11-14T22:13:21+00:00"
    members = ("id", "project", "turns", "model", "damage")
    assert [told[name] for name in members] == ["s1", "/home/me", 2, "simulator/small", None]
    assert told["totals"][0]["requests"] == 4


def test_a_transcript_reports_what_happened_in_order() -> None:
    one, two = call("a", "read_file"), call("b")
    edited = msgspec.structs.replace(finished(two, "written"), diff="-old\n+new")
    picture = Media.of_bytes(MediaKind.IMAGE, "image/png", b"x", "cat.png")
    thinking = Message(role="assistant", parts=(Thinking("let me see"), Text("done")))
    events: list[AgentEvent] = [
        opened(),
        TurnStarted(),
        msgspec.structs.replace(
            said("look"), message=Message(role="user", parts=(Text("look"), picture))
        ),
        reply(one, two, text="I will"),
        started(one),
        finished(one, "contents"),
        started(two),
        edited,
        Noticed(kind="loss", message="something went"),
        msgspec.structs.replace(reply(), message=thinking),
        HistoryReplaced(messages=(), method="summary", before=9000, after=10),
        TurnEnded(reason=TurnEnd.LENGTH, detail="cut"),
        TurnStarted(),
        reply(one, text="", finished=None),
    ]
    told = transcript("s1", contents(events).records, "the disk is old")
    first, second = ('{\n  "x": "a"\n}', '{\n  "x": "b"\n}')
    state = "done, 0.5 s"
    assert told.blocks == (
        Note("the disk is old"),
        TurnBegan(1, 1_700_000_002.0),
        TextBlock("you", "look\n\n[image: cat.png]"),
        TextBlock("model", "I will"),
        Called(name="read_file", arguments=first, state=state, success=True, result="contents"),
        Called(
            name="write_file",
            arguments=second,
            state=state,
            success=True,
            result="written",
            diff="-old\n+new",
        ),
        Note("something went"),
        Thoughts("let me see"),
        TextBlock("model", "done"),
        Note("the conversation was shortened (summary): about 9,000 tokens became 10"),
        Note("the turn ended, length: cut"),
        TurnBegan(2, 1_700_000_013.0),
        Note("the reply broke off here; none of its calls was run"),
    )
    assert told.title == "look"


def test_a_call_without_a_result_is_shown_as_such() -> None:
    told = transcript("s1", contents([reply(call("a")), started(call("a"))]).records)
    assert [block.state for block in told.blocks if isinstance(block, Called)] == [
        "started, no result stored"
    ]


def test_long_results_are_shortened_and_the_loss_is_counted() -> None:
    text = "a" * 5_000 + "b" * 5_000
    short = shortened(text, 1_000)
    assert short == "a" * 500 + "\n… 9,000 characters left out …\n" + "b" * 500
    assert shortened("short") == "short"


def test_nothing_that_steers_a_terminal_is_shown() -> None:
    page = to_markdown(contents([opened(), said("a\x1b[31mb\r\nc\td\u202e\x9b\x00")]))
    assert "a\\u001b[31mb\nc\td\\u202e\\u009b\\u0000" in page


def nasty() -> list[AgentEvent]:
    one = msgspec.structs.replace(call("a", NASTY), arguments=NASTY)
    result = msgspec.structs.replace(finished(one, NASTY), diff=f"+{NASTY}", name=NASTY)
    return [
        opened(style=NASTY),
        TurnStarted(),
        said(NASTY),
        reply(one, text="fine"),
        started(one),
        result,
        Noticed(kind="x", message=NASTY),
    ]


def test_html_runs_nothing_and_shows_everything() -> None:
    page = to_html(contents(nasty()))
    tags = parsed(page)
    assert "script" not in tags.seen
    assert tags.text.count("<script>alert(1)</script>") >= 5
    assert "\x1b" not in page
    assert "prefers-color-scheme: dark" in page
    assert "http://" not in page
    assert "https://" not in page


def test_markdown_keeps_foreign_text_inside_its_fence() -> None:
    page = to_markdown(contents(nasty()))
    outside: list[str] = []
    fence = ""
    for line in page.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.rstrip("jsontexdif")
        else:
            outside.append(line)
    assert fence == ""
    rest = "\n".join(outside)
    assert "<script>" not in rest.replace("\\<script\\>", "")
    assert rest.count("<details>") == rest.count("</details>") == 1


def test_a_damaged_session_says_so_in_every_format() -> None:
    salvaged = Salvaged(records=3, lost_after=1_700_000_000.0, damage="record 4 is damaged")
    for form in FORMATS.values():
        page = form(contents(a_session(1), salvaged))
        assert "3 records up to 2023-11-14 22:13:20 UTC are good" in page


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_session_can_be_exported(form: str) -> None:
    assert FORMATS[form](contents([]))


@given(events=sessions(), data=st.data())
def test_any_prefix_of_a_session_can_be_exported(
    events: list[AgentEvent], data: st.DataObject
) -> None:
    whole = contents(events[: data.draw(st.integers(0, len(events)))])
    parsed(to_html(whole))
    to_markdown(whole)
    assert len(json.loads(to_json(whole))["records"]) == len(whole.records)
