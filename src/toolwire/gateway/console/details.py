"""All that is known of a request but its bytes: attempts, times, and the parts in its stages."""

from __future__ import annotations

import msgspec

from toolwire.client.redact import hide_in_url
from toolwire.gateway.capture import Capture, NotedLoss
from toolwire.gateway.console.frames import ReadStream
from toolwire.gateway.console.parts import (
    FoundPart,
    ShownPart,
    aligned,
    document_of,
    first_of_list,
    of_document,
    of_message,
    of_request,
)
from toolwire.gateway.console.rows import RequestRow
from toolwire.gateway.console.stages import NAMES, answer_of, redactor_of, streams_of, why_not
from toolwire.gateway.memory import seal_of
from toolwire.gateway.watch import Watched
from toolwire.messages import Part, Seal, Text, Thinking, ToolCall


class StageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A stage in the list of a request."""

    n: int
    name: str
    format: str
    size: int
    available: bool
    why: str


class ShownAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt upstream."""

    n: int
    deployment: str
    status: int | None
    error: str
    seconds: float | None
    url: str


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a request went, in seconds."""

    admit: float
    queue: float
    first_event: float | None
    stream: float | None
    total: float
    overhead: float


class Reattached(msgspec.Struct, frozen=True):
    """What the memory put back."""

    kind: str
    text: str


class RequestDetail(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a request but its bytes."""

    request: RequestRow
    stages: list[StageEntry]
    losses: list[NotedLoss]
    reattached: list[Reattached]
    attempts: list[ShownAttempt]
    timings: Timings
    parts: list[ShownPart]
    previous: str | None
    """The request before it in the same conversation."""
    recording: str


def parts_of(watched: Watched, capture: Capture) -> list[ShownPart]:
    """The parts of a request and its answer, with their places in all stages."""
    request = capture.request or capture.decoded
    if request is None:
        return []
    record = watched.record
    documents = {"1": (record.client_format, capture.body)}
    if capture.attempts:
        documents["3"] = (record.upstream_format, capture.attempts[-1].outgoing.body)
    stages = {n: _found(*document) for n, document in documents.items()}
    return [*aligned(of_request(request), stages), *_answer_parts(watched, capture)]


def _answer_parts(watched: Watched, capture: Capture) -> list[ShownPart]:
    answer = answer_of(watched, capture)
    if answer is None:
        return []
    record = watched.record
    upstream, client = streams_of(watched, capture)
    whole: dict[str, list[FoundPart]] = {}
    if upstream is None and capture.attempts:
        whole["4"] = _found(record.upstream_format, capture.attempts[-1].answer.data)
    if client is None:
        whole["5"] = _found(record.client_format, capture.sent.data)
    shown = aligned(of_message(answer, "/answer"), whole, answer=True)
    for n, stream in (("4", upstream), ("5", client)):
        if stream is not None:
            _add_frames(shown, n, stream)
    return shown


def _add_frames(shown: list[ShownPart], n: str, stream: ReadStream) -> None:
    by_key: dict[str, list[int]] = {}
    for frame in stream.frames:
        for key in frame.parts:
            by_key.setdefault(key, []).append(frame.i)
    words = [i for key, frames in by_key.items() if ":text:" in key for i in frames]
    for part in shown:
        found = by_key.get(part.key)
        if found is None and part.kind == "call":
            # With a prompted tool style the upstream writes its calls as text.
            found = sorted(words)
        if found:
            part.frames[n] = found


def _found(dialect: str, data: bytes) -> list[FoundPart]:
    return list(of_document(dialect, first_of_list(document_of(data))))


def detail_of(
    row: RequestRow, watched: Watched | None, previous: str | None, recording: str
) -> RequestDetail:
    """All that is known of a request but its bytes."""
    capture = None if watched is None else watched.capture
    parts: list[ShownPart] = []
    if watched is not None and capture is not None and capture.level == "full":
        parts = parts_of(watched, capture)
    return RequestDetail(
        request=row,
        stages=_entries(row, watched, recording),
        losses=[] if capture is None else [*capture.losses],
        reattached=_reattached(row, capture),
        attempts=[] if capture is None else _attempts(row, capture),
        timings=_timings(row),
        parts=parts,
        previous=previous,
        recording=recording,
    )


