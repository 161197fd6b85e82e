"""The five stages of a request, as far as they were recorded."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from toolwire.client.record import (
    Exchange,
    RecordedBody,
    RecordedRequest,
    RecordedResponse,
)
from toolwire.client.redact import Redactor, hide_headers, hide_in_url, known_secrets
from toolwire.gateway.capture import Capture, RequestShape, Tape, UpstreamAttempt
from toolwire.gateway.console.frames import ReadStream, ShownFrame, read_stream, read_whole
from toolwire.gateway.console.parts import (
    document_of,
)
from toolwire.gateway.watch import Watched
from toolwire.messages import Message
from toolwire.request import ModelRequest
from toolwire.wire.json_access import encode, is_list, is_object

NAMES = ("Client bytes", "Canonical", "Upstream bytes", "Upstream answer", "Client answer")
_HIDDEN_FIELDS = frozenset({"source", "meter", "tap"})


class StageHead(msgspec.Struct, frozen=True):
    """First line and header fields, secrets hidden."""

    line: str
    fields: list[tuple[str, str]]


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One stage."""

    n: int
    name: str
    recorded: str
    why: str = ""
    """Why nothing more is shown."""
    format: str = ""
    head: StageHead | None = None
    content_type: str = ""
    size: int = 0
    from_: int = msgspec.field(default=0, name="from")
    truncated: bool = False
    """Whether more follows after this piece."""
    cut: bool = False
    """Whether the rest was not recorded."""
    text: str | None = None
    base64: str | None = None
    document: bool = False
    """Whether the whole is one JSON document."""
    frames: list[ShownFrame] = []
    shape: RequestShape | None = None
    attempt: int = 0
    attempts: int = 0


class StageBytes(msgspec.Struct, frozen=True):
    """A stage, and all of its bytes if they are recorded."""

    stage: Stage
    data: bytes | None


class _Raw(msgspec.Struct, frozen=True, kw_only=True):
    """A stage before it is cut to a page."""

    data: bytes
    format: str
    head: StageHead | None = None
    content_type: str = "application/json"
    cut: bool = False
    tape: Tape | None = None


def why_not(watched: Watched, recording: str) -> str:
    """Why the bytes of a request are not shown; empty if they are."""
    capture = watched.capture
    if capture is None:
        if recording == "off":
            return 'gateway.record is "off": nothing is recorded; set it to "meta" or "full"'
        return "what was recorded of this request was dropped for newer ones"
    if capture.level == "meta":
        return (
            'gateway.record is "meta": only names, kinds and sizes are recorded; set it to "full" '
            "to see the bytes of new requests"
        )
    return ""


def stage_of(
    watched: Watched,
    n: int,
    *,
    attempt: int = 0,
    start: int = 0,
    size: int = 262_144,
    recording: str = "full",
    whole: bool = False,
) -> StageBytes:
    """One stage, from byte `start` on; `attempt` 0 is the last one."""
    capture = watched.capture
    why = why_not(watched, recording)
    if capture is None or why:
        level = "off" if capture is None else capture.level
        shape = None if capture is None or n > 3 else capture.shape
        sizes = {1: watched.record.bytes_in, 5: watched.record.bytes_out}
        empty = Stage(
            n=n, name=NAMES[n - 1], recorded=level, why=why, shape=shape, size=sizes.get(n, 0)
        )
        return StageBytes(empty, None)
    index = (attempt or len(capture.attempts)) - 1
    raw = _raw(watched, capture, n, index)
    if raw is None:
        words = _missing(watched, n)
        return StageBytes(Stage(n=n, name=NAMES[n - 1], recorded="full", why=words), None)
    data = redactor_of(capture).body(raw.data)
    piece = data if whole else data[start : start + size]
    text, in_base64 = _shown(piece)
    frames: list[ShownFrame] = []
    if raw.tape is not None and _is_stream(raw):
        frames = read_stream(raw.format, raw.tape).frames
    stage = Stage(
        n=n,
        name=NAMES[n - 1],
        recorded="full",
        format=raw.format,
        head=raw.head,
        content_type=raw.content_type,
        size=len(data),
        from_=start,
        truncated=start + len(piece) < len(data),
        cut=raw.cut,
        text=text,
        base64=in_base64,
        document=not _is_stream(raw) and document_of(data) is not None,
        frames=frames,
        attempt=index + 1 if n in (3, 4) else 0,
        attempts=len(capture.attempts),
    )
    return StageBytes(stage, data)


def redactor_of(capture: Capture) -> Redactor:
    """Hides the credentials of the request and every known secret."""
    return Redactor((*capture.secrets, *known_secrets()))


def _missing(watched: Watched, n: int) -> str:
    if n in (3, 4):
        if watched.running:
            return "the upstream has not been asked yet"
        return "the upstream was not asked"
    return "nothing was recorded of this stage"


def _shown(piece: bytes) -> tuple[str | None, str | None]:
    try:
        return piece.decode(), None
    except UnicodeDecodeError as error:
        # A page may begin or end inside of a character.
        if error.start >= len(piece) - 3 or error.end <= 3:
            return piece.decode("utf-8", "replace"), None
        return None, b64encode(piece).decode()


def _is_stream(raw: _Raw) -> bool:
    return raw.content_type.partition(";")[0].strip() == "text/event-stream"


