"""JSON Lines input and output: an error in one line does not stop the others."""

import sys
from collections.abc import Callable, Iterable, Sequence

import click

from toolwire.errors import BadInput, ToolwireError
from toolwire.terminal_text import one_line
from toolwire.wire.json_access import JsonObject, dump, parse_object
from toolwire.wire.surrogates import whole_characters


def fail(error: ToolwireError) -> None:
    """Prints the error on standard error and exits with code 1."""
    click.echo(f"toolwire: {error}", err=True)
    raise SystemExit(1)


def error_object(error: ToolwireError) -> JsonObject:
    """Returns an error as the commands print it."""
    return {"kind": str(error.kind), "message": str(error)}


def each_line(answer: Callable[[JsonObject], JsonObject]) -> None:
    """Answers every line of standard input, in order."""
    out = sys.stdout
    for raw in sys.stdin.buffer:
        if not raw.strip():
            continue
        line: JsonObject = {}
        try:
            line = parse_object(whole_characters(raw), "line")
            result = answer(line)
        except ToolwireError as error:
            result = {"error": error_object(error)}
        out.write(dump({"id": line.get("id"), **result}) + "\n")
        out.flush()


def need(line: JsonObject, key: str) -> str:
    """Returns a required string member of a line."""
    value = line.get(key)
    if not isinstance(value, str):
        raise BadInput(f'the line has no "{key}"')
    return value


def echo_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows below a header, columns aligned."""
    lines = [tuple(head), *(tuple(map(one_line, row)) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(text.rstrip())
