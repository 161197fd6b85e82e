"""Table of settings, derived from their structs, and parsing of values."""

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, cast, get_type_hints

import msgspec
from msgspec import inspect

from toolwire.config.settings import Settings
from toolwire.errors import BadInput, UnknownName

PREFIX = "TOOLWIRE_"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_WITHIN = re.compile(r"at `\$(\[\d+\])`$")


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One setting."""

    path: str
    """`limits.turns`."""
    kind: Any
    """Its annotated type."""
    default: Any
    doc: str
    project: bool = False
    """A project may set it."""
    joins: bool = False
    """Lists of higher layers are appended to those of lower ones."""
    file: bool = False
    """A path, relative to the folder of the file that sets it."""
    tighter: tuple[object, ...] = ()
    """Its values, loosest first: a project may only tighten it."""
    tables: bool = False
    """Named tables; each is read as a whole."""

    @property
    def variable(self) -> str:
        """Returns the environment variable that sets it; tables have none."""
        return "" if self.tables else PREFIX + self.path.upper().replace(".", "_")

    @property
    def expected(self) -> str:
        """Returns a description of its values."""
        return "tables" if self.tables else _expected(inspect.type_info(self.kind))

    def read(self, value: object) -> Any:
        """Converts the value to this setting's type; the error names both."""
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong("", value)
        try:
            return msgspec.convert(value, self.kind)
        except msgspec.ValidationError as error:
            at = _WITHIN.search(str(error))
            raise self._wrong(at[1] if at else "", value) from error

    def from_text(self, text: str) -> object:
        """Parses a variable or an argument to a TOML value; `read` validates it."""
        match _bare(inspect.type_info(self.kind)):
            case inspect.BoolType():
                return truth(text, text)
            case inspect.IntType():
                return _number(int, text)
            case inspect.FloatType():
                return _number(float, text)
            case inspect.VarTupleType():
                return _list(self.path, text)
            case _:
                return text

    def _wrong(self, at: str, value: object) -> BadInput:
        kind = inspect.type_info(self.kind)
        found = cast(list[object], value)[int(at[1:-1])] if at else value
        if at:
            kind = cast(inspect.VarTupleType, _bare(kind)).item_type
        known = _words(kind)
        where = self.path + at
        if known and isinstance(found, str):
            return BadInput(f"{where}: {UnknownName('value', found, known)}")
        return BadInput(f"{where} must be {_expected(kind)}; found {shown(found)}")


@cache
def keys() -> Mapping[str, Key]:
    """Returns every setting by its path, in documentation order."""
    return {key.path: key for key in _keys_of(Settings, "")}


def names_in(group: str = "") -> tuple[str, ...]:
    """Returns the names allowed in a table; by default the top level."""
    prefix = f"{group}." if group else ""
    inside = [path.removeprefix(prefix) for path in keys() if path.startswith(prefix)]
    return tuple(dict.fromkeys(path.partition(".")[0] for path in inside))


def truth(text: str, other: object = None) -> object:
    """Parses common spellings of True and False, else returns the other value."""
    word = text.strip().lower()
    return word in _TRUE if word in (*_TRUE, *_FALSE) else other


def shown(value: object) -> str:
    """Returns a value as errors quote it: like TOML, tables by their kind."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a table"
        case _:
            return rendered(value)


def rendered(value: object) -> str:
    """Returns a value as TOML on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(rendered, cast(list[object], value)))}]"
        case dict():
            table = cast(dict[str, object], value)
            inside = ", ".join(f"{dotted(name)} = {rendered(one)}" for name, one in table.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            return str(value)


def dotted(*parts: str) -> str:
    """Returns a path as TOML writes it: parts that are not bare keys in quotes."""
    return ".".join(
        part if _is_bare(part) else msgspec.json.encode(part).decode() for part in parts
    )


def _is_bare(part: str) -> bool:
    return bool(part) and part.isascii() and part.replace("-", "_").replace("_", "a").isalnum()


def _keys_of(struct: type[msgspec.Struct], prefix: str) -> list[Key]:
    hints = get_type_hints(struct, include_extras=True)
    found: list[Key] = []
    for field in msgspec.structs.fields(struct):
        kind = hints[field.name]
        # `from` is a word of Python.
        path = prefix + field.name.rstrip("_")
        rules, doc = _annotations(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            found += _keys_of(kind, f"{path}.")
        elif doc:
            default = field.default if field.default_factory is msgspec.NODEFAULT else None
            found.append(Key(path=path, kind=kind, default=default, doc=doc, **rules))
    return found


def _annotations(kind: Any) -> tuple[dict[str, Any], str]:
    notes: tuple[object, ...] = getattr(kind, "__metadata__", ())
    for meta in reversed(notes):
        if isinstance(meta, msgspec.Meta) and meta.description is not None:
            return dict(meta.extra or {}), meta.description
    return {}, ""


def _bare(kind: inspect.Type) -> inspect.Type:
    """Returns the type without annotations and without None."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _bare(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
    return kind


def _words(kind: inspect.Type) -> tuple[str, ...]:
    match _bare(kind):
        case inspect.LiteralType(values):
            return tuple(map(str, values))
        case inspect.EnumType(cls) if issubclass(cls, StrEnum):
            return tuple(map(str, cls))
        case _:
            return ()


def _expected(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.Metadata):
        extra = cast(dict[str, str], kind.extra or {})  # pyright: ignore[reportUnknownMemberType] - a bare dict in msgspec
        if "expected" in extra:
            return extra["expected"]
    words = _words(kind)
    if words:
        return f"one of {', '.join(map(shown, words))}"
    match _bare(kind):
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() as number:
            return f"a whole number{_range(number)}"
        case inspect.FloatType() as number:
            return f"a number{_range(number)}"
        case inspect.VarTupleType(item):
            return f"a list, each {_expected(item)}"
        case _:
            return "text"


def _range(number: inspect.IntType | inspect.FloatType) -> str:
    if number.gt is not None and number.lt is not None:
        return f" between {number.gt} and {number.lt}"
    if number.ge is not None and number.le is not None:
        return f" from {number.ge} to {number.le}"
    return f" of at least {number.ge}" if number.ge is not None else ""


def _number(kind: Callable[[str], float], text: str) -> object:
    try:
        return kind(text)
    except ValueError:
        return text


def _list(path: str, text: str) -> object:
    if not text.lstrip().startswith("["):
        return [word.strip() for word in text.split(",") if word.strip()]
    try:
        return tomllib.loads(f"list = {text}")["list"]
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f'{path}: not a list: {error}; write a,b or ["a", "b"]') from error
