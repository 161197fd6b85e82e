"""Entries of the transcript as lines of a terminal."""

from pathlib import Path
from typing import cast

import msgspec

from toolwire.config.settings import Ui
from toolwire.messages import Outcome
from toolwire.terminal_text import terminal_text
from toolwire.tools.proposals import DiffStat
from toolwire.tools.shell.output import plain_text
from toolwire.tui.diffs import diff_lines, painted
from toolwire.tui.render import MarkdownLines, Painter
from toolwire.tui.transcript import CallEntry, Entry, Headline, NoteEntry, ProseEntry, Said, Sources
from toolwire.wire.repair import parse_arguments

RESULT_LINES = 10
MARKS = {
    Outcome.DONE: ("●", "done", "the call succeeded"),
    Outcome.FAILED: ("✗", "failed", "it failed; the first line of the error follows"),
    Outcome.DENIED: ("⊘", "warning", "it was denied"),
    Outcome.CANCELLED: ("◌", "warning", "it was stopped, or its outcome is unknown"),
    Outcome.INTERRUPTED: ("◌", "warning", "it was stopped, or its outcome is unknown"),
    Outcome.NOT_RUN: ("–", "dim", "it did not run"),
}
"""The mark of each outcome, its role, and what it means."""
_ENDINGS = {
    Outcome.INTERRUPTED: "outcome unknown",
    Outcome.CANCELLED: "stopped",
    Outcome.NOT_RUN: "not run",
    Outcome.DENIED: "denied",
}
_HINT = 100


class ViewOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How entries are shown; the settings `ui.*`."""

    thinking: str = "headline"
    """`shown`, `headline`, `hidden`."""
    diff: str = "auto"
    wrap: str = "words"
    """`words` or `terminal`."""
    lines: int = RESULT_LINES
    """Lines of a result; 0 for all."""
    folder: str = ""
    """Paths below it are shown without it."""


def view_options(ui: Ui, folder: Path) -> ViewOptions:
    """The options of the settings, for a session in a folder."""
    thinking = "shown" if ui.verbose else ui.thinking
    lines = 0 if ui.verbose else RESULT_LINES
    return ViewOptions(
        thinking=thinking, diff=ui.diff, wrap=ui.wrap, lines=lines, folder=str(folder)
    )


class EntryLines:
    """Renders the entries of one session in their order."""

    def __init__(self, painter: Painter, options: ViewOptions | None = None) -> None:
        self._painter = painter
        self._options = options or ViewOptions()
        self._prose = MarkdownLines(painter, wrap=self._options.wrap == "words")

    def lines(self, entry: Entry) -> list[str]:
        """The lines of an entry."""
        painter = self._painter
        match entry:
            case ProseEntry():
                return self.prose(entry)
            case Said():
                return self._said(entry.text)
            case CallEntry():
                return self._call(entry)
            case Headline():
                return self._thought(entry)
            case NoteEntry():
                return [painter.line((entry.text, entry.role))]
            case Sources():
                return [
                    painter.line((f"[{number}] ", "dim"), title or url, (f"  {url}", "dim"))
                    if title
                    else painter.line((f"[{number}] ", "dim"), url)
                    for number, (title, url) in enumerate(entry.listed, 1)
                ]

    def prose(self, entry: ProseEntry) -> list[str]:
        """The lines of a block of an answer."""
        if entry.first:
            self._prose = MarkdownLines(self._painter, wrap=self._options.wrap == "words")
        return self._prose.lines(entry.block)

    def _said(self, text: str) -> list[str]:
        first, *more = terminal_text(text).split("\n")
        painter = self._painter
        return [
            "",
            painter.line(("› ", "prompt"), (first, "prompt")),
            *(painter.line((f"  {line}", "prompt")) for line in more),
            "",
        ]

    def _thought(self, entry: Headline) -> list[str]:
        match self._options.thinking:
            case "hidden":
                return []
            case "shown":
                body = [entry.subject, *terminal_text(entry.description).split("\n")]
                return [self._painter.line((line, "thinking")) for line in body if line.strip()]
            case _:
                return [self._painter.line((entry.subject, "thinking"))] if entry.subject else []

    def _call(self, entry: CallEntry) -> list[str]:
        finished, painter = entry.finished, self._painter
        mark, role, _ = MARKS[finished.outcome]
        stat = finished.stat
        ending = _ENDINGS.get(finished.outcome, "")
        approved = entry.approved if entry.approved != ending else ""
        pieces = [
            changed_lines(stat) if stat else "",
            duration(finished.duration) if finished.duration else "",
            ending,
            approved,
        ]
        tail = "   ".join(piece for piece in pieces if piece)
        room = max(painter.width - len(finished.name) - len(tail) - 6, 10)
        head = painter.line(
            (f"{mark} ", role),
            (finished.name, "call"),
            f" {call_hint(finished.arguments, room, self._options.folder)}",
            (f"  {tail}" if tail else "", "dim"),
        )
        return [head, *self._detail(entry)]

    def _detail(self, entry: CallEntry) -> list[str]:
        finished, painter, most = entry.finished, self._painter, self._options.lines
        if finished.success and finished.diff:
            lines = diff_lines(finished.diff)
            return painted(lines, painter, indent=4, layout=self._options.diff, most=most)
        text = terminal_text(plain_text(finished.display)).strip("\n")
        if not text:
            return []
        if not finished.success:
            first, *_ = text.split("\n", 1)
            return [painter.line((f"    {first}", "failed" if _failed(entry) else "dim"))]
        lines = text.split("\n")
        shown = lines[:most] if most else lines
        rows = [painter.line((f"    {line}", "dim")) for line in shown]
        if len(lines) > len(shown):
            rows.append(painter.line((f"    … {len(lines) - len(shown)} more (Ctrl-O)", "dim")))
        return rows


def changed_lines(stat: DiffStat) -> str:
    """Lines of an edit, and how many of them the user wrote."""
    words = f"+{stat.model_added + stat.user_added} −{stat.model_removed + stat.user_removed}"
    if stat.user_added or stat.user_removed:
        model = f"model +{stat.model_added} −{stat.model_removed}"
        words += f" ({model}, you +{stat.user_added} −{stat.user_removed})"
    return words


def _failed(entry: CallEntry) -> bool:
    return entry.finished.outcome is Outcome.FAILED


def call_hint(arguments: str, room: int = _HINT, folder: str = "") -> str:
    """A short hint of a call: its first text or list of texts, paths within the folder."""
    value = parse_arguments(arguments).value or {}
    found = (_texts(one) for one in value.values())
    texts = next((one for one in found if one), list[str]())
    if folder:
        texts = [text.removeprefix(f"{folder}/") for text in texts]
    words = " ".join(terminal_text(", ".join(texts)).split())
    return words if len(words) <= room else f"{words[: room - 1]}…"


def _texts(value: object) -> list[str]:
    """A text, or the texts of a list; none of anything else."""
    listed: list[object] = cast(list[object], value) if isinstance(value, list) else [value]
    texts = [one for one in listed if isinstance(one, str) and one]
    return texts if len(texts) == len(listed) else []


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
