"""What was written in a folder: prompts of all its sessions, and drafts that survive a crash."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

from toolwire.client.redact import without_secrets
from toolwire.errors import BadInput
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import replace_file, write_private

_MOST = 2000
"""Entries that are stored."""
_LONGEST_DRAFT = 1 << 20
_KEYS = re.compile(
    # Keys by their vendors' prefixes, JSON web tokens, and what follows a word such as password=.
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}|hf_[A-Za-z0-9]{20,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
    r"|(?<=[Bb]earer )[\w.~+/=-]{12,}"
    r"|(?i:(?<=password=)|(?<=passwd=)|(?<=token=)|(?<=secret=)|(?<=api_key=)|(?<=apikey=))"
    r"[^\s&;'\"]{4,}"
)


def starred(text: str) -> str:
    """The text with known secrets, and what looks like one, as stars."""
    return _KEYS.sub("***", without_secrets(text))


def history_file(environ: Mapping[str, str], folder: Path) -> Path:
    """Where the prompts of a folder are stored."""
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
            lines = self._file.read_bytes().decode("utf-8", "replace").split("\n")
        except OSError:
            return []
        if len(lines) > 2 * _MOST:
            lines = lines[-_MOST - 1 :]
            with suppress(OSError):
                replace_file(self._file, "\n".join(lines).encode())
        return [entry for entry in map(_entry, reversed(lines[-_MOST - 1 :])) if entry]

    def store_string(self, string: str) -> None:
        """Appends an entry."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                # One write: other sessions of the folder append to the same file.
                os.write(descriptor, f"{json.dumps(starred(string))}\n".encode())
            finally:
                os.close(descriptor)
        except OSError:
            # A history that cannot be written is not a reason to lose the prompt.
            self._file = None


def _entry(line: str) -> str:
    try:
        entry: object = json.loads(line)
    except ValueError:
        return ""
    return entry if isinstance(entry, str) else ""


class Drafts:
    """What is written and not sent, in a file of this process; left behind only by a crash."""

    def __init__(self, history: Path | None) -> None:
        self._folder = history.parent if history is not None else None
        self._stem = history.stem if history is not None else ""
        self._stored: str = ""

    def store(self, text: str) -> None:
        """Stores the text; an empty one removes the file."""
        if self._folder is None or text == self._stored:
            return
        self._stored = text
        file = self._folder / f"{self._stem}.{os.getpid()}.draft"
        try:
            if text.strip() and len(text) <= _LONGEST_DRAFT:
                write_private(file, starred(text).encode("utf-8", "replace"))
            else:
                file.unlink(missing_ok=True)
        except (OSError, BadInput):
            self._folder = None

    def left_behind(self) -> str:
        """Takes over the newest draft of a process that no longer runs; empty without one."""
        if self._folder is None:
            return ""
        found: list[tuple[float, str]] = []
        with suppress(OSError):
            for file in self._folder.glob(f"{self._stem}.*.draft"):
                owner = file.name.split(".")[-2]
                if owner.isdigit() and not _runs(int(owner)):
                    with suppress(OSError, UnicodeDecodeError):
                        found.append((file.stat().st_mtime, file.read_text("utf-8")))
                        file.unlink()
        return max(found, default=(0.0, ""))[1]


def _runs(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def searched(words: str, entries: Iterable[str]) -> list[str]:
    """The entries that contain all words, in their order, each once."""
    wanted = words.lower().split()
    found: dict[str, None] = {}
    for entry in entries:
        text = entry.lower()
        if all(word in text for word in wanted):
            found.setdefault(entry)
    return list(found)
