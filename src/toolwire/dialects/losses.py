"""What values do not carry: stored for its own format, reported as a loss for any other."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from toolwire.messages import Kept, Part, Seal, ServerBlock, Text, ToolResult
from toolwire.request import JsonObject, Loss, ModelRequest, ServerTool
from toolwire.wire.json_access import dump, parse_object

NESTED = "/"
"""Prefix of a member that belongs in the one object nested in the value's own, as chat nests
`function` and `image_url`; losses name the member without it.
"""

OPENING = "(The conversation begins here.)"
"""The user's turn of a request that has none, for vendors that require one."""

_Values: TypeAlias = type | frozenset[str]
_DETAIL: dict[str, _Values] = {"detail": frozenset({"auto", "low", "high", "original"})}
_SETTINGS: dict[str, _Values] = {
    "metadata": dict,
    "prompt_cache_key": str,
    "safety_identifier": str,
    "service_tier": frozenset({"auto", "default", "flex", "scale", "priority", "fast"}),
    "store": bool,
    "user": str,
    "verbosity": frozenset({"low", "medium", "high"}),
}
_SHARED = {
    ("openai-chat", "openai-responses"): _DETAIL | _SETTINGS,
    # Many servers of the chat format reject settings that only OpenAI knows.
    ("openai-responses", "openai-chat"): _DETAIL,
}
"""Members that two formats of one vendor spell alike, by source and target."""


def keep(dialect: str, source: JsonObject, known: frozenset[str]) -> Kept | None:
    """The members of `source` that are not `known`; None without any."""
    if source.keys() <= known:
        return None
    rest = {key: value for key, value in source.items() if key not in known}
    return Kept(dialect=dialect, fields=dump(rest)) if rest else None


def restore(target: JsonObject, kept: Kept | None, dialect: str) -> JsonObject:
    """`target` with the stored members of its dialect added; members of `target` win."""
    if kept is None or kept.dialect != dialect or kept.fields == "{}":
        return target
    return {**parse_object(kept.fields, "kept members"), **target}


def kept_member(kept: Kept | None, dialect: str, key: str) -> object:
    """One stored member of this dialect, or None."""
    if kept is None or kept.dialect != dialect or kept.fields == "{}":
        return None
    return parse_object(kept.fields, "kept members").get(key)


def without_members(
    request: ModelRequest, names: frozenset[str]
) -> tuple[ModelRequest, tuple[Loss, ...]]:
    """The request without these members of its body, which only the format's maker knows."""
    if names.isdisjoint(request.source.body):
        return request, ()
    dropped = sorted(names & request.source.body.keys())
    kept = request.kept
    if kept is not None and kept.fields != "{}":
        members = parse_object(kept.fields, "kept members")
        rest = {key: value for key, value in members.items() if key not in names}
        kept = Kept(dialect=kept.dialect, fields=dump(rest))
    request = msgspec.structs.replace(request, kept=kept, source=request.source.without(names))
    why = "a note of the client that only the format's maker knows; not sent"
    return request, tuple(Loss(name, "client_note", why) for name in dropped)


def shared(kept: Kept | None, dialect: str) -> JsonObject:
    """Stored members of the vendor's other format that this one takes unchanged."""
    if kept is None or (kept.dialect, dialect) not in _SHARED or kept.fields == "{}":
        return {}
    members = parse_object(kept.fields, "kept members")
    return {
        key.removeprefix(NESTED): value
        for key, value in members.items()
        if is_shared(kept, dialect, key, value)
    }


def is_shared(kept: Kept, dialect: str, key: str, value: object) -> bool:
    """Whether the vendor's other format takes this member unchanged."""
    taken = _SHARED.get((kept.dialect, dialect), {}).get(key.removeprefix(NESTED))
    if isinstance(taken, frozenset):
        return isinstance(value, str) and value in taken
    return taken is not None and isinstance(value, taken)


def own_seal(seal: Seal | None, dialect: str) -> JsonObject:
    """The wire members of a seal that this dialect made; empty for any other."""
    if seal is None or seal.origin.dialect != dialect:
        return {}
    return parse_object(seal.data, "seal")


class Losses:
    """Collects what a conversion could not carry."""

    def __init__(self) -> None:
        self._losses: list[Loss] = []

    def add(self, path: str, what: str, why: str) -> None:
        """Adds one thing that was left out or weakened."""
        self._losses.append(Loss(path, what, why))

    def extend(self, losses: "tuple[Loss, ...] | list[Loss]") -> None:
        """Adds losses found elsewhere."""
        self._losses.extend(losses)

    def foreign(self, request: ModelRequest, dialect: str) -> None:
        """Adds everything in the request that only another format can carry; encoders skip it."""
        for path, value in _walk(request):
            if isinstance(value, Kept):
                self._foreign_kept(path, value, dialect)
            elif isinstance(value, Seal):
                if value.origin.dialect != dialect:
                    names = ", ".join(sorted(parse_object(value.data, "seal")))
                    self.add(path, f"seal ({names})", f"made by {value.origin.dialect}")
            elif isinstance(value, ServerBlock):
                if value.origin.dialect != dialect:
                    self.add(path, value.kind, f"a server-side step of {value.origin.dialect}")
            elif value.dialect != dialect:
                self.add(path, value.kind, f"a server-side tool of {value.dialect}")

    def done(self) -> tuple[Loss, ...]:
        """All of them, in the order found."""
        return tuple(self._losses)

    def _foreign_kept(self, path: str, kept: Kept, dialect: str) -> None:
        if kept.dialect == dialect or kept.fields == "{}":
            return
        for key, value in parse_object(kept.fields, "kept members").items():
            if value is not None and not is_shared(kept, dialect, key, value):
                name = key.removeprefix(NESTED)
                self.add(f"{path}.{name}" if path else name, name, f"only {kept.dialect} has it")


def _walk(request: ModelRequest) -> Iterator[tuple[str, Kept | Seal | ServerBlock | ServerTool]]:
    if request.kept:
        yield "", request.kept
    for number, part in enumerate(request.system):
        yield from _walk_part(f"system[{number}]", part)
    for number, message in enumerate(request.messages):
        path = f"messages[{number}]"
        if message.kept:
            yield path, message.kept
        for inner, part in enumerate(message.parts):
            if type(part) is not Text or part.kept:
                yield from _walk_part(f"{path}.parts[{inner}]", part)
    for number, tool in enumerate(request.tools):
        if isinstance(tool, ServerTool):
            yield f"tools[{number}]", tool
        elif tool.kept:
            yield f"tools[{number}]", tool.kept
    for path in ("tool_choice", "reasoning", "output"):
        value = getattr(request, path)
        if value is not None and value.kept is not None:
            yield path, value.kept


def _walk_part(path: str, part: Part) -> Iterator[tuple[str, Kept | Seal | ServerBlock]]:
    if isinstance(part, ServerBlock):
        yield path, part
        return
    if part.kept:
        yield path, part.kept
    if isinstance(part, ToolResult):
        for number, inner in enumerate(part.parts):
            yield from _walk_part(f"{path}.parts[{number}]", inner)
    elif part.seal:
        yield path, part.seal
