"""What a client cannot carry: turns as the upstream sent them, their keys, and their capture."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache

import msgspec

from toolwire.collect import Collector
from toolwire.events import (
    CitationAdded,
    Finished,
    ModelEvent,
    Notice,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.gateway.visible import PartRun, digest, text_bytes, visible_answer
from toolwire.messages import (
    Media,
    Origin,
    Part,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.wire.json_access import dump, parse_object

ANTHROPIC, GEMINI = "anthropic-messages", "gemini"
HANDLE = "twm_"
_ENCODED_HANDLE = "dHdtX"
"""How base64 of a handle begins."""
_OPAQUE = {
    ANTHROPIC: "signature",
    "openai-responses": "encrypted_content",
    GEMINI: "thoughtSignature",
}
"""Where each format has room for a handle."""
_MARKED = ("signature", "data", "encrypted_content", "thoughtSignature")
_STANDARD = str.maketrans("-_", "+/")
_CARRIED = frozenset({TextDelta, RefusalDelta, CitationAdded, Notice, Finished})
"""Events of which every format can carry everything."""


class Maker(msgspec.Struct, frozen=True):
    """Who made a turn, or is to read it."""

    origin: Origin
    deployment: str = ""

    def reads(self, maker: "Maker") -> bool:
        """Whether seals made by `maker` may be sent here."""
        return self.origin.reads(maker.origin) and (
            not self.deployment or not maker.deployment or self.deployment == maker.deployment
        )


class StoredTurn(msgspec.Struct, frozen=True, kw_only=True, tag="turn"):
    """One answer as the upstream sent it."""

    id: str
    """Also what its handles begin with."""
    maker: Maker
    parts: tuple[Part, ...]
    call_ids: tuple[str, ...] = ()
    """Ids of its calls as the client received them; empty where it received none."""
    visible: bytes = b""
    before: bytes = b""
    """Digest of the message that it answered."""
    chain: bytes = b""
    root: bytes = b""
    """Digest of the beginning of its conversation."""
    repeated: bool = False
    """Whether an answer before it looks the same: by itself it is not known again."""
    redacted: bool = False
    """Whether known secrets were removed from the parts: their text is not the original."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its calls in order, with the upstream's ids."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def sealed(self) -> bool:
        """Whether a part of it has a seal."""
        return any(seal_of(part) is not None for part in self.parts)


def seal_of(part: Part) -> Seal | None:
    """The seal of a part, if it has one."""
    return None if isinstance(part, ToolResult | ServerBlock) else part.seal


@lru_cache(maxsize=64)
def tenant_key(tenant: str) -> bytes:
    """What all keys of a tenant begin with."""
    return digest(text_bytes(tenant))


class Keys:
    """The keys of one tenant's entries: none begins like another tenant's."""

    def __init__(self, tenant: bytes) -> None:
        self._tenant = tenant

    def call(self, call_id: str) -> bytes:
        """By the id of a call as the client received it."""
        return self._tenant + b"c" + digest(text_bytes(call_id))

    def handle(self, turn_id: str) -> bytes:
        """By the id that handles begin with."""
        return self._tenant + b"h" + digest(text_bytes(turn_id))

    def chain(self, chain: bytes) -> bytes:
        """By the whole conversation up to the turn."""
        return self._tenant + b"k" + chain

    def near(self, before: bytes, visible: bytes) -> bytes:
        """By the turn and what it answered."""
        return self._tenant + b"n" + digest(before, visible)

    def said(self, visible: bytes) -> bytes:
        """By the turn alone."""
        return self._tenant + b"v" + visible

    def seal(self, mark: bytes) -> bytes:
        """By a seal that the client received."""
        return self._tenant + b"s" + mark

    def answer(self, response_id: str) -> bytes:
        """By the id of a stored answer."""
        return self._tenant + b"r" + digest(text_bytes(response_id))

    def of(self, turn: StoredTurn, family: str) -> tuple[bytes, ...]:
        """All keys of a turn that a client of this family received."""
        found = [self.call(call_id) for call_id in turn.call_ids if call_id]
        found += (
            self.handle(turn.id),
            self.chain(turn.chain),
            self.near(turn.before, turn.visible),
        )
        if not turn.repeated:
            found.append(self.said(turn.visible))
        for part in turn.parts:
            seal = seal_of(part)
            if seal is not None and seal.origin.dialect == family:
                mark = seal_mark(seal)
                if mark is not None:
                    found.append(self.seal(mark))
        return tuple(dict.fromkeys(found))


def seal_mark(seal: Seal) -> bytes | None:
    """Digest of the opaque member, whatever base64 alphabet the client sends it back in."""
    members = parse_object(seal.data, "seal")
    for name in _MARKED:
        value = members.get(name)
        if isinstance(value, str) and value:
            return digest(text_bytes(value.translate(_STANDARD).rstrip("=")))
    details = members.get("reasoning_details") or members.get("extra_content")
    return digest(text_bytes(dump(details))) if details else None


def handle_seal(family: str, handle: str) -> Seal | None:
    """A seal of the client's own format that is a handle; None where the format has no member."""
    member = _OPAQUE.get(family)
    if member is None:
        return None
    # Google's SDKs refuse what is not base64.
    value = b64encode(handle.encode()).decode() if family == GEMINI else handle
    return Seal(origin=Origin(family), data=dump({member: value}))


def handle_of(seal: Seal | None) -> str:
    """The turn that a handle stands for; empty for any other seal."""
    if seal is None or (HANDLE not in seal.data and _ENCODED_HANDLE not in seal.data):
        return ""
    for value in parse_object(seal.data, "seal").values():
        if isinstance(value, str):
            found = opened_handle(value)
            if found:
                return found
    return ""


