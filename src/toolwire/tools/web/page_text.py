"""HTML as Markdown, by a small converter of our own or by html-to-markdown where it is there."""

import re
from html.parser import HTMLParser
from importlib import import_module

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "select"})
_BLOCKS = re.compile(
    r"address|article|aside|blockquote|body|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|"
    r"footer|form|h[1-6]|header|html|li|main|nav|ol|p|pre|section|summary|table|tr|ul"
)
_HEADING = re.compile(r"h([1-6])")
_DEEPEST = 20
"""Lists inside lists that are still indented."""
_EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*"}


def page_text(html: str) -> str:
    """The page's text as Markdown."""
    try:
        convert = import_module("html_to_markdown").convert
    except ImportError:
        return own_text(html)
    return str(convert(html)).strip()


def own_text(html: str) -> str:
    """The same without any library: headings, lists, links, code, tables as rows."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._skipping: list[str] = []
        self._pre = 0
        self._lists: list[int | None] = []
        self._links: list[tuple[str, int]] = []
        self._cells = 0
        self._marked = -1

    def text(self) -> str:
        whole = "".join(self._out)
        whole = "\n".join(line.rstrip(" \t") for line in whole.split("\n"))
        return re.sub(r"\n{3,}", "\n\n", whole).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body" and self._skipping == ["head"]:
            # The end of the head may be left out.
            self._skipping.clear()
        if self._skipping:
            if tag == self._skipping[-1]:
                self._skipping.append(tag)
            return
        if tag in _SKIPPED:
            self._skipping.append(tag)
            return
        if _BLOCKS.fullmatch(tag):
            self._block(tag)
        heading = _HEADING.fullmatch(tag)
        if heading:
            self._out.append("#" * int(heading[1]) + " ")
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self._item()
        elif tag == "a":
            # A link ends where the next one begins: they do not nest.
            self._links = [(dict(attrs).get("href") or "", len(self._out))]
        elif tag == "pre":
            self._pre += 1
            self._out.append("```\n")
        elif tag in ("td", "th"):
            self._put(" | " if self._cells else "")
            self._cells += 1
        else:
            self._inline(tag, dict(attrs))

    def _inline(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag == "br":
            self._out.append("\n")
        elif tag == "hr":
            self._out.append("\n\n---\n\n")
        elif tag == "img" and attrs.get("alt"):
            self._out.append(f"![{attrs['alt']}]")
        elif tag == "code" and not self._pre:
            self._out.append("`")
        elif tag in _EMPHASIS and not self._pre:
            self._out.append(_EMPHASIS[tag])

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            if tag == self._skipping[-1]:
                self._skipping.pop()
            return
        if tag == "pre" and self._pre:
            self._pre -= 1
            self._put("" if self._ends("\n") else "\n")
            self._out.append("```\n")
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "a" and self._links:
            self._link(*self._links.pop())
        elif tag == "code" and not self._pre:
            self._out.append("`")
        elif tag in _EMPHASIS and not self._pre:
            self._out.append(_EMPHASIS[tag])
        if _BLOCKS.fullmatch(tag):
            self._block(tag)

    def handle_data(self, data: str) -> None:
        if self._skipping:
            return
        if self._pre:
            self._out.append(data)
            return
        text = re.sub(r"\s+", " ", data)
        if self._ends("\n", " ", ""):
            text = text.lstrip()
        if text:
            self._out.append(text)

    def _block(self, tag: str) -> None:
        """Begin a new line, or leave one free, unless a list's mark precedes it."""
        if tag == "tr":
            self._cells = 0
        if not self._out or self._marked == len(self._out):
            return
        newlines = 1 if self._lists or tag in ("li", "tr", "dd", "dt") else 2
        end = "".join(piece[-2:] for piece in self._out[-2:])
        self._put("\n" * (newlines - (len(end) - len(end.rstrip("\n")))))

    def _put(self, text: str) -> None:
        if text:
            self._out.append(text)

    def _item(self) -> None:
        depth = min(max(len(self._lists) - 1, 0), _DEEPEST)
        number = self._lists[-1] if self._lists else None
        mark = "-" if number is None else f"{number}."
        if number is not None:
            self._lists[-1] = number + 1
        self._out.append(f"{'  ' * depth}{mark} ")
        self._marked = len(self._out)

    def _link(self, target: str, start: int) -> None:
        text = "".join(self._out[start:]).strip()
        if text and target.startswith(("http://", "https://")) and text != target:
            del self._out[start:]
            self._out.append(f"[{text}]({target})")

    def _ends(self, *ends: str) -> bool:
        last = self._out[-1] if self._out else ""
        return last.endswith(tuple(end for end in ends if end)) or (not last and "" in ends)
