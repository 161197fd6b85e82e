"""The reference of the commands, made from the commands: `python -m toolwire.cli.document`."""

import sys
from collections.abc import Iterator

import click

from toolwire.cli.commands import toolwire

_HEAD = """\
# Command reference

Made by `python -m toolwire.cli.document > docs/reference.md`; do not edit by hand.

Every command with its arguments and options, as `--help` prints them. What they print, their exit
codes and examples are in [commands](commands.md).
"""


def page() -> str:
    """The whole page."""
    root = click.Context(toolwire, info_name="toolwire")
    return "\n".join((_HEAD, *(_section(one) for one in _contexts(root))))


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """The command and all below it, in the order of its help."""
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _contexts(click.Context(below, info_name=name, parent=context))


def _section(context: click.Context) -> str:
    command = context.command
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    lines = [f"## {context.command_path}", "```", usage, "```", *_paragraphs(command.help or "")]
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    rows = [row for one in options for row in _row(one, context)]
    if rows:
        lines += ["", "| option | meaning |", "|---|---|", *rows]
    return "\n".join((*lines, ""))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from ("", _plain(paragraph))


def _row(option: click.Option, context: click.Context) -> Iterator[str]:
    record = option.get_help_record(context)
    if record is not None and "--help" not in option.opts:
        names, meaning = record
        yield f"| `{_cell(names)}` | {_cell(_plain(meaning))} |"


def _plain(text: str) -> str:
    """The text on one line, with what Markdown would take for markup escaped."""
    return " ".join(text.split()).replace("[", "\\[").replace("<", "&lt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
