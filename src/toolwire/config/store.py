"""Changes a settings file: validated as a load would, then replaced atomically."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolwire.config import edit
from toolwire.config.layers import check_file
from toolwire.config.paths import ConfigFiles, read_text
from toolwire.config.schema import Key, keys
from toolwire.errors import BadInput, UnknownName


def set_value(files: ConfigFiles, file: Path, name: str, text: str, cwd: Path) -> None:
    """Stores a setting, given as text, in one of the files."""
    path = edit.split_path(name)
    key = key_of(path)
    value = _table_value(text) if key.tables else _plain_value(key, text, cwd)
    _change(files, file, lambda old: edit.assign(old, path, value))


def unset_value(files: ConfigFiles, file: Path, name: str) -> None:
    """Removes a setting from one of the files."""
    path = edit.split_path(name)
    _change(files, file, lambda old: edit.remove(old, path))


def key_of(path: tuple[str, ...]) -> Key:
    """Returns the setting at a path, or the named table that contains it."""
    name, outer = ".".join(path), path[0]
    key = keys().get(name) or keys().get(outer)
    if key is not None and key.tables:
        if name == outer:
            raise BadInput(f"{outer} is a table of names; name an entry: {outer}.<name>")
        return key
    if key is not None and key.path == name:
        return key
    inside = [one for one in keys() if one.startswith(f"{outer}.")]
    if name == outer and inside:
        raise BadInput(f"{outer} is a table; name one of {', '.join(inside)}")
    raise UnknownName("setting", name, inside or keys())


def _plain_value(key: Key, text: str, cwd: Path) -> object:
    value = key.from_text(text)
    key.read(value)
    return str(cwd / Path(text).expanduser()) if key.file and text else value


def _table_value(text: str) -> object:
    """Parses a value in a named table: TOML if valid, else the text itself."""
    try:
        found: Mapping[str, Any] = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text


def _change(files: ConfigFiles, file: Path, change: Callable[[str], str]) -> None:
    from toolwire.storage.private_files import locked_briefly, write_private  # noqa: PLC0415 - loads asyncio

    # One lock for all files, in the user's folder: none in the project.
    with locked_briefly(files.user):
        old = read_text(file)
        try:
            new = change(old or "")
        except tomllib.TOMLDecodeError as error:
            raise BadInput(f"{file} is not TOML: {error}; correct it there") from error
        except BadInput as error:
            raise BadInput(f"{file}: {error}") from error
        if new == old:
            return
        check_file(files, file, new)
        mode = file.stat().st_mode & 0o777 if old is not None else None
        write_private(file, new.encode())
        if mode is not None:
            file.chmod(mode)
