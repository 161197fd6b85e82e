"""Generates the page about the settings: `python -m toolwire.config.document`."""

import sys
from collections.abc import Iterable
from pkgutil import get_data

from toolwire.config.schema import Key, keys, rendered


def page() -> str:
    """Returns the whole page."""
    words = (get_data("toolwire.config", "document.md") or b"").decode()
    return words.replace("{table}", _table(keys().values()))


def _table(found: Iterable[Key]) -> str:
    rows = (
        f"| `{key.path}` | {_cell(key.expected)} | {_default(key)} | {_project(key)} | "
        f"{_variable(key)} | {_cell(key.doc)} |"
        for key in found
    )
    head = "| setting | value | default | project | variable | meaning |"
    return "\n".join((head, "|---|---|---|---|---|---|", *rows))


def _default(key: Key) -> str:
    if key.tables or key.default is None:
        return ""
    return f"`{rendered(key.default)}`"


def _project(key: Key) -> str:
    return "yes" if key.project else "no"


def _variable(key: Key) -> str:
    return f"`{key.variable}`" if key.variable else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
