"""The composer: what the user writes, pastes that are folded to one mark, and pictures."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prompt_toolkit.buffer import Buffer

from toolwire.tools.files.contents import mime_of
from toolwire.tui.history import Drafts, PromptHistory

PASTE_LINES = 8
PASTE_CHARACTERS = 1000
_PASTE = re.compile(r"\[pasted \d+ (?:lines|characters) #(\d+)\]")
_IMAGE = re.compile(r"\[image (\d+)\]")
_LONGEST_PATH = 4096
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Composer:
    """A buffer whose long pastes and pictures are marks until it is sent."""

    def __init__(self, history: Path | None) -> None:
        self.buffer = Buffer(
            history=PromptHistory(history), multiline=True, enable_history_search=False
        )
        self.drafts = Drafts(history)
        self._pastes: list[str] = []
        self._images: list[Path] = []

    @property
    def text(self) -> str:
        """What is written, pastes as marks."""
        return self.buffer.text

    def whole(self, text: str) -> str:
        """The text with its pastes in full."""

        def paste(found: re.Match[str]) -> str:
            number = int(found[1])
            return self._pastes[number - 1] if 0 < number <= len(self._pastes) else found[0]

        return _PASTE.sub(paste, text)

    def images(self, text: str) -> tuple[Path, ...]:
        """The pictures whose marks are in a text, in their order."""
        numbers = dict.fromkeys(int(found[1]) for found in _IMAGE.finditer(text))
        return tuple(self._images[one - 1] for one in numbers if 0 < one <= len(self._images))

    def attach(self, image: Path) -> None:
        """Inserts the mark of a picture."""
        if image not in self._images:
            self._images.append(image)
        before = self.buffer.document.char_before_cursor
        blank = " " if before and not before.isspace() else ""
        self.buffer.insert_text(f"{blank}[image {self._images.index(image) + 1}] ")

    def paste(self, text: str) -> None:
        """Inserts pasted text; a long one as a mark, the same one again in full."""
        text = clean(text)
        lines = text.count("\n") + 1
        if lines <= PASTE_LINES and len(text) <= PASTE_CHARACTERS:
            self.buffer.insert_text(text)
            return
        if text in self._pastes:
            mark = _mark(text, self._pastes.index(text) + 1)
            if mark in self.buffer.text:
                self._replace(self.buffer.text.index(mark), mark, text)
                return
        else:
            self._pastes.append(text)
        self.buffer.insert_text(_mark(text, self._pastes.index(text) + 1))

    def unfold(self) -> bool:
        """Replaces the mark under the cursor by its paste; False if there is none."""
        at = self.buffer.cursor_position
        for found in _PASTE.finditer(self.buffer.text):
            if found.start() <= at < found.end() and self.whole(found[0]) != found[0]:
                self._replace(found.start(), found[0], self.whole(found[0]))
                return True
        return False

    def _replace(self, at: int, mark: str, text: str) -> None:
        before = self.buffer.text
        self.set(before[:at] + text + before[at + len(mark) :])
        self.buffer.cursor_position = at + len(text)

    def set(self, text: str) -> None:
        """Replaces what is written; the cursor goes to the end."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    def take(self) -> str:
        """Returns what is written in full, and clears the composer."""
        text = self.buffer.text
        if text.strip():
            self.buffer.history.append_string(text)
        whole = self.whole(text)
        self.buffer.text = ""
        self.buffer.reset()
        self._pastes.clear()
        self.drafts.store("")
        return whole

    def store_draft(self) -> None:
        """Stores what is written, for the case of a crash."""
        self.drafts.store(self.whole(self.buffer.text))


def clean(text: str) -> str:
    """Pasted text without control characters."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def pasted_images(text: str, folder: Path) -> tuple[Path, ...]:
    """The pictures whose paths were pasted or dropped; empty if there is anything else."""
    text = text.strip()
    if not text or len(text) > _LONGEST_PATH:
        return ()
    found: list[Path] = []
    for word in _words(text):
        path = folder / Path(word).expanduser()
        try:
            if not (mime_of(path.name) or "").startswith("image/") or not path.is_file():
                return ()
        except (OSError, ValueError):
            return ()
        found.append(path)
    return tuple(found)


def _words(text: str) -> Iterator[str]:
    """The paths in dropped text: quoted, escaped, or as addresses of files."""
    import shlex  # noqa: PLC0415 - only for a paste

    words = [text]
    with suppress(ValueError):
        words = shlex.split(text)
    if "\n" in text:
        words = text.split("\n")
    for word in words:
        yield unquote(urlsplit(word).path) if word.startswith("file://") else word.strip()


def _mark(text: str, number: int) -> str:
    lines = text.count("\n") + 1
    size = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
    return f"[pasted {size} #{number}]"
