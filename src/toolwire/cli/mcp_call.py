"""`toolwire mcp call`: one tool of a server, or many over one connection."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from toolwire.cli.mcp_login import shower
from toolwire.cli.mcp_servers import Place, described_tool, errors_reported
from toolwire.cli.terminal import ask_line, can_ask
from toolwire.errors import ToolwireError, UnknownName
from toolwire.mcp.client import Elicit
from toolwire.mcp.connection import MOST_FAILURES
from toolwire.mcp.elicitation import accepting, asking, declining
from toolwire.mcp.entry import ServerEntry
from toolwire.mcp.lists import members
from toolwire.mcp.results import read_result, tool_error
from toolwire.mcp.servers import Server, Servers
from toolwire.mcp.session import RESERVED
from toolwire.mcp.tools import output_of
from toolwire.messages import Message, Text, ToolCall, ToolResult
from toolwire.request import JsonObject, ModelRequest
from toolwire.terminal_text import one_line
from toolwire.wire.json_access import dump, parse, parse_object

_SECRET = "TOOLWIRE_MCP_CLIENT_SECRET"  # noqa: S105 - the name of a variable


class CallFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options as the user gave them."""

    as_json: bool
    timeout: float | None
    elicit: str
    login: bool
    client_id: str
    client_metadata_url: str


@click.command("call")
@click.argument("name", metavar="NAME|URL")
@click.argument("tool", required=False)
@click.argument("arguments", metavar="[JSON]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the raw result.")
@click.option("--jsonl", is_flag=True, help="Read lines of calls; print a line for each.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for a call.")
@click.option(
    "--elicit",
    type=click.Choice(("accept", "decline", "ask")),
    default="decline",
    show_default=True,
    help="Answer to questions of the server; accept fills in defaults.",
)
@click.option("--login", is_flag=True, help="Log in with the browser if the server demands it.")
@click.option("--client-id", default="", help=f"OAuth client id; its secret is in {_SECRET}.")
@click.option("--client-metadata-url", default="", metavar="URL", help="OAuth client document.")
def call_command(
    name: str, tool: str | None, arguments: str | None, jsonl: bool, **options: Any
) -> None:
    """Call one tool of a server with a JSON object, without approval: you typed it.

    With --jsonl, lines {"list": true} and {"tool": …, "arguments": {…}} are read from standard
    input and answered in order over one connection.
    """
    if jsonl == (tool is not None):
        raise click.UsageError("give a TOOL with JSON, or --jsonl")
    flags = CallFlags(**options)
    with errors_reported():
        if tool is not None:
            parse_object(arguments or "{}", "JSON")
        failed = asyncio.run(_run(name, tool, arguments or "{}", flags))
    if failed:
        raise SystemExit(1)


async def _run(name: str, tool: str | None, arguments: str, flags: CallFlags) -> bool:
    """Whether the one call failed."""
    place = Place.here()
    name, each = place.target(name)
    entry = _entry(each.entry, flags)
    elicit = _elicit(flags.elicit)
    servers = place.open({name: entry}, show=shower() if flags.login else None, elicit=elicit)
    try:
        if name in servers.lost:
            raise ToolwireError(f"MCP server {name} is not started: {servers.lost[name]}")
        server = servers.servers[name]
        await _ready(server)
        if tool is None:
            await _lines(servers, server)
            return False
        found = await called(servers, server, tool, parse_object(arguments, "JSON"))
    finally:
        await servers.close()
    if flags.as_json:
        click.echo(dump(found))
    elif found["error"] is None:
        click.echo(found["display"])
    else:
        click.echo(found["error"]["message"], err=True)
    return found["error"] is not None


def _entry(entry: ServerEntry, flags: CallFlags) -> ServerEntry:
    oauth = entry.oauth
    if flags.client_id:
        oauth = msgspec.structs.replace(
            oauth,
            client_id=flags.client_id,
            client_secret_env=_SECRET if os.environ.get(_SECRET) else "",
        )
    if flags.client_metadata_url:
        oauth = msgspec.structs.replace(oauth, client_metadata_url=flags.client_metadata_url)
    seconds = entry.timeout if flags.timeout is None else flags.timeout
    return msgspec.structs.replace(entry, oauth=oauth, timeout=seconds, enabled=True)


