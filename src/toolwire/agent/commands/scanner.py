"""The quoting rules of the shell alone: which characters have a meaning where they stand."""

import re

_SPECIAL = frozenset(b";&|()<> \t\n")
_BLANK = (b"", b" ", b"\t", b"\n")
_DELIMITER = re.compile(rb"[ \t]*((?:\\.|'[^']*'|\"[^\"]*\"|[^\s;&|()<>'\"\\`$])+)", re.DOTALL)


class Marks:
    """What a scan found."""

    def __init__(self, length: int) -> None:
        self._length = length
        self.active: set[int] = set()
        """Positions of characters that are not quoted and have a meaning."""
        self.starts: set[int] = {0}
        """Where a word may start."""
        self.joins: set[int] = set()
        """Backslashes that join two lines between words."""
        self.comments: set[int] = set()
        self._skipped: set[int] = set()

    def skip(self, start: int, end: int) -> None:
        """Notes a stretch that is not looked at: between backticks, or before a delimiter."""
        self._skipped.update(range(start, end))

    def is_word(self, start: int, end: int) -> bool:
        """Whether a word starts and ends there."""
        return start in self.starts and self.ends_word(end)

    def ends_word(self, end: int) -> bool:
        """Whether what stands before it ends there."""
        return end == self._length or end in self.active or end in self.joins

    def is_skipped(self, position: int) -> bool:
        """Whether it is not looked at."""
        return position in self._skipped


def scan(source: bytes) -> Marks | None:
    """The marks of a text; None if its quotes or brackets do not close."""
    try:
        return _Scanner(source).run()
    except _Unclosed:
        return None


class _Unclosed(Exception):
    pass


