"""Puts the stored turns of a conversation in the place of what the client sent of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from toolwire.gateway.memory import Maker, StoredTurn, handle_of, seal_of
from toolwire.gateway.parts import Recalled
from toolwire.gateway.visible import PartRun, visible_call
from toolwire.messages import (
    CacheMark,
    Loss,
    Media,
    Message,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import ModelRequest

_CHANGED = "the client changed this turn"

P = TypeVar("P", bound=Part)


class Piece(NamedTuple):
    """Parts of the client's message, and the turn that they came from."""

    parts: tuple[Part, ...]
    turn: StoredTurn | None = None
    equal: bool = False
    """Whether the client sent all of the turn that it could, unchanged."""


class Matches(Protocol):
    """The turns that were found for a request."""

    @property
    def request(self) -> ModelRequest:
        """The client's request."""
        ...

    @property
    def runs(self) -> Sequence[PartRun]:
        """Its runs of messages."""
        ...

    def pieces(self, number: int) -> tuple[Piece, ...]:
        """What a run of answers becomes."""
        ...

    def maker_of(self, seal: Seal) -> tuple[Seal, Maker] | None:
        """A seal as it was received, and its maker; None if it is unknown."""
        ...


class Attachment:
    """Builds the request for one reader."""

    def __init__(self, search: Matches, target: Maker) -> None:
        self._search = search
        self._target = target
        self._messages: list[Message] = []
        self._losses: list[Loss] = []
        self._ids: dict[str, str] = {}
        """Ids of calls as the client knows them → as the upstream does."""
        self._reattached = 0
        self._changed = False

    def done(self) -> Recalled:
        """The request, with everything put back."""
        given = self._search.request.messages
        at = 0
        for number, run in enumerate(self._search.runs):
            self._messages += given[at : run.first]
            at = run.last + 1
            if run.answer:
                self._answer(given[run.first : at], self._search.pieces(number), run.first)
            else:
                self._messages += map(self._renamed, given[run.first : at])
        self._messages += given[at:]
        request = self._search.request
        if self._changed:
            request = msgspec.structs.replace(request, messages=tuple(self._messages))
        return Recalled(request=request, reattached=self._reattached, losses=tuple(self._losses))

    def _answer(self, given: Sequence[Message], pieces: Sequence[Piece], number: int) -> None:
        written = [self._piece(piece, f"messages[{number}]") for piece in pieces]
        if len(written) == 1 and _same_parts(given, written[0]):
            self._messages += given
            return
        self._changed = True
        kept = given[0].kept if len(given) == 1 and len(written) == 1 else None
        self._messages += (
            Message(role="assistant", parts=parts, kept=kept) for parts in written if parts
        )

    def _piece(self, piece: Piece, path: str) -> tuple[Part, ...]:
        turn = piece.turn
        if turn is None:
            return self._unknown(piece.parts, path)
        if not piece.equal:
            return self._edited(piece.parts, turn, path)
        sent = [part for part in piece.parts if isinstance(part, ToolCall)]
        for call, own in zip(sent, turn.calls, strict=False):
            self._ids[call.id] = own.id
        if self._target.reads(turn.maker) and _carried(piece.parts, turn.parts):
            return piece.parts
        parts = _composed(piece.parts, turn) if turn.redacted else turn.parts
        if self._target.reads(turn.maker):
            self._reattached += 1
        elif self._target.origin.reads(turn.maker.origin):
            parts = self._without_seals(parts, turn, path)
        return _marked(parts, piece.parts)

    def _without_seals(
        self, parts: tuple[Part, ...], turn: StoredTurn, path: str
    ) -> tuple[Part, ...]:
        """The parts for another deployment of the provider, which cannot verify the seals."""
        if turn.sealed:
            why = f'only the deployment "{turn.maker.deployment}" reads them'
            self._losses.append(Loss(path, "dropped the seals", why))
        return tuple(map(_unsealed, parts))

    def _unknown(self, parts: tuple[Part, ...], path: str) -> tuple[Part, ...]:
        """The client's own parts, without handles and without seals of other servers."""
        return tuple(self._checked(part, path) for part in parts)

    def _checked(self, part: P, path: str) -> P:
        seal = seal_of(part)
        if seal is None:
            return part
        if handle_of(seal):
            why = "the gateway no longer has the turn"
            self._losses.append(Loss(path, "dropped a handle", why))
            return _unsealed(part)
        found = self._search.maker_of(seal)
        if found is None:
            return part
        own, maker = found
        if self._target.reads(maker):
            return part if own.data == seal.data else _with_seal(part, own)
        why = f"{_name(maker)} made it"
        self._losses.append(Loss(path, "dropped the seal", why))
        return _unsealed(part)

    def _edited(self, parts: tuple[Part, ...], turn: StoredTurn, path: str) -> tuple[Part, ...]:
        """The client's words; calls that it left as they were are the upstream's own."""
        # A seal on a call that stands beside sealed thinking is refused without it.
        alone = not any(isinstance(part, Thinking) and part.seal for part in turn.parts)
        own = list(zip(turn.call_ids, turn.calls, strict=True))
        written: list[Part] = []
        restored = 0
        for part in parts:
            call = _unchanged(part, own) if isinstance(part, ToolCall) else None
            if call is None or not isinstance(part, ToolCall):
                seal = seal_of(part)
                stale = seal is not None and handle_of(seal) != ""
                written.append(_unsealed(part) if stale else self._checked(part, path))
                continue
            self._ids[part.id] = call.id
            seals = alone and self._target.reads(turn.maker)
            restored += seals and call.seal is not None
            if turn.redacted:
                call = msgspec.structs.replace(call, arguments=part.arguments)
            call = msgspec.structs.replace(call, cache=part.cache)
            written.append(call if seals else msgspec.structs.replace(call, seal=None))
        self._reattached += bool(restored)
        seals = sum(seal_of(part) is not None for part in turn.parts)
        if seals > restored or any(isinstance(part, Thinking) for part in turn.parts):
            self._losses.append(Loss(path, "dropped thinking and seals", _CHANGED))
        return tuple(written)

    def _renamed(self, message: Message) -> Message:
        """The message with its results named after the upstream's calls."""
        if not self._ids:
            return message
        parts = tuple(self._result(part) for part in message.parts)
        if all(new is old for new, old in zip(parts, message.parts, strict=True)):
            return message
        self._changed = True
        return msgspec.structs.replace(message, parts=parts)

    def _result(self, part: Part) -> Part:
        if not isinstance(part, ToolResult):
            return part
        own = self._ids.get(part.call_id, part.call_id)
        return part if own == part.call_id else msgspec.structs.replace(part, call_id=own)


