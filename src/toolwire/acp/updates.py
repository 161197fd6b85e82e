"""The agent's events as updates of a session: the whole mapping to the protocol is here."""

from collections.abc import Callable, Iterable
from typing import cast

import msgspec

from toolwire.acp.calls import (
    PLAN,
    SHELL,
    Described,
    changed_locations,
    clipped,
    content,
    describe,
    diffs,
    exit_of,
    media_block,
    raw_output,
    result_content,
    stat_meta,
    stored_diffs,
    text_block,
)
from toolwire.agent.events import (
    AgentEvent,
    ChildEvent,
    MessageAdded,
    ModelAsked,
    Noticed,
    Retrying,
    Streaming,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    UsageCounted,
    notice_text,
)
from toolwire.events import RefusalDelta, TextDelta, ThinkingDelta
from toolwire.messages import Media, Message, Refusal, Text, Thinking, ToolCall
from toolwire.request import JsonObject
from toolwire.tools.proposals import Proposal
from toolwire.tools.registry import Registry
from toolwire.tools.spec import ToolContext
from toolwire.wire.repair import parse_arguments

_PLAN_STATUS = {"pending": "pending", "in_progress": "in_progress"}
_LIMITS = (TurnEnd.TURN_LIMIT, TurnEnd.COST_LIMIT, TurnEnd.TIME_LIMIT, TurnEnd.LOOP)
_STOPS = {
    TurnEnd.DONE: "end_turn",
    TurnEnd.LENGTH: "max_tokens",
    TurnEnd.TOKEN_LIMIT: "max_tokens",
    TurnEnd.REFUSAL: "refusal",
    TurnEnd.CONTENT_FILTER: "refusal",
    TurnEnd.CANCELLED: "cancelled",
    **dict.fromkeys(_LIMITS, "max_turn_requests"),
}
_END = "\n"
_OVERLAP = 200
_TAIL = 20_000
"""Characters of a command's output that are shown while it runs."""


def stop_reason(ended: TurnEnded) -> str:
    """The protocol's name for how a turn ended; empty for one that failed."""
    return _STOPS.get(ended.reason, "")


class _Call(msgspec.Struct):
    """A call that the editor knows."""

    id: str
    """Unique in the session; vendors repeat theirs."""
    about: Described
    terminal: bool = False
    output: str = ""
    proposals: tuple[Proposal, ...] = ()
    ended: bool = False


