"""One question to the model about an edit that did not fit."""

from pkgutil import get_data

import msgspec

from toolwire.collect import Collector
from toolwire.errors import ToolwireError
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.request import JsonObject, ModelRequest, OutputFormat

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "explanation": {"type": "string"},
        "search": {"type": "string"},
        "replace": {"type": "string"},
        "noChangesRequired": {"type": "boolean"},
    },
    "required": ["search", "replace", "explanation"],
}


class Correction(msgspec.Struct, frozen=True, rename="camel"):
    """What the model would search for and put in its place."""

    search: str
    replace: str
    explanation: str = ""
    no_changes_required: bool = False


class FailedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit, and why it did not fit."""

    instruction: str
    old: str
    new: str
    error: str
    text: str
    """The whole file."""


async def ask_correction(model: Model, edit: FailedEdit) -> Correction | None:
    """The model's correction; None if it gave none that can be read."""
    question = (
        f"# Instruction\n{edit.instruction}\n\n"
        f"# Failed search text\n<search>\n{edit.old}\n</search>\n\n"
        f"# Replacement\n<replace>\n{edit.new}\n</replace>\n\n"
        f"# Error\n{edit.error}\n\n"
        f"# The whole file\n<file>\n{edit.text}\n</file>\n"
    )
    request = ModelRequest(
        model="",
        messages=(Message(role="user", parts=(Text(question),)),),
        system=(Text((get_data("toolwire.tools.files", "correction.md") or b"").decode()),),
        temperature=0,
        output=OutputFormat(kind="json_schema", schema=_SCHEMA, name="correction"),
    )
    collector = Collector()
    try:
        async with reading(model(request)) as events:
            async for event in events:
                collector.add(event)
        answer = collector.message().text.strip().removeprefix("```json").removesuffix("```")
        return msgspec.json.decode(answer, type=Correction)
    except (ToolwireError, msgspec.MsgspecError):
        # The edit's own error helps the model more than a failed attempt to correct it.
        return None
