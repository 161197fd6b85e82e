"""Plain tables for the commands: columns aligned, nothing else on the line."""

from collections.abc import Iterable, Sequence

import click

from toolwire.terminal_text import one_line


def echo_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a head, each column as wide as its widest cell."""
    lines = [tuple(head), *(tuple(map(one_line, row)) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(text.rstrip())
