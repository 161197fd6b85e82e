"""A server of the official SDK with every verb: `sdk_server TRANSPORT [PORT]`."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve
from mcp.types import ListRootsResult
from pydantic import BaseModel

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000049454e44ae426082"
)
server = MCPServer("sdk", instructions="Add things.")


class Colour(BaseModel):
    """The form of the elicitation."""

    colour: str = "red"


def ask_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it failed")


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=PNG, format="png")


@server.tool()
async def count(ctx: Context[Any, Any]) -> str:
    """Reports progress."""
    for number in (1, 2, 3):
        await ctx.report_progress(number, 3, f"step {number}")
    return "counted"


def note_state(word: str) -> None:
    Path(os.environ["RECORD"]).write_text(word)


@server.tool()
async def wait(ctx: Context[Any, Any]) -> str:
    """Waits until it is cancelled, and then writes a file."""
    del ctx
    note_state("waiting")
    try:
        await asyncio.sleep(60)
    except BaseException:
        note_state("cancelled")
        raise
    return "not cancelled"


@server.tool()
async def colour(choice: Annotated[Colour, Resolve(ask_colour)]) -> str:
    """Asks for a colour."""
    return choice.colour


@server.tool()
async def roots(found: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Asks for the roots."""
    return " ".join(str(each.uri) for each in found.roots)


@server.tool()
async def log(ctx: Context[Any, Any]) -> str:
    """Writes to the log of the client."""
    await ctx.log("info", "a line of the log")  # pyright: ignore[reportDeprecated]
    return "logged"


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Offers one more tool."""
    server.add_tool(add, name="added")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.prompt()
def greet(who: str) -> str:
    """Greets."""
    return f"Say hello to {who}."


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "the note"


@server.resource("note://by/{name}")
def note_by(name: str) -> str:
    """A note by someone."""
    return f"the note by {name}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run(transport="stdio")
    else:
        server.run(transport=sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]))  # type: ignore[call-overload]
