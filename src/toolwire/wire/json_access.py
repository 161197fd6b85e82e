"""Typed access to received JSON; errors name the path and the expected type."""

from typing import Any, TypeAlias, TypeGuard, cast

import msgspec

from toolwire.errors import BadInput
from toolwire.wire.surrogates import without_halves

JsonObject: TypeAlias = dict[str, Any]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def parse(body: bytes | str, what: str) -> Any:
    """The JSON value of a body; BadInput names `what`."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"{what} is not JSON: {error}") from error
    except RecursionError as error:
        raise BadInput(f"{what} is nested too deeply") from error


def parse_object(body: bytes | str, what: str) -> JsonObject:
    """The JSON object of a body."""
    return obj(parse(body, what), what)


def encode(value: Any) -> bytes:
    """Compact JSON; half surrogate pairs, which UTF-8 cannot carry, become U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(without_halves(value))


def dump(value: Any) -> str:
    """Compact JSON text."""
    return encode(value).decode()


def obj(value: Any, path: str) -> JsonObject:
    """The value as an object."""
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected an object, got {_name(value)}")
    return cast(JsonObject, value)


def seq(value: Any, path: str) -> list[Any]:
    """The value as a list; null counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"{path}: expected a list, got {_name(value)}")
    return cast(list[Any], value)


def text(value: Any, path: str) -> str:
    """The value as a string; null counts as the empty one."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadInput(f"{path}: expected a string, got {_name(value)}")
    return value


def check_type(value: Any, path: str) -> None:
    """Raises BadInput for an object whose `type` is neither a string nor absent."""
    if is_object(value):
        text(value.get("type"), f"{path}.type")


def is_object(value: Any) -> TypeGuard[JsonObject]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def text_or_empty(value: Any) -> str:
    """The value if it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether the value is a list."""
    return isinstance(value, list)


def object_or_empty(value: Any) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if is_object(value) else {}


def list_or_empty(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if is_list(value) else []


def objects_in(value: Any) -> list[JsonObject]:
    """The objects of a list; none if the value is anything else."""
    return [item for item in list_or_empty(value) if is_object(item)]


def object_in(body: bytes | str) -> JsonObject | None:
    """The JSON object of a text; None for any other text."""
    try:
        value: Any = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return value if is_object(value) else None


def number(value: Any, path: str) -> float | int | None:
    """The value as a number, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{path}: expected a number, got {_name(value)}")
    return value


def integer(value: Any, path: str) -> int | None:
    """The value as a whole number, or None."""
    found = number(value, path)
    if isinstance(found, float):
        if not found.is_integer():
            raise BadInput(f"{path}: expected a whole number, got {found}")
        return int(found)
    return found


def flag(value: Any, path: str) -> bool | None:
    """The value as true or false, or None."""
    if value is not None and not isinstance(value, bool):
        raise BadInput(f"{path}: expected true or false, got {_name(value)}")
    return value


def _name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "a number"
