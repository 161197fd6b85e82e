"""How much of a result a model is sent."""

import re
from pathlib import Path

DEFAULT_LIMIT = 400_000
"""Characters of a result that are sent as they are."""
MOST_MEDIA = 20 * 1024 * 1024
"""Bytes of the pictures, documents and recordings in one result."""


def limit_of(setting: object) -> int:
    """The `output_limit` setting; 0 or less means no limit."""
    if isinstance(setting, int) and not isinstance(setting, bool):
        return setting
    return DEFAULT_LIMIT


_HEAD_PART = 5


def capped(text: str, limit: int, folder: Path, call_id: str) -> str:
    """The text, or a fifth of the limit from its start and the rest from its end."""
    if limit <= 0 or len(text) <= limit:
        return text
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', call_id)[:100]}.output"
    file.write_text(text, "utf-8", errors="replace", newline="")
    head = limit // _HEAD_PART
    tail = limit - head
    left_out = len(text) - limit
    return (
        f"Output too large. Showing first {head:,} and last {tail:,} characters. "
        f"For full output see: {file}\n{text[:head]}\n\n"
        f"... [{left_out:,} characters omitted] ...\n\n{text[-tail:]}"
    )
