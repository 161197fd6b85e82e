"""One tracker for every wire format: from fragments, however they are keyed, to whole calls in
order.
"""

from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from toolwire.errors import MalformedStream
from toolwire.events import (
    ModelEvent,
    Notice,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import CallKind, Kept, Seal
from toolwire.wire.json_stream import JsonSplitter, is_object, may_be_glued, split_objects
from toolwire.wire.names import ToolNames

MAX_NAME = 1024
"""Characters of a tool's name; vendors take 64 to 128."""
MAX_ID = 262_144
"""Characters of a call's id; some gateways put a signature in it."""
MAX_CALLS = 1000
"""Calls of one answer."""
_NO_NAMES = ToolNames()
# Attribute access on an enum costs as much as creating the event.
_JSON = CallKind.JSON


class _Call(msgspec.Struct, gc=False, eq=False):
    handle: Hashable
    vendor_id: str
    name: str
    kind: CallKind
    namespace: str = ""
    id: str = ""
    parts: list[str] = []
    kept: Kept | None = None
    seal: Seal | None = None
    started: bool = False
    live: bool = False
    """Whether argument deltas are emitted as they arrive."""
    ended: bool = False
    wrapped: bool = False
    brackets: JsonSplitter | None = None
    """The first `scanned` parts are scanned; each is scanned once."""
    scanned: int = 0
    closed: int = 0
    """How often the outermost bracket has closed."""

    @property
    def text(self) -> str:
        return "".join(self.parts)


class ToolCallTracker:
    """One per answer. Vendor handles (index, id, item) in; canonical calls out, in order of
    appearance.

    `fragment` is for formats whose pieces say little; `start`, `append` and `end` for those with
    marks.
    """

    def __init__(self, new_id: Callable[[], str], names: ToolNames | None = None) -> None:
        self._new_id = new_id
        self._names = names or _NO_NAMES
        self._calls: list[_Call] = []
        self._by_handle: dict[Hashable, _Call] = {}
        self._ids: set[str] = set()
        self._last: _Call | None = None
        self._waiting: list[_Call] = []
        self._wholes = 0

    def __len__(self) -> int:
        return len(self._calls) + self._wholes

    @property
    def waiting(self) -> bool:
        """Whether a call is pending: its id or name may still grow, so its start is not emitted."""
        return bool(self._waiting)

    def __contains__(self, handle: Hashable) -> bool:
        return handle in self._by_handle

    def silent(self, handle: Hashable) -> bool:
        """Whether a call has started without arguments."""
        call = self._by_handle.get(handle)
        return call is not None and not call.ended and not call.parts

    def is_whole(self, handle: Hashable) -> bool:
        """Whether the arguments of this call are complete, or need not be an object."""
        return _is_whole(self._by_handle[handle])

    def fragment(
        self,
        index: int | None,
        vendor_id: str | None,
        name: str | None,
        arguments: "str | dict[str, Any] | list[Any] | None",
        kind: CallKind = CallKind.JSON,
        *,
        anew: bool = False,
    ) -> list[ModelEvent]:
        """Adds a piece of a call keyed by index, id, or neither. Its start is emitted once id and
        name are whole. `anew`: it is known to begin a call.
        """
        if not vendor_id and not name and type(arguments) is str and arguments:
            call = self._last if index is None else self._by_handle.get(index)
            if call is not None and call.live:
                call.parts.append(arguments)
                return [ToolCallDelta(call.id, arguments)]
        if arguments is not None and not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        call = None if anew else self._find(index, vendor_id or "", name or "")
        if call is not None and (vendor_id or name) and self._starts_anew(call, arguments):
            if vendor_id and vendor_id == call.vendor_id and arguments == call.text:
                return [Notice("duplicate_call", f'call "{vendor_id}" was sent twice')]
            call = None
        events: list[ModelEvent] = []
        if call is None:
            self._begin_spoken(events)
            handle = index if index is not None else vendor_id or len(self._calls)
            call = self._open(handle, vendor_id or "", name or "", kind)
            self._waiting.append(call)
            self._identify(call, vendor_id)
        elif not call.started:
            if not call.vendor_id:
                self._identify(call, vendor_id)
            if name and name != call.name and not (call.name and call.parts):
                call.name += name
                _check_name(call.name)
        if arguments:
            self._add(call, arguments, events)
        return events

    def start(
        self,
        handle: Hashable,
        name: str,
        vendor_id: str | None,
        *,
        kind: CallKind = CallKind.JSON,
        namespace: str = "",
        kept: Kept | None = None,
    ) -> list[ModelEvent]:
        """Starts a call whose name is complete."""
        events: list[ModelEvent] = []
        if self._waiting:
            self._flush(events)
        call = self._open(handle, vendor_id or "", name, kind)
        call.namespace = namespace
        call.kept = kept
        self._begin(call, events)
        return events

    def append(self, handle: Hashable, arguments: str) -> list[ModelEvent]:
        """Adds argument text."""
        call = self._by_handle[handle]
        if not arguments:
            return []
        if call.live:
            call.parts.append(arguments)
            return [ToolCallDelta(call.id, arguments)]
        events: list[ModelEvent] = []
        self._add(call, arguments, events)
        return events

    def whole(
        self,
        handle: Hashable,
        name: str,
        vendor_id: str | None,
        arguments: str,
        *,
        seal: Seal | None = None,
        kept: Kept | None = None,
    ) -> list[ModelEvent]:
        """Adds a call received in one piece, its arguments one JSON value: start, text and end."""
        tool = None if self._names is _NO_NAMES else self._names.original(name)
        wrapped = tool is not None and tool.wrapped
        if self._waiting or wrapped or not arguments or vendor_id in self._ids:
            return [
                *self.start(handle, name, vendor_id),
                *self.append(handle, arguments),
                *self.end(handle, seal=seal, kept=kept),
            ]
        self._count(name, vendor_id or "")
        call_id = vendor_id or self._new_id()
        self._ids.add(call_id)
        # It has ended: nothing later can belong to it.
        self._wholes += 1
        self._last = None
        if tool is None:
            started = ToolCallStarted(call_id, name, _JSON, "", not vendor_id)
        else:
            started = ToolCallStarted(call_id, tool.name, _JSON, tool.namespace, not vendor_id)
        ended = ToolCallEnded(call_id, None, True, seal, kept)
        return [started, ToolCallDelta(call_id, arguments), ended]

    def flush(self) -> list[ModelEvent]:
        """Emits the start of every pending call; its id and name are final."""
        events: list[ModelEvent] = []
        self._flush(events)
        return events

    def attach(self, handle: Hashable, seal: Seal) -> None:
        """Stores vendor state for the end of a call, if it arrives before the end."""
        self._by_handle[handle].seal = seal

    def end(
        self,
        handle: Hashable,
        *,
        arguments: str | None = None,
        complete: bool = True,
        seal: Seal | None = None,
        kept: Kept | None = None,
    ) -> list[ModelEvent]:
        """Ends a call; `arguments` is the vendor's final text."""
        events: list[ModelEvent] = []
        self._end(self._by_handle[handle], events, arguments, complete, seal, kept)
        return events

    def end_all(self, *, cut: bool = False, complete: bool = True) -> list[ModelEvent]:
        """Ends every open call.

        `cut`: a length stop. The call opened last is incomplete, an earlier one if its JSON is not
        whole.
        """
        events: list[ModelEvent] = []
        if not self._calls and not self._waiting:
            return events
        self._flush(events)
        for call in list(self._calls):
            if not call.ended:
                whole = not cut or (call is not self._last and _is_whole(call))
                self._end(call, events, None, complete and whole, None, None)
        return events

    def _find(self, index: int | None, vendor_id: str, name: str) -> _Call | None:
        if index is None and vendor_id:
            return self._by_handle.get(vendor_id)
        call = self._last if index is None else self._by_handle.get(index)
        if call is not None and vendor_id and call.vendor_id and vendor_id != call.vendor_id:
            # Index 0 for all: only the id distinguishes the calls.
            return self._by_handle.get((index, vendor_id))
        if call is not None and name and not vendor_id and call.parts:
            return call if call.name in ("", name) else None
        return call

    def _identify(self, call: _Call, vendor_id: str | None) -> None:
        if vendor_id:
            _check_id(vendor_id)
            call.vendor_id = vendor_id
            self._by_handle[call.handle, vendor_id] = call
            self._by_handle.setdefault(vendor_id, call)

    @staticmethod
    def _starts_anew(call: _Call, arguments: str | None) -> bool:
        # A server that repeats id or name on each piece continues the call; after complete text it
        # starts another.
        return (
            arguments is not None
            and arguments[:1] == "{"
            and bool(call.parts)
            and call.parts[-1].rstrip()[-1:] == "}"
            and _has_closed(call)
            and is_object(call.text)
        )

    def _open(self, handle: Hashable, vendor_id: str, name: str, kind: CallKind) -> _Call:
        self._count(name, vendor_id)
        call = _Call(handle, vendor_id, name, kind)
        self._calls.append(call)
        self._by_handle[handle] = call
        self._last = call
        return call

    def _count(self, name: str, vendor_id: str) -> None:
        """Rejects what no honest server sends, before it costs memory."""
        if len(self) >= MAX_CALLS:
            raise MalformedStream(f"the answer makes more than {MAX_CALLS} calls")
        _check_name(name)
        _check_id(vendor_id)

    def _flush(self, events: list[ModelEvent]) -> None:
        self._begin_waiting(len(self._waiting), events)

    def _begin_spoken(self, events: list[ModelEvent]) -> None:
        for at in range(len(self._waiting), 0, -1):
            if self._waiting[at - 1].parts:
                self._begin_waiting(at, events)
                return

    def _begin_waiting(self, count: int, events: list[ModelEvent]) -> None:
        # A call whose id or name may still grow keeps its position: it starts before the next one.
        for call in self._waiting[:count]:
            self._begin(call, events)
        del self._waiting[:count]

    def _begin(self, call: _Call, events: list[ModelEvent]) -> None:
        if call.started:
            return
        call.started = True
        call.id = call.vendor_id
        if call.id in self._ids:
            call.id = self._new_id()
            events.append(
                Notice(
                    "duplicate_id",
                    f'two calls have the id "{call.vendor_id}"; one is now "{call.id}"',
                )
            )
        elif not call.id:
            call.id = self._new_id()
        self._ids.add(call.id)
        tool = self._names.original(call.name)
        call.wrapped = tool.wrapped and call.kind is _JSON
        call.live = not call.wrapped
        events.append(
            ToolCallStarted(
                call.id,
                tool.name,
                CallKind.FREEFORM if call.wrapped else call.kind,
                call.namespace or tool.namespace,
                call.id != call.vendor_id,
                call.kept,
            )
        )
        if call.parts and not call.wrapped:
            events.append(ToolCallDelta(call.id, call.text))

    def _add(self, call: _Call, arguments: str, events: list[ModelEvent]) -> None:
        if call.ended:
            events.append(
                Notice("late_arguments", f'call "{call.id}" got more arguments after its end')
            )
            return
        if not call.started and call.vendor_id and call.name:
            self._begin_waiting(self._waiting.index(call) + 1, events)
        call.parts.append(arguments)
        if call.live:
            events.append(ToolCallDelta(call.id, arguments))

    def _end(
        self,
        call: _Call,
        events: list[ModelEvent],
        arguments: str | None,
        complete: bool,
        seal: Seal | None,
        kept: Kept | None,
    ) -> None:
        if call.ended:
            return
        if not call.started:
            self._begin(call, events)
        call.ended = True
        call.live = False
        seal = seal or call.seal
        text = call.text
        last_word = arguments if arguments is not None and arguments != text else None
        text = text if last_word is None else last_word
        if call.wrapped:
            inner = _unwrap(text)
            complete = complete and inner is not None
            last_word = text if inner is None else inner
        elif call.kind is _JSON and may_be_glued(text):
            objects = split_objects(text)
            if objects:
                self._split(call, objects, events, complete, seal, kept)
                return
        events.append(ToolCallEnded(call.id, last_word, complete, seal, kept))

    def _split(
        self,
        call: _Call,
        objects: list[str],
        events: list[ModelEvent],
        complete: bool,
        seal: Seal | None,
        kept: Kept | None,
    ) -> None:
        events.append(
            Notice("glued_arguments", f'{len(objects)} calls of "{call.name}" came glued together')
        )
        events.append(ToolCallEnded(call.id, objects[0], complete, seal, kept))
        for text in objects[1:]:
            extra = self._open((call.handle, len(self._calls)), "", call.name, call.kind)
            extra.parts.append(text)
            extra.namespace = call.namespace
            self._begin(extra, events)
            extra.ended = True
            extra.live = False
            events.append(ToolCallEnded(extra.id, None, complete))


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME:
        raise MalformedStream(f"the name of a tool is longer than {MAX_NAME} characters")


def _check_id(vendor_id: str) -> None:
    if len(vendor_id) > MAX_ID:
        raise MalformedStream(f"the id of a call is longer than {MAX_ID} characters")


def _has_closed(call: _Call) -> bool:
    """Whether the text may be one complete object: its outermost bracket closed exactly once."""
    if call.brackets is None:
        call.brackets = JsonSplitter()
    fresh = "".join(call.parts[call.scanned :]).encode("utf-8", "surrogatepass")
    call.scanned = len(call.parts)
    call.closed += len(call.brackets.feed(fresh))
    return call.closed == 1 and not call.brackets.open


def _is_whole(call: _Call) -> bool:
    return call.kind is CallKind.FREEFORM or is_object(call.text)


class _Wrapped(msgspec.Struct):
    input: str


_wrapped = msgspec.json.Decoder(_Wrapped)


def _unwrap(text: str) -> str | None:
    try:
        return _wrapped.decode(text).input
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
