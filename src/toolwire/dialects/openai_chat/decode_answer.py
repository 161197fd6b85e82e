"""Chat answers, streamed or whole: bytes to events."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from toolwire.dialects import DecodeOptions
from toolwire.dialects.failures import failure, find_error, unreadable
from toolwire.dialects.openai_chat.deltas import AnswerDeltas
from toolwire.dialects.openai_chat.ends import (
    is_cut,
    read_reason,
    read_usage,
)
from toolwire.dialects.openai_chat.shapes import (
    UNREADABLE,
    Chunk,
    Delta,
    NamedChunk,
    WireChoice,
    read_chunk,
    read_delta,
    read_lenient,
    read_next_chunk,
)
from toolwire.errors import IncompleteStream, MalformedStream, ProviderError
from toolwire.events import Finished, ModelEvent, Notice, Usage
from toolwire.request import JsonObject
from toolwire.wire.sse import Frame
from toolwire.wire.surrogates import PairJoiner, whole_characters

_any = msgspec.json.Decoder().decode
_NO_EVENTS: tuple[ModelEvent, ...] = ()


class ChatDecoder:
    """One per response. Decodes choice 0; its calls end with the stream, since some servers send a
    finish reason with every delta.
    """

    def __init__(self, options: DecodeOptions) -> None:
        self._answer = AnswerDeltas(options)
        self._more = self._answer.more
        self._read: Callable[[bytes], Chunk] = read_chunk
        self._pairs = PairJoiner()
        self._stop = ""
        self._message = Raw(b"")
        self._usage: JsonObject | None = None
        self._id = ""
        self._model = ""
        self._unsent: list[ModelEvent] = []
        self._others_reported = False
        self._done = False
        self._finished = False

    def feed(self, frame: Frame) -> Sequence[ModelEvent]:
        """The events of one frame; raises the vendor's error if it contains one."""
        if self._pairs.cut is not None:
            return self._pairs.resume(self.feed, frame)
        data = frame.data
        if data[:6] == b"[DONE]":
            self._done = True
            return self._finish() if self._answer.has_content or self._stop else _NO_EVENTS
        if self._finished:
            return _NO_EVENTS
        try:
            chunk = self._read(data)
        except UNREADABLE as error:
            # A server that counts in UTF-16 may have split a surrogate pair.
            repaired = self._pairs.repaired(self.feed, frame) if rb"\u" in data else None
            if repaired is not None:
                return repaired
            chunk = self._lenient(frame, error)
        choices = chunk.choices
        if chunk.usage:
            self._usage = chunk.usage
        reported = chunk.error or frame.event == "error"
        if reported or (choices is None and find_error(_value(frame))):
            raise _error(frame)
        if type(chunk) is NamedChunk and not self._model:
            self._id = self._id or chunk.id or ""
            self._model = chunk.model or ""
            if self._model:
                self._read = read_next_chunk
        if chunk.x_groq is not None:
            self._groq(chunk, frame)
        if chunk.prompt_progress is not None:
            read = chunk.prompt_progress
            return (Notice("reading", f"{read.processed} of {read.total} tokens read"),)
        if choices is not None and len(choices) == 1:
            choice = choices[0]
            delta = choice.delta
            if delta is not None and not (choice.finish_reason or choice.index or choice.error):
                quick = self._more(delta)
                if quick is not None:
                    return quick
        events: list[ModelEvent] = []
        try:
            for choice in choices or ():
                self._choice(choice, events, frame)
        except UNREADABLE as error:
            # Raw parts and objects are decoded only now.
            raise unreadable(frame, error, "chunk") from error
        return events

    def close(self) -> Sequence[ModelEvent]:
        """The last events; a finish reason is the answer's end, with or without `[DONE]`."""
        if self._finished:
            return _NO_EVENTS
        if not self._stop and not (self._done and self._answer.has_content):
            raise IncompleteStream("the stream ended without a finish_reason")
        return self._finish()

    def pending(self) -> Sequence[ModelEvent]:
        """Text that could be a tag, thinking that is still open, calls that have only a name."""
        events = [*self._pairs.mark(), *self._unsent]
        self._unsent = []
        self._answer.flush(events)
        return events

    def usage(self) -> Usage | None:
        """The counts read so far; most servers send them at the end only."""
        return read_usage(self._usage) if self._usage else None

    def _finish(self) -> list[ModelEvent]:
        if self._finished:
            return []
        self._finished = True
        events = self._pairs.mark()
        if not self._answer.has_content and _is_given(self._message):
            # A whole answer in one frame, beside an empty delta (Perplexity).
            with suppress(*UNREADABLE):
                self._answer.add(read_delta(self._message), events, whole=True)
        self._answer.end(events, cut=is_cut(self._stop))
        return [*events, *_end(self._answer, self._stop, self._usage, self._id, self._model)]

    def _lenient(self, frame: Frame, error: Exception) -> Chunk:
        if frame.event == "error":
            raise _error(frame) from error
        try:
            return read_lenient(frame.data)
        except UNREADABLE:
            raise unreadable(frame, error, "chunk") from error

    def _choice(self, choice: WireChoice, events: list[ModelEvent], frame: Frame) -> None:
        if choice.index:
            if not self._others_reported:
                self._others_reported = True
                events.append(_OTHER_CHOICES)
            return
        if choice.delta is not None:
            self._answer.add(choice.delta, events)
        elif _is_given(choice.message):
            # A server that does not stream sends the whole message in one body.
            self._answer.add(read_delta(choice.message), events, whole=True)
        if choice.usage:
            # Moonshot sends usage beside the finish reason.
            self._usage = choice.usage
        if choice.finish_reason:
            self._stop = choice.finish_reason
            self._message = choice.message
            self._answer.settle(events)
        if choice.error:
            # OpenRouter reports the failure of an upstream server inside the choice.
            self._unsent = events
            raise failure(choice.error, body=frame.data.decode("utf-8", "replace"))

    def _groq(self, chunk: Chunk, frame: Frame) -> None:
        groq = chunk.x_groq
        if groq is None:
            return
        if groq.usage and not chunk.usage:
            self._usage = groq.usage
        if groq.error:
            raise failure(groq.error, body=frame.data.decode("utf-8", "replace"))


