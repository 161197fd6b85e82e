"""Chat answers that are not streamed, both ways."""

from collections.abc import Callable, Iterator

import msgspec

from toolwire.dialects import DecodeOptions
from toolwire.dialects.kept import form, kept_member, own_seal
from toolwire.dialects.openai_chat.answer import Answer
from toolwire.dialects.openai_chat.citations import write_citation
from toolwire.dialects.openai_chat.ending import (
    is_cut,
    read_reason,
    read_usage,
    write_reason,
    write_usage,
)
from toolwire.dialects.openai_chat.failure import failure, find_error
from toolwire.dialects.openai_chat.media import write_image
from toolwire.dialects.openai_chat.odd_chunks import read_odd_chunk
from toolwire.dialects.openai_chat.stream import no_finish_reason, other_choices
from toolwire.dialects.openai_chat.thoughts import merge_details
from toolwire.dialects.openai_chat.wire import (
    NAME,
    REASONING,
    UNREADABLE,
    Choice,
    Delta,
    NamedChunk,
    read_chunk,
    read_delta,
)
from toolwire.errors import MalformedStream
from toolwire.events import Finished, ModelEvent
from toolwire.messages import (
    CallKind,
    Media,
    MediaKind,
    Message,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode
from toolwire.wire.surrogates import PairMender

_any = msgspec.json.Decoder().decode


def decode_whole(body: bytes, reading: DecodeOptions) -> Iterator[ModelEvent]:
    """The events of an answer that was not streamed."""
    text = body.decode("utf-8", "replace")
    try:
        return iter(_read(body, text, reading))
    except UNREADABLE as error:
        _raise_error(body, text)
        try:
            return iter(_read(PairMender().mend(body), text, reading))
        except UNREADABLE:
            raise MalformedStream(f"unreadable answer: {error}", body=text[:2000]) from error


def _read(body: bytes, text: str, reading: DecodeOptions) -> list[ModelEvent]:
    try:
        return _answer(read_chunk(body), body, text, reading)
    except msgspec.ValidationError:
        return _answer(read_odd_chunk(body), body, text, reading)


def _answer(chunk: NamedChunk, body: bytes, text: str, reading: DecodeOptions) -> list[ModelEvent]:
    if chunk.error or not chunk.choices:
        _raise_error(body, text)
    if not chunk.choices:
        raise MalformedStream("the answer has no choices", body=text[:2000])
    return _events(chunk, chunk.choices, reading)


def _events(chunk: NamedChunk, choices: list[Choice], reading: DecodeOptions) -> list[ModelEvent]:
    answer = Answer(reading, whole=True)
    events: list[ModelEvent] = []
    choice = next((choice for choice in choices if not choice.index), choices[0])
    stop = choice.finish_reason or ""
    answer.add(_message(choice), events, whole=True)
    answer.end(events, cut=is_cut(stop))
    if len(choices) > 1:
        events.append(other_choices())
    if not stop:
        events.append(no_finish_reason())
    reason, detail = read_reason(stop or "stop", calls=answer.has_calls, refused=answer.refused)
    usage = chunk.usage or choice.usage
    if not usage and chunk.x_groq is not None:
        usage = chunk.x_groq.usage
    finished = Finished(
        reason=reason,
        usage=read_usage(usage),
        detail=detail,
        response_id=chunk.id or "",
        model=chunk.model or "",
    )
    return [*events, finished]


def _message(choice: Choice) -> Delta:
    if bytes(choice.message) in (b"", b"null"):
        return choice.delta or Delta()
    return read_delta(choice.message)


def _raise_error(body: bytes, text: str) -> None:
    try:
        error = find_error(_any(body))
    except UNREADABLE:
        return
    if error:
        raise failure(error, body=text)


def encode_whole(
    message: Message, finished: Finished, model: str, new_id: Callable[[], str]
) -> bytes:
    """An answer that is not streamed."""
    written = _write_message(message)
    refused = written["refusal"] is not None
    body: JsonObject = {
        "id": finished.response_id or answer_id(new_id),
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": written,
                "logprobs": None,
                "finish_reason": write_reason(finished.reason, refused=refused),
            }
        ],
    }
    usage = write_usage(finished.usage)
    if usage is not None:
        body["usage"] = usage
    return encode(body)


def answer_id(new_id: Callable[[], str]) -> str:
    """A new id in the form clients know."""
    return f"chatcmpl-{new_id().removeprefix('call_')}"


def _write_message(message: Message) -> JsonObject:
    texts: list[str] = []
    refusals: list[str] = []
    calls: list[JsonObject] = []
    written: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    for part in message.parts:
        match part:
            case Text():
                texts.append(part.text)
                written.update(own_seal(part.seal, NAME))
                if part.citations:
                    citations = [write_citation(citation) for citation in part.citations]
                    written.setdefault("annotations", []).extend(citations)
            case Thinking():
                write_thinking(written, part)
            case Refusal():
                refusals.append(part.text)
            case ToolCall():
                calls.append(_write_call(part))
            case Media():
                _write_media(written, part)
            case _:
                pass
    if texts:
        written["content"] = "".join(texts)
    if refusals:
        written["refusal"] = "".join(refusals)
    if calls:
        written["tool_calls"] = calls
    return written


def write_thinking(message: JsonObject, part: Thinking) -> None:
    """Thinking in the members it came in, or in the one most clients read."""
    sealed = own_seal(part.seal, NAME)
    members = {name: sealed[name] for name in REASONING if name in sealed}
    if part.text and not members:
        members["reasoning_content"] = part.text
    details: list[JsonObject] | None = members.pop("reasoning_details", None)
    for name, text in members.items():
        message[name] = message.get(name, "") + text
    if details:
        merged: list[JsonObject] = message.setdefault("reasoning_details", [])
        if merged:
            merge_details(merged, details)
        else:
            merged.extend(details)


def _write_call(call: ToolCall) -> JsonObject:
    name = f"{call.namespace}__{call.name}" if call.namespace else call.name
    written: JsonObject = {"id": call.id}
    if call.kind is CallKind.FREEFORM:
        written |= {"type": "custom", "custom": {"name": name, "input": call.arguments}}
    else:
        written |= {"type": "function", "function": {"name": name, "arguments": call.arguments}}
    return written | own_seal(call.seal, NAME)


def _write_media(message: JsonObject, media: Media) -> None:
    if media.kind is MediaKind.IMAGE and (media.base64 or media.url):
        message.setdefault("images", []).append(write_image(media))
    elif media.kind is MediaKind.AUDIO and media.base64:
        message["audio"] = write_audio(media)


def write_audio(media: Media) -> JsonObject:
    """Spoken output; clients expect an expiry even where none is known."""
    own = form(media.kept, NAME) == "audio"
    expires = kept_member(media.kept, NAME, "expires_at") if own else None
    transcript = kept_member(media.kept, NAME, "transcript") if own else None
    return {
        "id": media.file_id,
        "data": media.base64,
        "expires_at": expires or 0,
        "transcript": transcript or "",
    }
