"""Tables of docs/terminal.md, from the program: `python -m toolwire.tui.document`."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from toolwire.config.settings import KeySettings
from toolwire.tui.commands import COMMANDS
from toolwire.tui.entries import MARKS
from toolwire.tui.keys import listed
from toolwire.tui.live import LIVE_MARKS, STEPS
from toolwire.tui.question_rows import QUESTION_KEYS
from toolwire.tui.themes import THEMES


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    lines.insert(1, f"|{'---|' * len(head)}")
    return "\n".join(lines)


def keys() -> str:
    """The keys and what they do."""
    rows = [(names, words.rstrip(".")) for names, words in listed(KeySettings())]
    return _table(("key", "does"), rows)


def questions() -> str:
    """The keys that answer a question."""
    return _table(("key", "answer"), list(QUESTION_KEYS))


def marks() -> str:
    """The marks of calls and plans."""
    rows = [(f"`{mark}`", words) for mark, _, words in MARKS.values()]
    rows += [(f"`{mark}`", f"a step of the plan: {name}") for name, mark in STEPS.items()]
    rows += [("`☐`", "a step of the plan: pending")]
    rows += [(f"`{mark}`", words) for mark, words in LIVE_MARKS.items()]
    return _table(("mark", "meaning"), [*dict.fromkeys(rows)])


def themes() -> str:
    """The colours of every role in every theme."""
    names = [name for name in THEMES if name != "none"]
    roles = sorted({role for theme in THEMES.values() for role in theme.styles})
    rows = [
        (role.replace("_", " "), *(THEMES[name].styles.get(role, "") for name in names))
        for role in roles
    ]
    return _table(("role", *names), rows)


def commands() -> str:
    """The slash commands with their other names."""
    rows = [
        (", ".join(f"`/{name}`" for name in (one.name, *one.aliases)), one.words)
        for one in COMMANDS
    ]
    return _table(("command", "does"), rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "keys": keys,
    "questions": questions,
    "commands": commands,
    "marks": marks,
    "themes": themes,
}


def written(page: str) -> str:
    """The page with every table between its marks made again."""
    for name, table in TABLES.items():
        begins, ends = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        page = re.sub(
            re.escape(begins) + ".*?" + re.escape(ends),
            lambda _, t=table, b=begins, e=ends: f"{b}{t()}{e}",
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/terminal.md")
    file.write_text(written(file.read_text("utf-8")), "utf-8")
