"""The client of the conformance suite: connects to a URL, lists tools and calls what it is told to.

`conformance client --command "python tests/mcp/conformance_client.py" --scenario S`
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Any

from toolwire.auth.store import Store
from toolwire.client.http.transport import HttpTransport
from toolwire.errors import ToolwireError
from toolwire.mcp.client import Host
from toolwire.mcp.connection import Reach, ServerConnection
from toolwire.mcp.entry import ServerEntry, read_entry
from toolwire.mcp.login import LoginStore, ServerLogin
from toolwire.mcp.tools import offers
from toolwire.request import JsonObject

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
METADATA = "https://conformance-test.local/client-metadata.json"


def browse(url: str) -> None:
    """A browser that agrees to everything."""

    def visit() -> None:
        with urllib.request.urlopen(url, timeout=10) as page:
            page.read()

    threading.Thread(target=visit, daemon=True).start()


async def elicit(params: JsonObject) -> JsonObject:
    """Accepts a form with its defaults."""
    properties = params.get("requestedSchema", {}).get("properties", {})
    content = {name: one["default"] for name, one in properties.items() if "default" in one}
    return {"action": "accept", "content": content}


def table(url: str) -> dict[str, Any]:
    oauth: dict[str, Any] = {"client_metadata_url": METADATA}
    if CONTEXT.get("client_id"):
        oauth |= {"client_id": CONTEXT["client_id"], "client_secret_env": "SECRET"}
    protocol = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "auto")
    return {"url": url, "oauth": oauth, "protocol": protocol, "startup_timeout": 30.0}


async def main(url: str) -> None:
    transport = HttpTransport()
    folder = Path(tempfile.mkdtemp())
    environ = {**os.environ, "SECRET": str(CONTEXT.get("client_secret", ""))}
    store = LoginStore(Store(folder / "credentials.json"))

    def login(entry: ServerEntry) -> ServerLogin:
        return ServerLogin("test", entry, environ, store, show=browse)

    reach = Reach(directory=folder, environ=environ, transport=transport, login=login)
    host = Host(roots=(("file:///work", "work"),), elicit=elicit)
    server = ServerConnection("test", read_entry("test", table(url), "the suite"), host, reach)
    try:
        client = await server.ready(30)
        print("connected", client.greeting.protocol, file=sys.stderr)
        assert server.lists is not None
        schemas = {tool.name: tool.parameters for tool in server.lists.tools}
        for offer in offers("test", server.entry, server.lists.tools, ()):
            print(json.dumps({"tool": offer.tool.name, "why": offer.why}), file=sys.stderr)
            if offer.why:
                continue
            for arguments in _calls(offer.tool.name, schemas):
                try:
                    print(await server.call(offer.tool.name, arguments, None), file=sys.stderr)
                except ToolwireError as error:
                    print(error, file=sys.stderr)
        for prompt in server.lists.prompts:
            await client.prompt(prompt.name, {})
        for resource in server.lists.resources:
            await client.resource(resource.uri)
    finally:
        await server.aclose()
        await transport.aclose()


def _calls(name: str, schemas: dict[str, JsonObject]) -> list[JsonObject]:
    if name == "json_schema_echo":
        return [{"schema": schemas["json_schema_2020_12_tool"]}]
    asked = [one for one in CONTEXT.get("toolCalls", []) if one["name"] == name]
    return [one.get("arguments", {}) for one in asked] or [_example(schemas[name])]


def _example(schema: JsonObject) -> JsonObject:
    made = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    return {name: made.get(one.get("type"), "x") for name, one in properties.items()}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
