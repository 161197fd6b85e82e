"""Telling code from prose in Markdown while it streams: a call shown as code is no call."""

import re

_token = re.compile(r"`{1,64}|~{1,64}|\n").search
_last_run = re.compile(r"(?:`+|~+)\Z").search
_LONGEST_RUN = 64
_MOST_INDENT = 3


class Code:
    """Whether the text stops inside a code fence or between backticks."""

    def __init__(self) -> None:
        self._fence = ""
        self._ticks = ""
        self._indent = 0
        """Blanks since the line began; beyond the most, something else came first."""
        self._pending = ""
        """A run of marks at the end, which may go on."""

    @property
    def inside(self) -> bool:
        """Whether what follows is code, given that no run of marks goes on."""
        if self._pending:
            run, self._pending = self._pending, ""
            self._run(run)
        return bool(self._fence or self._ticks)

    def opens_fence(self, run: str) -> bool:
        """Whether a run of backticks here would open a fence."""
        return not self.inside and len(run) >= 3 and self._indent <= _MOST_INDENT

    def feed(self, text: str) -> None:
        """Text that was passed on."""
        text = self._pending + text
        self._pending = ""
        if (open_run := _last_run(text)) is not None:
            whole = (len(open_run[0]) // _LONGEST_RUN) * _LONGEST_RUN
            cut = open_run.start() + whole
            text, self._pending = text[:cut], text[cut:]
        at = 0
        while (found := _token(text, at)) is not None:
            self._plain(text[at : found.start()])
            at = found.end()
            if found[0] == "\n":
                self._ticks = ""
                self._indent = 0
            else:
                self._run(found[0])
        self._plain(text[at:])

    def _plain(self, text: str) -> None:
        if text:
            blank = text.isspace()
            self._indent = self._indent + len(text) if blank else _MOST_INDENT + 1

    def _run(self, run: str) -> None:
        if run[0] == "~" and len(run) < 3:
            self._indent = _MOST_INDENT + 1
            return
        at_line_start = self._indent <= _MOST_INDENT and len(run) >= 3
        if self._fence:
            if at_line_start and run[0] == self._fence[0] and len(run) >= len(self._fence):
                self._fence = ""
        elif at_line_start and not self._ticks:
            self._fence = run
        elif run[0] == "`":
            if not self._ticks:
                self._ticks = run
            elif self._ticks == run:
                self._ticks = ""
        self._indent = _MOST_INDENT + 1
