"""The prompt of a run: what was typed, and what comes in through a pipe."""

import os
import select
import stat
import sys
from typing import BinaryIO, TextIO

import msgspec

from toolwire.errors import BadInput

_PATIENCE = 0.5
"""Seconds for the first byte of a pipe when there is a prompt already: some callers leave their
standard input open and never write to it.
"""


class Prompt(msgspec.Struct, frozen=True):
    """What was typed, and what came in through a pipe; at least one of them says something."""

    typed: str
    piped: str


def read_prompt(argument: str | None, option: str | None) -> Prompt:
    """Both; an error if there is nothing at all."""
    if argument and option:
        raise BadInput("the prompt is given twice, as an argument and with --prompt; give one")
    typed = argument or option or ""
    # A parent may have closed it: then there is none.
    source: TextIO | None = sys.stdin
    piped = "" if source is None or source.isatty() else _piped(source.buffer, typed)
    if not typed.strip() and not piped.strip():
        raise BadInput('no prompt; say one: toolwire run "what is in this folder?"')
    return Prompt(typed if typed.strip() else "", piped if piped.strip() else "")


def _piped(source: BinaryIO, typed: str) -> str:
    if typed and not _ready(source):
        return ""
    data = source.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"standard input is not UTF-8 (byte {error.start}); convert it, or name the file with @"
        ) from error


def _ready(source: BinaryIO) -> bool:
    mode = os.fstat(source.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return True
    return bool(select.select([source], [], [], _PATIENCE)[0])
