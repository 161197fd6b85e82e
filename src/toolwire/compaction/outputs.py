"""Older tool outputs moved to files: those beyond the budget are cut to their two ends."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from toolwire.compaction.tokens import of_part
from toolwire.messages import (
    Media,
    Message,
    Part,
    Text,
    ToolResult,
)
from toolwire.tools.output_limits import capped

KEPT_CHARACTERS = 2_000
"""Of each older output, head and tail together."""
_WORTH_CUTTING = 1_000
"""Tokens from which an output is cut at all."""
_SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "application/pdf": ".pdf",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
}


def with_old_outputs_cut(
    messages: Sequence[Message], *, budget: int, folder: Path
) -> tuple[Message, ...]:
    """The messages, older outputs beyond the budget of tokens in files of `folder`.

    What cannot be written stays where it is. The newest outputs, which the model has not seen yet,
    always do.
    """
    left = budget
    newest = True
    kept = list(messages)
    for place in range(len(kept) - 1, -1, -1):
        message = kept[place]
        if not message.results:
            continue
        left -= sum(of_part(part) for part in message.parts)
        if left < 0 and not newest:
            kept[place] = _cut(message, folder)
        newest = False
    return tuple(kept)


def _cut(message: Message, folder: Path) -> Message:
    parts = tuple(_cut_part(part, folder) for part in message.parts)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _cut_part(part: Part, folder: Path) -> Part:
    if of_part(part) < _WORTH_CUTTING:
        return part
    if isinstance(part, Text | Media):
        return _filed(part, "beside", folder)
    if not isinstance(part, ToolResult):
        return part
    inner = tuple(
        _filed(one, part.call_id, folder)
        if isinstance(one, Text | Media) and of_part(one) >= _WORTH_CUTTING
        else one
        for one in part.parts
    )
    return part if inner == part.parts else msgspec.structs.replace(part, parts=inner, kept=None)


def _filed(part: Text | Media, call_id: str, folder: Path) -> Text | Media:
    try:
        text = _replacement(part, call_id, folder)
    except OSError:
        # A full or read-only disk: the next step shortens more.
        return part
    return part if isinstance(part, Text) and text == part.text else Text(text)


def _replacement(part: Text | Media, call_id: str, folder: Path) -> str:
    if isinstance(part, Text):
        if len(part.text) <= 2 * KEPT_CHARACTERS:
            # Cut once already, with its heading, or in a script of heavy letters.
            return part.text
        # Ids repeat from reply to reply, texts do not.
        digest = hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).hexdigest()
        return capped(part.text, KEPT_CHARACTERS, folder, f"{call_id[:60]}-{digest[:16]}")
    if not part.base64:
        raise OSError("nothing is carried inline")
    data = part.data
    digest = hashlib.sha256(data).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{part.kind.value}-{digest[:16]}{_SUFFIXES.get(part.mime, '')}"
    file.write_bytes(data)
    return f"[{part.mime or part.kind.value}, {len(data):,} bytes, stored in: {file}]"
