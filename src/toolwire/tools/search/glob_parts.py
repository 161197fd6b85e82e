"""Parts of glob patterns between slashes: letters, wildcards, classes and groups."""

import itertools
import re

from toolwire.tools.search.patterns import NEVER, Automaton, Pieces, Step, TooComplex, Unless

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
    pieces, place = Pieces(), 0
    while place < len(pattern):
        takes, place = _token(pattern, place)
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
    for place, part in enumerate(route):
        if part == ANY_FOLDERS:
            state = automaton.then(state, Step.FOLDERS)
            if place == len(route) - 1:
                state = automaton.then(automaton.then(state, Step.LETTER), Step.NAME)
            continue
        state = _Part(part, automaton, flags).follow(state)
        if place < len(route) - 1:
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
        for place, letter in enumerate(pattern):
            if letter == "(":
                opened.append(place)
                self._bars[place] = []
            elif letter == "|" and opened:
                self._bars[opened[-1]].append(place)
            elif letter == ")" and opened:
                self._ends[opened.pop()] = place
            if len(opened) > _DEEPEST:
                raise TooComplex("the groups of the glob pattern are nested too deeply")

    def follow(self, state: int) -> int:
        """Add the whole part after a state; the state at its end."""
        end = self._automaton.state()
        self._sequence(0, len(self._pattern), state, end)
        return end

    def _sequence(self, place: int, stop: int, state: int, end: int) -> None:
        automaton = self._automaton
        while place < stop:
            close = self._ends.get(place + 1, stop)
            if self._pattern[place] in "!?+*@" and close < stop:
                following = automaton.state()
                self._group(place, close, state, following, end)
                state, place = following, close + 1
                continue
            takes, place = _token(self._pattern, place, stop)
            if takes is None:
                state = automaton.then(state, Step.NAME)
            elif takes == "[^/]":
                state = automaton.then(state, Step.LETTER)
            elif len(takes) == 1 or (len(takes) == 2 and takes[0] == "\\"):
                state = automaton.then(state, takes[-1])
            else:
                state = automaton.then(state, re.compile(takes, self._flags))
        automaton.edge(state, Step.NOTHING, end)

    def _group(self, place: int, close: int, state: int, following: int, end: int) -> None:
        automaton, sign = self._automaton, self._pattern[place]
        opening = automaton.state()
        if sign == "!":
            # What the choices and the rest behind them fit is what the name must not be.
            automaton.edge(state, Unless(opening, end), following)
        else:
            automaton.edge(state, Step.NOTHING, opening)
        closing = following if sign in "!@" else automaton.state()
        borders = [place + 1, *self._bars[place + 1], close]
        for before, after in itertools.pairwise(borders):
            self._sequence(before + 1, after, opening, closing)
        if sign in "?*":
            automaton.edge(opening, Step.NOTHING, closing)
        if sign in "+*":
            automaton.edge(closing, Step.NOTHING, opening)
        if closing != following:
            automaton.edge(closing, Step.NOTHING, following)


def _token(pattern: str, place: int, stop: int | None = None) -> tuple[str | None, int]:
    """An expression for one letter, or None for a star, and the place behind it."""
    stop = len(pattern) if stop is None else stop
    letter = pattern[place]
    if letter == "*":
        return None, place + 1
    if letter == "?":
        return "[^/]", place + 1
    if letter == "[":
        return _class(pattern, place, stop)
    if letter == "\\" and place + 1 < stop:
        return re.escape(pattern[place + 1]), place + 2
    return re.escape(letter), place + 1


def _class(pattern: str, place: int, stop: int) -> tuple[str, int]:
    end = place + 1
    if pattern[end : end + 1] in ("!", "^"):
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    if pattern.find("]", end, stop) < 0:
        return re.escape("["), place + 1
    while end < stop and pattern[end] != "]":
        named = next((name for name in _CLASSES if pattern.startswith(name, end)), "")
        end += len(named) or 1
    if end >= stop:
        return re.escape("["), place + 1
    return _letters(pattern[place + 1 : end]), end + 1


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
