"""Every event of the agent is shown as the documentation says, or deliberately not."""

import typing

import pytest

from toolwire.agent import events as agent_events
from toolwire.agent.events import (
    AgentEnded,
    AgentEvent,
    AgentStarted,
    AnswersGiven,
    ApprovalOutcome,
    Checkpointed,
    ChildEvent,
    HistoryReplaced,
    HookRan,
    MessageAdded,
    ModelAsked,
    Noticed,
    RequestBuilt,
    Retrying,
    SessionOpened,
    Streaming,
    Thought,
    ToolAsked,
    ToolDecided,
    ToolFinished,
    ToolOutputText,
    ToolRequested,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.agent.questions import Confirmation, ExecDetails
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
    ServerBlockAdded,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
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
from toolwire.request import ModelRequest
from toolwire.tui.entries import EntryLines
from toolwire.tui.live import Size, live_rows, status_row
from toolwire.tui.render import Painter
from toolwire.tui.state import State, fold
from toolwire.tui.themes import THEMES
from toolwire.tui.transcript import TranscriptFold

PAINTER = Painter(THEMES["none"], "", 80)
CALL = ToolCall(id="1", name="run_shell_command", arguments='{"command": "ls"}')
DONE = Finished(reason=StopReason.END)
QUESTION = Confirmation(
    call=CALL, title="Shell", reason="why", details=ExecDetails(command="ls", roots=("ls",))
)


def message(role: typing.Literal["user", "assistant"], text: str) -> Message:
    return Message(role=role, parts=(Text(text),))


def finished(outcome: Outcome, display: str = "", **more: typing.Any) -> ToolFinished:
    result = ToolResult(call_id="1", name=CALL.name, parts=(Text("x"),), outcome=outcome)
    return ToolFinished(
        call_id="1",
        name=CALL.name,
        arguments=CALL.arguments,
        outcome=outcome,
        success=outcome is Outcome.DONE,
        duration=2.0,
        display=display,
        result=result,
        **more,
    )


def printed(*happened: AgentEvent, verbose: bool = False) -> list[str]:
    """The lines that events print for good, without empty ones."""
    entries, lines = TranscriptFold(verbose=verbose), EntryLines(PAINTER)
    rows = [row for one in happened for entry in entries.add(one) for row in lines.lines(entry)]
    return [row for row in rows if row.strip()]


def state_after(*happened: AgentEvent) -> State:
    state = State()
    for one in happened:
        state = fold(state, one, 10.0)
    return state


def live(*happened: AgentEvent) -> list[str]:
    """The rows of the live area four seconds after events."""
    return live_rows(state_after(*happened), [], PAINTER, Size(80, 24), 14.0)


def status(*happened: AgentEvent) -> str:
    return status_row(state_after(*happened), PAINTER, window=1000, branch="", keys="")


TURN = TurnStarted()
PICTURE = Media(kind=MediaKind.IMAGE, mime="image/png", base64="eA==")
SOURCE = Citation(dialect="", data="", url="https://a.example", title="A")
STARTED = ToolStarted(call_id="1", name="sh", arguments='{"command": "make"}', effect="execute")
PRINTS: list[tuple[str, tuple[AgentEvent, ...], list[str]]] = [
    ("session", (SessionOpened(session="a", model="p/m", mode="default"),), ["p/m · ask"]),
    ("fork", (SessionOpened(session="a", model="p/m", mode="plan", forked_from="b"),),
     ["p/m · plan · a copy of b"]),
    ("model", (SessionOpened(session="a", model="p/m", changed="model"),), ["model: p/m"]),
    ("style", (SessionOpened(session="a", model="p/m", style="xml", changed="style"),),
     ["tool style: xml"]),
    ("mode", (SessionOpened(session="a", model="p/m", mode="plan", changed="mode"),),
     ["approval mode: plan"]),
    ("user", (MessageAdded(message=message("user", "do it\nnow")),), ["› do it", "  now"]),
    ("context", (MessageAdded(message=message("user", "folder"), context=True),), []),
    ("whole reply", (MessageAdded(message=message("assistant", "Well."), finished=DONE),),
     ["Well."]),
    ("broken reply", (MessageAdded(message=message("assistant", "We")),),
     ["We", "the reply broke off"]),
    ("stream", (Streaming(TextDelta("One")), Streaming(TextDelta(" two")),
                MessageAdded(message=message("assistant", "One two"), finished=DONE)), ["One two"]),
    ("refusal", (Streaming(RefusalDelta("I cannot.")),
                 MessageAdded(message=message("assistant", ""), finished=DONE)),
     ["refused:", "I cannot."]),
    ("attached",
     (MessageAdded(message=Message(role="user", parts=(Text("see"), PICTURE, PICTURE))),),
     ["› see", "  [image 1]", "  [image 2]"]),
    ("media", (Streaming(MediaAdded(PICTURE)),),
     ["[image]"]),
    ("sources", (Streaming(TextDelta("So.")),
                 Streaming(CitationAdded(SOURCE)),
                 MessageAdded(message=message("assistant", "So."), finished=DONE)),
     ["So.", "[1] A  https://a.example"]),
    ("thought", (Thought(subject="Look", description="more"),), ["Look"]),
    ("notice", (Noticed(kind="setup", message="be aware"),), ["… be aware"]),
    ("prefix", (Noticed(kind="prefix", message="40% reused"),), []),
    ("cache", (Noticed(kind="cache", message="nothing reused"),), []),
    ("repaired", (Noticed(kind="glued_arguments", message="two calls came glued together"),), []),
    ("left out", (Noticed(kind="nameless_call", message="a call was left out"),),
     ["… a call was left out"]),
    ("streamed", (Streaming(Notice("fallback", "asking p/n")), Streaming(Notice("prefix", "x")),
                  Streaming(Notice("reading", "5 of 9 tokens read"))), ["… asking p/n"]),
    ("retry", (Retrying(message="again in 2 s"),), ["… again in 2 s"]),
    ("void", (Streaming(TextDelta("Half.\n\n")), Retrying(message="again", void=True)),
     ["Half.", "… again; the text above is not part of the answer"]),
    ("shortened", (HistoryReplaced(messages=(), method="summary", before=152_000, after=21_000),),
     ["… shortened (summary): 152k → 21k tokens"]),
    ("done", (finished(Outcome.DONE, "a\nb"),),
     ["● run_shell_command ls  2.0 s", "    a", "    b"]),
    ("failed", (finished(Outcome.FAILED, "no such file\nmore"),),
     ["✗ run_shell_command ls  2.0 s", "    no such file"]),
    ("denied", (finished(Outcome.DENIED),), ["⊘ run_shell_command ls  2.0 s   denied"]),
    ("interrupted", (finished(Outcome.INTERRUPTED),),
     ["◌ run_shell_command ls  2.0 s   outcome unknown"]),
    ("not run", (finished(Outcome.NOT_RUN),), ["– run_shell_command ls  2.0 s   not run"]),
    ("allowed once", (ToolAsked(call_id="1", confirmation=QUESTION),
                      ToolDecided(call_id="1", decision=ApprovalOutcome.ACCEPT, scope="once"),
                      finished(Outcome.DONE)),
     ["● run_shell_command ls  2.0 s   allowed: once"]),
    ("by rule", (ToolDecided(call_id="1", decision=ApprovalOutcome.AUTO_ACCEPT, reason="a rule"),
                 finished(Outcome.DONE)), ["● run_shell_command ls  2.0 s"]),
    ("turn done", (TurnEnded(reason=TurnEnd.DONE),), []),
    ("turn stopped", (TurnEnded(reason=TurnEnd.CANCELLED),), ["stopped"]),
    ("turn limit", (TurnEnded(reason=TurnEnd.COST_LIMIT, detail="$1"),),
     ["stopped: the limit of cost is reached (--max-cost): $1"]),
    ("nothing", (TURN, RequestBuilt(ModelRequest(model="m", messages=())),
     ModelAsked(model="p/m"), AnswersGiven(call_ids=()), UsageCounted(model="m"),
                 ToolRequested(call=CALL), ToolOutputText(call_id="1", text="x"), STARTED,
                 HookRan(event="Stop", name="x", decision=""), Checkpointed(n=1),
                 AgentStarted(call_id="1", session="s", agent="a"),
                 AgentEnded(call_id="1", session="s", agent="a", reason=TurnEnd.DONE),
                 ChildEvent(call_id="1", agent="a", session="s", event=TURN)), []),
]  # fmt: skip
LIVE: list[tuple[str, tuple[AgentEvent, ...], list[str]]] = [
    ("turn", (TURN,), ["◐ thinking  4 s"]),
    ("asked", (TURN, Streaming(TextDelta("x")), ModelAsked(model="p/m")), ["◐ thinking  4 s"]),
    ("thinking", (TURN, Streaming(ThinkingDelta("x"))), ["◐ thinking  4 s"]),
    ("thought", (TURN, Thought(subject="Look", description="")), ["◐ thinking: Look  4 s"]),
    ("reading", (TURN, Streaming(Notice("reading", "5 of 9 tokens read"))),
     ["◐ reading: 5 of 9 tokens read  4 s"]),
    ("read", (TURN, Streaming(Notice("reading", "5 of 9")), Streaming(ThinkingDelta("x"))),
     ["◐ thinking  4 s"]),
    ("text", (TURN, Streaming(TextDelta("x"))), ["◐ writing  4 s"]),
    ("refusal", (TURN, Streaming(RefusalDelta("x"))), ["◐ writing  4 s"]),
    ("retry", (TURN, Retrying(message="x")), ["◐ trying again  4 s"]),
    ("writing a call", (TURN, Streaming(ToolCallStarted("1", "write_file")),
                        Streaming(ToolCallDelta("1", '{"file_path": "a.py'))),
     ["◐ writing write_file a.py  19 characters"]),
    ("call written", (TURN, Streaming(ToolCallStarted("1", "write_file")),
                      Streaming(ToolCallEnded("1"))), ["◐ thinking  4 s"]),
    ("running", (TURN, STARTED, ToolOutputText(call_id="1", text="a\nb\n")),
     ["◐ sh make  4 s", "    a", "    b"]),
    ("finished", (TURN, STARTED, finished(Outcome.DONE)), ["◐ working  4 s"]),
    ("nothing more", (TURN, Streaming(TextEnded()), Streaming(ThinkingEnded()), Streaming(DONE),
                      Streaming(Notice("prefix", "x"))),
     ["◐ thinking  4 s"]),
    ("requested", (TURN, ToolRequested(call=CALL)), ["○ run_shell_command ls"]),
    ("no longer", (TURN, ToolRequested(call=CALL), finished(Outcome.DENIED)),
     ["◐ thinking  4 s"]),
    ("end", (TURN, STARTED, TurnEnded(reason=TurnEnd.DONE)), []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "happened", "rows"), PRINTS, ids=[one[0] for one in PRINTS])
def test_what_an_event_prints(name: str, happened: tuple[AgentEvent, ...], rows: list[str]):
    assert printed(*happened) == rows


@pytest.mark.parametrize(("name", "happened", "rows"), LIVE, ids=[one[0] for one in LIVE])
def test_what_the_live_area_shows(name: str, happened: tuple[AgentEvent, ...], rows: list[str]):
    assert live(*happened) == rows


def test_context_is_shown_on_demand():
    context = MessageAdded(message=message("user", "the folder is a"), context=True)
    assert printed(context, verbose=True) == ["… context: the folder is a"]
    repaired = Noticed(kind="glued_arguments", message="came glued together")
    assert printed(repaired, verbose=True) == ["… came glued together"]
    assert printed(Noticed(kind="prefix", message="40% reused"), verbose=True) == []


def test_usage_is_in_the_status_line():
    counted = UsageCounted(model="p/m", usage=Usage(input=250, output=5), cost=0.125)
    side = UsageCounted(model="p/m", usage=Usage(input=900), purpose="summary")
    assert "25% of 1k · $0.12?" in status(counted, side)


def test_a_subagent_is_followed_by_its_events():
    def child(event: AgentEvent) -> ChildEvent:
        return ChildEvent(call_id="1", agent="scout", session="s", event=event)

    [agent] = state_after(
        child(TURN), child(STARTED), child(UsageCounted(model="m", cost=0.5))
    ).agents
    assert (agent.name, agent.last, agent.cost, agent.ended) == ("scout", "sh", 0.5, False)
    said = MessageAdded(message=message("assistant", "found it\nmore"), finished=DONE)
    [agent] = state_after(child(said), child(TurnEnded(reason=TurnEnd.DONE))).agents
    assert (agent.last, agent.ended) == ("found it", True)


def test_every_event_is_tested_here():
    tested = {type(one) for _, happened, _ in (*PRINTS, *LIVE) for one in happened}
    assert tested == set(typing.get_args(AgentEvent))
    streamed = {
        type(one.event)
        for _, happened, _ in (*PRINTS, *LIVE)
        for one in happened
        if isinstance(one, Streaming)
    }
    assert streamed | {ServerBlockAdded} == set(typing.get_args(ModelEvent))
    assert agent_events.AgentEvent is AgentEvent
