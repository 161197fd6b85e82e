"""Agent events as OpenTelemetry's GenAI spans, metrics and events; pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    ChildEvent,
    HistoryReplaced,
    MessageAdded,
    ModelAsked,
    RequestBuilt,
    Retrying,
    SessionEvent,
    SessionOpened,
    Streaming,
    ToolDecided,
    ToolFinished,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.messages import Message, ToolResult
from toolwire.request import ModelRequest
from toolwire.telemetry.attributes import (
    basic_of,
    description_of,
    histogram,
    instructions_of,
    messages_json,
    parameters_of,
    seconds,
    server_of,
    token_measures,
    usage_of,
)
from toolwire.telemetry.signals import Attributes, Kind, LogRecord, Measure, Signal, Span

NewId: TypeAlias = Callable[[int], int]
"""A new id of that many bytes, never 0."""
_OPERATIONS: Mapping[str, str] = {"google": "generate_content", "vertex": "generate_content"}
_PROVIDERS: Mapping[str, str] = {
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "moonshot": "moonshot_ai",
}


def operation_of(provider: str) -> str:
    """The name of the operation that asks a provider's model."""
    return _OPERATIONS.get(provider, "chat")


def provider_name(provider: str) -> str:
    """A provider's name in the conventions."""
    return _PROVIDERS.get(provider, provider)


_DETAILS = "gen_ai.client.inference.operation.details"


class Content(msgspec.Struct, frozen=True):
    """Where words of the conversation are included."""

    spans: bool = False
    events: bool = False


class _Open(msgspec.Struct, kw_only=True):
    """A span that has begun."""

    name: str
    kind: Kind
    id: int
    parent: int
    start: int
    attributes: Attributes
    inner: int = 0
    """The id of the request that a call makes to its MCP server."""
    facts: dict[str, str | int] = {}
    """What is known of that request."""


class _Request(msgspec.Struct, kw_only=True):
    """A request that has not been answered."""

    span: _Open
    input: tuple[Message, ...] = ()
    first: int = 0
    last: int = 0
    chunks: int = 0
    counted: UsageCounted | None = None
    """What it used; its message follows."""
    end: int = 0


