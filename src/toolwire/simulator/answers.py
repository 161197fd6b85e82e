"""Replies as events and as HTTP answers, with the faults of the script."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from toolwire import dialects
from toolwire.collect import Collector
from toolwire.dialects import Dialect
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import (
    Finished,
    MediaAdded,
    ModelEvent,
    RefusalDelta,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Origin, Seal
from toolwire.request import JsonObject
from toolwire.simulator.received import Received
from toolwire.simulator.script import EVERY, Call, Decline, Fault, Piece, Reply, Say, Show, Think
from toolwire.simulator.vendor_rules import Seals, call_content
from toolwire.wire.json_access import dump
from toolwire.wire.sse import Frame, SseEncoder

ChatThinking: TypeAlias = Literal["reasoning_content", "reasoning_details", "thought_signature"]
"""Where a compatible chat server puts its thinking: DeepSeek and similar, OpenRouter, and
Gemini behind a chat address.
"""
ANTHROPIC, CHAT, GEMINI, RESPONSES = (
    "anthropic-messages",
    "openai-chat",
    "gemini",
    "openai-responses",
)


class Voice(msgspec.Struct, frozen=True, kw_only=True):
    """The vendor that a reply imitates."""

    family: str
    model: str
    seals: Seals
    new_id: Callable[[], str]
    chat_thinking: ChatThinking = "reasoning_content"
    id_length: int = 0
    """Length of call ids, where the server has its own rule."""

    @property
    def signs_all(self) -> bool:
        """Gemini 3 signs every answer, whether it showed its thoughts or not."""
        return self.family == GEMINI and "gemini-3" in self.model


def answer_events(reply: Reply, voice: Voice, counted: Usage) -> tuple[list[ModelEvent], Finished]:
    """Returns the events of a reply and its end; usage is `counted` unless the reply sets it."""
    events = _AnswerBuilder(reply, voice).events()
    detail = "MALFORMED_FUNCTION_CALL" if reply.reason is StopReason.MALFORMED_CALL else ""
    return events, Finished(reason=reply.reason, usage=reply.usage or counted, detail=detail)


class _AnswerBuilder:
    def __init__(self, reply: Reply, voice: Voice) -> None:
        self._reply = reply
        self._voice = voice
        shown = (p for p in reply.pieces if isinstance(p, Think) and not p.hidden)
        self._thoughts = "".join(piece.text for piece in shown)
        self._thought = any(isinstance(piece, Think) for piece in reply.pieces)
        self._seals: list[str] = []
        self._call_ids: list[str] = []

    def events(self) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        last = len(self._reply.pieces) - 1
        for number, piece in enumerate(self._reply.pieces):
            events += self._piece(piece, last=number == last)
        for call_id in self._call_ids:
            self._voice.seals.remember(call_id, tuple(self._seals), self._thoughts)
        return events

    def _piece(self, piece: Piece, *, last: bool) -> Iterable[ModelEvent]:
        match piece:
            case Say():
                yield from (TextDelta(text) for text in self._cut(piece.text))
                yield from self._text_end(last)
            case Think():
                words = "" if piece.hidden else piece.text
                yield from (ThinkingDelta(text) for text in self._cut(words))
                yield ThinkingEnded(self._thinking_seal(words, hidden=piece.hidden))
            case Decline():
                yield from (RefusalDelta(text) for text in self._cut(piece.text))
            case Call():
                yield from self._call(piece)
            case Show():
                yield MediaAdded(piece.media)

    def _cut(self, text: str) -> Iterator[str]:
        step = self._reply.delta or len(text) or 1
        return (text[at : at + step] for at in range(0, len(text), step))

    def _sealed(self, members: JsonObject) -> Seal:
        return Seal(origin=Origin(self._voice.family), data=dump(members))

    def _issue(self, content: str) -> str:
        token = self._voice.seals.issue(self._voice.family, self._voice.model, content)
        self._seals.append(token)
        return token

    def _thinking_seal(self, words: str, *, hidden: bool) -> Seal | None:
        match self._voice.family:
            case "anthropic-messages" if hidden:
                return self._sealed({"type": "redacted_thinking", "data": self._issue("")})
            case "anthropic-messages":
                return self._sealed({"signature": self._issue(words)})
            case "openai-responses":
                return self._sealed({"encrypted_content": self._issue(words)})
            case "openai-chat" if self._voice.chat_thinking == "reasoning_details":
                return self._sealed({"reasoning_details": [self._detail(words, hidden)]})
            case _:
                return None

    def _detail(self, words: str, hidden: bool) -> JsonObject:
        around: JsonObject = {"format": "unknown", "index": 0}
        if hidden:
            return {"type": "reasoning.encrypted", "data": self._issue(""), **around}
        seal = self._issue(words)
        return {"type": "reasoning.text", "text": words, "signature": seal, **around}

    def _text_end(self, last: bool) -> Iterable[ModelEvent]:
        signs = self._voice.family == GEMINI and (self._thought or self._voice.signs_all)
        if last and signs and not self._call_ids:
            yield TextEnded(self._sealed({"thoughtSignature": self._issue("")}))

    def _call(self, call: Call) -> Iterable[ModelEvent]:
        first = not self._call_ids
        call_id = call.id or _call_id(self._voice)
        self._call_ids.append(call_id)
        made = not call.id and self._voice.family == GEMINI
        yield ToolCallStarted(call_id, call.name, call.kind, call.namespace, made_id=made)
        yield from (ToolCallDelta(call_id, text) for text in self._cut(call.arguments))
        seal = self._call_seal(call, first) if call.complete else None
        yield ToolCallEnded(call_id, complete=call.complete, seal=seal)

    def _call_seal(self, call: Call, first: bool) -> Seal | None:
        voice = self._voice
        content = call_content(call.name, call.arguments)
        # Of parallel calls only the first is signed.
        if voice.family == GEMINI and first and (self._thought or voice.signs_all):
            return self._sealed({"thoughtSignature": self._issue(content)})
        if voice.family == CHAT and voice.chat_thinking == "thought_signature" and first:
            signature = {"google": {"thought_signature": self._issue(content)}}
            return self._sealed({"extra_content": signature})
        return None


def _call_id(voice: Voice) -> str:
    tail = voice.new_id().rpartition("_")[2]
    if voice.id_length:
        return tail[-voice.id_length :]
    return f"toolu_{tail}" if voice.family == ANTHROPIC else f"call_{tail}"


if TYPE_CHECKING:
    from aiohttp import web

_OUR_ITEM = re.compile(rb'(?<!\\)"((?:resp|msg|rs|fc|ctc|ig)_)tw(?=[0-9a-z])')
"""Ids that our encoder uses for items it made up; here they are the vendor's."""
_KINDS = {401: ErrorKind.AUTH, 403: ErrorKind.PERMISSION, 404: ErrorKind.NOT_FOUND}
_WORDS = {
    400: "the request is not valid",
    401: "the API key is not valid",
    403: "the key may not use this model",
    404: "no such model",
    429: "rate limit reached, try again later",
    500: "internal error",
    503: "the service is unavailable",
    529: "overloaded",
}


