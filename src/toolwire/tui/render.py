"""Blocks as lines of a terminal: wrapped, coloured, sanitised; each block once."""

import re
from functools import cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from rich.text import Text

from toolwire.terminal_text import terminal_text
from toolwire.tui.blocks import Block, BlockKind
from toolwire.tui.links import link_address, linked
from toolwire.tui.themes import Theme

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from toolwire.tui.highlight import Highlighter

PROSE_WIDTH = 120
_ENTRY = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_TASK = re.compile(r"\[([ xX])\] ")
_QUOTED = re.compile(r" {0,3}> ?")
_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
}
_LEAST_COLUMN = 4


class Painter:
    """Text in a theme's roles, written as the bytes of a terminal."""

    def __init__(self, theme: Theme, colours: str, width: int, *, links: bool = False) -> None:
        """`links`: for lines that go to the terminal as they are, and to nothing of ours."""
        self.links = links
        self.width = max(width, 8)
        self.prose_width = min(self.width, PROSE_WIDTH)
        self._system = _SYSTEMS.get(colours)
        self._styles = {role: Style.parse(style) for role, style in theme.styles.items()}
        self._console = Console(width=self.width, color_system=None, legacy_windows=False)

    def style(self, role: str) -> Style:
        """The style of a role."""
        return self._styles.get(role, Style.null())

    def text(self, text: str, role: str = "") -> Text:
        """Foreign text, sanitised, in a role."""
        return Text(terminal_text(text).expandtabs(4), style=self.style(role), end="")

    def wrapped(self, text: Text, width: int) -> list[Text]:
        """The text cut into lines at words."""
        lines = list(text.wrap(self._console, max(width, 1), tab_size=4)) or [Text("")]
        for line in lines:
            line.rstrip()
        return lines

    def ansi(self, text: Text) -> str:
        """One line with its escape sequences."""
        if self._system is None:
            return text.plain.rstrip()
        return "".join(
            self._written(segment.text, segment.style) if segment.style else segment.text
            for segment in text.render(self._console)
        )

    def _written(self, text: str, style: Style) -> str:
        if not style.link:
            return style.render(text, color_system=self._system)
        shown = style.update_link(None).render(text, color_system=self._system)
        return linked(shown, style.link) if text.strip() else shown

    def line(self, *pieces: tuple[str, str] | str) -> str:
        """One line of pieces, each foreign text or text and role."""
        whole = Text(end="")
        for piece in pieces:
            words, role = (piece, "") if isinstance(piece, str) else piece
            whole.append_text(self.text(words.replace("\n", " "), role))
        return self.ansi(whole)


