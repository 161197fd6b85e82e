"""Scripts: replies, how one is chosen, its placeholders, and the TOML file."""

import tomllib
from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

import msgspec

from toolwire.errors import BadInput
from toolwire.events import StopReason, Usage
from toolwire.messages import CallKind, Media, MediaKind, Message, Text, ToolResult
from toolwire.request import ModelRequest
from toolwire.wire.json_access import dump


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Faults of an answer; none by default."""

    status: int = 200
    """Any other status answers with an error in the dialect's own shape."""
    message: str = ""
    """The message of that error."""
    retry_after: str = ""
    """The header of that name: seconds, or a date."""
    wait_first: float = 0.0
    """Seconds before the first byte."""
    wait_each: float = 0.0
    """Seconds between events."""
    cut_events: int | None = None
    """The answer stops after this many events."""
    cut_bytes: int | None = None
    """The answer stops after this many bytes."""
    cut_how: Literal["connection", "body"] = "connection"
    """The connection breaks, or the body ends as if it were whole."""
    noise_after: int | None = None
    """After this many events, bytes that belong to no format."""
    noise: bytes = b'data: {"broken": \xff\xfe\n\n'
    error_after: int | None = None
    """After this many events, an error in the middle of the stream."""
    hang_after: int | None = None
    """After this many events silence, until the client disconnects."""
    endless: bool = False
    """The first text repeated until the client disconnects."""

    @property
    def is_error(self) -> bool:
        """Whether the answer is an error status."""
        return self.status >= 400


NO_FAULT = Fault()
EVERY = 0.005
"""Seconds between the events of an endless stream, unless the script sets it."""


def refused(status: int, message: str = "", *, retry_after: str = "") -> Fault:
    """Returns a fault with an error status."""
    return Fault(status=status, message=message, retry_after=retry_after)


class Say(msgspec.Struct, frozen=True, tag="say"):
    """Plain text."""

    text: str


class Think(msgspec.Struct, frozen=True, tag="think"):
    """Reasoning. The simulator seals it the way the vendor does."""

    text: str = ""
    hidden: bool = False
    """The vendor sends no text, only the seal."""


class Decline(msgspec.Struct, frozen=True, tag="decline"):
    """A refusal."""

    text: str


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """A tool call."""

    name: str
    arguments: str = "{}"
    """Raw text, which need not be JSON."""
    id: str = ""
    """Empty: one as the vendor makes it, or none where the vendor sends none."""
    complete: bool = True
    """False: the answer is cut inside it."""
    kind: CallKind = CallKind.JSON
    namespace: str = ""
    """The group of the tool, where the format has groups."""

    @classmethod
    def of(cls, name: str, /, **arguments: object) -> "Call":
        """Returns a call with these arguments."""
        return cls(name=name, arguments=dump(arguments))


class Show(msgspec.Struct, frozen=True, tag="show"):
    """An image or sound."""

    media: Media


Piece: TypeAlias = Say | Think | Decline | Call | Show


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, with or without faults."""

    pieces: tuple[Piece, ...] = ()
    stop: StopReason | None = None
    """None: derived from the pieces."""
    usage: Usage | None = None
    """None: a count of characters."""
    when: str = ""
    """Text that the last message must contain; such a reply may be given many times."""
    times: int = 1
    """How often a reply without `when` is given before the next one."""
    default: bool = False
    """Given if no other matches."""
    delta: int = 16
    """Characters per streamed piece; 0 for all at once."""
    body: bytes | None = None
    """Sent verbatim instead of an encoded answer: recorded bytes of a vendor."""
    fault: Fault = NO_FAULT

    @property
    def reason(self) -> StopReason:
        """Returns why the answer ends."""
        if self.stop is not None:
            return self.stop
        if any(isinstance(piece, Call) for piece in self.pieces):
            return StopReason.TOOL_CALLS
        if any(isinstance(piece, Decline) for piece in self.pieces):
            return StopReason.REFUSAL
        return StopReason.END


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the scripted model."""

    dialect: str
    request: ModelRequest
    number: int
    """Number of earlier requests."""

    @property
    def words(self) -> str:
        """Returns all text of the last message, results included."""
        last = self.request.messages[-1] if self.request.messages else None
        return "" if last is None else "\n".join(_words(last))

    @property
    def last_user_text(self) -> str:
        """Returns the user's last text."""
        for message in reversed(self.request.messages):
            if message.role == "user" and message.text:
                return message.text
        return ""

    @property
    def last_result(self) -> str:
        """Returns the text of the newest result."""
        for message in reversed(self.request.messages):
            if message.results:
                return message.results[-1].text
        return ""


