"""The checked request, the demands of a server, and its rejections."""

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

import msgspec

from toolwire.errors import ErrorKind, ProviderError
from toolwire.request import JsonObject
from toolwire.simulator.seals import Seals


class Demands(msgspec.Struct, frozen=True, kw_only=True):
    """Demands of one vendor's server beyond its wire format."""

    thinking_back: bool = False
    """Chat: calls must be sent back with their reasoning (DeepSeek, Kimi)."""
    id_length: int = 0
    """Chat: exact length of call ids in letters or digits (Mistral: nine)."""
    user_after_results: bool = True
    """Chat: whether a user message may follow results directly (Mistral: no)."""
    refused_members: frozenset[str] = frozenset()
    """Members of the body that the server answers with 400."""
    tool_choices: frozenset[str] | None = None
    """Chat: the supported values of `tool_choice`, `named` for a function; None for all."""


NO_DEMANDS = Demands()


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request as received, not decoded by us."""

    body: JsonObject
    headers: Mapping[str, str]
    model: str
    seals: Seals
    demands: Demands = NO_DEMANDS
    path: str = ""


def refuse(message: str, *, code: str = "", param: str = "", status: int = 400) -> NoReturn:
    """Raises the vendor's 400."""
    kind = ErrorKind.NOT_FOUND if status == 404 else ErrorKind.BAD_REQUEST
    raise ProviderError(kind, message, status=status, code=code, param=param)


def objects(value: object) -> list[JsonObject]:
    """Returns the objects of a list; none for anything else."""
    if not isinstance(value, list):
        return []
    return [item for item in cast(list[Any], value) if isinstance(item, dict)]


def member(value: object, *names: str) -> Any:
    """Returns a nested member; None if absent."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = cast(JsonObject, value).get(name)
    return value


def numbered(value: object) -> Iterator[tuple[int, JsonObject]]:
    """Yields the objects of a list with their indices."""
    return enumerate(objects(value))