class _Scanner:
    """One pass with a stack of what is open: `)`, `"`, `}`; `]` for `))`, `a` for `)` within."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._at = 0
        self._open: list[str] = []
        self._heredocs: list[tuple[bytes, bool, bool]] = []
        self._marks = Marks(len(source))
        self._word_starts = 0
        """Where the last blank or operator ended: a `#` there begins a comment."""

    def run(self) -> Marks:
        while self._at < len(self._source):
            if self._open and self._open[-1] == '"':
                self._in_string()
            else:
                self._outside()
        if self._open or self._heredocs:
            raise _Unclosed
        return self._marks

    def _next(self, count: int = 1) -> bytes:
        return self._source[self._at : self._at + count]

    def _mark(self, length: int = 1) -> None:
        self._marks.active.add(self._at)
        self._at += length
        self._begin_word()

    def _begin_word(self) -> None:
        self._word_starts = self._at
        self._marks.starts.add(self._at)

    def _in_string(self) -> None:
        one = self._next()
        if one == b"\\":
            self._at += 2
        elif one == b'"':
            self._open.pop()
            self._at += 1
        elif not self._expansion():
            self._at += 1

    def _expansion(self) -> bool:
        """`$(`, `$((`, `${` and backticks, which mean the same in and out of double quotes."""
        if self._next(3) == b"$((":
            self._open.append("]")
            self._mark(3)
        elif self._next(2) == b"$(":
            self._open.append(")")
            self._mark(2)
        elif self._next(2) == b"${":
            self._open.append("}")
            self._mark(2)
        elif self._next() == b"`":
            self._backticks()
        else:
            return False
        return True

    def _backticks(self) -> None:
        start = self._at
        self._mark()
        while self._next() != b"`":
            if not self._next():
                raise _Unclosed
            self._at += 2 if self._next() == b"\\" else 1
        self._marks.skip(start + 1, self._at)
        self._mark()

    def _outside(self) -> None:
        one = self._next()
        inside = self._open[-1] if self._open else ""
        if one == b"\\":
            self._escape()
        elif one == b"'" and inside not in ("]", "a"):
            self._quoted(self._at + 1)
        elif self._next(2) == b"$'" and inside not in ("]", "a"):
            self._ansi_c()
        elif one == b'"':
            self._open.append('"')
            self._at += 1
        elif self._expansion():
            pass
        elif inside == "}":
            self._in_braces(one)
        elif inside in ("]", "a"):
            self._in_arithmetic(one, inside)
        else:
            self._in_command(one, inside)

    def _quoted(self, start: int) -> None:
        end = self._source.find(b"'", start)
        if end < 0:
            raise _Unclosed
        self._at = end + 1

    def _ansi_c(self) -> None:
        self._at += 2
        while self._next() != b"'":
            if not self._next():
                raise _Unclosed
            self._at += 2 if self._next() == b"\\" else 1
        self._at += 1

    def _in_braces(self, one: bytes) -> None:
        if one == b"}":
            self._open.pop()
        self._at += 1

    def _in_arithmetic(self, one: bytes, inside: str) -> None:
        if one == b"(":
            self._open.append("a")
            self._mark()
        elif one == b")" and inside == "a":
            self._open.pop()
            self._mark()
        elif self._next(2) == b"))":
            self._open.pop()
            self._mark(2)
        elif one in b";&|<> \t\n":
            self._mark()
        else:
            self._at += 1

    def _in_command(self, one: bytes, inside: str) -> None:
        if one == b"#" and self._starts_word():
            self._marks.comments.add(self._at)
            end = self._source.find(b"\n", self._at)
            self._at = len(self._source) if end < 0 else end
        elif self._next(3) == b"<<<":
            self._mark(3)
        elif self._next(2) == b"<<":
            self._heredoc_start()
        elif self._next(2) == b"((" and self._starts_word():
            self._open.append("]")
            self._mark(2)
        elif one == b"(":
            self._open.append(")")
            self._mark()
        elif one == b")":
            if inside == ")":
                self._open.pop()
            self._mark()
        elif one == b"\n":
            self._mark()
            self._heredoc_bodies()
        elif one[0] in _SPECIAL:
            self._mark()
        else:
            self._at += 1

    def _starts_word(self) -> bool:
        return self._at == self._word_starts

    def _escape(self) -> None:
        """A backslash; before a line's end it joins two lines, which must not join two words."""
        if self._next(2) != b"\\\n":
            self._at += 2
            return
        before, after = self._source[: self._at][-1:], self._source[self._at + 2 :][:1]
        if not (before in _BLANK or after in _BLANK):
            raise _Unclosed
        self._marks.joins.add(self._at)
        starts_word = self._starts_word()
        self._at += 2
        if starts_word:
            self._begin_word()

    def _heredoc_start(self) -> None:
        self._mark(2)
        strip = self._next() == b"-"
        self._at += strip
        found = _DELIMITER.match(self._source, self._at)
        if found is None:
            raise _Unclosed
        self._at = found.end()
        written = found[1]
        quoted = any(mark in written for mark in b"'\"\\")
        delimiter = re.sub(rb"['\"\\]", b"", written)
        self._heredocs.append((delimiter, quoted, strip))

    def _heredoc_bodies(self) -> None:
        for delimiter, quoted, strip in self._heredocs:
            self._heredoc_body(delimiter, quoted, strip)
        self._heredocs.clear()

    def _heredoc_body(self, delimiter: bytes, quoted: bool, strip: bool) -> None:
        while self._at < len(self._source):
            end = self._source.find(b"\n", self._at)
            end = len(self._source) if end < 0 else end
            line = self._source[self._at : end]
            if (line.lstrip(b"\t") if strip else line) == delimiter:
                self._marks.skip(self._at, end - len(delimiter))
                self._at = end
                return
            if strip:
                self._marks.skip(self._at, end - len(line.lstrip(b"\t")))
            if not quoted and line.endswith(b"\\"):
                # The shell joins the lines before it looks for the delimiter.
                raise _Unclosed
            if not quoted:
                self._refuse_expansions_over_lines(end)
            self._at = end + 1
        raise _Unclosed

    def _refuse_expansions_over_lines(self, end: int) -> None:
        """Marks the expansions of one line; one that goes on over its end is not followed."""
        depth = len(self._open)
        self._open.append('"')
        while self._at < end:
            inside = self._open[-1]
            if inside == '"' and len(self._open) == depth + 1:
                if self._next() == b"\\":
                    self._at += 2
                elif not self._expansion():
                    self._at += 1
            elif inside == '"':
                self._in_string()
            else:
                self._outside()
        if len(self._open) != depth + 1 or self._at > end + 1:
            raise _Unclosed
        self._open.pop()
