"""Results too long for a model: their two ends, and the whole in a file it can read."""

import re
from pathlib import Path

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
