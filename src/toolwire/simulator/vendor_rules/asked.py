"""What a server looks at before it answers, and the words with which it refuses."""

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

import msgspec

from toolwire.errors import ErrorKind, ProviderError
from toolwire.request import JsonObject
from toolwire.simulator.seals import Seals


class Demands(msgspec.Struct, frozen=True, kw_only=True):
    """What one vendor's server demands beyond its wire format."""

    thinking_back: bool = False
    """Chat: calls come back with the reasoning that led to them (DeepSeek, Kimi)."""
    id_length: int = 0
    """Chat: call ids are so many letters or digits, no more and no less (Mistral: nine)."""
    user_after_results: bool = True
    """Chat: whether a user may speak directly after results (Mistral: no)."""
    refused_members: frozenset[str] = frozenset()
    """Members of the body that the server answers with 400."""
    tool_choices: frozenset[str] | None = None
    """Chat: the words that `tool_choice` may be, `named` for a function, where only some are known.
    """


NO_DEMANDS = Demands()


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came, before any of our own reading of it."""

    body: JsonObject
    headers: Mapping[str, str]
    model: str
    seals: Seals
    demands: Demands = NO_DEMANDS
    path: str = ""


def refuse(message: str, *, code: str = "", param: str = "", status: int = 400) -> NoReturn:
    """Answers with the vendor's own 400."""
    kind = ErrorKind.NOT_FOUND if status == 404 else ErrorKind.BAD_REQUEST
    raise ProviderError(kind, message, status=status, code=code, param=param)


def objects(value: object) -> list[JsonObject]:
    """The objects of a list; none for anything else."""
    if not isinstance(value, list):
        return []
    return [item for item in cast(list[Any], value) if isinstance(item, dict)]


def member(value: object, *names: str) -> Any:
    """A member, however deep; None where there is none."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = cast(JsonObject, value).get(name)
    return value


def numbered(value: object) -> Iterator[tuple[int, JsonObject]]:
    """The objects of a list with their places."""
    return enumerate(objects(value))