def _entries(row: RequestRow, watched: Watched | None, recording: str) -> list[StageEntry]:
    formats = (
        *(row.client_format, "canonical", row.upstream_format),
        *(row.upstream_format, row.client_format),
    )
    sizes = [row.bytes_in, 0, 0, 0, row.bytes_out]
    why = "it is no longer in memory; the ledger has only its figures"
    found: list[bool] = [False] * 5
    if watched is not None:
        why = why_not(watched, recording)
        capture = watched.capture
        if capture is not None and not why:
            has_attempt = bool(capture.attempts)
            found = [True, True, has_attempt, has_attempt, True]
            if has_attempt:
                last = capture.attempts[-1]
                sizes[2], sizes[3] = len(last.outgoing.body), last.answer.size
    return [
        StageEntry(
            n=n,
            name=NAMES[n - 1],
            format=formats[n - 1],
            size=sizes[n - 1],
            available=found[n - 1],
            why="" if found[n - 1] else why,
        )
        for n in range(1, 6)
    ]


_SEALS = {
    "gemini": "thoughtSignature",
    "code-assist": "thoughtSignature",
    "openai-responses": "encrypted_content",
}
"""What each format calls the signature of a model's reasoning."""


def _reattached(row: RequestRow, capture: Capture | None) -> list[Reattached]:
    if not row.reattached:
        return []
    found = _put_back(row, capture) if capture is not None else []
    if found:
        return found
    what = "turn" if row.reattached == 1 else "turns"
    words = f"{row.reattached} {what} of the model put back from memory, as the upstream sent them"
    return [Reattached("turn", words)]


def _put_back(row: RequestRow, capture: Capture) -> list[Reattached]:
    """Signatures and thinking that the upstream got and the client did not send."""
    if capture.decoded is None or capture.request is None:
        return []
    sent = {_mark(part) for message in capture.decoded.messages for part in message.parts}
    turns = [one for one in capture.request.messages if str(one.role) == "assistant"]
    name = _SEALS.get(row.upstream_format, "signature")
    found: list[Reattached] = []
    for number, message in enumerate(turns):
        ago = len(turns) - number
        when = f"from memory, {ago} {'turn' if ago == 1 else 'turns'} ago"
        for part in message.parts:
            if _mark(part) in sent:
                continue
            match part:
                case ToolCall(seal=Seal()):
                    found.append(Reattached("seal", f"{name} of {part.name} {part.id} {when}"))
                case Thinking(seal=Seal()):
                    found.append(Reattached("seal", f"thinking with its {name} {when}"))
                case Thinking():
                    found.append(Reattached("thinking", f"thinking {when}"))
                case Text(seal=Seal()):
                    found.append(Reattached("seal", f"{name} of a text {when}"))
                case _:
                    pass
    return found


def _mark(part: Part) -> tuple[str, str]:
    """What a part that came from the client has in common with the same one as it was asked."""
    seal = seal_of(part)
    words = part.text if isinstance(part, Thinking) else ""
    return ("" if seal is None else seal.data, words)


def _attempts(row: RequestRow, capture: Capture) -> list[ShownAttempt]:
    if capture.attempts:
        redactor = redactor_of(capture)
        return [
            ShownAttempt(
                n=number,
                deployment=row.deployment,
                status=one.status or None,
                error=redactor.text(one.error),
                seconds=one.seconds,
                url=redactor.text(hide_in_url(one.outgoing.url)),
            )
            for number, one in enumerate(capture.attempts, 1)
        ]
    return [
        ShownAttempt(
            n=number,
            deployment=one.deployment,
            status=one.status,
            error=one.error,
            seconds=None,
            url="",
        )
        for number, one in enumerate(capture.failed, 1)
    ]


def _timings(row: RequestRow) -> Timings:
    stream = None if row.first_event is None else max(0.0, row.duration - row.first_event)
    return Timings(
        admit=max(0.0, row.overhead),
        queue=row.waited,
        first_event=row.first_event,
        stream=stream,
        total=row.duration,
        overhead=row.overhead,
    )
