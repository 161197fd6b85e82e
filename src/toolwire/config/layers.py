"""Settings files and their layers, lowest precedence first: defaults to flags."""

import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolwire.config import trust
from toolwire.config.merging import Layer, Merged, Resolved
from toolwire.config.schema import keys
from toolwire.config.settings import Settings
from toolwire.errors import BadInput, ToolwireError
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


FLAG = "flag"


def load(
    environ: Mapping[str, str],
    cwd: Path,
    *,
    flags: Mapping[str, object] | None = None,
    trusted: bool | None = None,
    ask: trust.Ask | None = None,
    notice: Callable[[str], None] | None = None,
) -> Settings:
    """Returns the settings of this user in this folder; missing files are skipped.

    `flags` are values by path (`limits.turns`), None for those not given. A project's file applies
    if the folder is trusted: by `trusted`, else the environment, else the stored answer, else
    `ask`. A file skipped for that is reported to `notice`.
    """
    resolved = resolve(environ, cwd, flags=flags, trusted=trusted, ask=ask, notice=notice)
    return resolved.settings


def resolve(
    environ: Mapping[str, str],
    cwd: Path,
    *,
    flags: Mapping[str, object] | None = None,
    trusted: bool | None = None,
    ask: trust.Ask | None = None,
    notice: Callable[[str], None] | None = None,
) -> Resolved:
    """Returns the settings with the origin of each value."""
    files = config_files(environ, cwd)
    if trusted is None:
        trusted = _trusted(files, environ, cwd, ask, notice or _to_stderr)
    found = Merged()
    for layer in (
        *_of_files(files, with_project=bool(trusted)),
        *_of_variables(environ, cwd),
        *_of_flags(flags or {}, cwd),
    ):
        found.add(layer, files.user)
    for words in found.notices:
        (notice or _to_stderr)(words)
    return found.resolved(trusted=trusted)


def check_file(files: ConfigFiles, file: Path, text: str) -> None:
    """Validates a file with this text, on top of the lower layers."""
    found = Merged()
    for kind in ("system", "user", "project"):
        one: Path = getattr(files, kind)
        content = text if one == file else read_text(one)
        if content is not None:
            found.add(file_layer(one, content, kind), files.user)
        if one == file:
            return


def has_project_file(files: ConfigFiles) -> bool:
    """Whether the folder has project settings; the user's file is not a project's."""
    try:
        return files.project.exists() and not (
            files.user.exists() and files.project.samefile(files.user)
        )
    except OSError:
        return True


def parse(file: Path, text: str) -> dict[str, Any]:
    """Parses the file's text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file} is not TOML: {error}; correct it there") from error


def file_layer(file: Path, text: str, kind: str = "user") -> Layer:
    """Returns the layer of a file with this text."""
    return Layer(origin=str(file), table=parse(file, text), base=file.parent, file=file, kind=kind)


def _trusted(
    files: ConfigFiles,
    environ: Mapping[str, str],
    cwd: Path,
    ask: trust.Ask | None,
    notice: Callable[[str], None],
) -> bool | None:
    brings = has_project_file(files)
    prompt = _project_prompt(environ, cwd)
    trusted = trust.decide(cwd, environ, ask if brings or prompt else None)
    if trusted is None and brings:
        changed = "it changed since this folder was trusted"
        why = changed if trust.has_changed(cwd, environ) else "this folder is not trusted"
        notice(
            f"{files.project} is skipped because {why}; "
            'run "toolwire config trust" to use it, or "toolwire config trust --no"'
        )
    if trusted and (brings or prompt):
        trust.pin(cwd, environ)
    return trusted


def _project_prompt(environ: Mapping[str, str], cwd: Path) -> bool:
    """Whether the folder has a system prompt that the environment requests."""
    choice = environ.get("GEMINI_SYSTEM_MD", "").strip().lower()
    if choice in ("", "0", "false"):
        return False
    return any((cwd / file).is_file() for file in trust.PROMPT_FILES)


def _to_stderr(message: str) -> None:
    sys.stderr.write(f"toolwire: {message}\n")


def _of_files(files: ConfigFiles, *, with_project: bool) -> Iterator[Layer]:
    sources = {"system": files.system, "user": files.user}
    if with_project and has_project_file(files):
        sources["project"] = files.project
    for kind, file in sources.items():
        text = read_text(file)
        if text is not None:
            yield file_layer(file, text, kind)


def _of_variables(environ: Mapping[str, str], cwd: Path) -> Iterator[Layer]:
    for key in keys().values():
        text = environ.get(key.variable, "") if key.variable else ""
        if text:
            try:
                table = _nested(key.path, key.from_text(text))
            except ToolwireError as error:
                raise BadInput(f"{key.variable}: {error}") from error
            yield Layer(origin=key.variable, table=table, base=cwd)


def _of_flags(flags: Mapping[str, object], cwd: Path) -> Iterator[Layer]:
    for path, value in flags.items():
        if value is not None:
            yield Layer(origin=FLAG, table=_nested(path, value), base=cwd)


def _nested(path: str, value: object) -> dict[str, Any]:
    outer, dot, inner = path.partition(".")
    return {outer: _nested(inner, value) if dot else value}
