"""What a JSON value is, told to the type checker too."""

from typing import Any, TypeGuard

from toolwire.request import JsonObject


def is_object(value: Any) -> TypeGuard[JsonObject]:
    """Whether the value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether the value is a list."""
    return isinstance(value, list)


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if is_list(value) else []


def whole_number(value: Any) -> int | None:
    """The value if it is a whole number; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
