"""Patches over several files: read, and laid on a text."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from toolwire.errors import BadInput
from toolwire.tools.files.find_text import nearest

BEGIN, END = "*** Begin Patch", "*** End Patch"
_ADD, _UPDATE, _DELETE = "*** Add File: ", "*** Update File: ", "*** Delete File: "
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"


class Kind(StrEnum):
    """What a section does to its file."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """Adjacent lines: unchanged ` `, removed `-` and added `+`."""

    lines: tuple[tuple[str, str], ...]
    under: tuple[str, ...] = ()
    """Lines above it, from the `@@` lines."""
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """What the file holds."""
        return [text for mark, text in self.lines if mark != "+"]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """What a patch does to one file."""

    kind: Kind
    path: str
    move_to: str = ""
    text: str = ""
    """Of an added file."""
    hunks: tuple[Hunk, ...] = ()


class CannotApply(BadInput):
    """A hunk whose lines the file does not hold, or holds more than once."""


def parse_patch(text: str) -> tuple[Section, ...]:
    """The sections of a patch; BadInput names the wrong line."""
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    if lines[0].strip() != BEGIN:
        raise BadInput(f'the patch must begin with the line "{BEGIN}"')
    if lines[-1].strip() != END:
        raise BadInput(f'the patch must end with the line "{END}"')
    sections = tuple(_sections(lines[1:-1]))
    if not sections:
        raise BadInput("the patch changes no file")
    seen: set[str] = set()
    for path in (name for section in sections for name in (section.path, section.move_to) if name):
        if path in seen:
            raise BadInput(f"the patch names {path} twice; put all its changes in one section")
        seen.add(path)
    return sections


def _sections(lines: list[str]) -> Iterator[Section]:
    place = 0
    while place < len(lines):
        head = lines[place]
        end = next(
            (at for at in range(place + 1, len(lines)) if lines[at].startswith(_HEADS)), len(lines)
        )
        body = lines[place + 1 : end]
        if head.startswith(_ADD):
            yield _added(head.removeprefix(_ADD).strip(), body, place)
        elif head.startswith(_DELETE):
            if any(line.strip() for line in body):
                raise BadInput(f"line {place + 3}: a section that deletes a file has no lines")
            yield Section(kind=Kind.DELETE, path=head.removeprefix(_DELETE).strip())
        elif head.startswith(_UPDATE):
            yield _updated(head.removeprefix(_UPDATE).strip(), body, place)
        elif head.strip():
            raise BadInput(f'line {place + 2}: expected "{_UPDATE}…" or its like, got: {head[:80]}')
        else:
            end = place + 1
        place = end


_HEADS = (_ADD, _UPDATE, _DELETE)


def _added(path: str, body: list[str], place: int) -> Section:
    for number, line in enumerate(body, place + 3):
        if not line.startswith("+"):
            raise BadInput(f'line {number}: every line of an added file begins with "+"')
    return Section(kind=Kind.ADD, path=path, text="".join(f"{line[1:]}\n" for line in body))


def _updated(path: str, body: list[str], place: int) -> Section:
    move_to = ""
    first = place + 3
    if body and body[0].startswith(_MOVE):
        move_to = body[0].removeprefix(_MOVE).strip()
        body, first = body[1:], first + 1
    hunks = tuple(_hunks(body, first))
    if not hunks and not move_to:
        raise BadInput(f"line {place + 2}: nothing is changed in {path}")
    return Section(kind=Kind.UPDATE, path=path, move_to=move_to, hunks=hunks)


def _hunks(body: list[str], first: int) -> Iterator[Hunk]:
    under: list[str] = []
    lines: list[tuple[str, str]] = []
    for number, line in enumerate(body, first):
        if line.startswith("@@"):
            if lines:
                yield Hunk(lines=tuple(lines), under=tuple(under))
                under, lines = [], []
            context = line.removeprefix("@@").strip()
            # Line numbers of a unified diff are ignored: the lines themselves are searched.
            if context and not context.startswith("-"):
                under.append(context)
        elif line.strip() == _END_OF_FILE:
            yield Hunk(lines=tuple(lines), under=tuple(under), at_end=True)
            under, lines = [], []
        elif line[:1] in ("+", "-", " "):
            lines.append((line[0], line[1:]))
        elif not line:
            lines.append((" ", ""))
        else:
            raise BadInput(f'line {number}: must begin with " ", "+", "-" or "@@": {line[:80]}')
    if lines:
        yield Hunk(lines=tuple(lines), under=tuple(under))


def apply(text: str, hunks: tuple[Hunk, ...], path: str) -> str:
    """The text with every hunk laid on, in order; plain newlines."""
    lines = text.split("\n")
    place = 0
    for number, hunk in enumerate(hunks, 1):
        start = _below(lines, place, hunk, number, path)
        if not hunk.old:
            at = len(lines) - (lines[-1] == "") if not hunk.under or hunk.at_end else start
            found, same = at, True
        else:
            found, same = _found(lines, start, hunk, number, path)
        fresh = _laid(lines[found : found + len(hunk.old)], hunk, same)
        lines[found : found + len(hunk.old)] = fresh
        place = found + len(fresh)
    return "\n".join(lines)


def _below(lines: list[str], place: int, hunk: Hunk, number: int, path: str) -> int:
    for context in hunk.under:
        at = next((n for n in range(place, len(lines)) if lines[n].strip() == context), None)
        if at is None:
            raise CannotApply(f"hunk {number} of {path}: no line reads: {context}")
        place = at + 1
    return place


def _found(lines: list[str], start: int, hunk: Hunk, number: int, path: str) -> tuple[int, bool]:
    """Index of the old lines: exact, without trailing spaces, or indented differently."""
    old = hunk.old
    for loosely in (str, str.rstrip, str.strip):
        wanted = [loosely(line) for line in old]
        have = [loosely(line) for line in lines]
        places = [
            at
            for at in range(start, len(lines) - len(old) + 1)
            if have[at] == wanted[0] and have[at : at + len(old)] == wanted
        ]
        if hunk.at_end:
            places = places[-1:]
        if len(places) > 1:
            at = ", ".join(str(one + 1) for one in places[:5])
            raise CannotApply(
                f"hunk {number} of {path}: its lines occur {len(places)} times, at lines {at};  "
                "give more lines around the change, or an @@ line that is above it"
            )
        if places:
            return places[0], loosely is not str.strip
    near = nearest("\n".join(lines), "\n".join(old))
    hint = f"\n{near}" if near else ""
    raise CannotApply(f"hunk {number} of {path}: the file does not hold these lines{hint}")


def _laid(present: list[str], hunk: Hunk, same: bool) -> list[str]:
    """The file's unchanged lines, and the added ones with the file's indentation."""
    unchanged = iter(present)
    written, real = ("", "") if same else _margins(hunk.old, present)
    fresh: list[str] = []
    for mark, text in hunk.lines:
        if mark == "+":
            moved = real + text.removeprefix(written) if text.strip() else text
            fresh.append(text if same else moved)
        else:
            line = next(unchanged)
            if mark == " ":
                fresh.append(line)
    return fresh


def _margins(old: list[str], present: list[str]) -> tuple[str, str]:
    """The indentation in the patch and in the file, at the first line with text."""
    for one, other in zip(old, present, strict=True):
        if one.strip():
            return one[: len(one) - len(one.lstrip())], other[: len(other) - len(other.lstrip())]
    return "", ""
