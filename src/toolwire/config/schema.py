"""The table of settings, made from the structs that hold them, and the reading of one value."""

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
    """A project may make it."""
    joins: bool = False
    """Lists of stronger layers are added to those of weaker ones."""
    file: bool = False
    """A path, taken from the folder of the file that names it."""
    tighter: tuple[object, ...] = ()
    """Its values, the loosest first: a project may only move on in that order."""
    tables: bool = False
    """Tables by name; each is read as a whole."""

    @property
    def variable(self) -> str:
        """The environment variable that sets it; tables have none."""
        return "" if self.tables else PREFIX + self.path.upper().replace(".", "_")

    @property
    def wanted(self) -> str:
        """The values it takes, in words."""
        return "tables" if self.tables else _wanted(inspect.type_info(self.kind))

    def read(self, value: object) -> Any:
        """The value as this setting's type; the error says what was found and what is wanted."""
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong("", value)
        try:
            return msgspec.convert(value, self.kind)
        except msgspec.ValidationError as error:
            at = _WITHIN.search(str(error))
            raise self._wrong(at[1] if at else "", value) from error

    def from_text(self, text: str) -> object:
        """What a variable or an argument says, as a TOML file would; `read` judges it."""
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
        return BadInput(f"{where} must be {_wanted(kind)}; found {shown(found)}")


@cache
def keys() -> Mapping[str, Key]:
    """Every setting by its path, in the order of the page about them."""
    return {key.path: key for key in _keys_of(Settings, "")}


def names_in(group: str = "") -> tuple[str, ...]:
    """The names that may stand in a table; the outermost by default."""
    prefix = f"{group}." if group else ""
    inside = [path.removeprefix(prefix) for path in keys() if path.startswith(prefix)]
    return tuple(dict.fromkeys(path.partition(".")[0] for path in inside))


def truth(text: str, other: object = None) -> object:
    """True or False as people write them, else the other value."""
    said = text.strip().lower()
    return said in _TRUE if said in (*_TRUE, *_FALSE) else other


def shown(value: object) -> str:
    """A value as a TOML file has it, for people."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return msgspec.json.encode(str(value)).decode()
        case list() | tuple():
            return f"[{', '.join(map(shown, cast(list[object], value)))}]"
        case dict():
            return "a table"
        case _:
            return str(value)


def dotted(*parts: str) -> str:
    """A path as TOML writes it: parts that are no bare words in quotes."""
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
        path = prefix + field.name
        rules, doc = _said(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            found += _keys_of(kind, f"{path}.")
        elif "group" in rules:
            found += _keys_of(rules["group"], f"{path}.")
        elif doc:
            default = field.default if field.default_factory is msgspec.NODEFAULT else None
            found.append(Key(path=path, kind=kind, default=default, doc=doc, **rules))
    return found


def _said(kind: Any) -> tuple[dict[str, Any], str]:
    notes: tuple[object, ...] = getattr(kind, "__metadata__", ())
    for meta in reversed(notes):
        if isinstance(meta, msgspec.Meta) and meta.description is not None:
            return dict(meta.extra or {}), meta.description
    return {}, ""


def _bare(kind: inspect.Type) -> inspect.Type:
    """The type without notes, and without the None of what may be left unsaid."""
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


def _wanted(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.Metadata):
        extra = cast(dict[str, str], kind.extra or {})  # pyright: ignore[reportUnknownMemberType] - a bare dict in msgspec
        if "wanted" in extra:
            return extra["wanted"]
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
            return f"a list, each {_wanted(item)}"
        case _:
            return "text"


def _range(number: inspect.IntType | inspect.FloatType) -> str:
    if number.gt is not None and number.lt is not None:
        return f" between {number.gt} and {number.lt}"
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
        raise BadInput(f'{path}: no list: {error}; write a,b or ["a", "b"]') from error