class MarkdownLines:
    """Renders the blocks of one message, one after the other."""

    def __init__(self, painter: Painter, *, wrap: bool = True) -> None:
        self._painter = painter
        self._wrap = wrap
        """Whether we cut prose at words; else each paragraph is one logical line."""
        self._columns: list[int] = []
        """Widths of the columns of the last table."""
        self._code: Highlighter | None = None

    def lines(self, block: Block) -> list[str]:
        """The block's lines, an empty one before it where it has a gap."""
        rows = [self._painter.ansi(row) for row in self._rows(block)]
        return ["", *rows] if block.gap else rows

    def _rows(self, block: Block) -> list[Text]:
        painter = self._painter
        match block.kind:
            case BlockKind.HEADING:
                marks = Text(f"{'#' * block.level} ", style=painter.style("heading"))
                return self._prose(marks, self._inline(block.text, "heading"))
            case BlockKind.RULE:
                return [painter.text("─" * min(painter.width, 24), "dim")]
            case BlockKind.ITEM:
                return self._items(block.text)
            case BlockKind.QUOTE:
                text = "\n".join(_QUOTED.sub("", line, 1) for line in block.text.split("\n"))
                return self._prose(painter.text("│ ", "dim"), self._inline(text), again=True)
            case BlockKind.CODE_START:
                from toolwire.tui.highlight import Highlighter  # noqa: PLC0415 - loads pygments

                self._code = Highlighter(block.language)
                lead = " " * block.level
                return [painter.text(lead + block.language, "dim")] if block.language else []
            case BlockKind.CODE:
                return [self._code_line(block)]
            case BlockKind.CODE_END:
                self._code = None
                return []
            case BlockKind.TABLE:
                return self._table(block.text.split("\n"))
            case BlockKind.ROWS:
                return self._row(_cells(block.text))
            case BlockKind.PARAGRAPH:
                return self._prose(Text(""), self._inline(block.text))

    def _code_line(self, block: Block) -> Text:
        painter = self._painter
        line = Text(" " * block.level, end="")
        safe = terminal_text(block.text)
        if self._code is None:
            return line.append(safe)
        for words, role in self._code.line(safe):
            line.append(words, painter.style(role))
        return line

    def _prose(self, lead: Text, text: Text, *, again: bool = False) -> list[Text]:
        """The text behind a lead, later lines indented by it or led by it again."""
        width = self._painter.prose_width - cell_len(lead.plain)
        after = lead if again else Text(" " * cell_len(lead.plain))
        if self._wrap:
            lines = self._painter.wrapped(text, width)
        else:
            lines = list(text.split("\n", allow_blank=True))
        return [Text.assemble(after if number else lead, line) for number, line in enumerate(lines)]

    def _items(self, source: str) -> list[Text]:
        rows: list[Text] = []
        for indent, mark, text in _entries(source):
            if mark is None:
                rows.extend(self._prose(Text(" " * indent), self._inline(text)))
                continue
            shown = mark if mark[0].isdigit() else "•"
            if task := _TASK.match(text):
                shown, text = ("☐" if task[1] == " " else "☑"), text[task.end() :]
            rows.extend(self._prose(Text(f"{' ' * indent}{shown} "), self._inline(text)))
        return rows

    def _table(self, lines: list[str]) -> list[Text]:
        head, _, *rows = [_cells(line) for line in lines]
        count = len(head)
        texts = [[self._inline(cell) for cell in row[:count]] for row in (head, *rows)]
        wide = [
            max((cell_len(row[at].plain) for row in texts if at < len(row)), default=0)
            for at in range(count)
        ]
        self._columns = _fitted(wide, self._painter.width - 2 * (count - 1))
        top = self._row(head, "strong")
        rule = "  ".join("─" * width for width in self._columns)
        below = [line for row in rows for line in self._row(row)]
        return [*top, self._painter.text(rule, "dim"), *below]

    def _row(self, cells: list[str], role: str = "") -> list[Text]:
        painter = self._painter
        columns = [
            painter.wrapped(self._inline(cell, role), width)
            for cell, width in zip(cells, self._columns, strict=False)
        ]
        found: list[Text] = []
        for at in range(max((len(column) for column in columns), default=0)):
            line = Text(end="")
            for column, width in zip(columns, self._columns, strict=False):
                piece = column[at] if at < len(column) else Text("")
                line.append_text(piece)
                line.append(" " * (width - cell_len(piece.plain) + 2))
            line.rstrip()
            found.append(line)
        return found

    def _inline(self, source: str, role: str = "") -> Text:
        painter = self._painter
        text = Text(end="", style=painter.style(role) if role else "")
        styles = [Style.null()]
        address = ""
        for token in self._tokens(terminal_text(source)):
            match token.type:
                case "text" | "html_inline":
                    text.append(token.content, Style.combine(styles))
                case "code_inline":
                    text.append(token.content, Style.combine([*styles, painter.style("code")]))
                case "softbreak":
                    text.append(" ")
                case "hardbreak":
                    text.append("\n")
                case "image":
                    text.append(f"[image: {token.content}]", painter.style("dim"))
                case "link_open":
                    address = str(token.attrs.get("href", ""))
                    target = link_address(address) if painter.links else ""
                    styles.append(painter.style("link") + Style(link=target or None))
                case "link_close":
                    styles.pop()
                    if address and not text.plain.endswith(address):
                        text.append(f" ({address})", painter.style("dim"))
                case "strong_open" | "em_open" | "s_open":
                    styles.append(painter.style(_MARKS[token.type]))
                case "strong_close" | "em_close" | "s_close":
                    styles.pop()
                case _:
                    text.append(token.content)
        return text

    def _tokens(self, source: str) -> "list[Token]":
        return [
            token for parent in _parser().parseInline(source) for token in parent.children or ()
        ]


@cache
def _parser() -> "MarkdownIt":
    """One for all: it takes longer to make than a paragraph to parse."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - for the first prose

    return MarkdownIt("commonmark").enable("strikethrough")


_MARKS = {"strong_open": "strong", "em_open": "emphasis", "s_open": "strike"}


def _entries(source: str) -> list[tuple[int, str | None, str]]:
    """The entries of a list item: indentation, marker and text; no marker: a paragraph."""
    found: list[tuple[int, str | None, str]] = []
    indent, apart = 0, False
    for line in source.split("\n"):
        if not line.strip():
            apart = True
        elif entry := _ENTRY.match(line):
            indent = len(entry[1].expandtabs(4))
            found.append((indent, entry[2], entry[3] or ""))
            apart = False
        elif apart or not found:
            found.append((len(line) - len(line.lstrip()), None, line.strip()))
            apart = False
        else:
            at, mark, text = found[-1]
            found[-1] = (at, mark, f"{text}\n{line.strip()}")
    return found


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    bare = bare.removesuffix("|") if not bare.endswith("\\|") else bare
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", bare)]


def _fitted(wide: list[int], room: int) -> list[int]:
    """Column widths within the room: the widest columns give first."""
    widths = list(wide)
    while sum(widths) > room and max(widths) > _LEAST_COLUMN:
        widest = max(widths)
        second = max((width for width in widths if width < widest), default=_LEAST_COLUMN)
        many = widths.count(widest)
        cut = min(widest - max(second, _LEAST_COLUMN), -(-(sum(widths) - room) // many))
        widths = [width - max(cut, 1) if width == widest else width for width in widths]
    return widths
