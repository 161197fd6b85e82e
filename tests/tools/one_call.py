"""One call of one tool, without a scheduler around it."""

import asyncio

from toolwire.request import JsonObject
from toolwire.tools.spec import Tool, ToolContext, ToolOutput


def done(tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolOutput:
    """What the tool answers."""

    async def run() -> ToolOutput:
        return await tool.run(arguments, context)

    return asyncio.run(run())
