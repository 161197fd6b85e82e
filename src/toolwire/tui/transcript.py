"""Agent events as entries of the transcript: one fold, live, for resumed sessions and exports."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never, cast

import msgspec

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
    notice_text,
)
from toolwire.context.mentions import BEGINS
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
    ServerBlockAdded,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import Citation, Media, Message, Text
from toolwire.terminal_text import one_line
from toolwire.tui.blocks import Block, BlockKind, Blocks
from toolwire.tui.state import MODE_WORDS
from toolwire.wire.partial import PartialJson


class Said(msgspec.Struct, frozen=True):
    """What the user wrote, with its attachments as marks."""

    text: str


class ProseEntry(msgspec.Struct, frozen=True, gc=False):
    """A block of the model's answer."""

    block: Block
    first: bool = False
    """Whether an answer begins with it."""


class Headline(msgspec.Struct, frozen=True):
    """A thought: its headline and the rest."""

    subject: str
    description: str


class CallEntry(msgspec.Struct, frozen=True):
    """A call with its result, and how it was approved."""

    finished: ToolFinished
    approved: str = ""


class NoteEntry(msgspec.Struct, frozen=True):
    """A line of toolwire's own."""

    text: str
    role: str = "dim"


class Sources(msgspec.Struct, frozen=True):
    """Numbered sources of an answer: titles and addresses."""

    listed: tuple[tuple[str, str], ...]


Entry: TypeAlias = Said | ProseEntry | Headline | CallEntry | NoteEntry | Sources

_ENDS = {
    TurnEnd.TURN_LIMIT: "stopped: the limit of model requests is reached; send a message to go on",
    TurnEnd.TOKEN_LIMIT: "stopped: the limit of tokens is reached (--max-tokens)",
    TurnEnd.COST_LIMIT: "stopped: the limit of cost is reached (--max-cost)",
    TurnEnd.TIME_LIMIT: "stopped: the limit of time is reached",
    TurnEnd.LOOP: "stopped: the model repeats itself; say what to do differently",
    TurnEnd.LENGTH: "the answer was cut by the model's output limit; say 'continue' to go on",
    TurnEnd.REFUSAL: "the model refused",
    TurnEnd.CONTENT_FILTER: "the provider's content filter stopped the answer",
    TurnEnd.CANCELLED: "stopped",
    TurnEnd.FAILED: "the turn failed; send a message to try again",
}

_IN_CONTEXT = ("prefix", "cache")
"""Kinds of notices that only `/context` shows."""


