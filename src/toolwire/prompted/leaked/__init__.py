"""Calls that a model printed as text in a known format, recognised and checked."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

import msgspec

from toolwire.errors import ToolwireError, UnknownName
from toolwire.events import (
    CitationAdded,
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    TextEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.model import Model, reading
from toolwire.prompted.leaked import marked_json, notations, tagged
from toolwire.prompted.leaked.cursor import Format
from toolwire.prompted.leaked.gate import Gate
from toolwire.prompted.leaked.recogniser import Piece, Recogniser, Taken
from toolwire.request import ModelRequest

FORMATS = {
    form.name: form
    for form in (
        *marked_json.FORMATS,
        *tagged.FORMATS,
        *notations.FORMATS,
    )
}
"""Every known format by name, as `ModelRule.leaked` lists them."""


def wrap(model: Model, formats: Iterable[str], new_id: Callable[[], str]) -> Model:
    """The model with printed calls turned into call events; unchanged without formats."""
    known = tuple(map(_format, formats))
    if not known:
        return model

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        reader = Reader(known, Gate(request.tools, request.tool_choice), new_id)
        async with reading(model(request)) as events:
            try:
                async for event in events:
                    for out in reader.read(event):
                        yield out
            except ToolwireError:
                for out in reader.flush(whole=False):
                    yield out
                raise

    return ask


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UnknownName("format of printed calls", name, FORMATS)
    return FORMATS[name]


_BY_ITSELF = (StopReason.END, StopReason.TOOL_CALLS)


class Reader:
    """One per answer."""

    def __init__(self, formats: Sequence[Format], gate: Gate, new_id: Callable[[], str]) -> None:
        self._formats = formats
        self._gate = gate
        self._new_id = new_id
        self._text: Recogniser | None = None
        self._blanks: list[str] = []
        """Blanks next to a printed call; dropped between two calls."""
        self._has_text = False
        """Whether non-blank text followed the start of the part or the last call."""
        self._changed = False
        self._called = False
        self._off = False
        """After a truncated call: following text may be its rest and is not searched."""
        self._ending: TextEnded | None = None

    def read(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """The events for one event of the model."""
        if self._ending is not None and not isinstance(event, Notice):
            ended_well = isinstance(event, Finished) and event.reason in _BY_ITSELF
            yield from self._end_part(self._ending, whole=ended_well)
        match event:
            case TextDelta() if self._gate and not self._off:
                if self._text is None:
                    self._text = Recogniser(self._formats, self._gate)
                for piece in self._text.feed(event.text):
                    yield from self._emit(piece)
            case Notice() | CitationAdded():
                yield event
            case TextEnded():
                # The next events show whether the model stopped here by itself.
                self._ending = event
            case Finished():
                yield from self.flush(whole=event.reason in _BY_ITSELF)
                yield self._finished(event)
            case _:
                yield from self.flush(whole=False)
                yield event

    def flush(self, *, whole: bool) -> Iterator[ModelEvent]:
        """The rest of the open text; `whole` means that the model stopped by itself."""
        if self._ending is not None:
            yield from self._end_part(self._ending, whole=whole)
        yield from self._end_text(whole=whole)
        if self._blanks and not self._changed:
            yield TextDelta("".join(self._blanks))
        self._blanks.clear()
        self._has_text = self._changed = False

    def _end_text(self, *, whole: bool) -> Iterator[ModelEvent]:
        if self._text is not None:
            for piece in self._text.end(whole=whole):
                yield from self._emit(piece)
            self._off = self._off or self._text.in_broken_call
            self._text = None

    def _emit(self, piece: Piece) -> Iterator[ModelEvent]:
        match piece:
            case Notice():
                yield piece
            case Taken():
                yield from self._call(piece)
            case _ if not self._has_text and piece.isspace():
                self._blanks.append(piece)
            case _:
                if self._blanks:
                    piece = "".join([*self._blanks, piece])
                    self._blanks.clear()
                self._has_text = True
                yield TextDelta(piece)

    def _call(self, taken: Taken) -> Iterator[ModelEvent]:
        self._blanks.clear()
        self._has_text = False
        self._changed = self._called = True
        for fitted in taken.calls:
            call_id = self._new_id()
            tool = fitted.tool
            yield Notice(
                "printed_call",
                f'a call of "{tool.name}" was printed as text in the {taken.format} format',
            )
            yield ToolCallStarted(call_id, tool.name, namespace=tool.namespace, made_id=True)
            yield ToolCallDelta(call_id, fitted.arguments)
            yield ToolCallEnded(call_id)

    def _end_part(self, event: TextEnded, *, whole: bool) -> Iterator[ModelEvent]:
        self._ending = None
        yield from self._end_text(whole=whole)
        changed, has_text = self._changed, self._has_text
        yield from self.flush(whole=whole)
        if not changed:
            yield event
            return
        if event.seal is not None or event.kept is not None:
            yield Notice("seal_dropped", "text lost its seal: a printed call was taken out of it")
        if has_text:
            yield TextEnded()

    def _finished(self, event: Finished) -> Finished:
        if self._called and event.reason is StopReason.END:
            return msgspec.structs.replace(event, reason=StopReason.TOOL_CALLS)
        return event