def _elicit(choice: str) -> Callable[[str], Elicit]:
    if choice == "ask" and can_ask():

        async def ask(question: str, choices: tuple[str, ...]) -> str:
            listed = "".join(f"\n  {at}. {one_line(one)}" for at, one in enumerate(choices, 1))
            shown = "\n".join(map(one_line, question.split("\n")))
            typed = await asyncio.to_thread(ask_line, f"{shown}{listed}\n?") or ""
            if typed.isdigit() and 1 <= int(typed) <= len(choices):
                return choices[int(typed) - 1]
            return typed

        return asking(ask)

    def answers(server: str) -> Elicit:
        del server
        return accepting if choice == "accept" else declining

    return answers


async def _ready(server: Server) -> None:
    server.connection.tries = 1
    try:
        await server.connect()
        server.connection.tries = MOST_FAILURES
    except ToolwireError as error:
        words = server.connection.last_words.strip().rpartition("\n")[2]
        why = server.connection.error or str(error)
        raise ToolwireError(
            f"MCP server {server.name}: {why}{f' ({words})' if words else ''}"
        ) from error


async def _lines(servers: Servers, server: Server) -> None:
    """Answers the lines of standard input, in order."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if not line.strip():
            continue
        try:
            click.echo(dump(await _answered(servers, server, parse_object(line, "the line"))))
        except ToolwireError as error:
            problem = {"type": error.kind, "message": str(error)}
            click.echo(dump({"result": None, "parts": [], "display": "", "error": problem}))
        sys.stdout.flush()


async def _answered(servers: Servers, server: Server, line: JsonObject) -> JsonObject:
    if line.get("list"):
        await server.connection.refresh()
        offers = servers.offers(RESERVED)[server.name]
        return {"tools": [described_tool(each) for each in offers]}
    arguments = line.get("arguments")
    return await called(servers, server, str(line.get("tool", "")), members(arguments))


async def called(servers: Servers, server: Server, tool: str, arguments: JsonObject) -> JsonObject:
    """The result of a call as `--json` prints it."""
    name = _server_name(servers, server, tool)
    try:
        raw = await server.call(name, arguments, _progress)
    except ToolwireError as error:
        problem = {"type": error.kind, "message": str(error)}
        parts = _gemini_parts(name, arguments, _result(name, Text(str(error)), is_error=True))
        return {"result": None, "parts": parts, "display": str(error), "error": problem}
    read = read_result(raw, name)
    error = None
    if read.is_error:
        words = tool_error(name, arguments, read.content)
        result = _result(name, Text(words), is_error=True)
        error = {"type": "mcp_tool_error", "message": words}
    else:
        output = output_of(read)
        result = _result(name, *(output.blocks or (Text(output.text),)), blocks=bool(output.blocks))
    return {
        "result": raw,
        "parts": _gemini_parts(name, arguments, result),
        "display": read.display,
        "error": error,
    }


def _progress(words: str) -> None:
    click.echo(words, err=True)


def _server_name(servers: Servers, server: Server, tool: str) -> str:
    """The server's own name of a tool, which may also be given as it is offered."""
    lists = server.lists
    known = () if lists is None else [each.name for each in lists.tools]
    if tool in known:
        return tool
    for offer in servers.offers(RESERVED)[server.name]:
        if tool and tool == offer.name:
            return offer.tool.name
    raise UnknownName(f"tool of {server.name}", tool, known)


def _result(name: str, *parts: Any, is_error: bool = False, blocks: bool = False) -> ToolResult:
    return ToolResult(call_id="call", name=name, parts=parts, is_error=is_error, blocks=blocks)


def _gemini_parts(name: str, arguments: JsonObject, result: ToolResult) -> list[Any]:
    from toolwire import dialects

    call = ToolCall(id="call", name=name, arguments=dump(arguments), made_id=True)
    messages = (
        Message(role="user", parts=(Text(name),)),
        Message(role="assistant", parts=(call,)),
        Message(role="user", parts=(result,)),
    )
    encoded = dialects.get("gemini").encode_request(ModelRequest(model="", messages=messages))
    return parse(encoded.http.body, "request")["contents"][-1]["parts"]
