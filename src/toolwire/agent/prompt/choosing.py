"""Which system prompt is used: ours, or a file that the user names."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolwire.agent.prompt.composing import PromptFacts, system_prompt
from toolwire.errors import BadInput

USED = "GEMINI_SYSTEM_MD"
WRITTEN = "GEMINI_WRITE_SYSTEM_MD"
LARGEST = 1 << 20
"""Bytes of a system prompt."""
PROJECT_FILES = (Path(".gemini") / "system.md", Path(".toolwire") / "system.md")


class SystemPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, and where it comes from; memory is not yet in it."""

    text: str
    file: str = ""
    """The user's file; empty for our own prompt."""
    written: str = ""
    """Where our own prompt was written to, if the user asked for that."""


def chosen_prompt(
    facts: PromptFacts,
    *,
    environ: Mapping[str, str],
    folder: Path,
    home: Path,
    file: Path | None = None,
    source: str = "--system",
    trusted: bool = True,
) -> SystemPrompt:
    """The file of `--system`, else that of `GEMINI_SYSTEM_MD`, else our own prompt.

    `GEMINI_WRITE_SYSTEM_MD` writes our own prompt out. A project that is not trusted may not
    bring a prompt of its own. `source` is what named the file, for errors.
    """
    own = system_prompt(facts)
    used = folder / file if file else _named(environ, USED, folder, home)
    if used is not None and not file:
        _check_project_file(used, folder, USED, trusted=trusted)
    target = _named(environ, WRITTEN, folder, home)
    if target is not None:
        # To write there, the folder needs no trust; a link in it may lead anywhere.
        _check_project_file(target, folder, WRITTEN, trusted=True)
    # Whoever uses the very file that is to be written keeps their own words.
    written = "" if target is None or target == used else _write(target, own)
    if used is None:
        return SystemPrompt(text=own, written=written)
    text = _read(used, source if file else USED)
    return SystemPrompt(text=text, file=str(used), written=written)


def _named(environ: Mapping[str, str], variable: str, folder: Path, home: Path) -> Path | None:
    value = environ.get(variable, "").strip()
    match value.lower():
        case "" | "0" | "false":
            return None
        case "1" | "true":
            present = (folder / file for file in PROJECT_FILES if _exists(folder / file))
            return next(present, folder / PROJECT_FILES[0])
        case _:
            if value == "~" or value.startswith("~/"):
                return home / value[2:]
            return folder / value


def _exists(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        # A folder that may not be entered: reading the file will say so.
        return True


def _check_project_file(file: Path, folder: Path, variable: str, *, trusted: bool) -> None:
    """BadInput for a project's file if the folder is not trusted, or if a link leads out of it."""
    real, root = file.resolve(), folder.resolve()
    written = Path(os.path.normpath(file))
    named_inside = written.is_relative_to(folder) or written.is_relative_to(root)
    if not named_inside and not real.is_relative_to(root):
        return
    if not trusted:
        raise BadInput(
            f"{variable}: {file} belongs to a folder that is not trusted; trust the folder, "
            "or name the file with --system"
        )
    if named_inside and real != root / written.relative_to(
        folder if written.is_relative_to(folder) else root
    ):
        raise BadInput(f"{variable}: {file} leads through a link; name the file itself")
    if real.exists() and not real.is_file():
        raise BadInput(f"{variable}: {file} is not a regular file")


def _read(file: Path, source: str) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise BadInput(f"{source}: {file} is larger than {LARGEST >> 20} MB; shorten it")
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError as error:
        raise BadInput(
            f"{source}: no such file: {file}; {WRITTEN}={file} writes our own prompt there to "
            "start from"
        ) from error
    except OSError as error:
        raise BadInput(f"{source}: {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{source}: {file} is not UTF-8; save it again as UTF-8") from error


def _write(file: Path, text: str) -> str:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput(f"{WRITTEN}: {file} cannot be written: {error.strerror}") from error
    return str(file)