class SessionTrace:
    """Turns the events of one session into signals; holds what is under way."""

    def __init__(
        self,
        session: str,
        *,
        new_id: NewId,
        content: Content = Content(),  # noqa: B008 - a frozen value
        trace: int = 0,
        parent: int = 0,
        agent: str = "toolwire",
    ) -> None:
        self._session = session
        self._new_id = new_id
        self._content = content
        self._trace = trace or new_id(16)
        self._outer = parent
        self._agent = agent
        self._version = ""
        self._model = ""
        self._server: Attributes = {}
        self._built: ModelRequest | None = None
        """The last request of the turn."""
        self._turn: _Open | None = None
        self._request: _Request | None = None
        self._calls: dict[str, _Open] = {}
        self._decisions: dict[str, str] = {}
        self._children: dict[str, SessionTrace] = {}
        self._messages: list[Message] = []
        self._results: dict[str, ToolResult] = {}

    @property
    def position(self) -> tuple[int, int]:
        """The trace, and the innermost span that is open."""
        inner = self._request.span if self._request is not None else self._turn
        return self._trace, inner.id if inner is not None else self._outer

    def call_context(self, event: AgentEvent) -> tuple[str, dict[str, str | int]] | None:
        """For a call that starts: the trace context of requests that it makes to a server, and
        where facts of such a request are noted.
        """
        if isinstance(event, ChildEvent):
            child = self._children.get(event.session)
            return None if child is None else child.call_context(event.event)
        call = self._calls.get(event.call_id) if isinstance(event, ToolStarted) else None
        if call is None:
            return None
        return f"00-{self._trace:032x}-{call.inner:016x}-01", call.facts

    def feed(self, received: SessionEvent, now: int) -> Iterator[Signal]:
        """The signals that an event completes; `now` is its time in nanoseconds."""
        yield from self._feed(received.event, now)

    def close(self, now: int) -> Iterator[Signal]:
        """Ends what is open, as interrupted."""
        yield from self._settled()
        for child in self._children.values():
            yield from child.close(now)
        for call in list(self._calls.values()):
            yield self._ended(call, now, "interrupted")
        self._calls.clear()
        if self._request is not None:
            yield self._ended(self._request.span, now, "interrupted")
            self._request = None
        if self._turn is not None:
            yield self._ended(self._turn, now, "interrupted")
            self._turn = None

    def _feed(self, event: AgentEvent, now: int) -> Iterator[Signal]:
        if not isinstance(event, MessageAdded | Streaming):
            yield from self._settled()
        match event:
            case SessionOpened():
                self._model, self._version = event.model, event.version
                self._server = server_of(event.server)
            case TurnStarted():
                self._turn = self._begun("invoke_agent", self._agent, "internal", now)
            case MessageAdded():
                yield from self._answered(event, now)
                yield from self._settled()
                self._keep((event.message,))
            case AnswersGiven():
                found = [self._results.pop(id) for id in event.call_ids if id in self._results]
                self._keep((Message(role="user", parts=tuple(found)),))
            case HistoryReplaced():
                self._messages.clear()
                self._keep(event.messages)
            case RequestBuilt():
                self._built = event.request
            case ModelAsked():
                self._asked(event.model, now)
            case Streaming():
                self._streamed(now)
            case UsageCounted():
                self._counted(event, now)
            case Retrying():
                self._asked(self._model, now)
                if self._request is not None:
                    self._request.span.attributes["toolwire.attempt"] = event.attempt
            case ToolDecided():
                self._decisions[event.call_id] = event.decision
            case ToolStarted():
                call = self._begun("execute_tool", event.name, "internal", now)
                call.attributes["toolwire.tool.effect"] = event.effect
                call.inner = self._new_id(8)
                self._calls[event.call_id] = call
            case ToolFinished():
                yield from self._finished(event, now)
            case ChildEvent():
                yield from self._child(event, now)
            case TurnEnded():
                yield from self._turn_ended(event, now)
            case _:
                pass

    @property
    def _wanted(self) -> bool:
        """Whether words of the conversation are included anywhere."""
        return self._content.spans or self._content.events

    def _keep(self, messages: tuple[Message, ...]) -> None:
        if self._wanted:
            self._messages += messages

    def _begun(self, operation: str, name: str, kind: Kind, now: int) -> _Open:
        parent = self._turn.id if self._turn is not None else self._outer
        return _Open(
            name=f"{operation} {name}",
            kind=kind,
            id=self._new_id(8),
            parent=parent,
            start=now,
            attributes={"gen_ai.operation.name": operation},
        )

    def _ended(self, span: _Open, now: int, error: str = "") -> Span:
        if error:
            span.attributes["error.type"] = error
        return Span(
            name=span.name,
            kind=span.kind,
            trace=self._trace,
            id=span.id,
            parent=span.parent,
            start=span.start,
            end=max(now, span.start),
            attributes=span.attributes,
            error=error,
        )

    def _asked(self, model: str, now: int) -> None:
        provider, _, own = self._model.partition("/")
        name = model.removeprefix(f"{provider}/") or own
        operation = operation_of(provider)
        span = self._begun(operation, name, "client", now)
        span.attributes |= {
            "gen_ai.provider.name": provider_name(provider),
            "gen_ai.request.model": name,
            "gen_ai.request.stream": True,
            "gen_ai.conversation.id": self._session,
            **self._server,
            **parameters_of(self._built),
        }
        self._request = _Request(span=span, input=tuple(self._messages))

    def _streamed(self, now: int) -> None:
        request = self._request
        if request is not None:
            request.first = request.first or now
            request.last = now
            request.chunks += 1

    def _answered(self, event: MessageAdded, now: int) -> Iterator[Signal]:
        """Adds what a reply says to its request, which `UsageCounted` ends."""
        request = self._request
        if request is None or event.message.role != "assistant":
            return
        attributes = request.span.attributes
        if event.finished is not None:
            attributes["gen_ai.response.finish_reasons"] = (str(event.finished.reason),)
            if event.finished.response_id:
                attributes["gen_ai.response.id"] = event.finished.response_id
            if event.finished.model:
                attributes["gen_ai.response.model"] = event.finished.model
        if not self._wanted:
            return
        words: Attributes = {
            **instructions_of(self._built),
            "gen_ai.input.messages": messages_json(request.input),
            "gen_ai.output.messages": messages_json((event.message,)),
        }
        if self._content.spans:
            attributes |= words
        if self._content.events:
            yield LogRecord(
                name=_DETAILS,
                at=now,
                trace=self._trace,
                span=request.span.id,
                attributes={**attributes, **words},
            )

    def _counted(self, event: UsageCounted, now: int) -> None:
        if self._request is None:
            # A side request, such as a summary: only its end is an event.
            self._asked(event.model, now - int(event.seconds * 1e9))
        request = self._request
        if request is None:
            return
        request.counted, request.end = event, now
        attributes = request.span.attributes
        attributes |= usage_of(event.usage)
        if event.purpose != "turn":
            attributes["toolwire.purpose"] = event.purpose
        if event.cost is not None:
            attributes["toolwire.cost"] = event.cost

    def _settled(self) -> Iterator[Signal]:
        """The request that was counted, once what it said is known."""
        request = self._request
        if request is None or request.counted is None:
            return
        self._request = None
        span, event, end = request.span, request.counted, request.end
        basic = basic_of(span.attributes)
        error = (event.error or "failed") if event.failed else ""
        if request.first:
            span.attributes["gen_ai.response.time_to_first_chunk"] = seconds(
                span.start, request.first
            )
        yield self._ended(span, end, error)
        yield self._measured("gen_ai.client.operation.duration", span, end, basic, error)
        yield from token_measures(event.usage, end, basic)
        if request.first:
            yield histogram(
                "gen_ai.client.operation.time_to_first_chunk",
                seconds(span.start, request.first),
                end,
                basic,
            )
        if request.chunks > 1:
            each = seconds(request.first, request.last) / (request.chunks - 1)
            yield histogram("gen_ai.client.operation.time_per_output_chunk", each, end, basic)

    def _finished(self, event: ToolFinished, now: int) -> Iterator[Signal]:
        call = self._calls.pop(event.call_id, None)
        if call is None:
            call = self._begun("execute_tool", event.name, "internal", now)
        error = "" if event.success else event.error_type or str(event.outcome)
        call.attributes |= {
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.tool.type": "function",
            **description_of(event.name, self._built),
        }
        if self._wanted:
            self._results[event.call_id] = event.result
        decision = self._decisions.pop(event.call_id, event.decision)
        if decision:
            call.attributes["toolwire.tool.decision"] = str(decision)
        if self._content.spans:
            call.attributes["gen_ai.tool.call.arguments"] = event.arguments
            call.attributes["gen_ai.tool.call.result"] = event.result.text
        if event.server:
            call.attributes["toolwire.tool.server"] = event.server
            yield from self._at_server(event, call, now, error)
        yield self._ended(call, now, error)
        basic: Attributes = {
            "gen_ai.tool.name": event.name,
            **({"error.type": error} if error else {}),
        }
        yield self._measured("gen_ai.execute_tool.duration", call, now, basic, error)

    def _at_server(
        self, event: ToolFinished, call: _Open, now: int, error: str
    ) -> Iterator[Signal]:
        """The call as a request to its MCP server."""
        attributes: Attributes = {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": event.name,
            "gen_ai.operation.name": "execute_tool",
            **call.facts,
        }
        inner = _Open(
            name=f"tools/call {event.name}",
            kind="client",
            id=call.inner or self._new_id(8),
            parent=call.id,
            start=call.start,
            attributes=attributes,
        )
        basic: Attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": event.name}
        yield self._ended(inner, now, error)
        yield self._measured("mcp.client.operation.duration", inner, now, basic, error)

    def _child(self, event: ChildEvent, now: int) -> Iterator[Signal]:
        child = self._children.get(event.session)
        if child is None:
            call = self._calls.get(event.call_id)
            child = self._children[event.session] = SessionTrace(
                event.session,
                new_id=self._new_id,
                content=self._content,
                trace=self._trace,
                parent=call.id if call is not None else self.position[1],
                agent=event.agent,
            )
        yield from child.feed(SessionEvent(event.session, event.event), now)

    def _turn_ended(self, event: TurnEnded, now: int) -> Iterator[Signal]:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        good = event.reason is TurnEnd.DONE
        turn.attributes |= {
            "gen_ai.agent.name": self._agent,
            "gen_ai.agent.version": self._version,
            "gen_ai.conversation.id": self._session,
            "gen_ai.request.model": self._model.partition("/")[2],
            "toolwire.requests": event.requests,
            "toolwire.reason": str(event.reason),
            **usage_of(event.usage),
        }
        error = "" if good else event.error or str(event.reason)
        yield self._ended(turn, now, error)
        basic: Attributes = {"gen_ai.agent.name": self._agent}
        yield self._measured("gen_ai.invoke_agent.duration", turn, now, basic, error)

    def _measured(
        self, name: str, span: _Open, now: int, attributes: Attributes, error: str
    ) -> Measure:
        found = {**attributes, "error.type": error} if error else attributes
        return histogram(name, seconds(span.start, now), now, found)