def opened_handle(value: str) -> str:
    """The turn's id in an opaque member; empty if the member is not a handle."""
    if value.startswith(_ENCODED_HANDLE):
        text = value.translate(_STANDARD)
        try:
            value = b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
        except ValueError:
            return ""
    return value.partition(".")[0] if value.startswith(HANDLE) else ""


class TurnContext(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation that a turn answers."""

    chain: bytes = b""
    before: bytes = b""
    root: bytes = b""
    call_ids: frozenset[str] = frozenset()
    answers: frozenset[bytes] = frozenset()
    """Digests of all answers before."""

    @classmethod
    def of(cls, runs: Sequence[PartRun]) -> "TurnContext":
        """The conversation of these runs."""
        if not runs:
            return cls()
        ids = (call.id for run in runs if run.answer for call in run.calls)
        return cls(
            chain=runs[-1].chain,
            before=runs[-1].tail,
            root=runs[0].digest,
            call_ids=frozenset(ids),
            answers=frozenset(run.digest for run in runs if run.answer),
        )


class Capture:
    """One answer on its way to the client: foreign seals become handles, repeated ids new ones."""

    _handles = 0
    _carried = True
    """Whether every client can carry all of it."""
    _thinking = False
    """Whether thinking is open whose end the client must see."""
    renames = True
    """Whether a repeated id reaches the client as a new one."""

    def __init__(
        self,
        asked: Callable[[], TurnContext],
        family: str,
        upstream: str,
        new_id: Callable[[str], str],
    ) -> None:
        """`asked` is called only for an answer that is stored: it digests the conversation."""
        self._asked = asked
        self._family = family
        self._foreign = family != upstream
        """Whether the upstream's seals mean nothing in the client's format."""
        self._new_id = new_id
        self._received: list[ModelEvent] = []
        """Folded only if the turn is stored, which few are."""
        self._renamed: dict[str, str] = {}

    @cached_property
    def _turn_id(self) -> str:
        return self._new_id(HANDLE)

    def outgoing(self, event: ModelEvent) -> tuple[ModelEvent, ...]:
        """The event as the client gets it, after the end of open thinking if it needs a handle."""
        self._received.append(event)
        kind = type(event)
        if kind is TextDelta and not self._thinking:
            return (event,)
        if kind not in _CARRIED:
            self._carried = False
        if self._thinking and kind is not ThinkingDelta:
            self._thinking = False
            if kind is not ThinkingEnded and kind is not Notice:
                # Gemini's thinking has no end of its own.
                return (ThinkingEnded(self._handle()), self._outgoing(event))
        return (self._outgoing(event),)

    def _outgoing(self, event: ModelEvent) -> ModelEvent:
        match event:
            case TextDelta():
                return event
            case ThinkingDelta():
                self._thinking = self._foreign and self._family in _OPAQUE
                return event
            case ToolCallStarted() if self.renames and event.id in self._asked().call_ids:
                self._renamed[event.id] = new = self._new_id("call_")
                return msgspec.structs.replace(event, id=new)
            case ToolCallDelta() if self._renamed:
                return self._with_id(event)
            case ToolCallEnded():
                return self._call_end(event)
            case ThinkingEnded() if self._foreign:
                seal = self._handle()
                return event if seal is None else msgspec.structs.replace(event, seal=seal)
            case _:
                return event

    def turn(self, maker: Maker, *, plain: bool = False) -> StoredTurn | None:
        """The finished turn; None if the client can carry all of it, unless `plain`."""
        if self._carried and not plain:
            return None
        received = Collector()
        received.add_all(self._received)
        parts = received.message().parts
        if not plain and not any(map(_is_stored, parts)):
            return None
        visible = visible_answer(tuple(self._shown(parts)))
        asked = self._asked()
        return StoredTurn(
            id=self._turn_id,
            maker=maker,
            parts=parts,
            call_ids=tuple(map(self._client_id, (p for p in parts if isinstance(p, ToolCall)))),
            visible=visible,
            before=asked.before,
            chain=digest(asked.chain, visible),
            root=asked.root or visible,
            repeated=not plain and visible in asked.answers,
        )

    def _with_id(self, event: ToolCallDelta | ToolCallEnded) -> ToolCallDelta | ToolCallEnded:
        new = self._renamed.get(event.id)
        return event if new is None else msgspec.structs.replace(event, id=new)

    def _call_end(self, event: ToolCallEnded) -> ModelEvent:
        ended = self._with_id(event)
        # Only Gemini's format has room on a call, and gemini-cli invents a seal where it is empty.
        if self._foreign and self._family == GEMINI and not self._handles:
            return msgspec.structs.replace(ended, seal=self._handle())
        return ended

    def _handle(self) -> Seal | None:
        self._handles += 1
        return handle_seal(self._family, f"{self._turn_id}.{self._handles}")

    def _client_id(self, call: ToolCall) -> str:
        if call.made_id and self._family == GEMINI:
            return ""
        return self._renamed.get(call.id, call.id)

    def _shown(self, parts: tuple[Part, ...]) -> Iterator[Part]:
        """The parts as the client's format can show them."""
        for part in parts:
            if isinstance(part, Media) and self._family == ANTHROPIC:
                yield Text(part.placeholder)
            elif not isinstance(part, ToolCall) or part.complete or self._family != GEMINI:
                yield part


def _is_stored(part: Part) -> bool:
    """Whether a turn with this part is stored: the client cannot carry it, or may not."""
    return isinstance(part, ToolCall | Thinking | ServerBlock) or seal_of(part) is not None
