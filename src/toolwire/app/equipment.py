"""The parts of a session that depend on its model and its mode."""

from typing import Protocol

import msgspec

from toolwire.agent.structured import OutputSchema
from toolwire.app.model_stack import Opened
from toolwire.app.toolbox import Toolbox
from toolwire.compaction.summary import Compressor
from toolwire.model import Model
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.request import OutputFormat


class Equipment(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a session that depend on its model and its mode."""

    name: str
    """`provider/model`."""
    models: tuple[Opened, ...]
    """The model and its fallbacks."""
    mode: Mode
    ask: Model
    toolbox: Toolbox
    shorten: Compressor
    system: str
    format: OutputFormat | None = None
    """The format that requests require of an answer."""


class Equip(Protocol):
    """Builds the equipment for another model, style or mode; unset ones stay."""

    async def __call__(
        self, now: Equipment, *, model: str = "", style: str = "", mode: Mode | None = None
    ) -> tuple[Equipment, list[str]]:
        """Returns the equipment, and notices for the user."""
        ...


def enforced(
    output: OutputSchema | None, models: tuple[Opened, ...], *, tools: bool
) -> OutputFormat | None:
    """Returns the format that requests require, if every model's server can hold an answer to it.

    The prompt contains the schema in any case, and the answer is validated.
    """
    if output is None or output.schema.get("type") != "object":
        return None
    for one in models:
        takes = one.provider.json_schema_output
        if one.style.style is ToolStyle.NATIVE:
            takes = takes and (one.provider.schema_beside_tools or not tools)
        elif one.style.style is ToolStyle.XML:
            takes = takes and not tools
        if not takes:
            return None
    from toolwire.schema import is_strict  # noqa: PLC0415 - start-up time

    strict = is_strict(output.schema) or None
    return msgspec.structs.replace(output.format, strict=strict)
