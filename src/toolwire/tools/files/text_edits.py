"""Edits of a text: where its old part is, exactly or but for white space, and patches."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from toolwire.errors import BadInput

_WORDS = re.compile(r"\w+|[^\w\s]")
_NEAR = 0.5
_SHOWN = 60
_MOST_TEXT = 4 << 20
"""Most characters of a file that is searched for the most similar part."""


class Match(msgspec.Struct, frozen=True):
    """A place in a text, and what to put there."""

    start: int
    end: int
    new: str


def find(text: str, old: str, new: str, *, flexible: bool = True) -> list[Match]:
    """Every place of `old` at the first rung where it has any: exact, line ends, indentation.

    Texts have plain newlines. The looser rungs match whole lines.
    """
    exact = [Match(position, position + len(old), new) for position in _occurrences(text, old)]
    if exact or not flexible or not old.strip():
        return exact
    lines = _Lines(text)
    return lines.trimmed(old, new) or lines.indented(old, new)


def _occurrences(text: str, old: str) -> list[int]:
    found: list[int] = []
    position = text.find(old)
    while position >= 0:
        found.append(position)
        position = text.find(old, position + len(old))
    return found


class _Lines:
    """A text by lines, and where each begins."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def trimmed(self, old: str, new: str) -> list[Match]:
        """Lines that differ only in white space at their ends."""
        old, new = _without_last_end(old, new)
        old_lines = [line.rstrip() for line in old.split("\n")]
        have = [line.rstrip() for line in self._lines]
        return [self._match(at, len(old_lines), new) for at in _runs(have, old_lines)]

    def indented(self, old: str, new: str) -> list[Match]:
        """Lines that differ in indentation too; the new ones take that of the place."""
        old, new = _without_last_end(old, new)
        old_lines = [line.strip() for line in old.split("\n")]
        have = [line.strip() for line in self._lines]
        written = _margin(old.split("\n")[0])
        return [
            self._match(at, len(old_lines), _moved(new, written, _margin(self._lines[at])))
            for at in _runs(have, old_lines)
        ]

    def _match(self, at: int, count: int, new: str) -> Match:
        # The newline after the last line stays; the original swallowed it.
        return Match(self._starts[at], self._starts[at + count] - 1, new)


def _without_last_end(old: str, new: str) -> tuple[str, str]:
    if old.endswith("\n") and len(old) > 1:
        return old.removesuffix("\n"), new.removesuffix("\n")
    return old, new


def _runs(have: list[str], some: list[str]) -> list[int]:
    """Indices at which the lines occur, without overlaps."""
    found: list[int] = []
    first, count, at = some[0], len(some), 0
    while at <= len(have) - count:
        if have[at] == first and have[at : at + count] == some:
            found.append(at)
            at += count
        else:
            at += 1
    return found


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _moved(new: str, written: str, margin: str) -> str:
    lines = new.split("\n")
    return "\n".join(
        margin + line.removeprefix(written) if line.strip() else line for line in lines
    )


def lines_of(text: str, matches: list[Match]) -> list[int]:
    """The line numbers, from 1, where matches begin."""
    return [text.count("\n", 0, match.start) + 1 for match in matches]


def nearest(text: str, old: str) -> str:
    """The part of a text most like `old`, with a diff from one to the other; empty if none is."""
    if len(text) + len(old) > _MOST_TEXT:
        return ""
    old_lines = old.strip("\n").split("\n")
    lines = text.split("\n")
    best, at = _closest(lines, old_lines)
    if best < _NEAR:
        return ""
    near = lines[at : at + len(old_lines)]
    end = at + len(near)
    position = f"line {at + 1}" if len(near) == 1 else f"lines {at + 1}-{end}"
    diff = list(
        difflib.unified_diff(old_lines, near, "old_string", f"file, {position}", lineterm="", n=3)
    )
    if len(diff) > _SHOWN:
        diff = [*diff[:_SHOWN], "..."]
    return f"The nearest text in the file is at {position}:\n" + "\n".join(diff)


def _closest(lines: list[str], some: list[str]) -> tuple[float, int]:
    """The most similar run of lines: first by words, then by letters."""
    bags = [Counter(_WORDS.findall(line)) for line in lines]
    goal = sum((Counter(_WORDS.findall(line)) for line in some), Counter[str]())
    if not goal:
        return 0.0, 0
    count = len(some)
    window: Counter[str] = Counter()
    shared = 0
    scores: list[tuple[int, int]] = []
    for number, bag in enumerate(bags):
        shared += _change(window, bag, goal, 1)
        if number >= count:
            shared += _change(window, bags[number - count], goal, -1)
        if number >= count - 1 or number == len(bags) - 1:
            scores.append((shared, max(number - count + 1, 0)))
    likely = sorted(scores, key=lambda score: (-score[0], score[1]))[:5]
    text = "\n".join(some)
    return max(
        ((_likeness("\n".join(lines[at : at + count]), text), at) for _, at in likely),
        key=lambda found: (found[0], -found[1]),
    )


