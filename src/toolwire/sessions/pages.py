"""Records found page by page, for files that SQLite itself can no longer read.

A record's own checksum says whether it is good, so nothing else of the file has to be: neither its
head nor the pages that only lead to others.
"""

from collections.abc import Iterator
from struct import error as CutShort
from struct import unpack_from

from toolwire.sessions.files import PAGE, Row
from toolwire.sessions.records import checksum

_LEAF = 0x0D
_LOCAL = PAGE - 35
_LEAST = (PAGE - 12) * 32 // 255 - 23
_WAL_HEAD = 32
_FRAME_HEAD = 24
_WHOLE = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""SQLite's types of whole numbers, and their bytes."""


def rows_in_pages(data: bytes, log: bytes, after: int = 0) -> tuple[Row, ...]:
    """The good records behind `after`, as far as they follow each other without a gap."""
    pages = {number: data[at : at + PAGE] for number, at in enumerate(range(0, len(data), PAGE), 1)}
    pages.update(_logged(log))
    found: dict[int, Row] = {}
    for page in pages.values():
        for row in _rows(page, pages):
            found[row.seq] = row
    rows: list[Row] = []
    while (row := found.get(after + len(rows) + 1)) is not None:
        rows.append(row)
    return tuple(rows)


def _logged(log: bytes) -> dict[int, bytes]:
    """The pages of the log's last generation, to its last whole transaction."""
    pages: dict[int, bytes] = {}
    open_pages: dict[int, bytes] = {}
    salt = log[_WAL_HEAD + 8 : _WAL_HEAD + 16]
    for at in range(_WAL_HEAD, len(log) - _FRAME_HEAD - PAGE + 1, _FRAME_HEAD + PAGE):
        number, size = unpack_from(">II", log, at)
        if log[at + 8 : at + 16] != salt:
            break
        open_pages[number] = log[at + _FRAME_HEAD : at + _FRAME_HEAD + PAGE]
        if size:
            pages.update(open_pages)
            open_pages.clear()
    return pages


def _rows(page: bytes, pages: dict[int, bytes]) -> Iterator[Row]:
    if page[:1] != bytes([_LEAF]) or len(page) < PAGE:
        return
    (cells,) = unpack_from(">H", page, 3)
    for place in range(8, min(8 + 2 * cells, PAGE), 2):
        try:
            (at,) = unpack_from(">H", page, place)
            row = _row(page, at, pages)
        except (CutShort, IndexError, ValueError):
            continue
        if row is not None:
            yield row


def _row(page: bytes, at: int, pages: dict[int, bytes]) -> Row | None:
    """The record in a cell; None for a cell that holds none, or a damaged one."""
    size, at = _number(page, at)
    seq, at = _number(page, at)
    payload = _payload(page, at, size, pages)
    head, place = _number(payload, 0)
    types: list[int] = []
    while place < head:
        kind, place = _number(payload, place)
        types.append(kind)
    if len(types) != 5 or types[2] < 13 or types[3] < 12:
        return None
    time, head = _value(payload, head, types[1])
    kind_end = head + (types[2] - 13) // 2
    body_end = kind_end + (types[3] - 12) // 2
    kind, body = payload[head:kind_end].decode(), payload[kind_end:body_end]
    crc, _ = _value(payload, body_end, types[4])
    # SQLite writes a real number without a fraction as a whole one.
    at_time = float(time)
    good = checksum(seq, at_time, kind, body) == crc
    return Row(seq, at_time, kind, body, int(crc)) if good else None


def _payload(page: bytes, at: int, size: int, pages: dict[int, bytes]) -> bytes:
    """A cell's bytes, with those on the pages it runs over to."""
    if size <= _LOCAL:
        return page[at : at + size]
    if size > len(pages) * PAGE:
        raise ValueError("larger than the file")
    here = _LEAST + (size - _LEAST) % (PAGE - 4)
    here = here if here <= _LOCAL else _LEAST
    parts = [page[at : at + here]]
    (following,) = unpack_from(">I", page, at + here)
    left = size - here
    while left > 0:
        more = pages.get(following, b"")
        (following,) = unpack_from(">I", more, 0)
        parts.append(more[4 : 4 + min(left, PAGE - 4)])
        left -= PAGE - 4
    return b"".join(parts)


def _value(payload: bytes, at: int, kind: int) -> tuple[float, int]:
    """A number and the place behind it."""
    if kind == 7:
        (real,) = unpack_from(">d", payload, at)
        return real, at + 8
    if kind in (8, 9):
        return kind - 8, at
    if kind not in _WHOLE:
        raise ValueError("no number")
    end = at + _WHOLE[kind]
    if end > len(payload):
        raise IndexError
    return int.from_bytes(payload[at:end], "big", signed=True), end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the place behind it."""
    number = 0
    for place in range(at, at + 8):
        byte = data[place]
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, place + 1
    return number << 8 | data[at + 8], at + 9
