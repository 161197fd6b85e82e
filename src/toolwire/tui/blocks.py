"""Markdown that is still growing, cut into blocks that are final; pure, at linear cost."""

import re
from enum import StrEnum

import msgspec

WIDTHS_FROM = 40
"""Rows of a table that decide its column widths; later rows are printed as they come."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_INNER_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_ITEM = re.compile(r" {0,3}([-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_QUOTE = re.compile(r" {0,3}>")
_DELIMITERS = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?\s*)?$")


class BlockKind(StrEnum):
    """What a block is."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    RULE = "rule"
    ITEM = "item"
    QUOTE = "quote"
    CODE_START = "code_start"
    CODE = "code"
    CODE_END = "code_end"
    TABLE = "table"
    ROWS = "rows"


class Block(msgspec.Struct, frozen=True, gc=False):
    """A piece of Markdown that later text cannot change."""

    kind: BlockKind
    text: str
    """Its source without marks that the kind implies; a table: its lines."""
    language: str = ""
    """Of code: the word after the fence."""
    level: int = 0
    """Of a heading 1 to 6; of other blocks the columns it is indented by."""
    gap: bool = False
    """Whether an empty line stands before it."""


class Blocks:
    """Cuts a growing text; holds the one block that is still open."""

    def __init__(self) -> None:
        self._line: list[str] = []
        """Pieces of the line that has not ended."""
        self._kind: BlockKind | None = None
        self._lines: list[str] = []
        """Complete lines of the open block."""
        self._fence = ""
        self._language = ""
        self._indent = 0
        """Columns by which a fence in a list item is indented."""
        self._item = 0
        """Columns of the open list item's text."""
        self._blank = False
        """Whether an empty line came since the last block."""
        self._rows: int = 0
        self._last: BlockKind | None = None

    def feed(self, text: str) -> list[Block]:
        """Returns the blocks that this text finishes."""
        if "\n" not in text:
            if text:
                self._line.append(text)
            return []
        first, *lines = text.split("\n")
        self._line.append(first)
        done: list[Block] = []
        self._complete("".join(self._line), done)
        *lines, rest = lines
        for line in lines:
            self._complete(line, done)
        self._line = [rest] if rest else []
        return done

    def close(self) -> list[Block]:
        """Returns the rest; the text has ended."""
        done: list[Block] = []
        if self._line:
            self._complete("".join(self._line), done)
            self._line = []
        self._finish(done)
        if self._fence:
            self._fence = ""
            self._emit(done, BlockKind.CODE_END, "")
        self._blank = False
        return done

    @property
    def open(self) -> Block | None:
        """The block that is not final yet, with the line that has not ended."""
        line = "".join(self._line)
        if self._fence:
            if not line or self._closes(line):
                return None
            return Block(BlockKind.CODE, line[self._indent :], self._language)
        lines = [*self._lines, line] if line.strip() else self._lines
        if not lines:
            return None
        kind = self._kind or _begins(line)
        if kind in (BlockKind.CODE_START, BlockKind.RULE):
            return None
        text = "\n".join(lines)
        if kind is BlockKind.HEADING and (found := _HEADING.match(text)):
            return Block(kind, found[2] or "", level=len(found[1]), gap=self._gap(kind))
        return Block(kind, text, gap=self._gap(kind))

    def _complete(self, line: str, done: list[Block]) -> None:
        line = line.removesuffix("\r")
        if self._fence:
            self._code(line, done)
        elif not line.strip():
            if self._kind is not BlockKind.ITEM:
                self._finish(done)
            elif self._lines[-1:] != [""]:
                self._lines.append("")
            self._blank = True
        elif self._kind is BlockKind.ITEM and self._within_item(line, done):
            pass
        elif self._kind in (BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.QUOTE):
            self._continues(line, done)
        else:
            self._start(line, done)

    def _code(self, line: str, done: list[Block]) -> None:
        if self._closes(line):
            self._fence = ""
            self._emit(done, BlockKind.CODE_END, "")
            return
        cut = min(self._indent, len(line) - len(line.lstrip(" ")))
        done.append(Block(BlockKind.CODE, line[cut:], self._language, self._indent))
        self._last = BlockKind.CODE

    def _closes(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self._fence) and set(bare) == {self._fence[0]}

    def _start(self, line: str, done: list[Block]) -> None:
        self._finish(done)
        if fence := _FENCE.match(line):
            self._open_fence(fence[1], fence[2], done)
        elif _RULE.match(line):
            self._emit(done, BlockKind.RULE, "")
        elif heading := _HEADING.match(line):
            self._emit(done, BlockKind.HEADING, heading[2] or "", level=len(heading[1]))
        else:
            item = _ITEM.match(line)
            self._kind, self._lines = _begins(line), [line]
            self._item = item.end() if item else 0

    def _open_fence(self, fence: str, language: str, done: list[Block], indent: int = 0) -> None:
        self._fence, self._language, self._indent = fence, language, indent
        self._emit(done, BlockKind.CODE_START, "", language=language, level=indent)

    def _within_item(self, line: str, done: list[Block]) -> bool:
        """Whether the line belongs to the open list item, which then holds it."""
        indent = len(line) - len(line.lstrip(" \t"))
        after_blank = self._lines[-1] == ""
        if indent >= min(2, self._item):
            fence = _INNER_FENCE.match(line)
            if fence:
                self._finish(done)
                self._open_fence(fence[2], fence[3], done, indent)
            else:
                self._lines.append(line)
            return True
        if after_blank or _begins(line) is not BlockKind.PARAGRAPH:
            return False
        self._lines.append(line)
        return True

    def _continues(self, line: str, done: list[Block]) -> None:
        """Adds the line to the open paragraph, table or quote, or begins another block."""
        if self._kind is BlockKind.TABLE:
            if "|" in line:
                self._row(line, done)
            else:
                self._start(line, done)
            return
        if self._kind is BlockKind.QUOTE:
            if _QUOTE.match(line) or _begins(line) is BlockKind.PARAGRAPH:
                self._lines.append(line)
            else:
                self._start(line, done)
            return
        if len(self._lines) == 1 and "|" in self._lines[0] and _DELIMITERS.match(line):
            self._kind, self._rows = BlockKind.TABLE, 0
            self._lines.append(line)
        elif found := _UNDERLINE.match(line):
            text = "\n".join(self._lines)
            self._kind, self._lines = None, []
            self._emit(done, BlockKind.HEADING, text, level=1 if found[1][0] == "=" else 2)
        elif _begins(line) is BlockKind.PARAGRAPH:
            self._lines.append(line)
        else:
            self._start(line, done)

    def _row(self, line: str, done: list[Block]) -> None:
        self._rows += 1
        if self._rows > WIDTHS_FROM:
            if self._lines:
                self._emit(done, BlockKind.TABLE, "\n".join(self._lines))
                self._lines = []
            done.append(Block(BlockKind.ROWS, line))
        else:
            self._lines.append(line)

    def _finish(self, done: list[Block]) -> None:
        kind, lines = self._kind, self._lines
        self._kind, self._lines = None, []
        if kind is None or not lines:
            return
        if lines[-1] == "":
            lines.pop()
        self._emit(done, kind, "\n".join(lines))

    def _emit(
        self, done: list[Block], kind: BlockKind, text: str, language: str = "", level: int = 0
    ) -> None:
        done.append(Block(kind, text, language, level, self._gap(kind)))
        self._last, self._blank = kind, False

    def _gap(self, kind: BlockKind) -> bool:
        if self._last is None or kind in (BlockKind.CODE_END, BlockKind.ROWS):
            return False
        if self._last is BlockKind.ITEM and kind is BlockKind.ITEM:
            return False
        return self._blank or kind is not BlockKind.ITEM or self._last is not BlockKind.PARAGRAPH


def _begins(line: str) -> BlockKind:
    """The kind of block that a line begins."""
    if _FENCE.match(line):
        return BlockKind.CODE_START
    if _RULE.match(line):
        return BlockKind.RULE
    if _HEADING.match(line):
        return BlockKind.HEADING
    if _ITEM.match(line):
        return BlockKind.ITEM
    return BlockKind.QUOTE if _QUOTE.match(line) else BlockKind.PARAGRAPH