def _change(window: Counter[str], bag: Counter[str], goal: Counter[str], sign: int) -> int:
    """Move a line in or out of the window; returns how many more of the words it contains."""
    gained = 0
    for word, times in bag.items():
        limit = goal.get(word, 0)
        if limit:
            before = min(window[word], limit)
            window[word] += sign * times
            gained += min(window[word], limit) - before
    return gained


def _likeness(one: str, other: str) -> float:
    matcher = difflib.SequenceMatcher(None, one[:4000], other[:4000], autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= _NEAR else 0.0


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
    position = 0
    while position < len(lines):
        head = lines[position]
        end = next(
            (at for at in range(position + 1, len(lines)) if lines[at].startswith(_HEADS)),
            len(lines),
        )
        body = lines[position + 1 : end]
        if head.startswith(_ADD):
            yield _added(head.removeprefix(_ADD).strip(), body, position)
        elif head.startswith(_DELETE):
            if any(line.strip() for line in body):
                raise BadInput(f"line {position + 3}: a section that deletes a file has no lines")
            yield Section(kind=Kind.DELETE, path=head.removeprefix(_DELETE).strip())
        elif head.startswith(_UPDATE):
            yield _updated(head.removeprefix(_UPDATE).strip(), body, position)
        elif head.strip():
            raise BadInput(
                f'line {position + 2}: expected "{_UPDATE}…" or its like, got: {head[:80]}'
            )
        else:
            end = position + 1
        position = end


_HEADS = (_ADD, _UPDATE, _DELETE)


def _added(path: str, body: list[str], position: int) -> Section:
    for number, line in enumerate(body, position + 3):
        if not line.startswith("+"):
            raise BadInput(f'line {number}: every line of an added file begins with "+"')
    return Section(kind=Kind.ADD, path=path, text="".join(f"{line[1:]}\n" for line in body))


def _updated(path: str, body: list[str], position: int) -> Section:
    move_to = ""
    first = position + 3
    if body and body[0].startswith(_MOVE):
        move_to = body[0].removeprefix(_MOVE).strip()
        body, first = body[1:], first + 1
    hunks = tuple(_hunks(body, first))
    if not hunks and not move_to:
        raise BadInput(f"line {position + 2}: nothing is changed in {path}")
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
    position = 0
    for number, hunk in enumerate(hunks, 1):
        start = _below(lines, position, hunk, number, path)
        if not hunk.old:
            at = len(lines) - (lines[-1] == "") if not hunk.under or hunk.at_end else start
            found, same = at, True
        else:
            found, same = _found(lines, start, hunk, number, path)
        fresh = _laid(lines[found : found + len(hunk.old)], hunk, same)
        lines[found : found + len(hunk.old)] = fresh
        position = found + len(fresh)
    return "\n".join(lines)


def _below(lines: list[str], position: int, hunk: Hunk, number: int, path: str) -> int:
    for context in hunk.under:
        at = next((n for n in range(position, len(lines)) if lines[n].strip() == context), None)
        if at is None:
            raise CannotApply(f"hunk {number} of {path}: no line reads: {context}")
        position = at + 1
    return position


def _found(lines: list[str], start: int, hunk: Hunk, number: int, path: str) -> tuple[int, bool]:
    """Index of the old lines: exact, without trailing spaces, or indented differently."""
    old = hunk.old
    for loosely in (str, str.rstrip, str.strip):
        old_lines = [loosely(line) for line in old]
        have = [loosely(line) for line in lines]
        found_at = [
            at
            for at in range(start, len(lines) - len(old) + 1)
            if have[at] == old_lines[0] and have[at : at + len(old)] == old_lines
        ]
        if hunk.at_end:
            found_at = found_at[-1:]
        if len(found_at) > 1:
            at = ", ".join(str(one + 1) for one in found_at[:5])
            raise CannotApply(
                f"hunk {number} of {path}: its lines occur {len(found_at)} times, at lines {at};  "
                "give more lines around the change, or an @@ line that is above it"
            )
        if found_at:
            return found_at[0], loosely is not str.strip
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
