"""A search pattern: which files may have a line that fits, and which lines do."""

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from toolwire.tools.search.regexes import compiled, is_plain, literals, translated
from toolwire.tools.spec import ToolFailed
from toolwire.tools.workers import TookTooLong, Worker, WorkerFailed

SECONDS = 60
"""For all lines of one search together."""
WIDE = (b"\xff\xfe", b"\xfe\xff")
# Letters that others beyond ASCII count as capitals of: ı, İ, K, ſ.
_SHARED = re.compile("[iks]")
_LETTERS = re.compile("[a-z]+")
_LARGEST_HERE = 1 << 20


class Sieve:
    """A pattern, and the letters without which no line matches it.

    A pattern that can backtrack is tried in a process of its own: the engine cannot be stopped.
    """

    def __init__(self, pattern: str, stopped: Callable[[], bool], seconds: float = SECONDS) -> None:
        # A look ahead or behind may see the next line, so such patterns are tried by line only.
        self._whole = "(?" not in pattern and not re.search(r"\\[AZbB]", pattern)
        self._expression = compiled(pattern) if is_plain(pattern) else None
        self._seconds = seconds
        self._worker = Worker(
            *("lines", translated(pattern), "whole" if self._whole else ""),
            seconds=seconds,
            stopped=stopped,
        )
        strong = literals(pattern)
        weak = [max(_SHARED.split(one), key=len) for one in strong]
        self._strong = [one.encode() for one in strong]
        self._weak = [one.encode() for one in weak] if all(weak) else []
        signs = [max(_LETTERS.split(one), key=len) for one in strong]
        self._signs = [one.encode() for one in signs] if all(signs) else []
        self._capitals = [bytes((one,)) for one in set("".join(strong).upper().encode())]
        self._capitals = [one for one in self._capitals if one.isalpha()]

    def __enter__(self) -> "Sieve":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.close()

    def may_fit(self, data: bytes) -> bool:
        """Whether a file may have a line that fits."""
        letters = self._strong
        if letters != self._weak and not data.isascii():
            letters = self._weak
        if not letters or data.startswith(WIDE):
            return True
        if self._signs and not _any_in(self._signs, data):
            # Signs and digits have no capitals, and are quickly found.
            return False
        # So are single capitals, and most files lack some; to make all letters small takes longer.
        return _any_in(letters, data.lower() if _any_in(self._capitals, data) else data)

    def lines(self, text: str) -> Iterator[tuple[int, str]]:
        """The lines that fit, with their numbers from 1; ToolFailed if that takes too long."""
        if self._strong and text.isascii():
            lines = list(self._lines_with_letters(text))
            fits = self._fits("\n".join(line for _, line in lines)) if lines else ()
            yield from (lines[number] for number in fits)
        elif fits := self._fits(text):
            every = text.split("\n")
            yield from ((number + 1, every[number]) for number in fits)

    def _fits(self, text: str) -> Sequence[int]:
        """Numbers of lines, from 0."""
        expression = self._expression
        if expression is None or len(text) > _LARGEST_HERE:
            return self._asked(text)
        if self._whole and not expression.search(text.replace("\r\n", "\n")):
            return ()
        return [
            number
            for number, line in enumerate(text.split("\n"))
            if expression.search(line.removesuffix("\r"))
        ]

    def _asked(self, text: str) -> tuple[int, ...]:
        try:
            numbers = self._worker.ask(text.encode("utf-8", "surrogatepass"))
        except TookTooLong as error:
            raise ToolFailed(
                f"The search took longer than {self._seconds:g} s and was stopped. Use a simpler "
                "pattern without nested quantifiers, or search a smaller folder.",
                type="search_timeout",
            ) from error
        except WorkerFailed as error:
            raise ToolFailed(f"The search failed: {error}", type="grep_execution_error") from error
        return struct.unpack(f">{len(numbers) // 8}Q", numbers)

    def _lines_with_letters(self, text: str) -> Iterator[tuple[int, str]]:
        small = text.lower().encode()
        number, counted, place = 1, 0, 0
        while (hit := _first(small, self._strong, place)) >= 0:
            start = small.rfind(b"\n", 0, hit) + 1
            end = small.find(b"\n", hit)
            end = len(small) if end < 0 else end
            number += small.count(b"\n", counted, start)
            counted, place = start, end + 1
            yield number, text[start:end]


def _any_in(letters: list[bytes], data: bytes) -> bool:
    for one in letters:  # noqa: SIM110 - any() takes twice as long here
        if one in data:
            return True
    return False


def _first(data: bytes, letters: list[bytes], start: int = 0) -> int:
    """Where the first of any of the letters is; -1 if there are none."""
    end, best = len(data), -1
    for one in letters:
        found = data.find(one, start, end)
        if found >= 0:
            best, end = found, found + len(one)
    return best
