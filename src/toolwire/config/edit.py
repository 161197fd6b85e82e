"""Changes a settings file: one value, comments and layout kept, validated as a load would."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias, cast

from toolwire.config.layers import ConfigFiles, check_file, read_text
from toolwire.config.schema import Key, dotted, keys, rendered
from toolwire.errors import BadInput, UnknownName

KeyPath: TypeAlias = tuple[str, ...]
_Edit: TypeAlias = Callable[[str, KeyPath, dict[str, Any]], Iterator[str]]
_PART = re.compile(r"([A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')(?:\.(?=.)|$)")


def set_value(files: ConfigFiles, file: Path, name: str, text: str, cwd: Path) -> None:
    """Stores a setting, given as text, in one of the files."""
    path = split_path(name)
    key = key_of(path)
    value = _table_value(text) if key.tables else _plain_value(key, text, cwd)
    _change(files, file, lambda old: assign(old, path, value))


def set_table(files: ConfigFiles, file: Path, path: KeyPath, table: Mapping[str, Any]) -> None:
    """Stores a whole table below its own header; replaces one of that name."""

    def change(old: str) -> str:
        rest = old
        if _without(tomllib.loads(old), path) is not None:
            rest = remove(old, path)
        target = _with(tomllib.loads(rest), path, dict(table))
        gap = "\n" if rest.strip() else ""
        lines = "".join(f"{dotted(key)} = {rendered(value)}\n" for key, value in table.items())
        added = f"{_ended(rest)}{gap}[{dotted(*path)}]\n{lines}"
        return added if _reads_as(target, added) else assign(rest, path, dict(table))

    _change(files, file, change)


def unset_value(files: ConfigFiles, file: Path, name: str) -> None:
    """Removes a setting from one of the files."""
    path = split_path(name)
    _change(files, file, lambda old: remove(old, path))


def key_of(path: KeyPath) -> Key:
    """Returns the setting at a path, or the named table that contains it."""
    name, outer = ".".join(path), path[0]
    outside = (".".join(path[: depth + 1]) for depth in range(len(path)))
    key = next((keys()[one] for one in outside if one in keys()), None)
    if key is not None and key.tables:
        if name == key.path:
            raise BadInput(f"{name} is a table of names; name an entry: {name}.<name>")
        return key
    if key is not None and key.path == name:
        return key
    inside = [one for one in keys() if one.startswith(f"{outer}.")]
    if name == outer and inside:
        raise BadInput(f"{outer} is a table; name one of {', '.join(inside)}")
    raise UnknownName("setting", name, inside or keys())


def split_path(text: str) -> KeyPath:
    """Splits `models."a/b".context` into its parts."""
    parts: list[str] = []
    at = 0
    while (part := _PART.match(text, at)) is not None and part[1]:
        quoted = part[1][0] in "\"'"
        parts.append(tomllib.loads(f"key = {part[1]}")["key"] if quoted else part[1])
        at = part.end()
    if not parts or at != len(text):
        raise BadInput(
            f"{text!r} is not the path of a setting; write a.b, and quote names with other "
            'characters: models."provider/model".context'
        )
    return tuple(parts)


def assign(text: str, path: KeyPath, value: object) -> str:
    """Returns the text with the value at the path."""
    target = _with(tomllib.loads(text), path, value)
    return _edited(text, path, target, _assigned)


def remove(text: str, path: KeyPath) -> str:
    """Returns the text without that path; a path that is not set is an error."""
    target = _without(tomllib.loads(text), path)
    if target is None:
        raise BadInput(f"{dotted(*path)} is not set there")
    return _edited(text, path, target, _removed)


def _edited(text: str, path: KeyPath, target: dict[str, Any], edit: _Edit) -> str:
    """Returns the first edit that reads as `target`."""
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - slow to load

    windows = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    try:
        for changed in edit(text.replace("\r\n", "\n") if windows else text, path, target):
            if _reads_as(target, changed):
                return changed.replace("\n", "\r\n") if windows else changed
    except TOMLKitError:
        # It refuses some valid files, such as tables in several parts below an array.
        pass
    raise BadInput(f"{dotted(*path)} cannot be changed automatically in this file; edit it by hand")


def _reads_as(target: dict[str, Any], text: str) -> bool:
    try:
        return _without_empty(tomllib.loads(text)) == _without_empty(target)
    except tomllib.TOMLDecodeError:
        return False


def _assigned(text: str, path: KeyPath, target: dict[str, Any]) -> Iterator[str]:
    """Yields the text with the value replaced, or added in one of two places."""
    import tomlkit  # noqa: PLC0415 - slow to load, and needed for changes only
    from tomlkit.container import OutOfOrderTableProxy  # noqa: PLC0415 - as above
    from tomlkit.items import AoT, Table  # noqa: PLC0415 - as above

    document = tomlkit.parse(text)
    table, depth, dotted_keys = _nearest(document, path)
    rest = path[depth:]
    if rest[0] in table:
        if not isinstance(table[rest[0]], Table | AoT | OutOfOrderTableProxy):
            table[rest[0]] = tomlkit.value(rendered(_at(target, path[: depth + 1])))
            yield document.as_string()
        return
    value = rendered(_at(target, path))
    line = f"{dotted(path[-1])} = {value}\n"
    if len(path) == 1:
        yield _above_tables(text, line)
        return
    has_header = isinstance(table, Table) and table.display_name and len(rest) == 1
    if not has_header and not dotted_keys:
        gap = "\n" if text.strip() else ""
        yield f"{_ended(text)}{gap}[{dotted(*path[:-1])}]\n{line}"
    item = tomlkit.value(value)
    indents = [one.trivia.indent for one in _items(table) if hasattr(one, "trivia")]
    item.trivia.indent = indents[-1] if indents else ""
    table[rest[0] if len(rest) == 1 else tomlkit.key(rest)] = item
    yield document.as_string()


def _nearest(document: Any, path: KeyPath) -> tuple[Any, int, bool]:
    """Returns the innermost table of the path, its depth, and whether dotted keys make it."""
    from tomlkit.items import InlineTable  # noqa: PLC0415 - as above

    table, dotted_keys = document, False
    for depth, name in enumerate(path[:-1]):
        if name not in table or isinstance(table[name], InlineTable):
            return table, depth, dotted_keys
        body = getattr(getattr(table, "value", table), "body", ())
        dotted_keys = any(
            key is not None and key.key == name and key.is_dotted() for key, _ in body
        )
        table = table[name]
    return table, len(path) - 1, dotted_keys


def _items(table: Any) -> list[Any]:
    return list(table.values())


def _at(table: Any, path: KeyPath) -> Any:
    for name in path:
        table = table[name]
    return table


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _above_tables(text: str, line: str) -> str:
    """Returns the text with a new line above all tables and the comment of the first one."""
    lines = list(StringIO(text))
    at = next((at for at, one in enumerate(lines) if _is_header(one, lines[:at])), len(lines))
    if at == len(lines):
        return _ended(text) + line
    while at and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    above = at
    while above and not lines[above - 1].strip():
        above -= 1
    if above and not lines[above - 1].lstrip().startswith("#"):
        lines.insert(above, line)
    else:
        lines.insert(at, f"{line}\n")
    return "".join(lines)


def _is_header(line: str, above: list[str]) -> bool:
    """Whether a line begins a table; inside a value, the lines above it are not complete."""
    if not line.lstrip().startswith("["):
        return False
    try:
        tomllib.loads("".join(above))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _removed(text: str, path: KeyPath, target: dict[str, Any]) -> Iterator[str]:
    import tomlkit  # noqa: PLC0415 - as above

    document = tomlkit.parse(text)
    table, depth, _ = _nearest(document, path)
    if depth == len(path) - 1:
        del table[path[-1]]
    else:
        table[path[depth]] = tomlkit.value(rendered(_at(target, path[: depth + 1])))
    yield document.as_string()


def _without_empty(table: dict[str, Any]) -> dict[str, Any]:
    """Returns the tables that are not empty: a table goes with its last dotted key."""
    inner = {
        name: _without_empty(cast(dict[str, Any], value)) if isinstance(value, dict) else value
        for name, value in table.items()
    }
    return {name: value for name, value in inner.items() if value != {}}


def _with(table: dict[str, Any], path: KeyPath, value: object) -> dict[str, Any]:
    if len(path) == 1:
        # What a TOML reader gives for the text we write.
        return {**table, path[0]: tomllib.loads(f"value = {rendered(value)}")["value"]}
    inner = table.get(path[0], {})
    if not isinstance(inner, dict):
        raise BadInput(f"{path[0]} is not a table there; edit the file by hand")
    return {**table, path[0]: _with(cast(dict[str, Any], inner), path[1:], value)}


def _without(table: dict[str, Any], path: KeyPath) -> dict[str, Any] | None:
    if path[0] not in table:
        return None
    if len(path) == 1:
        return {name: value for name, value in table.items() if name != path[0]}
    inner = table[path[0]]
    rest = _without(cast(dict[str, Any], inner), path[1:]) if isinstance(inner, dict) else None
    return None if rest is None else {**table, path[0]: rest}


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


NEW_FILE = """\
#:schema https://raw.githubusercontent.com/toolwire/toolwire/main/docs/settings.schema.json
# Settings of toolwire: `toolwire config show` lists them all with their values.
"""


def store(files: ConfigFiles, file: Path, text: str, before: str | None) -> None:
    """Stores a whole file that was edited, if it is valid and nothing else changed it."""
    from toolwire.storage.private_files import locked_briefly  # noqa: PLC0415 - loads asyncio

    with locked_briefly(files.user):
        if read_text(file) != before:
            raise BadInput(f"{file} was changed by another program meanwhile")
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BadInput(f"{file} would not be TOML: {error}") from error
        _write(files, file, text, before is not None)


def _write(files: ConfigFiles, file: Path, text: str, exists: bool) -> None:
    from toolwire.storage.private_files import write_private  # noqa: PLC0415 - loads asyncio

    check_file(files, file, text)
    mode = file.stat().st_mode & 0o777 if exists else None
    write_private(file, text.encode())
    if mode is not None:
        file.chmod(mode)


def _change(files: ConfigFiles, file: Path, change: Callable[[str], str]) -> None:
    from toolwire.storage.private_files import locked_briefly  # noqa: PLC0415 - loads asyncio

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
        _write(files, file, new, old is not None)