_NO_FINISH_REASON = Notice("no_finish_reason", "the answer ended without a finish_reason")
_OTHER_CHOICES = Notice("other_choices", "the answer has several choices; only the first is read")


def _end(
    answer: AnswerDeltas, stop: str, usage: JsonObject | None, response_id: str, model: str
) -> list[ModelEvent]:
    reason, detail = read_reason(stop or "stop", calls=answer.has_calls, refused=answer.refused)
    finished = Finished(
        reason=reason,
        usage=read_usage(usage),
        detail=detail,
        response_id=response_id,
        model=model,
    )
    return [finished] if stop else [_NO_FINISH_REASON, finished]


def _is_given(message: Raw) -> bool:
    return bytes(message) not in (b"", b"null")


def _error(frame: Frame) -> ProviderError:
    value = _value(frame)
    return failure(find_error(value) or value, body=frame.data.decode("utf-8", "replace"))


def _value(frame: Frame) -> Any:
    try:
        return _any(frame.data)
    except UNREADABLE:
        return frame.data.decode("utf-8", "replace")


def decode_whole(body: bytes, options: DecodeOptions) -> Iterator[ModelEvent]:
    """The events of a whole answer."""
    try:
        events, error = _read(body, options)
    except UNREADABLE as reason:
        _raise_error(body)
        try:
            events, error = _read(whole_characters(body), options)
        except UNREADABLE:
            text = body.decode("utf-8", "replace")
            raise MalformedStream(f"unreadable answer: {reason}", body=text[:2000]) from reason
    return _broken_off(events, error) if error is not None else iter(events)


def _broken_off(events: list[ModelEvent], error: ProviderError) -> Iterator[ModelEvent]:
    yield from events
    raise error


def _read(body: bytes, options: DecodeOptions) -> tuple[list[ModelEvent], ProviderError | None]:
    """The events, and the error that ends them."""
    try:
        return _events(read_chunk(body), body, options)
    except msgspec.ValidationError:
        return _events(read_lenient(body), body, options)


def _events(
    chunk: NamedChunk, body: bytes, options: DecodeOptions
) -> tuple[list[ModelEvent], ProviderError | None]:
    choices = chunk.choices
    if chunk.error or not choices:
        _raise_error(body, chunk.usage)
    if not choices:
        text = body.decode("utf-8", "replace")
        raise MalformedStream("the answer has no choices", body=text[:2000])
    answer = AnswerDeltas(options, whole=True)
    events: list[ModelEvent] = []
    choice = next((choice for choice in choices if not choice.index), choices[0])
    stop = choice.finish_reason or ""
    given = _is_given(choice.message)
    message = read_delta(choice.message) if given else choice.delta or Delta()
    answer.add(message, events, whole=True)
    usage = chunk.usage or choice.usage
    if not usage and chunk.x_groq is not None:
        usage = chunk.x_groq.usage
    if choice.error:
        answer.flush(events)
        return events, _failure(choice.error, body, usage)
    answer.end(events, cut=is_cut(stop))
    if len(choices) > 1:
        events.append(_OTHER_CHOICES)
    return [*events, *_end(answer, stop, usage, chunk.id or "", chunk.model or "")], None


def _raise_error(body: bytes, usage: JsonObject | None = None) -> None:
    try:
        error = find_error(_any(body))
    except UNREADABLE:
        return
    if error:
        raise _failure(error, body, usage)


def _failure(error: Any, body: bytes, usage: JsonObject | None) -> ProviderError:
    failed = failure(error, body=body.decode("utf-8", "replace"))
    failed.usage = read_usage(usage) if usage else None
    return failed
