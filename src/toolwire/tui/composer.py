"""The composer: what the user writes, its history, and pastes that are folded to one mark."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import History

from toolwire.client.redact import without_secrets
from toolwire.storage.paths import state_paths

PASTE_LINES = 8
PASTE_CHARACTERS = 1000
_KEPT = 2000
_MARK = re.compile(r"\[pasted \d+ (?:lines|characters) #(\d+)\]")


def history_file(environ: Mapping[str, str], folder: Path) -> Path:
    """Where the prompts of a folder are kept."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return state_paths(environ).state / "history" / f"{name}.jsonl"


class PromptHistory(History):
    """What was written in one folder; the newest entries, without secrets, in a private file."""

    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self._file = file

    def load_history_strings(self) -> list[str]:
        """The entries, the newest first."""
        if self._file is None:
            return []
        try:
            lines = self._file.read_text("utf-8").splitlines()[-_KEPT:]
        except (OSError, UnicodeDecodeError):
            return []
        found: list[str] = []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, str):
                found.append(entry)
        return found[::-1]

    def store_string(self, string: str) -> None:
        """Appends an entry."""
        if self._file is None:
            return
        text = without_secrets(string)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(f"{json.dumps(text)}\n")
        except OSError:
            # A history that cannot be written is no reason to lose the prompt.
            self._file = None


class Composer:
    """A buffer whose long pastes are marks until it is sent."""

    def __init__(self, history: Path | None) -> None:
        self.buffer = Buffer(
            history=PromptHistory(history), multiline=True, enable_history_search=False
        )
        self._pastes: list[str] = []

    @property
    def text(self) -> str:
        """What is written, pastes as marks."""
        return self.buffer.text

    def whole(self, text: str) -> str:
        """The text with its pastes in full."""

        def paste(found: re.Match[str]) -> str:
            number = int(found[1])
            return self._pastes[number - 1] if 0 < number <= len(self._pastes) else found[0]

        return _MARK.sub(paste, text)

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
                at = self.buffer.text.index(mark)
                self.set(self.buffer.text.replace(mark, text, 1))
                self.buffer.cursor_position = at + len(text)
                return
        else:
            self._pastes.append(text)
        self.buffer.insert_text(_mark(text, self._pastes.index(text) + 1))

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
        return whole


def clean(text: str) -> str:
    """Pasted text without control characters."""
    return re.sub(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", text.replace("\r\n", "\n").replace("\r", "\n")
    )


def _mark(text: str, number: int) -> str:
    lines = text.count("\n") + 1
    size = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
    return f"[pasted {size} #{number}]"