Answering: TypeAlias = Callable[[Question], Reply]
"""A scripted model in code."""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Replies in the order they are given."""

    replies: tuple[Reply, ...]
    model: str = "simulated"
    """The name in the list of models."""

    def answering(self) -> Answering:
        """Returns a new run of the script."""
        return _Run(self.replies)


def replies(*given: Reply | str) -> Script:
    """Returns a script of these replies; a string is a text reply."""
    return Script(replies=tuple(_reply(reply) for reply in given))


class _More(TypedDict, total=False):
    stop: StopReason
    usage: Usage
    when: str
    times: int
    default: bool
    delta: int
    body: bytes
    fault: Fault


def reply(*pieces: Piece | str, **more: Unpack[_More]) -> Reply:
    """Returns a reply of these pieces; a string is a text piece."""
    given = tuple(Say(piece) if isinstance(piece, str) else piece for piece in pieces)
    return Reply(pieces=given, **more)


def _reply(given: Reply | str) -> Reply:
    return Reply(pieces=(Say(given),)) if isinstance(given, str) else given


class _Run:
    def __init__(self, given: Iterable[Reply]) -> None:
        given = tuple(given)
        self._matching = tuple(reply for reply in given if reply.when)
        self._default = next((reply for reply in given if reply.default), None)
        in_order = (reply for reply in given if not reply.when and not reply.default)
        self._left = [reply for reply in in_order for _ in range(reply.times)]
        self._left.reverse()

    def __call__(self, question: Question) -> Reply:
        chosen = next((reply for reply in self._matching if reply.when in question.words), None)
        if chosen is None and self._left:
            chosen = self._left.pop()
        chosen = chosen or self._default
        if chosen is None:
            raise BadInput("the script has no reply left; add one, or one with default = true")
        return filled(chosen, question)


def filled(given: Reply, question: Question) -> Reply:
    """Returns the reply with `{last_user_text}` and the other placeholders filled."""
    return msgspec.structs.replace(
        given, pieces=tuple(_filled(piece, question) for piece in given.pieces)
    )


def _filled(piece: Piece, question: Question) -> Piece:
    match piece:
        case Say() | Think() | Decline():
            return msgspec.structs.replace(piece, text=_text(piece.text, question))
        case Call():
            # Inside JSON the value is part of a string, so it is escaped.
            text = _text(piece.arguments, question, inside_json=True)
            return msgspec.structs.replace(piece, arguments=text)
        case Show():
            return piece


def _text(text: str, question: Question, *, inside_json: bool = False) -> str:
    if "{" not in text:
        return text
    for name, value in (
        ("last_user_text", question.last_user_text),
        ("last_result", question.last_result),
        ("model", question.request.model),
        ("number", str(question.number)),
    ):
        word = f"{{{name}}}"
        if word in text:
            text = text.replace(word, dump(value)[1:-1] if inside_json else value)
    return text


def _words(message: Message) -> list[str]:
    found: list[str] = []
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            found.append(part.text)
    return found


class _UsageTable(msgspec.Struct, forbid_unknown_fields=True):
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    def usage(self) -> Usage:
        return msgspec.convert(self, Usage, from_attributes=True)


class _CallTable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""
    complete: bool = True

    def piece(self) -> Call:
        given = self.arguments
        text = given if isinstance(given, str) else dump(given)
        return Call(name=self.name, arguments=text, id=self.id, complete=self.complete)


class _PieceTable(msgspec.Struct, forbid_unknown_fields=True):
    text: str | None = None
    thinking: str | None = None
    refusal: str | None = None
    call: _CallTable | None = None
    image_file: str | None = None

    def pieces(self, folder: Path) -> list[Piece]:
        found: list[Piece] = []
        if self.thinking is not None:
            found.append(Think(self.thinking))
        if self.text is not None:
            found.append(Say(self.text))
        if self.refusal is not None:
            found.append(Decline(self.refusal))
        if self.image_file is not None:
            found.append(Show(_image(folder / self.image_file)))
        if self.call is not None:
            found.append(self.call.piece())
        return found


class _ReplyTable(_PieceTable, forbid_unknown_fields=True):
    pieces_in_order: list[_PieceTable] = msgspec.field(
        name="pieces", default_factory=list[_PieceTable]
    )
    calls: list[_CallTable] = []
    stop: StopReason | None = None
    usage: _UsageTable | None = None
    when: str = ""
    times: int = 1
    default: bool = False
    delta: int = 16
    body_file: str = ""
    fault: Fault = Fault()

    def reply(self, folder: Path) -> Reply:
        found = self.pieces(folder)
        for table in self.pieces_in_order:
            found += table.pieces(folder)
        found += [call.piece() for call in self.calls]
        return Reply(
            pieces=tuple(found),
            stop=self.stop,
            usage=self.usage.usage() if self.usage is not None else None,
            when=self.when,
            times=self.times,
            default=self.default,
            delta=self.delta,
            body=_bytes(folder / self.body_file) if self.body_file else None,
            fault=self.fault,
        )


class _ScriptTable(msgspec.Struct, forbid_unknown_fields=True):
    reply: list[_ReplyTable]
    model: str = "simulated"


def load(path: Path) -> Script:
    """Returns the script in a file; files it names are relative to it."""
    return parse(_bytes(path).decode("utf-8", "replace"), path.parent)


def parse(text: str, folder: Path = Path()) -> Script:
    """Parses a script from TOML text."""
    try:
        table = tomllib.loads(text)
        found = msgspec.convert(table, _ScriptTable)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"script: {error}") from error
    return Script(replies=tuple(reply.reply(folder) for reply in found.reply), model=found.model)


def _image(path: Path) -> Media:
    kind = path.suffix.removeprefix(".").replace("jpg", "jpeg") or "png"
    data = b64encode(_bytes(path)).decode("ascii")
    return Media(kind=MediaKind.IMAGE, mime=f"image/{kind}", base64=data, name=path.name)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f'script: cannot read "{path}": {error.strerror}') from error