class TranscriptFold:
    """Folds the events of one session; knows the block that is still open."""

    def __init__(
        self, *, verbose: bool = False, stored: Callable[[Media], str] = lambda media: ""
    ) -> None:
        """`stored` is the file of a picture or sound from the model, empty if there is none."""
        self._verbose = verbose
        self._stored = stored
        self._blocks = Blocks()
        self._streamed = False
        """Whether text of the present reply was shown."""
        self._begun = False
        self._refused = False
        self._citations: dict[str, str] = {}
        self._approved: dict[str, str] = {}
        self._asked: set[str] = set()
        self._arguments = PartialJson()
        """Of the call that the model writes now."""
        self.answers: list[str] = []
        """The source texts of the model's answers."""

    @property
    def open(self) -> Block | None:
        """The block of the answer that is not final yet."""
        return self._blocks.open

    @property
    def written(self) -> str:
        """The text of several lines that the model writes as the last argument of a call."""
        value: object = self._arguments.value
        members = cast(dict[str, object], value) if isinstance(value, dict) else {}
        last = next(reversed(members.values()), "")
        return last if isinstance(last, str) and "\n" in last else ""

    def add(self, event: AgentEvent) -> list[Entry]:
        """The entries that the event makes final."""
        match event:
            case Streaming():
                return self._piece(event.event)
            case MessageAdded():
                return self._message(event)
            case Thought():
                return [Headline(event.subject, event.description)]
            case ToolAsked():
                self._asked.add(event.call_id)
                return []
            case ToolDecided():
                self._approved[event.call_id] = _approved(event, event.call_id in self._asked)
                return []
            case ToolFinished():
                return [*self._closed(), CallEntry(event, self._approved.pop(event.call_id, ""))]
            case Retrying():
                return self._void(event)
            case Noticed():
                return self._notice(event)
            case HistoryReplaced():
                before, after = thousands(event.before), thousands(event.after)
                words = f"shortened ({event.method}): {before} → {after} tokens"
                return [NoteEntry(f"… {words}")]
            case TurnEnded():
                return [*self._closed(), *_end(event)]
            case SessionOpened():
                return _changed(event)
            case (
                TurnStarted()
                | AnswersGiven()
                | ModelAsked()
                | RequestBuilt()
                | UsageCounted()
                | ToolRequested()
                | ToolStarted()
                | ToolOutputText()
                | HookRan()
                | Checkpointed()
                | AgentStarted()
                | AgentEnded()
                | ChildEvent()
            ):
                return []
            case _:
                assert_never(event)

    def _piece(self, event: ModelEvent) -> list[Entry]:
        match event:
            case RefusalDelta():
                word = [] if self._refused else [*self._closed(), NoteEntry("refused:", "warning")]
                self._refused = self._streamed = True
                return [*word, *self._prose(self._blocks.feed(event.text))]
            case TextDelta():
                self._streamed = self._streamed or bool(event.text)
                return self._prose(self._blocks.feed(event.text))
            case TextEnded() | ThinkingEnded():
                return []
            case MediaAdded():
                self._streamed = True
                return [*self._closed(), self._medium(event.media)]
            case CitationAdded():
                self._cite(event.citation)
                return []
            case Notice():
                # How far the prompt is read changes with each piece: only the live area shows it.
                if event.kind == "reading":
                    return []
                return self._notice(
                    Noticed(kind=event.kind, message=event.message, loss=event.loss)
                )
            case ToolCallStarted():
                self._arguments = PartialJson()
                return []
            case ToolCallDelta():
                self._arguments.feed(event.arguments)
                return []
            case ThinkingDelta() | ToolCallEnded() | ServerBlockAdded() | Finished():
                return []
            case _:
                assert_never(event)

    def _message(self, event: MessageAdded) -> list[Entry]:
        if event.context:
            words = one_line(event.message.text)
            return [NoteEntry(f"… context: {words}")] if self._verbose and words else []
        if event.message.role == "user":
            if self._blocks.open is None:
                # An answer begins without a gap: there is one below what the user wrote.
                self._blocks = Blocks()
            return [Said(said(event.message))]
        if event.message.role != "assistant":
            return []
        entries: list[Entry] = []
        if event.message.text:
            self.answers.append(event.message.text)
        if not self._streamed:
            for part in event.message.parts:
                if isinstance(part, Text):
                    entries += self._prose(self._blocks.feed(part.text))
                    for citation in part.citations:
                        self._cite(citation)
                elif isinstance(part, Media):
                    entries += [*self._closed(), self._medium(part)]
        entries += self._closed()
        if event.finished is None:
            entries.append(NoteEntry("the reply broke off", "warning"))
        self._streamed = self._begun = self._refused = False
        return entries

    def _prose(self, blocks: list[Block]) -> list[Entry]:
        found: list[Entry] = []
        for block in blocks:
            found.append(ProseEntry(block, first=not self._begun))
            self._begun = True
        return found

    def _closed(self) -> list[Entry]:
        found = self._prose(self._blocks.close())
        if self._citations:
            found.append(Sources(tuple((name, url) for url, name in self._citations.items())))
            self._citations = {}
        return found

    def _notice(self, event: Noticed) -> list[Entry]:
        words = "" if event.kind in _IN_CONTEXT else notice_text(event, verbose=self._verbose)
        return [NoteEntry(f"… {words}")] if words else []

    def _void(self, event: Retrying) -> list[Entry]:
        self._blocks = Blocks()
        lost = event.void and self._begun
        self._streamed = self._begun = False
        void = "; the text above is not part of the answer" if lost else ""
        return [NoteEntry(f"… {event.message}{void}", "warning" if lost else "dim")]

    def _medium(self, media: Media) -> NoteEntry:
        file = self._stored(media)
        if file:
            return NoteEntry(f"[{_media_word(media)} saved: {file}]", "")
        return NoteEntry(f"[{_media_word(media)}{f': {media.url}' if media.url else ''}]", "")

    def _cite(self, citation: Citation) -> None:
        if citation.url:
            self._citations.setdefault(citation.url, citation.title)


