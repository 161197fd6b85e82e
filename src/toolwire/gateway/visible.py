"""What every client sends back of a conversation, as digests: no ids, no thinking, no spacing."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec

from toolwire.dialects.losses import Losses
from toolwire.dialects.tools import as_object
from toolwire.messages import Media, Message, Part, Refusal, Text, ToolCall, ToolResult

START: Final = b""
"""The chain before the first message."""
_LENGTH = 16
_encode = msgspec.json.Encoder(order="deterministic").encode


def digest(*pieces: bytes) -> bytes:
    """SHA-256 of the pieces, cut to 16 bytes."""
    return hashlib.sha256(b"".join(pieces)).digest()[:_LENGTH]


def text_bytes(text: str) -> bytes:
    """The text as bytes, half surrogate pairs included."""
    return text.encode("utf-8", "surrogatepass")


def visible_call(call: ToolCall) -> bytes:
    """Name and arguments of a call: members sorted, numbers as JavaScript holds them."""
    name = f"{call.namespace}__{call.name}" if call.namespace else call.name
    arguments: object
    try:
        arguments = _as_double(as_object(call, "", Losses()))
        return _encode([name, arguments])
    except (RecursionError, ValueError, TypeError):
        return text_bytes(f"{name}\0{call.arguments}")


def _as_double(value: object) -> object:
    """The value with all numbers as float64, and minus zero as zero."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        try:
            return float(cast(int, value))
        except OverflowError:
            # JSON.stringify writes null for a number that a double cannot hold.
            return None
    if kind is float:
        return cast(float, value) + 0.0
    if kind is dict:
        return {name: _as_double(one) for name, one in cast(dict[str, object], value).items()}
    if kind is list:
        return [_as_double(one) for one in cast(list[object], value)]
    return value


def visible_text(parts: Iterable[Part]) -> str:
    """The text of an answer without the blanks around it."""
    texts = [part.text for part in parts if isinstance(part, Text | Refusal)]
    return (texts[0] if len(texts) == 1 else "".join(texts)).strip()


def visible_answer(parts: Sequence[Part]) -> bytes:
    """Digest of an answer of the model."""
    pieces = [b"a", text_bytes(visible_text(parts))]
    for part in parts:
        if isinstance(part, ToolCall):
            pieces += (b"\0", visible_call(part))
    return digest(*pieces)


def visible_input(parts: Iterable[Part], calls: Mapping[str, int]) -> bytes:
    """Digest of what the user and the tools sent; `calls` are the calls before it by id.

    A result counts by the position of its call.
    """
    texts: list[bytes] = []
    results: list[tuple[int, bytes]] = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(text_bytes(part.text.rstrip()))
        elif isinstance(part, ToolResult):
            place = calls.get(part.call_id, len(calls))
            results.append((place, b"".join(_result(part))))
        elif isinstance(part, Media):
            texts.append(_media(part))
    results.sort(key=lambda result: result[0])
    pieces = [b"u"]
    for place, content in results:
        pieces += (b"\0r%d:%d:" % (place, len(content)), content)
    return digest(*pieces, b"\0t", *texts)


def _result(result: ToolResult) -> Iterator[bytes]:
    for part in result.parts:
        if isinstance(part, Text):
            yield text_bytes(part.text.rstrip())
        elif isinstance(part, Media):
            yield _media(part)


def _media(media: Media) -> bytes:
    return b"\0m" + digest(text_bytes(media.base64 or media.url or media.file_id))


class PartRun(msgspec.Struct, kw_only=True):
    """Neighbouring messages of one side."""

    answer: bool
    """Whether the model made it."""
    first: int
    """Position of its first message."""
    last: int
    parts: tuple[Part, ...]
    digest: bytes
    tail: bytes
    """Digest of its last message, which stays when the client drops what was before it."""
    before: bytes
    """The tail of the run before it."""
    chain: bytes
    """Digest of the conversation up to and with this run."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


def runs_of(messages: Sequence[Message]) -> list[PartRun]:
    """The conversation as alternating runs with their rolled digests; instructions do not count."""
    runs: list[PartRun] = []
    calls: dict[str, int] = {}
    before, chain = START, START
    for answer, first, last, parts in _grouped(messages):
        if answer:
            found = visible_answer(parts)
            made = [part.id for part in parts if isinstance(part, ToolCall)]
            calls = {call_id: place for place, call_id in enumerate(made)}
            tail = found
        else:
            found = tail = visible_input(parts, calls)
            if last > first:
                tail = visible_input(messages[last].parts, calls)
        chain = digest(chain, found)
        runs.append(
            PartRun(
                answer=answer,
                first=first,
                last=last,
                parts=parts,
                digest=found,
                tail=tail,
                before=before,
                chain=chain,
            )
        )
        before = tail
    return runs


def _grouped(messages: Sequence[Message]) -> Iterator[tuple[bool, int, int, tuple[Part, ...]]]:
    """Whether the model made the run, its first and last message, and its parts."""
    group: list[int] = []
    answer = False
    for number, message in enumerate(messages):
        if message.role == "system":
            continue
        made = message.role == "assistant"
        # A run of answers is replaced as a whole: nothing may be between its messages.
        if group and (made != answer or (made and group[-1] != number - 1)):
            yield answer, group[0], group[-1], _parts(messages, group)
            group = []
        answer = made
        group.append(number)
    if group:
        yield answer, group[0], group[-1], _parts(messages, group)


def _parts(messages: Sequence[Message], numbers: Sequence[int]) -> tuple[Part, ...]:
    if len(numbers) == 1:
        return messages[numbers[0]].parts
    return tuple(part for number in numbers for part in messages[number].parts)