def _raw(watched: Watched, capture: Capture, n: int, index: int) -> _Raw | None:
    record = watched.record
    if n == 1:
        line = f"{capture.method} {_target(capture)} HTTP/1.1"
        head = StageHead(line, list(hide_headers(capture.fields)))
        return _Raw(data=capture.body, format=record.client_format, head=head)
    if n == 2:
        return _Raw(data=encode(canonical(watched, capture)), format="canonical")
    if n == 5:
        kind = "text/event-stream" if record.streamed and not record.error else "application/json"
        if record.streamed and capture.sent.data[:1] not in (b"{", b"["):
            kind = "text/event-stream"
        elif record.streamed and capture.sent.data:
            kind = "application/json"
        return _Raw(
            data=capture.sent.data,
            format=record.client_format,
            head=StageHead(f"HTTP/1.1 {record.status or 200}", [("content-type", kind)]),
            content_type=kind,
            cut=capture.sent.cut,
            tape=capture.sent,
        )
    if not 0 <= index < len(capture.attempts):
        return None
    return _upstream(watched, capture, capture.attempts[index], n)


def _upstream(watched: Watched, capture: Capture, attempt: UpstreamAttempt, n: int) -> _Raw:
    redactor = redactor_of(capture)
    sent = attempt.outgoing
    if n == 3:
        url = redactor.text(hide_in_url(sent.url))
        fields = [(name, redactor.text(value)) for name, value in hide_headers(sent.headers)]
        return _Raw(
            data=sent.body,
            format=watched.record.upstream_format,
            head=StageHead(f"{sent.method} {url} HTTP/1.1", fields),
        )
    fields = [(name, redactor.text(value)) for name, value in hide_headers(attempt.fields)]
    kind = dict(attempt.fields).get("content-type", "application/json")
    return _Raw(
        data=attempt.answer.data,
        format=watched.record.upstream_format,
        head=StageHead(f"HTTP/1.1 {attempt.status}" if attempt.status else attempt.error, fields),
        content_type=kind,
        cut=attempt.answer.cut,
        tape=attempt.answer,
    )


def _target(capture: Capture) -> str:
    return hide_in_url(f"http://x{capture.target}").removeprefix("http://x")


def canonical(watched: Watched, capture: Capture) -> dict[str, Any]:
    """The request and the answer in the form between the formats."""
    request = capture.request or capture.decoded
    answer = answer_of(watched, capture)
    return {
        "request": None if request is None else _plain_request(request),
        "answer": None if answer is None else _without_empty(_builtins(answer)),
        "losses": msgspec.to_builtins(capture.losses),
        "reattached": capture.reattached,
    }


def _plain_request(request: ModelRequest) -> dict[str, Any]:
    found = {
        name: _without_empty(_builtins(getattr(request, name)))
        for name in request.__struct_fields__
        if name not in _HIDDEN_FIELDS
    }
    return {name: value for name, value in found.items() if value not in (None, [], "", {})}


def _builtins(value: object) -> Any:
    """Values as JSON has them, with lists in place of tuples."""
    return msgspec.json.decode(encode(value))


def _without_empty(value: Any) -> Any:
    """The same without members that say nothing; lists keep their entries, as pointers count."""
    if is_object(value):
        cleaned = {name: _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in cleaned.items() if one not in (None, [], "")}
    return [_without_empty(one) for one in value] if is_list(value) else value


def streams_of(watched: Watched, capture: Capture) -> tuple[ReadStream | None, ReadStream | None]:
    """The upstream's stream and the client's, if these were streams."""
    found: list[ReadStream | None] = []
    for n in (4, 5):
        raw = _raw(watched, capture, n, len(capture.attempts) - 1)
        is_stream = raw is not None and raw.tape is not None and _is_stream(raw)
        found.append(read_stream(raw.format, raw.tape) if raw and raw.tape and is_stream else None)
    return found[0], found[1]


def answer_of(watched: Watched, capture: Capture) -> Message | None:
    """The answer as the client got it; None if none was recorded."""
    upstream, client = streams_of(watched, capture)
    for stream in (client, upstream):
        if stream is not None and stream.message is not None and stream.message.parts:
            return stream.message
    record = watched.record
    if not record.error and not record.streamed and capture.sent.size:
        return read_whole(record.client_format, capture.sent.data)
    return None


def upstream_body(watched: Watched) -> bytes | None:
    """What was last sent upstream; None if it is not recorded."""
    capture = watched.capture
    if capture is None or not capture.attempts:
        return None
    return redactor_of(capture).body(capture.attempts[-1].outgoing.body)


def exchange_of(watched: Watched) -> bytes | None:
    """The upstream exchanges as lines that `--replay` reads; None if they are not recorded."""
    capture = watched.capture
    if capture is None or not capture.attempts:
        return None
    redactor = redactor_of(capture)
    lines: list[bytes] = []
    for attempt in capture.attempts:
        answer = None
        if attempt.status:
            fields = tuple(
                (name, redactor.text(value)) for name, value in hide_headers(attempt.fields)
            )
            answer = RecordedResponse(
                status=attempt.status,
                headers=fields,
                body=RecordedBody.of(redactor.body(attempt.answer.data)),
                chunks=tuple(len(piece) for _, piece in attempt.answer.pieces),
            )
        end: Any = attempt.ended or "closed"
        exchange = Exchange(
            request=RecordedRequest.of(attempt.outgoing, redactor),
            response=answer,
            end=end,
            error=redactor.text(attempt.error),
        )
        lines.append(msgspec.json.encode(exchange))
    return b"\n".join(lines) + b"\n"
