"""Paths of the settings files: system, user and project."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolwire.errors import BadInput
from toolwire.storage.paths import state_paths

FILE = "config.toml"
PROJECT_FILE = Path(".toolwire") / FILE
SYSTEM_VARIABLE = "TOOLWIRE_SYSTEM_CONFIG"


class ConfigFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Settings files, lowest precedence first; they may not exist."""

    system: Path
    user: Path
    project: Path


def current_folder() -> Path:
    """Returns the current folder; BadInput if it was deleted."""
    try:
        return Path.cwd()
    except OSError as error:
        raise BadInput("the current folder no longer exists; change to another") from error


def config_files(environ: Mapping[str, str], cwd: Path) -> ConfigFiles:
    """Returns the files for this environment and folder."""
    return ConfigFiles(
        system=_system(environ),
        user=state_paths(environ).config / FILE,
        project=cwd / PROJECT_FILE,
    )


def _system(environ: Mapping[str, str]) -> Path:
    named = environ.get(SYSTEM_VARIABLE, "")
    if named:
        file = Path(named).expanduser()
        if not file.exists():
            raise BadInput(f"{SYSTEM_VARIABLE}: no file {file}; correct the variable or unset it")
        return file
    if sys.platform == "win32":
        return Path(environ.get("PROGRAMDATA") or r"C:\ProgramData") / "toolwire" / FILE
    return Path("/etc/toolwire") / FILE


def read_text(file: Path) -> str | None:
    """Returns the file's text with its line ends; None without a file."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = error.strerror or os.strerror(error.errno or 0)
        raise BadInput(f"{file} cannot be read: {why}; check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8; save it again as UTF-8") from error
