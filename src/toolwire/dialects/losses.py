"""What a conversion could not carry, and how it is reported."""

from collections.abc import Iterator

from toolwire.dialects.kept import NESTED, is_shared
from toolwire.messages import Kept, Message, Part, Seal, ServerBlock, ToolResult
from toolwire.request import Loss, ModelRequest, ServerTool
from toolwire.wire.json_access import parse_object


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
        yield from _walk_message(f"messages[{number}]", message)
    for number, tool in enumerate(request.tools):
        if isinstance(tool, ServerTool):
            yield f"tools[{number}]", tool
        elif tool.kept:
            yield f"tools[{number}]", tool.kept
    for path in ("tool_choice", "reasoning", "output"):
        value = getattr(request, path)
        if value is not None and value.kept is not None:
            yield path, value.kept


def _walk_message(path: str, message: Message) -> Iterator[tuple[str, Kept | Seal | ServerBlock]]:
    if message.kept:
        yield path, message.kept
    for number, part in enumerate(message.parts):
        yield from _walk_part(f"{path}.parts[{number}]", part)


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
