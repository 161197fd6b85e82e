"""A session as a readable transcript: turns, prompts, answers, calls and results."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from toolwire.agent.events import (
    AnswersGiven,
    HistoryReplaced,
    MessageAdded,
    Noticed,
    Retrying,
    ToolFinished,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.errors import SessionError
from toolwire.messages import Media, Message, Refusal, ToolCall
from toolwire.sessions.replay import Session, replay
from toolwire.sessions.store import Record
from toolwire.terminal_text import terminal_text

SHOWN = 4_000
"""Characters of a result that are shown; the rest is omitted."""


class TurnBegan(msgspec.Struct, frozen=True):
    """A turn begins."""

    number: int
    at: float


class TextBlock(msgspec.Struct, frozen=True):
    """Text of the user, the model or the context."""

    who: str
    """`you`, `model` or `context`."""
    text: str


class Thoughts(msgspec.Struct, frozen=True):
    """The model's thinking."""

    text: str


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A call and its outcome."""

    name: str
    arguments: str
    state: str
    """Outcome in words."""
    success: bool
    result: str
    diff: str = ""


class Note(msgspec.Struct, frozen=True):
    """A notice about the session."""

    text: str


Block: TypeAlias = TurnBegan | TextBlock | Thoughts | Called | Note


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A readable session."""

    title: str
    facts: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]


def transcript(session: str, records: Iterable[Record], note: str = "") -> Transcript:
    """The transcript of a session's records; `note` describes damage of its file."""
    records = tuple(records)
    past = replay(record.event for record in records)
    telling = _Builder()
    for record in records:
        telling.add(record)
    telling.end()
    notes = (Note(terminal_text(note)),) if note else ()
    return Transcript(
        title=terminal_text(past.title) or "Session without text",
        facts=tuple(_facts(session, past, records)),
        blocks=(*notes, *telling.blocks),
    )


