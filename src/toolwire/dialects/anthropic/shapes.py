"""Wire structs of the stream events, blocks of an answer, raw JSON members, shared constants."""

import msgspec

from toolwire.errors import BadInput
from toolwire.messages import CacheMark, Kept, Origin
from toolwire.request import Effort, JsonObject
from toolwire.wire.json_access import dump, parse, parse_object
from toolwire.wire.surrogates import whole_characters

NAME = "anthropic-messages"
ORIGIN = Origin(NAME)
EFFORTS = {effort.value: effort for effort in Effort if effort not in (Effort.NONE, Effort.MINIMAL)}


class TextPiece(msgspec.Struct, gc=False, tag="text_delta"):
    """More text of a text block."""

    text: str


class InputPiece(msgspec.Struct, gc=False, tag="input_json_delta"):
    """More raw JSON of a call's input."""

    partial_json: str


class ThinkingPiece(msgspec.Struct, gc=False, tag="thinking_delta"):
    """More text of a thinking block."""

    thinking: str


class SignaturePiece(msgspec.Struct, gc=False, tag="signature_delta"):
    """The signature of a thinking block; a later one replaces it."""

    signature: str


class CitationPiece(msgspec.Struct, gc=False, tag="citations_delta"):
    """One more citation of a text block."""

    citation: msgspec.Raw


class BlockDelta(msgspec.Struct, gc=False, tag="content_block_delta"):
    """More of one block."""

    index: int
    delta: TextPiece | InputPiece | ThinkingPiece | SignaturePiece | CitationPiece


class BlockStart(msgspec.Struct, gc=False, tag="content_block_start"):
    """A block begins; stored raw, since only some kinds are decoded."""

    index: int
    content_block: msgspec.Raw


class BlockStop(msgspec.Struct, gc=False, tag="content_block_stop"):
    """A block ends."""

    index: int


class MessageStart(msgspec.Struct, gc=False, tag="message_start"):
    """The answer begins, or an error is sent in its place."""

    message: msgspec.Raw
    error: msgspec.Raw = msgspec.Raw(b"")


class Ping(msgspec.Struct, gc=False, tag="ping"):
    """A keep-alive."""


StreamEvent = BlockDelta | BlockStart | BlockStop | MessageStart | Ping
"""The frequent events; all others take the generic path."""

decode_event = msgspec.json.Decoder(StreamEvent).decode


class _Input(msgspec.Struct):
    input: msgspec.Raw = msgspec.Raw(b"")


def parse_body(body: bytes, what: str) -> tuple[JsonObject, bytes]:
    """The object of a body and its bytes, with half surrogate pairs repaired."""
    try:
        return parse_object(body, what), body
    except BadInput:
        repaired = whole_characters(body)
        if repaired == body:
            raise
        return parse_object(repaired, what), repaired


_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_input = msgspec.json.Decoder(_Input)


def raw_members(text: bytes | str) -> dict[str, msgspec.Raw]:
    """The members of an object as raw JSON; the text must be an object."""
    return _members.decode(text)


def raw_items(text: bytes | str | msgspec.Raw) -> list[bytes]:
    """The items of a list as raw JSON; the text must be a list."""
    return [bytes(item) for item in _items.decode(text)]


def raw_input(block: bytes | str) -> str:
    """The `input` of a call as raw JSON, or an empty text; the block must be an object."""
    return bytes(_input.decode(block).input).decode()


def cache_mark(block: JsonObject) -> CacheMark | None:
    """The cache mark of a block, if it has the documented shape."""
    match block.get("cache_control"):
        case {"type": "ephemeral", "ttl": str() as ttl, **rest} if ttl and not rest:
            return CacheMark(ttl)
        case {"type": "ephemeral", **rest} if not rest:
            return CacheMark()
        case _:
            return None


def known(block: JsonObject, *members: str) -> frozenset[str]:
    """Names of the members that our value carries and that are not null."""
    marked = ("cache_control",) if cache_mark(block) is not None else ()
    return frozenset(name for name in ("type", *members, *marked) if block.get(name) is not None)


def string(block: JsonObject, member: str) -> str:
    """The string member of a block; BadInput if it is not one."""
    value = block.get(member)
    if not isinstance(value, str):
        raise BadInput(f"{member}: expected a string")
    return value


class OpenBlock:
    """A block of an answer between its start and its stop."""

    __slots__ = ("input", "kept", "kind", "pieces", "raw", "signature")

    def __init__(self, kind: str, raw: bytes) -> None:
        self.kind = kind
        self.raw = raw
        self.kept: Kept | None = None
        self.signature = ""
        self.input = ""
        """Input received whole with the start; input deltas replace it."""
        self.pieces: list[str] = []

    def merged(self) -> str:
        """A server-side block with the input that was streamed after its start."""
        if not self.pieces:
            return self.raw.decode()
        text = "".join(self.pieces)
        members = raw_members(self.raw)
        try:
            parse(text, "input")
            members["input"] = msgspec.Raw(text.encode())
        except BadInput:
            # Cut by a length stop: input that is not JSON is sent as a string.
            members["input"] = msgspec.Raw(dump(text).encode())
        return dump(members)
