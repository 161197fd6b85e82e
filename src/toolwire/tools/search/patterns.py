"""Patterns matched at a cost of pattern times text: a graph, and wildcards as expressions.

The graph is followed for all positions at once: a set of positions is one integer, a bit for each,
and every state takes up each position once.

Python's engine backtracks: `*a*b*c` written as `.*a.*b.*c` costs a power of the text's length. The
first match of each piece between two stars is as good as any later one, so all but the last star
are atomic.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec

from toolwire.tools.spec import ToolFailed


class TooComplex(ToolFailed):
    """A pattern that is too long, has too many groups or takes too long."""

    def __init__(self, message: str) -> None:
        super().__init__(message, type="invalid_tool_params")


class Step(Enum):
    """What an edge takes up without a letter of its own."""

    NOTHING = auto()
    NAME = auto()
    """Any text without a slash."""
    TEXT = auto()
    """Any text."""
    FOLDERS = auto()
    """Nothing, or any text up to a slash and with it."""
    LETTER = auto()
    """One letter that is not a slash."""


class Unless(msgspec.Struct, frozen=True):
    """Any text without a slash, where what begins at `start` does not reach `end` at its border."""

    start: int
    end: int


Edge = tuple[Step | Unless | str | re.Pattern[str], int]


class Automaton:
    """Built state by state; `fullmatch` follows it from state 0 to `accepts`."""

    def __init__(self, *, ignore_case: bool = False, most_steps: int = 0) -> None:
        self._edges: list[list[Edge]] = [[]]
        self._ignore_case = ignore_case
        self._most_steps = most_steps
        """0 sets no limit: without `Unless` none is needed."""
        self.accepts = 0

    def state(self) -> int:
        """A new state."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, start: int, takes: Step | Unless | str | re.Pattern[str], end: int) -> None:
        """From one state to another."""
        if isinstance(takes, str) and self._ignore_case:
            takes = _small(takes)
        self._edges[start].append((takes, end))

    def then(self, start: int, takes: Step | Unless | str | re.Pattern[str]) -> int:
        """A new state after this one."""
        end = self.state()
        self.edge(start, takes, end)
        return end

    def fullmatch(self, text: str) -> bool:
        """Whether the whole text is taken up; TooComplex beyond the limit."""
        following = _Following(
            self._edges, text, _small if self._ignore_case else str, self._most_steps
        )
        return bool(following.reached(0, 1, self.accepts) >> len(text) & 1)


def _small(letter: str) -> str:
    small = letter.lower()
    return small if len(small) == 1 else letter


class _Following:
    """The state of matching one text with an automaton."""

    def __init__(
        self, edges: list[list[Edge]], text: str, spelled: Callable[[str], str], most: int
    ) -> None:
        self._edges = edges
        self._left = most
        self._text = text
        self._letters: dict[str | re.Pattern[str], int] = {}
        for position, letter in enumerate(text):
            same = spelled(letter)
            self._letters[same] = self._letters.get(same, 0) | 1 << position
        self._all = (1 << len(text) + 1) - 1
        self._slashes = self._letters.get("/", 0)
        self._inside = ~self._slashes & (self._all >> 1)
        self._borders = self._slashes | 1 << len(text)
        self._excluded: dict[tuple[Unless, int], bool] = {}

    def reached(self, start: int, positions: int, end: int) -> int:
        """The positions at which a state is reached from another."""
        seen = [0] * len(self._edges)
        open_ = [(start, positions)]
        while open_:
            state, found = open_.pop()
            new = found & ~seen[state]
            if not new:
                continue
            seen[state] |= new
            self._left -= 1
            if not self._left:
                raise TooComplex("the pattern takes too long; use a simpler one")
            if state != end:
                for takes, target in self._edges[state]:
                    if moved := self._moved(takes, new):
                        open_.append((target, moved))
        return seen[end]

    def _moved(self, takes: Step | Unless | str | re.Pattern[str], positions: int) -> int:
        match takes:
            case Step.NOTHING:
                return positions
            case Step.NAME:
                # The sum carries through each run of letters to the slash behind it.
                inside = self._inside
                return (inside + (positions & inside) ^ inside | positions) & self._all
            case Step.TEXT:
                return self._all & -(positions & -positions)
            case Step.FOLDERS:
                after = self._slashes << 1
                return positions | after & -(positions & -positions)
            case Step.LETTER:
                return (positions & self._inside) << 1
            case Unless():
                return self._moved(Step.NAME, self._allowed(takes, positions))
            case str():
                return (positions & self._letters.get(takes, 0)) << 1
            case re.Pattern():
                return (positions & self._class(takes)) << 1

    def _class(self, letters: re.Pattern[str]) -> int:
        known = self._letters.get(letters)
        if known is None:
            known = 0
            for found in letters.finditer(self._text):
                known |= 1 << found.start()
            known &= self._inside
            self._letters[letters] = known
        return known

    def _allowed(self, takes: Unless, positions: int) -> int:
        allowed = 0
        while positions:
            one = positions & -positions
            positions ^= one
            known = self._excluded.get((takes, one))
            if known is None:
                known = bool(self.reached(takes.start, one, takes.end) & self._borders)
                self._excluded[takes, one] = known
            allowed |= 0 if known else one
        return allowed