def when(at: float) -> str:
    """The time as text."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"


def shortened(text: str, most: int = SHOWN) -> str:
    """The start and end of a long text, with the number of characters omitted."""
    if len(text) <= most:
        return text
    half = most // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"


class _Builder:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._turn = 0
        self._running: dict[str, ToolStarted] = {}

    def add(self, record: Record) -> None:
        event = record.event
        match event:
            case TurnStarted():
                self._turn += 1
                self.blocks.append(TurnBegan(self._turn, record.at))
            case MessageAdded():
                self.end()
                self._message(event)
            case ToolStarted():
                self._running[event.call_id] = event
            case ToolFinished():
                self._running.pop(event.call_id, None)
                self._finished(event)
            case AnswersGiven():
                self.end()
            case Noticed() | Retrying():
                self.blocks.append(Note(terminal_text(event.message)))
            case HistoryReplaced(method="given"):
                self.blocks.append(Note(f"starts from {len(event.messages)} messages"))
                for message in event.messages:
                    self._message(MessageAdded(message=message, context=True))
            case HistoryReplaced():
                words = f"shortened ({event.method}): about {event.before:,} tokens"
                self.blocks.append(Note(f"the conversation was {words} became {event.after:,}"))
            case TurnEnded() if event.reason is not TurnEnd.DONE:
                detail = f": {event.detail}" if event.detail else ""
                self.blocks.append(Note(terminal_text(f"the turn ended, {event.reason}{detail}")))
            case _:
                pass

    def end(self) -> None:
        """Add the calls that started and have no result."""
        for event in self._running.values():
            self.blocks.append(
                Called(
                    name=terminal_text(event.name),
                    arguments=terminal_text(_pretty(event.arguments)),
                    state="started, no result stored",
                    success=False,
                    result="",
                )
            )
        self._running.clear()

    def _message(self, event: MessageAdded) -> None:
        message = event.message
        if message.thinking.strip():
            self.blocks.append(Thoughts(terminal_text(message.thinking.strip())))
        who = "model" if message.role == "assistant" else "you"
        text = terminal_text(_words(message))
        if text.strip():
            self.blocks.append(TextBlock("context" if event.context else who, text.strip()))
        if who == "model" and event.finished is None and not event.context:
            calls = "; none of its calls was run" if message.calls else ""
            self.blocks.append(Note(f"the reply broke off here{calls}"))

    def _finished(self, event: ToolFinished) -> None:
        state = event.outcome.replace("_", " ")
        if event.duration:
            state += f", {event.duration:.1f} s"
        self.blocks.append(
            Called(
                name=terminal_text(event.name),
                arguments=terminal_text(_pretty(event.arguments)),
                state=state,
                success=event.success,
                result=shortened(terminal_text(event.result.text or event.display)),
                diff=shortened(terminal_text(event.diff)),
            )
        )


def _words(message: Message) -> str:
    """The text of a message, without calls and results, which are separate blocks."""
    words: list[str] = []
    if message.text:
        words.append(message.text)
    for part in message.parts:
        match part:
            case Refusal():
                words.append(part.text)
            case Media():
                words.append(f"[{part.kind}: {part.name or part.url or part.mime}]")
            case ToolCall() if not part.complete:
                words.append(f"[a call of {part.name} that was cut off]")
            case _:
                pass
    return "\n\n".join(words)


def _pretty(arguments: str) -> str:
    try:
        return msgspec.json.format(arguments or "{}", indent=2)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return arguments


def _facts(session: str, past: Session, records: tuple[Record, ...]) -> Iterable[tuple[str, str]]:
    yield "Session", session
    if past.forked_from:
        yield "Forked from", past.forked_from
    if past.cwd:
        yield "Folder", terminal_text(past.cwd)
    if past.model:
        yield "Model", terminal_text(past.model)
    if records:
        yield "Started", when(records[0].at)
        yield "Last worked on", when(records[-1].at)
    yield "Turns", str(past.turns)
    for one in past.totals:
        cost = "" if one.cost is None else f", ${one.cost:.4f}"
        cached = f" ({one.cached:,} cached)" if one.cached else ""
        words = f"{one.requests} requests, {one.input:,} tokens in{cached}, {one.output:,} out"
        yield f"Used of {terminal_text(one.model)}", f"{words}{cost}"


class TurnLine(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a session."""

    turn: int
    """Counts from 1."""
    at: float
    """Start time; Unix time."""
    last: int
    """The number of its last record."""
    prompt: str = ""
    calls: int = 0
    end: str = ""
    """Why it ended; empty if it is unfinished."""


def turns_of(records: Iterable[Record]) -> list[TurnLine]:
    """The turns in order."""
    turns: list[TurnLine] = []
    for record in records:
        if isinstance(record.event, TurnStarted):
            turns.append(TurnLine(turn=len(turns) + 1, at=record.at, last=record.seq))
        elif turns:
            turns[-1] = _with(turns[-1], record)
    return turns


def record_after(records: Sequence[Record], turn: int) -> int:
    """The number of the last record of a copy with that many turns."""
    turns = turns_of(records)
    if turn > len(turns):
        raise SessionError(
            f"the session has {len(turns)} turns; name a turn from 0 to {len(turns)}"
        )
    if turn:
        return turns[turn - 1].last
    first = (record.seq for record in records if isinstance(record.event, TurnStarted))
    return next(first, records[-1].seq + 1 if records else 1) - 1


def _with(turn: TurnLine, record: Record) -> TurnLine:
    event = record.event
    prompt, calls, end = turn.prompt, turn.calls, turn.end
    if isinstance(event, MessageAdded) and event.message.role == "user" and not event.context:
        prompt = prompt or event.message.text
    elif isinstance(event, ToolFinished):
        calls += 1
    elif isinstance(event, TurnEnded):
        end = str(event.reason)
    return TurnLine(
        turn=turn.turn, at=turn.at, last=record.seq, prompt=prompt, calls=calls, end=end
    )
