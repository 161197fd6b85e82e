"""How a question looks: what is asked, the rule an answer would store, and the keys."""

import re

import msgspec
from rich.cells import cell_len
from rich.text import Text

from toolwire.agent.questions import (
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
)
from toolwire.messages import ToolCall
from toolwire.terminal_text import marked_text, one_line, terminal_text
from toolwire.tui.diffs import diff_lines, painted
from toolwire.tui.entries import call_hint
from toolwire.tui.render import Painter

MOST_DIFF = 400
_MOST_OTHERS = 4


class Asked(msgspec.Struct, frozen=True):
    """A question with an answer of its own kind."""

    approval: Confirmation | None = None
    text: str = ""
    choices: tuple[str, ...] = ()
    yes_no: bool = False


class ReplyCalls(msgspec.Struct, frozen=True):
    """Where a call is among those of its reply, and which ones still wait."""

    at: int = 0
    """Counts from 1; 0 for a call of another session."""
    count: int = 0
    waiting: tuple[ToolCall, ...] = ()


_MOST_ABOUT = 300
QUESTION_KEYS = (
    ("`y`, Enter", "yes, once"),
    ("`s`, `a`, `g`", "this session, always in this project, always everywhere; the rule that is "
                      "stored is shown above the keys"),
    ("`m`", "every tool of this MCP server"),
    ("`Y`", "yes to all calls of this reply, once; those that follow are listed above the keys"),
    ("`e`", "edit first: a file in your editor, a command in the composer; it is ruled on and "
            "asked again"),
    ("`d`", "the whole diff or command as a page, with the same keys"),
    ("`n`, Esc", "no"),
    ("Tab, words, Enter", "no, and the model receives the words"),
    ("Ctrl-C", "no, and the turn stops"),
)  # fmt: skip
"""The keys of questions, for the documentation."""


def answers(question: Confirmation, others: int = 0) -> dict[str, tuple[Choice, str]]:
    """The keys that allow the call, with what they mean."""
    found = {"y": (Choice.ONCE, "yes, once")}
    if others:
        found["Y"] = (Choice.ONCE, f"yes to all {others + 1} of this reply")
    if question.remembers:
        found["s"] = (Choice.SESSION, "this session")
        found["a"] = (Choice.ALWAYS, "always in this project")
        found["g"] = (Choice.EVERYWHERE, "always, everywhere")
    if isinstance(question.details, McpDetails) and question.remembers:
        found["m"] = (Choice.SERVER, f"every tool of {one_line(question.details.server)}")
    if isinstance(question.details, EditDetails) and question.details.editable:
        found["e"] = (Choice.MODIFY, "edit first")
    if isinstance(question.details, ExecDetails):
        found["e"] = (Choice.MODIFY, "edit the command first")
    return found


def key_rows(
    question: Confirmation, painter: Painter, calls: ReplyCalls, rules_file: str = ""
) -> list[str]:
    """The rules that answers would store, and the keys."""
    pieces: list[tuple[str, str] | str] = ["  "]
    found = answers(question, len(calls.waiting))
    for key, (_, words) in found.items():
        pieces += [(key, "key"), f" {words}  "]
    pieces += [("d", "key"), " whole  ", ("n", "key"), " no  ", ("Tab", "key"), " no, with words"]
    rules = [f"session/always allows: {one_line(each)}" for each in question.remembers]
    if rules and rules_file:
        rules.append(f"always is stored in {one_line(rules_file)}")
    rows = [row for words in rules for row in _wrapped("  ", [words], painter, role="dim")]
    return [*_others(calls, painter), *rows, *_folded(pieces, painter)]


def _others(calls: ReplyCalls, painter: Painter) -> list[str]:
    """The calls that `Y` allows too."""
    room = max(painter.width - 30, 10)
    rows = [
        painter.line((f"  then {one_line(call.name)} {call_hint(call.arguments, room)}", "dim"))
        for call in calls.waiting[:_MOST_OTHERS]
    ]
    left = len(calls.waiting) - _MOST_OTHERS
    if left > 0:
        rows.append(painter.line((f"  … and {left} more calls", "dim")))
    return rows


def _folded(pieces: list[tuple[str, str] | str], painter: Painter) -> list[str]:
    """The pieces in rows that fit the terminal."""
    rows: list[list[tuple[str, str] | str]] = [[]]
    used = 0
    for piece in pieces:
        words = piece if isinstance(piece, str) else piece[0]
        if isinstance(piece, tuple) and used + 28 >= painter.width and used > 2:
            rows.append(["  "])
            used = 2
        rows[-1].append(piece)
        used += len(words)
    return [painter.line(*row) for row in rows]