class Shape(Enum):
    """How an answer is sent."""

    WHOLE = "whole"
    STREAM = "stream"
    ARRAY = "array"
    """Gemini's stream without `alt=sse`."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """An answer ready to send."""

    status: int = 200
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    pieces: tuple[bytes, ...] = ()
    """One per event of a stream; a whole body is one piece."""


def error_answer(dialect: str, error: ProviderError) -> Written:
    """Returns the vendor's error body with its status."""
    status, body = dialects.get(dialect).encode_error(error)
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after is not None:
        headers = (("retry-after", f"{error.retry_after:g}"),)
    return Written(status=status, headers=headers, pieces=(body,))


def fault_answer(dialect: str, reply: Reply) -> Written:
    """Returns the error of a reply's fault."""
    fault = reply.fault
    if reply.body is not None:
        return Written(status=fault.status, headers=_retry(reply), pieces=(reply.body,))
    words = fault.message or _WORDS.get(fault.status, f"status {fault.status}")
    kind = _KINDS.get(fault.status) or dialects.get(dialect).error(fault.status, {}, b"").kind
    error = ProviderError(ErrorKind(kind), words, status=fault.status)
    return msgspec.structs.replace(error_answer(dialect, error), headers=_retry(reply))


def _retry(reply: Reply) -> tuple[tuple[str, str], ...]:
    return (("retry-after", reply.fault.retry_after),) if reply.fault.retry_after else ()