LONGEST_NAME = 1024
"""No file system has longer names."""
NEVER = "(?!)"
_FOLDER = "(?:[^/]+/)"


class Pieces:
    """One name: fixed runs of single-character expressions with stars between them."""

    def __init__(self) -> None:
        self._runs = [""]
        self._shortest = 0

    def star(self) -> None:
        """Any text without a slash."""
        if len(self._runs) == 1 or self._runs[-1]:
            self._runs.append("")

    def single(self, expression: str) -> None:
        """An expression that takes exactly one character."""
        self._runs[-1] += expression
        self._shortest += 1

    def expression(self) -> str:
        """The whole name, to be followed by a slash or the end of the text."""
        first, *rest = self._runs
        if self._shortest > LONGEST_NAME:
            return NEVER
        if not rest:
            return first
        between = "".join(f"(?>[^/]*?{run})" for run in rest[:-1])
        return f"{first}{between}[^/]*{rest[-1]}"


def folders(names: Sequence[str | None]) -> str:
    """Directories, each with a slash at its end; None means any number of them."""
    groups: list[list[str]] = [[]]
    for name in names:
        if name is None:
            groups.append([])
        else:
            groups[-1].append(f"{name}/")
    first, *rest = map("".join, groups)
    if not rest:
        return first
    between = "".join(f"(?>{_FOLDER}*?{group})" for group in rest[:-1] if group)
    return f"{first}{between}{_FOLDER}*{rest[-1]}"


def any_text(pattern: str) -> str:
    """A name in which only `*` and `?` are special."""
    pieces = Pieces()
    for letter in pattern:
        if letter == "*":
            pieces.star()
        else:
            pieces.single("[^/]" if letter == "?" else re.escape(letter))
    return pieces.expression()


ANY_FOLDERS = "**"
_GROUP = re.compile(r"[!?+*@]\(")
_MOST_GROUPS = 64
_MOST_NEGATED = 4
_DEEPEST = 16
_LONGEST = 1024
_MOST_STEPS = 50_000
_CLASSES = {
    "[:alnum:]": r"\w",
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": r"\d",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:space:]": r"\s",
    "[:word:]": r"\w",
    "[:xdigit:]": "0-9a-fA-F",
}


def segment(pattern: str) -> str:
    """A part without groups as a regular expression."""
    pieces, position = Pieces(), 0
    while position < len(pattern):
        takes, position = _token(pattern, position)
        if takes is None:
            pieces.star()
        else:
            pieces.single(takes)
    return pieces.expression()


def has_groups(pattern: str) -> bool:
    """Whether a part has `@(…)` or another group."""
    return _GROUP.search(pattern) is not None


def grouped(route: list[str], *, ignore_case: bool) -> Automaton:
    """A route with groups; TooComplex if it has too many."""
    found = _GROUP.findall("/".join(route))
    if len(found) > _MOST_GROUPS or found.count("!(") > _MOST_NEGATED:
        raise TooComplex("the glob pattern has too many groups")
    if sum(map(len, route)) > _LONGEST:
        raise TooComplex(f"a glob pattern with groups is longer than {_LONGEST} characters")
    automaton = Automaton(ignore_case=ignore_case, most_steps=_MOST_STEPS)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    state = 0
    for position, part in enumerate(route):
        if part == ANY_FOLDERS:
            state = automaton.then(state, Step.FOLDERS)
            if position == len(route) - 1:
                state = automaton.then(automaton.then(state, Step.LETTER), Step.NAME)
            continue
        state = _Part(part, automaton, flags).follow(state)
        if position < len(route) - 1:
            state = automaton.then(state, "/")
    automaton.accepts = state
    return automaton