def _name(maker: Maker) -> str:
    return maker.deployment or "/".join(filter(None, (maker.origin.provider, maker.origin.model)))


def _with_seal(part: P, seal: Seal | None) -> P:
    return msgspec.structs.replace(part, seal=seal)


def _unsealed(part: P) -> P:
    return part if seal_of(part) is None else _with_seal(part, None)


def _same_parts(given: Sequence[Message], parts: Sequence[Part]) -> bool:
    """Whether these are the very parts of the client's messages."""
    own = [part for message in given for part in message.parts]
    return len(own) == len(parts) and all(
        one is other for one, other in zip(own, parts, strict=True)
    )


def _carried(sent: Sequence[Part], stored: Sequence[Part]) -> bool:
    """Whether the client sent everything back that matters to the upstream."""
    return len(sent) == len(stored) and all(
        _equal(one, other) for one, other in zip(sent, stored, strict=True)
    )


def _equal(sent: Part, stored: Part) -> bool:
    one, other = seal_of(sent), seal_of(stored)
    if type(sent) is not type(stored) or (one and one.data) != (other and other.data):
        return False
    if isinstance(sent, ToolCall) and isinstance(stored, ToolCall):
        return (sent.id, sent.arguments, sent.kind) == (stored.id, stored.arguments, stored.kind)
    if isinstance(sent, ServerBlock) and isinstance(stored, ServerBlock):
        return sent.data == stored.data
    if isinstance(sent, Media) and isinstance(stored, Media):
        return (sent.base64, sent.url) == (stored.base64, stored.url)
    if isinstance(sent, Text | Thinking | Refusal) and isinstance(
        stored, Text | Thinking | Refusal
    ):
        return sent.text == stored.text
    return False


def _unchanged(call: ToolCall, own: list[tuple[str, ToolCall]]) -> ToolCall | None:
    """Takes the upstream's call that the client sent back as it was."""
    seen = visible_call(call)
    for entry in own:
        sent, stored = entry
        fits = call.made_id or not sent or call.id == sent
        if fits and visible_call(stored) == seen:
            own.remove(entry)
            return stored
    return None


def _composed(sent: Sequence[Part], turn: StoredTurn) -> tuple[Part, ...]:
    """The turn with the client's words, where known secrets were removed from the stored ones."""
    calls = iter([part for part in sent if isinstance(part, ToolCall)])
    texts = [part for part in sent if isinstance(part, Text | Refusal)]
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, ToolCall):
            own = next(calls, None)
            text = part.arguments if own is None else own.arguments
            parts.append(msgspec.structs.replace(part, arguments=text))
        elif isinstance(part, Text | Refusal):
            parts += map(_unsealed, texts)
            texts = []
        else:
            parts.append(part)
    return (*parts, *texts)


def _marked(parts: tuple[Part, ...], sent: Sequence[Part]) -> tuple[Part, ...]:
    """The parts with the client's cache marks, by position among the parts that it can see."""
    marks = list(_marks(sent))
    if not any(mark for _, mark in marks):
        return parts
    left = {kind: [mark for own, mark in marks if own is kind] for kind in (Text, ToolCall)}
    marked: list[Part] = []
    for part in parts:
        if isinstance(part, Text | ToolCall) and left[type(part)]:
            mark = left[type(part)].pop(0)
            part = part if mark is None else msgspec.structs.replace(part, cache=mark)
        marked.append(part)
    return tuple(marked)


def _marks(parts: Sequence[Part]) -> Iterator[tuple[type[Part], CacheMark | None]]:
    for part in parts:
        if isinstance(part, Text | ToolCall):
            yield type(part), part.cache
