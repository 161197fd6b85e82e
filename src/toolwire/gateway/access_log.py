"""The access log: one line for each request, without anything of its contents."""

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

import msgspec
from msgspec.structs import astuple

from toolwire.client.redact import without_secrets
from toolwire.gateway.record import RequestRecord
from toolwire.terminal_text import one_line

Style: TypeAlias = Literal["json", "text"]
_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "\x7f\x85\u2028\u2029"}
"""Legal inside JSON, but a line end or worse to a terminal."""
_encode = msgspec.json.Encoder().encode_lines
_FIELDS = msgspec.structs.fields(RequestRecord)
_SHOWN = {"id": "", "method": "", "usage": None}
"""Defaults of members that are not left out where they have the record's default."""
_Line = msgspec.defstruct(
    "_Line",
    [(field.name, Any, _SHOWN.get(field.name, field.default)) for field in _FIELDS],
    omit_defaults=True,
)
"""A record with the time, the usage and the seconds as the log shows them."""
_AT = {field.name: at for at, field in enumerate(_FIELDS)}
_TIME, _USAGE, _COST = _AT["time"], _AT["usage"], _AT["cost"]
_SECONDS = tuple(
    (_AT[name], field.default)
    for name in ("duration", "overhead", "waited", "first_event")
    for field in (_FIELDS[_AT[name]],)
)


class _Counts(msgspec.Struct, omit_defaults=True):
    """Tokens as the vendor counts them."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


def json_line(record: RequestRecord) -> str:
    """The record as a JSON object; members without a value are left out."""
    return json_lines((record,))


def json_lines(records: Sequence[RequestRecord]) -> str:
    """A line for each record."""
    text = _encode([_line(record) for record in records])[:-1].decode()
    if not text.isascii() or "\x7f" in text:
        text = text.translate(_ESCAPED)
    return without_secrets(text)


def _line(record: RequestRecord) -> object:
    values = [*astuple(record)]
    usage, at = record.usage, record.time
    values[_TIME] = f"{_utc(int(at))}.{int(at % 1 * 1000):03}Z"
    values[_USAGE] = _Counts(
        usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning
    )
    values[_COST] = record.cost or None
    for member, absent in _SECONDS:
        seconds = values[member]
        # The default itself is left out, not whatever equals it.
        values[member] = round(seconds, 6) if seconds else absent
    return _Line(*values)


@lru_cache(maxsize=8)
def _utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def text_lines(records: Sequence[RequestRecord]) -> str:
    """A line for each record, for people at a terminal."""
    return "\n".join(map(text_line, records))


def text_line(record: RequestRecord) -> str:
    """The record for people at a terminal."""
    clock = time.strftime("%H:%M:%S", time.localtime(record.time))
    client = record.client or record.client_format or "client"
    target = f"{record.provider}/{record.model}" if record.provider else record.path
    parts = [f"{clock} {client} → {target}", str(record.status or "–"), _seconds(record.duration)]
    if record.usage.total_input or record.usage.total_output:
        parts.append(f"{record.usage.total_input:,}+{record.usage.total_output:,} tok")
    if record.cost is not None:
        parts.append(f"${record.cost:.3f}" if record.cost >= 0.0005 else f"${record.cost:.5f}")
    parts += _counted(record)
    if record.disconnected:
        parts.append(f"client left ({record.disconnected})")
    if record.error:
        words = record.error_message[:200]
        parts.append(f"{record.error}: {words}" if words else record.error)
    return without_secrets(one_line("  ".join(parts)))


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1000:.0f} ms"


def _counted(record: RequestRecord) -> list[str]:
    found: list[str] = []
    for number, one, several in (
        (record.retries, "retry", "retries"),
        (record.losses, "loss", "losses"),
        (record.reattached, "re-attached", "re-attached"),
    ):
        if number:
            found.append(f"{number} {one if number == 1 else several}")
    return found


class AccessLog:
    """Writes a line for each record, to a stream or to a file that can be rotated."""

    def __init__(self, style: Style, *, stream: TextIO | None = None, path: Path | None = None):
        self._lines = json_lines if style == "json" else text_lines
        self._path = path
        self._file: TextIO | None = None if path is None else _opened(path)
        self._stream = stream
        self.lost = 0
        """Lines that could not be written."""

    def __call__(self, record: RequestRecord) -> None:
        """Writes the line of a record."""
        self.write((record,))

    def write(self, records: Sequence[RequestRecord]) -> None:
        """Writes the lines of records at once; a full disk must not end a request."""
        target = self._file or self._stream
        if target is None:
            return
        try:
            target.write(self._lines(records) + "\n")
            target.flush()
        except (OSError, ValueError):
            self.lost += len(records)

    def reopen(self) -> None:
        """Opens the file again, after its name was given to an archive."""
        if self._path is not None:
            old, self._file = self._file, _opened(self._path)
            if old is not None:
                old.close()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _opened(path: Path) -> TextIO:
    return path.open("a", encoding="utf-8", errors="backslashreplace")