def said(message: Message) -> str:
    """The user's words, media as the marks of the composer."""
    found: list[str] = []
    media = 0
    for part in message.parts:
        match part:
            case Text(text=text) if text == BEGINS:
                # What follows are the files that the words mention.
                break
            case Text():
                found.append(part.text.partition(BEGINS)[0])
            case Media():
                media += 1
                mark = f"[{_media_word(part)} {media}]"
                if not any(mark in words for words in found):
                    found.append(mark)
            case _:
                pass
    return "\n".join(found)


def source_of(entries: Sequence[Entry]) -> str:
    """The source text of entries that belong together."""
    return "\n".join(map(_source, entries))


def _source(entry: Entry) -> str:
    match entry:
        case Said():
            return entry.text
        case ProseEntry():
            return _markdown(entry.block)
        case Headline():
            return f"{entry.subject}\n{entry.description}".strip()
        case CallEntry():
            done = entry.finished
            return "\n".join(filter(None, (done.name, done.arguments, done.diff or done.display)))
        case NoteEntry():
            return entry.text
        case Sources():
            return "\n".join(f"{title} {url}".strip() for title, url in entry.listed)


def _markdown(block: Block) -> str:
    """A block with the marks that its kind implies."""
    gap = "\n" if block.gap else ""
    match block.kind:
        case BlockKind.HEADING:
            return f"{gap}{'#' * block.level} {block.text}"
        case BlockKind.RULE:
            return f"{gap}---"
        case BlockKind.CODE_START:
            return f"{gap}```{block.language}"
        case BlockKind.CODE_END:
            return "```"
        case _:
            return f"{gap}{block.text}"


def _media_word(media: Media) -> str:
    return media.mime.partition("/")[0] or "file"


def _approved(event: ToolDecided, asked: bool) -> str:
    if event.decision is ApprovalOutcome.REJECT:
        return "denied"
    if event.scope:
        return f"allowed: {event.scope}"
    return event.reason if asked else ""


def _end(event: TurnEnded) -> list[Entry]:
    if event.reason is TurnEnd.DONE:
        return []
    words = _ENDS[event.reason]
    role = "dim" if event.reason is TurnEnd.CANCELLED else "warning"
    return [NoteEntry(f"{words}: {event.detail}" if event.detail else words, role)]


def _changed(event: SessionOpened) -> list[Entry]:
    match event.changed:
        case "model":
            return [NoteEntry(f"model: {event.model}")]
        case "style":
            return [NoteEntry(f"tool style: {event.style}")]
        case "mode":
            return [NoteEntry(f"approval mode: {MODE_WORDS.get(event.mode, event.mode)}")]
        case _:
            copy = f"a copy of {event.forked_from}" if event.forked_from else ""
            mode = MODE_WORDS.get(event.mode, event.mode)
            words = " · ".join(filter(None, (event.model, mode, copy)))
            return [NoteEntry(words)] if words else []


def thousands(count: int) -> str:
    """A number of tokens, in thousands from a thousand on."""
    return f"{count // 1000}k" if count >= 1000 else str(count)