def written(reply: Reply, dialect: str, voice: Voice, counted: Usage, shape: Shape) -> Written:
    """Returns the answer in that wire format."""
    if reply.body is not None:
        kind = "application/json" if shape is Shape.WHOLE else "text/event-stream"
        return Written(kind=kind, pieces=(reply.body,))
    events, end = answer_events(reply, voice, counted)
    codec = dialects.get(dialect)
    if shape is Shape.WHOLE:
        collector = Collector()
        collector.add_all(events)
        body = codec.encode_whole(collector.message(), end, voice.model, voice.new_id)
        return Written(pieces=(_own_ids(body),))
    frames = list(_frames(codec, [*events, end], reply, voice))
    if shape is Shape.ARRAY:
        bodies = [(b"," if number else b"[") + f.data for number, f in enumerate(frames)]
        return Written(pieces=(*bodies, b"]"))
    sse = SseEncoder()
    return Written(
        kind="text/event-stream",
        pieces=tuple(_own_ids(sse.encode(frame)) for frame in frames),
    )


def _own_ids(data: bytes) -> bytes:
    return _OUR_ITEM.sub(rb'"\1', data)


def _frames(
    codec: Dialect, events: list[ModelEvent], reply: Reply, voice: Voice
) -> Iterator[Frame]:
    encoder = codec.encoder(voice.model, voice.new_id)
    sent = 0
    for event in events:
        for frame in encoder.feed(event):
            if sent == reply.fault.error_after:
                words = reply.fault.message or "overloaded"
                yield from encoder.fail(ProviderError(ErrorKind.OVERLOADED, words))
                return
            yield frame
            sent += 1
    yield from encoder.close()


_PLAIN = Fault()


@asynccontextmanager
async def serving(
    handle: "Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]", host: str, port: int
) -> AsyncGenerator[str]:
    """Runs a server until the block ends; yields its address."""
    from aiohttp import web  # noqa: PLC0415 - scripts are read without it

    server = web.Server(handle, handler_cancellation=True, access_log=None)
    listening = await asyncio.get_running_loop().create_server(server, host, port)
    try:
        found = listening.sockets[0].getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{found}"
    finally:
        listening.close()
        # Zero would mean to wait for ever.
        await server.shutdown(0.001)
        await listening.wait_closed()


async def send(
    request: "web.BaseRequest", answer: Written, fault: Fault, received: Received
) -> "web.StreamResponse":
    """Writes the answer; returns when it is sent, cut, or the client disconnected."""
    from aiohttp import web  # noqa: PLC0415 - scripts are read without it

    if fault.wait_first:
        await asyncio.sleep(fault.wait_first)
    received.status = answer.status
    response = web.StreamResponse(status=answer.status, headers=dict(answer.headers))
    response.content_type = answer.kind
    if answer.status >= 400 or (len(answer.pieces) == 1 and fault == _PLAIN):
        response.content_length = sum(map(len, answer.pieces))
    await response.prepare(request)
    try:
        if request.method != "HEAD":
            await _write(response, answer, fault)
    except ConnectionError:
        return response
    if _is_cut(fault, answer) and fault.cut_how == "connection":
        if request.transport is not None:
            request.transport.close()
        return response
    await response.write_eof()
    received.finished = True
    return response


async def _write(response: "web.StreamResponse", answer: Written, fault: Fault) -> None:
    if fault.endless:
        await _repeat(response, answer, fault)
    left = fault.cut_bytes
    for number, piece in enumerate(_noisy(answer.pieces, fault)):
        if number == fault.cut_events:
            return
        if number == fault.hang_after:
            await asyncio.Event().wait()
        if number and fault.wait_each:
            await asyncio.sleep(fault.wait_each)
        if left is not None:
            piece, left = piece[:left], left - len(piece)
        await response.write(piece)
        if left is not None and left <= 0:
            return


def _noisy(pieces: tuple[bytes, ...], fault: Fault) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        if number == fault.noise_after:
            yield fault.noise
        yield piece


async def _repeat(response: "web.StreamResponse", answer: Written, fault: Fault) -> None:
    """Yields the opening, then repeats the last piece before the end."""
    words = answer.pieces[len(answer.pieces) // 2]
    for piece in answer.pieces[: len(answer.pieces) // 2]:
        await response.write(piece)
    while True:
        await response.write(words)
        await asyncio.sleep(fault.wait_each or EVERY)


def _is_cut(fault: Fault, answer: Written) -> bool:
    if fault.cut_bytes is not None:
        return fault.cut_bytes < sum(map(len, answer.pieces))
    return fault.cut_events is not None and fault.cut_events < len(answer.pieces)