def approval_rows(
    question: Confirmation,
    painter: Painter,
    layout: str = "auto",
    *,
    calls: ReplyCalls | None = None,
    most: int = MOST_DIFF,
) -> list[str]:
    """What would be done and why it is asked; 0 shows all lines of a diff."""
    pieces: list[tuple[str, str] | str] = [("? ", "question"), (question.title, "question")]
    if isinstance(question.details, EditDetails):
        pieces.append((_changes(question.details), "dim"))
    if calls is not None and calls.count > 1 and calls.at:
        pieces.append((f"   {calls.at} of {calls.count}", "dim"))
    words = [one_line(question.reason)] if question.reason else []
    reason = _wrapped("  ", words, painter, role="dim")
    return [painter.line(*pieces), *_details(question, painter, layout, most), *reason]


def _changes(details: EditDetails) -> str:
    """How many lines the model changes, and the user's own beside them."""
    stat = details.stat
    names = ", ".join(one_line(path.name) for path in details.paths[:3])
    words = f"  {names}  +{stat.model_added} −{stat.model_removed}"
    if stat.user_added or stat.user_removed:
        words += f"   you: +{stat.user_added} −{stat.user_removed}"
    return words


def _details(question: Confirmation, painter: Painter, layout: str, most: int) -> list[str]:
    match question.details:
        case EditDetails() as details:
            lines = diff_lines(details.diff)
            return painted(lines, painter, indent=2, layout=layout, most=most)
        case ExecDetails() as details:
            lines = marked_text(details.command).split("\n")
            where = [f"  in {one_line(details.directory)}"] if details.directory else []
            programs = ", ".join(one_line(root) for root in details.roots)
            starts = [f"  starts: {programs}"] if programs else []
            return [
                *_wrapped("  $ ", lines, painter, details.roots),
                *(painter.line((words, "dim")) for words in (*where, *starts)),
            ]
        case McpDetails() as details:
            head = painter.line((f"  {one_line(details.server)}: {one_line(details.tool)}", "call"))
            about = [details.description[:_MOST_ABOUT], ", ".join(details.hints)]
            return [
                head,
                *_wrapped("  ", marked_text(details.arguments).split("\n"), painter),
                *(painter.line((f"  {one_line(words)}", "dim")) for words in about if words),
            ]
        case InfoDetails() as details:
            return _wrapped("  ", marked_text(details.prompt).split("\n"), painter)


def _wrapped(
    lead: str,
    lines: list[str],
    painter: Painter,
    programs: tuple[str, ...] = (),
    *,
    role: str = "",
) -> list[str]:
    """Lines that the terminal need not wrap, programs in colour; nothing is left out."""
    width = max(painter.width - len(lead) - 1, 8)
    rows: list[str] = []
    for line in lines:
        for piece in _fitting(painter.text(line.expandtabs(4), role), width):
            if programs:
                names = "|".join(re.escape(name) for name in programs)
                style = painter.style("program")
                piece.highlight_regex(rf"(?<![\w./-])(?:{names})(?![\w./-])", style)
            begin = " " * len(lead) if rows else lead
            rows.append(painter.ansi(Text.assemble(begin, piece)))
    return rows


def _fitting(text: Text, width: int) -> list[Text]:
    """A line as pieces that are at most so wide."""
    cuts: list[int] = []
    used = 0
    for at, letter in enumerate(text.plain):
        wide = cell_len(letter)
        if used + wide > width:
            cuts.append(at)
            used = 0
        used += wide
    return list(text.divide(cuts))


def plain_rows(asked: Asked, painter: Painter) -> tuple[list[str], list[str]]:
    """The rows of a question without a call, and its keys."""
    body = _wrapped("? ", terminal_text(asked.text).split("\n"), painter)
    listed = [
        painter.line((f"  {number} ", "key"), one_line(choice))
        for number, choice in enumerate(asked.choices, 1)
    ]
    if asked.yes_no:
        return body, [painter.line("  ", ("y", "key"), " yes  ", ("n", "key"), " no")]
    hint = "  a number, or other words" if listed else ""
    return [*body, *listed], [painter.line((hint, "dim"))] if hint else []
