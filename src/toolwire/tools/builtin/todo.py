"""`todo`: the list of steps of the present task, for the user to see."""

from typing import Annotated, Literal

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.spec import Effect, ToolContext, ToolOutput
from toolwire.tools.typed import tool, words

_MARKS = {"pending": "[ ]", "in_progress": "[~]", "done": "[x]", "cancelled": "[-]"}


class Item(msgspec.Struct, frozen=True):
    """One step."""

    text: Annotated[str, msgspec.Meta(min_length=1, description="The step, in a few words.")]
    status: Annotated[
        Literal["pending", "in_progress", "done", "cancelled"],
        msgspec.Meta(description="How far the step is."),
    ]


class Todo(msgspec.Struct, frozen=True):
    """Arguments of `todo`."""

    items: Annotated[
        list[Item], msgspec.Meta(description="The whole list, in the order of the work.")
    ]


def _check(arguments: JsonObject, context: ToolContext) -> str:
    del context
    working = [item for item in arguments["items"] if item["status"] == "in_progress"]
    if len(working) > 1:
        return f"{len(working)} items are in_progress; leave one, and set the others to pending"
    return ""


@tool("todo", Effect.READ, words("todo"), title="Todo", check=_check)
async def todo(args: Todo, context: ToolContext) -> ToolOutput:
    """Return the list; user interfaces read it from the call."""
    del context
    if not args.items:
        return ToolOutput(text="The list is now empty.", display="no steps")
    lines = "\n".join(f"{_MARKS[item.status]} {item.text}" for item in args.items)
    done = sum(item.status == "done" for item in args.items)
    return ToolOutput(
        text=f"The list is now ({done} of {len(args.items)} done):\n{lines}", display=lines
    )


TOOL = todo
