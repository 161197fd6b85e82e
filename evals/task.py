"""What a task is, what came of it, and the checks that tell whether it is done."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call the model made."""

    name: str
    arguments: dict[str, Any]
    """Empty where they could not be read."""
    started: bool
    """Whether the tool ran."""
    success: bool
    result: str
    valid: bool
    """Whether the arguments fit the tool's own schema."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """All that came of one task."""

    folder: Path
    calls: tuple[Call, ...] = ()
    reply: str = ""
    end: str = ""
    """Why the turn ended."""
    seconds: float = 0.0

    @property
    def first(self) -> Call | None:
        """The call a one-step task is judged by."""
        return self.calls[0] if self.calls else None

    @property
    def invalid_executed(self) -> int:
        """Calls that ran although their arguments do not fit; there must be none."""
        return sum(call.started and not call.valid for call in self.calls)


Check: TypeAlias = Callable[[Outcome], str]
"""Why the task is not done; empty if it is."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A request about a project, and what a good answer to it is."""

    id: str
    project: str
    prompt: str
    tools: tuple[str, ...] = ()
    """Tools that are right for the first call; empty where none is needed."""
    arguments: str = ""
    """A pattern that the first call's arguments must hold, as JSON with paths from the root."""
    done: tuple[Check, ...]

    def right_tool(self, outcome: Outcome) -> bool:
        """Whether the first call, or its absence, is right."""
        first = outcome.first
        return first.name in self.tools if first is not None else not self.tools

    def right_arguments(self, outcome: Outcome) -> bool:
        """Whether the first call is right in its arguments too."""
        first = outcome.first
        if not self.right_tool(outcome):
            return False
        return first is None or re.search(self.arguments, _written(first, outcome)) is not None

    def missing(self, outcome: Outcome) -> str:
        """What is not done yet; empty if all is."""
        return next((why for check in self.done if (why := check(outcome))), "")


def _written(call: Call, outcome: Outcome) -> str:
    text = json.dumps(call.arguments, ensure_ascii=False)
    root = str(outcome.folder)
    return text.replace(f"{root}/", "").replace(root, ".")


def says(*words: str) -> Check:
    """The reply holds each of these patterns."""

    def check(outcome: Outcome) -> str:
        absent = [word for word in words if not re.search(word, outcome.reply, re.IGNORECASE)]
        return f"the reply does not say {', '.join(absent)}" if absent else ""

    return check


def shows(*words: str) -> Check:
    """The reply or a result that the person saw holds each of these patterns."""

    def check(outcome: Outcome) -> str:
        seen = [outcome.reply, *(call.result for call in outcome.calls if call.success)]
        text = "\n".join(seen)
        absent = [word for word in words if not re.search(word, text, re.IGNORECASE)]
        return f"nothing shows {', '.join(absent)}" if absent else ""

    return check


def answers(outcome: Outcome) -> str:
    """There is a reply at all."""
    return "" if outcome.reply.strip() else "there is no reply"


def holds(path: str, *words: str) -> Check:
    """The file is there and holds each of these patterns."""

    def check(outcome: Outcome) -> str:
        file = outcome.folder / path
        if not file.is_file():
            return f"{path} is not there"
        text = file.read_text("utf-8", "replace")
        absent = [word for word in words if not re.search(word, text, re.MULTILINE)]
        return f"{path} does not hold {', '.join(absent)}" if absent else ""

    return check


def lacks(path: str, word: str) -> Check:
    """The file is there and the pattern is not in it."""

    def check(outcome: Outcome) -> str:
        file = outcome.folder / path
        if not file.is_file():
            return f"{path} is not there"
        found = re.search(word, file.read_text("utf-8", "replace"), re.MULTILINE)
        return f"{path} still holds {word}" if found else ""

    return check


def gone(path: str) -> Check:
    """The file or folder is not there."""
    return lambda outcome: f"{path} is still there" if (outcome.folder / path).exists() else ""


def there(path: str) -> Check:
    """The file or folder is there."""
    return lambda outcome: "" if (outcome.folder / path).exists() else f"{path} is not there"


def untouched(outcome: Outcome) -> str:
    """Nothing was called."""
    return "a tool was called where none is needed" if outcome.calls else ""


def unchanged(outcome: Outcome) -> str:
    """No file was changed, made or removed: a question was asked, nothing more."""
    git = ("git", "-C", str(outcome.folder), "status", "--porcelain", "--", ":!*__pycache__*")
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    changed = ", ".join(line[3:] for line in done.stdout.splitlines())
    return f"changed without being asked: {changed}" if changed else ""
