"""Messages and their parts, the internal representation."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Origin of opaque state: wire format, vendor and model."""

    dialect: str
    provider: str = ""
    model: str = ""

    def reads(self, maker: "Origin") -> bool:
        """Whether state made by `maker` may be sent here; an unnamed provider or model fits."""
        return (
            self.dialect == maker.dialect
            and _agree(self.provider, maker.provider)
            and _agree(self.model, maker.model)
        )


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


class Seal(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Opaque provider state, stored byte for byte and returned only to its origin."""

    origin: Origin
    data: str
    """JSON object text: the wire members (`signature`, `thoughtSignature`, …) as received."""


class Kept(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Wire members beyond our values: returned to their format, reported as a loss to any other."""

    dialect: str
    fields: str = "{}"
    """JSON object text: the wire members that our values do not have."""


class CacheMark(msgspec.Struct, frozen=True):
    """The prompt up to here may be cached; `ttl` in the vendor's words, empty for its default."""

    ttl: str = ""


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """A source of a text: neutral members for people, and the vendor's own object whole."""

    dialect: str
    data: str
    url: str = ""
    title: str = ""
    start: int | None = None
    end: int | None = None


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text."""

    text: str
    citations: tuple[Citation, ...] = ()
    cache: CacheMark | None = None
    seal: Seal | None = None
    kept: Kept | None = None


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """Reasoning. The text may be empty while the seal still has to be returned."""

    text: str = ""
    seal: Seal | None = None
    kept: Kept | None = None


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """The model's refusal."""

    text: str
    seal: Seal | None = None
    kept: Kept | None = None


class MediaKind(StrEnum):
    """A human-readable name."""

    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    DOCUMENT = "document"


_STANDARD = str.maketrans("-_", "+/")


class Media(msgspec.Struct, frozen=True, kw_only=True, tag="media"):
    """An image, sound, film or document: its bytes, an address, or a name in the vendor's file
    store.
    """

    kind: MediaKind
    mime: str = ""
    base64: str = ""
    """In the standard alphabet: the URL-safe one, which Google's SDKs write and other vendors
    reject, is replaced.
    """
    url: str = ""
    file_id: str = ""
    """Known only to the vendor that stores it."""
    name: str = ""
    cache: CacheMark | None = None
    seal: Seal | None = None
    kept: Kept | None = None

    def __post_init__(self) -> None:
        if "-" in self.base64 or "_" in self.base64:
            msgspec.structs.force_setattr(self, "base64", self.base64.translate(_STANDARD))

    @property
    def data(self) -> bytes:
        """The bytes carried inline; empty for an address."""
        return b64decode(self.base64)

    @property
    def placeholder(self) -> str:
        """The text in place of media that cannot be sent."""
        about = " ".join(word for word in (self.kind, self.mime, self.name) if word)
        return f"[{about}{': ' + self.url if self.url else ''}]"

    @classmethod
    def of_bytes(cls, kind: MediaKind, mime: str, data: bytes, name: str = "") -> "Media":
        """Inline media from bytes."""
        return cls(kind=kind, mime=mime, base64=b64encode(data).decode("ascii"), name=name)


class CallKind(StrEnum):
    """What the arguments of a call are."""

    JSON = "json"
    FREEFORM = "freeform"


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A call requested by the model."""

    id: str
    name: str
    arguments: str = ""
    """Raw text as the model wrote it: JSON, or free text for a freeform tool; empty JSON means
    `{}`.
    """
    kind: CallKind = CallKind.JSON
    namespace: str = ""
    complete: bool = True
    """False when a length stop or a broken stream cut it; such a call never runs."""
    made_id: bool = False
    """The vendor gave no id; this one is ours and is not sent where the vendor takes none."""
    cache: CacheMark | None = None
    seal: Seal | None = None
    kept: Kept | None = None


class Outcome(StrEnum):
    """How a call ended."""

    DONE = "done"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """Started, then lost: its effect is unknown."""
    NOT_RUN = "not_run"


ResultPart: TypeAlias = "Text | Media | ServerBlock"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, tag="tool_result"):
    """The answer to one call, paired by `call_id`; the name is repeated for formats that pair by
    name.
    """

    call_id: str
    name: str = ""
    parts: "tuple[ResultPart, ...]" = ()
    is_error: bool = False
    outcome: Outcome = Outcome.DONE
    kind: CallKind = CallKind.JSON
    blocks: bool = False
    """Whether its parts are equal blocks in an order, rather than a text with attachments."""
    cache: CacheMark | None = None
    kept: Kept | None = None

    @property
    def text(self) -> str:
        """Returns all text parts, concatenated; blocks are on lines of their own."""
        joint = "\n" if self.blocks else ""
        return joint.join(part.text for part in self.parts if isinstance(part, Text))


class ServerBlock(msgspec.Struct, frozen=True, kw_only=True, tag="server_block"):
    """A server-side item of the vendor (search, code run, compaction), verbatim."""

    origin: Origin
    kind: str
    """The vendor's type name."""
    data: str
    """The vendor's JSON object, byte for byte."""


Part: TypeAlias = Text | Thinking | Refusal | Media | ToolCall | ToolResult | ServerBlock
Role: TypeAlias = Literal["system", "user", "assistant"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message of one role. Results are sent in user messages."""

    role: Role
    parts: tuple[Part, ...]
    kept: Kept | None = None

    @property
    def text(self) -> str:
        """Returns all text parts, concatenated."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> str:
        """Returns all reasoning, concatenated."""
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Returns the calls in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Returns the results in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


class Loss(msgspec.Struct, frozen=True):
    """Something a conversion dropped or weakened."""

    path: str
    what: str
    why: str


def calls_without_result(messages: Iterable[Message]) -> Iterator[ToolCall]:
    """Returns the calls that no later message answers."""
    messages = tuple(messages)
    answered = {result.call_id for message in messages for result in message.results}
    for message in messages:
        for call in message.calls:
            if call.id not in answered:
                yield call