class _Part:
    """One part with its groups found beforehand, in one pass."""

    def __init__(self, pattern: str, automaton: Automaton, flags: int) -> None:
        self._pattern = pattern
        self._automaton = automaton
        self._flags = flags
        self._ends: dict[int, int] = {}
        self._bars: dict[int, list[int]] = {}
        opened: list[int] = []
        for position, letter in enumerate(pattern):
            if letter == "(":
                opened.append(position)
                self._bars[position] = []
            elif letter == "|" and opened:
                self._bars[opened[-1]].append(position)
            elif letter == ")" and opened:
                self._ends[opened.pop()] = position
            if len(opened) > _DEEPEST:
                raise TooComplex("the groups of the glob pattern are nested too deeply")

    def follow(self, state: int) -> int:
        """Add the whole part after a state; the state at its end."""
        end = self._automaton.state()
        self._sequence(0, len(self._pattern), state, end)
        return end

    def _sequence(self, position: int, stop: int, state: int, end: int) -> None:
        automaton = self._automaton
        while position < stop:
            close = self._ends.get(position + 1, stop)
            if self._pattern[position] in "!?+*@" and close < stop:
                following = automaton.state()
                self._group(position, close, state, following, end)
                state, position = following, close + 1
                continue
            takes, position = _token(self._pattern, position, stop)
            if takes is None:
                state = automaton.then(state, Step.NAME)
            elif takes == "[^/]":
                state = automaton.then(state, Step.LETTER)
            elif len(takes) == 1 or (len(takes) == 2 and takes[0] == "\\"):
                state = automaton.then(state, takes[-1])
            else:
                state = automaton.then(state, re.compile(takes, self._flags))
        automaton.edge(state, Step.NOTHING, end)

    def _group(self, position: int, close: int, state: int, following: int, end: int) -> None:
        automaton, sign = self._automaton, self._pattern[position]
        opening = automaton.state()
        if sign == "!":
            # What the choices and the rest behind them fit is what the name must not be.
            automaton.edge(state, Unless(opening, end), following)
        else:
            automaton.edge(state, Step.NOTHING, opening)
        closing = following if sign in "!@" else automaton.state()
        borders = [position + 1, *self._bars[position + 1], close]
        for before, after in itertools.pairwise(borders):
            self._sequence(before + 1, after, opening, closing)
        if sign in "?*":
            automaton.edge(opening, Step.NOTHING, closing)
        if sign in "+*":
            automaton.edge(closing, Step.NOTHING, opening)
        if closing != following:
            automaton.edge(closing, Step.NOTHING, following)


def _token(pattern: str, position: int, stop: int | None = None) -> tuple[str | None, int]:
    """An expression for one letter, or None for a star, and the place behind it."""
    stop = len(pattern) if stop is None else stop
    letter = pattern[position]
    if letter == "*":
        return None, position + 1
    if letter == "?":
        return "[^/]", position + 1
    if letter == "[":
        return _class(pattern, position, stop)
    if letter == "\\" and position + 1 < stop:
        return re.escape(pattern[position + 1]), position + 2
    return re.escape(letter), position + 1


def _class(pattern: str, position: int, stop: int) -> tuple[str, int]:
    end = position + 1
    if pattern[end : end + 1] in ("!", "^"):
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    if pattern.find("]", end, stop) < 0:
        return re.escape("["), position + 1
    while end < stop and pattern[end] != "]":
        named = next((name for name in _CLASSES if pattern.startswith(name, end)), "")
        end += len(named) or 1
    if end >= stop:
        return re.escape("["), position + 1
    return _letters(pattern[position + 1 : end]), end + 1


def _letters(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    for name, expression in _CLASSES.items():
        inner = inner.replace(name, f"\0{expression}\0")
    pieces = inner.split("\0")
    pieces[::2] = [re.sub(r"([\\\[\]&~|^])", r"\\\1", piece) for piece in pieces[::2]]
    written = f"(?!/)[{'^' if negated else ''}{''.join(pieces)}]"
    try:
        re.compile(written)
    except re.error:
        # A range written backwards means nothing that a name could fit.
        return NEVER
    return written