class Updates:
    """Turns events into updates; knows what the editor was shown of each call."""

    def __init__(
        self,
        registry: Registry,
        context: ToolContext,
        *,
        new_id: Callable[[str], str],
        display_terminal: bool = False,
        window: int = 0,
    ) -> None:
        self._registry = registry
        self._context = context
        self._new_id = new_id
        self._display_terminal = display_terminal
        self.window = window
        """Tokens that the model reads; 0 if unknown."""
        self._message = new_id("msg_")
        self._streamed = False
        self._calls: dict[str, _Call] = {}
        self._used: set[str] = set()
        self.cost: float | None = None
        """US dollars so far."""

    def of(self, event: AgentEvent) -> list[JsonObject]:
        """The updates of an event as it happens."""
        match event:
            case Streaming():
                return self._streamed_piece(event)
            case ModelAsked():
                self._message, self._streamed = self._new_id("msg_"), False
                return []
            case Retrying():
                return self._retrying(event)
            case MessageAdded(context=False) if event.message.role == "assistant":
                return [] if self._streamed else self._said(event.message)
            case ToolRequested():
                return self._requested(event.call)
            case ToolStarted():
                return self._started(event)
            case ToolFinished():
                return self._finished(event)
            case ChildEvent(event=ToolStarted() as started):
                line = f"{event.agent}: {started.name} {started.arguments[:200]}\n"
                return self.live(event.call_id, line)
            case UsageCounted():
                return self._usage(event)
            case Noticed():
                return self._notice(event)
            case TurnEnded():
                return self._ended(event)
            case _:
                return []

    def replay(self, events: Iterable[AgentEvent]) -> list[JsonObject]:
        """The updates of a stored session: each call once, in its last state.

        What a compression replaced is in the records, and so is shown.
        """
        events = tuple(events)
        results = _results(events)
        found: list[JsonObject] = []
        for event in events:
            match event:
                case MessageAdded(context=False):
                    self._message = self._new_id("msg_")
                    found += self._said(event.message)
                case ToolRequested():
                    waiting = results.get(event.call.id)
                    found += self._past(event.call, waiting.pop(0) if waiting else None)
                case UsageCounted():
                    self._count(event)
                case _:
                    pass
        return found

    def call_id(self, call_id: str) -> str:
        """The id that the editor knows a call by."""
        known = self._calls.get(call_id)
        return call_id if known is None else known.id

    def proposed(self, call_id: str, proposals: tuple[Proposal, ...]) -> None:
        """Notes the whole texts of an edit, for its end."""
        known = self._calls.get(call_id)
        if known is not None:
            known.proposals = proposals

    def lacks_proposal(self, call_id: str) -> bool:
        """Whether the texts of a call are not known."""
        known = self._calls.get(call_id)
        return known is not None and not known.proposals

    def asked(self, call: ToolCall, proposals: tuple[Proposal, ...], words: str) -> JsonObject:
        """The call of a question: its diffs, or what it would do in words."""
        about = describe(call, self._registry, self._context)
        shown = diffs(proposals) or ([content(text_block(words))] if words else [])
        return {
            "toolCallId": self.call_id(call.id),
            "title": about.title,
            "kind": about.kind,
            "status": "pending",
            "content": shown,
            "locations": list(about.locations),
            "rawInput": about.input,
        }

    # What the model says.

    def _streamed_piece(self, event: Streaming) -> list[JsonObject]:
        match event.event:
            case TextDelta(text=text) | RefusalDelta(text=text):
                kind = "agent_message_chunk"
            case ThinkingDelta(text=text):
                kind = "agent_thought_chunk"
            case _:
                return []
        self._streamed = True
        return [self._chunk(kind, text_block(text))] if text else []

    def _chunk(self, kind: str, block: JsonObject) -> JsonObject:
        return {"sessionUpdate": kind, "content": block, "messageId": self._message}

    def _retrying(self, event: Retrying) -> list[JsonObject]:
        found: list[JsonObject] = []
        if event.void:
            words = f"\n\n[the text above is void: {event.message}]\n\n"
            found.append(self._chunk("agent_message_chunk", text_block(words)))
            self._message, self._streamed = self._new_id("msg_"), False
        else:
            found.append(self._noticed("retry", event.message))
        return found

    def _said(self, message: Message) -> list[JsonObject]:
        """A whole message: the user's, or a reply that was not streamed."""
        own = message.role == "user"
        found: list[JsonObject] = []
        for part in message.parts:
            match part:
                case Text(text=text) | Refusal(text=text) if text:
                    kind = "user_message_chunk" if own else "agent_message_chunk"
                    found.append(self._chunk(kind, text_block(text)))
                case Thinking(text=text) if text:
                    found.append(self._chunk("agent_thought_chunk", text_block(text)))
                case Media():
                    kind = "user_message_chunk" if own else "agent_message_chunk"
                    found.append(self._chunk(kind, media_block(part)))
                case _:
                    pass
        return found

    def say(self, text: str) -> list[JsonObject]:
        """Our own words as a message."""
        self._message = self._new_id("msg_")
        return [self._chunk("agent_message_chunk", text_block(text))]

    def _notice(self, event: Noticed) -> list[JsonObject]:
        words = notice_text(event)
        return [self._noticed(event.kind, words)] if words else []

    def _noticed(self, kind: str, words: str) -> JsonObject:
        chunk = {
            "sessionUpdate": "agent_thought_chunk",
            "content": text_block(f"{words}\n"),
            "messageId": self._new_id("note_"),
        }
        return {**chunk, "_meta": {"toolwire/notice": kind}}

    def _ended(self, event: TurnEnded) -> list[JsonObject]:
        if event.reason not in _LIMITS and event.reason is not TurnEnd.TOKEN_LIMIT:
            return []
        return self.say(f"\n[stopped: {event.detail or event.reason}]\n")

    # Calls.

    def _requested(self, call: ToolCall) -> list[JsonObject]:
        known = self._calls.get(call.id)
        # A call that was open when the session was stored is shown already.
        if call.name == PLAN or (known is not None and not known.ended):
            return []
        return [self._new_call(call, "pending")]

    def _new_call(self, call: ToolCall, status: str) -> JsonObject:
        about = describe(call, self._registry, self._context)
        id = call.id
        if id in self._used:
            id = self._new_id(f"{call.id}-")
        self._used.add(id)
        terminal = self._display_terminal and call.name == SHELL and status == "pending"
        self._calls[call.id] = _Call(id=id, about=about, terminal=terminal)
        update: JsonObject = {
            "sessionUpdate": "tool_call",
            "toolCallId": id,
            "title": about.title,
            "kind": about.kind,
            "status": status,
            "locations": list(about.locations),
            "rawInput": about.input,
        }
        if terminal:
            folder = about.input.get("directory") or "."
            cwd = str(self._context.workspace.roots[0] / str(folder))
            update["content"] = [{"type": "terminal", "terminalId": id}]
            update["_meta"] = {"terminal_info": {"terminal_id": id, "cwd": cwd}}
        return update

    def _started(self, event: ToolStarted) -> list[JsonObject]:
        known = self._calls.get(event.call_id)
        if known is None:
            return []
        update = self._update(known, status="in_progress")
        now = parse_arguments(event.arguments).value
        if now is not None and now != known.about.input:
            call = ToolCall(id=event.call_id, name=event.name, arguments=event.arguments)
            known.about = describe(call, self._registry, self._context)
            update |= {"title": known.about.title, "rawInput": known.about.input}
        return [update]

    def _update(self, known: _Call, **members: object) -> JsonObject:
        return {"sessionUpdate": "tool_call_update", "toolCallId": known.id, **members}

    def live(self, call_id: str, text: str) -> list[JsonObject]:
        """Live output of a call; as text, the whole so far."""
        known = self._calls.get(call_id)
        if known is None or known.ended or not text:
            return []
        known.output = (known.output + text)[-_TAIL:]
        if known.terminal:
            meta = {"terminal_output": {"terminal_id": known.id, "data": text}}
            return [self._update(known, _meta=meta)]
        return [self._update(known, content=[content(text_block(known.output))])]

    def is_terminal(self, call_id: str) -> bool:
        """Whether the editor draws the call's output as it comes."""
        known = self._calls.get(call_id)
        return known is not None and known.terminal

    def _finished(self, event: ToolFinished) -> list[JsonObject]:
        if event.name == PLAN:
            return [_plan(event)] if event.success else []
        known = self._calls.get(event.call_id)
        if known is None or known.ended:
            return []
        rest = unseen(known.output, event.display) if known.terminal and event.duration else ""
        found = self.live(event.call_id, rest)
        known.ended = True
        return [*found, self._update(known, **self._end(known, event, diffs(known.proposals)))]

    def _end(self, known: _Call, event: ToolFinished, edited: list[JsonObject]) -> JsonObject:
        meta = stat_meta(event.stat)
        found: JsonObject = {
            "status": "completed" if event.success else "failed",
            "rawOutput": raw_output(event),
        }
        if known.terminal and event.duration:
            meta["terminal_exit"] = {"terminal_id": known.id, **exit_of(event)}
        else:
            found["content"] = result_content(event, edited)
        if where := changed_locations(event, known.about.paths):
            found["locations"] = where
        return {**found, "_meta": meta} if meta else found

    def _past(self, call: ToolCall, finished: ToolFinished | None) -> list[JsonObject]:
        """A call of a stored session, with its end if it has one."""
        if call.name == PLAN:
            return [] if finished is None or not finished.success else [_plan(finished)]
        update = self._new_call(call, "pending" if finished is None else "completed")
        known = self._calls[call.id]
        if finished is not None:
            known.ended = True
            edited = stored_diffs(finished, known.about.paths) if finished.diff else []
            update |= self._end(known, finished, edited)
        return [update]

    # Usage.

    def _usage(self, event: UsageCounted) -> list[JsonObject]:
        self._count(event)
        if event.purpose != "turn" or event.failed or not self.window:
            return []
        used = event.usage.total_input
        update: JsonObject = {"sessionUpdate": "usage_update", "used": used, "size": self.window}
        if self.cost is not None:
            update["cost"] = {"amount": self.cost, "currency": "USD"}
        return [update]

    def _count(self, event: UsageCounted) -> None:
        if event.cost is not None:
            self.cost = (self.cost or 0.0) + event.cost


def unseen(shown: str, whole: str) -> str:
    """The part of a command's output that its live output did not show."""
    end = shown.rstrip()[-_OVERLAP:]
    if not end:
        return f"{whole}\n" if whole.strip() else ""
    at = whole.rfind(end)
    rest = whole[at + len(end) :] if at >= 0 else f"\n…\n{whole[-_TAIL:]}"
    if not rest.strip():
        return ""
    return f"{rest.removeprefix(_END) if shown.endswith(_END) else rest}{_END}"


def _plan(event: ToolFinished) -> JsonObject:
    given = parse_arguments(event.arguments).value or {}
    items = cast(list[dict[str, str]], given.get("items") or [])
    entries = [
        {
            "content": clipped(item["text"]),
            "priority": "medium",
            "status": _PLAN_STATUS.get(item["status"], "completed"),
        }
        for item in items
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def _results(events: Iterable[AgentEvent]) -> dict[str, list[ToolFinished]]:
    """The results of calls by id, in order: vendors repeat ids."""
    found: dict[str, list[ToolFinished]] = {}
    for event in events:
        if isinstance(event, ToolFinished):
            found.setdefault(event.call_id, []).append(event)
    return found
