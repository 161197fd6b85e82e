"""The page docs/mcp-server.md: options, examples and limits as the program has them."""

import json
import re
import tomllib
from pathlib import Path

from toolwire.cli.mcp_serve import serve_command
from toolwire.http_server.listener import HttpLimits
from toolwire.mcp_server.server import ServerLimits
from toolwire.wire.jsonrpc import LONGEST_LINE

PAGE = (Path(__file__).parents[2] / "docs" / "mcp-server.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_table_lists_every_option():
    listed = set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE))
    known = {name for one in serve_command.params for name in one.opts if name.startswith("--")}
    assert listed == known


def test_configurations_of_clients_can_be_read_and_start_the_command():
    toml = [tomllib.loads(block) for block in blocks("toml")]
    read = [json.loads(block) for block in blocks("json")]
    tables = [one for each in toml for one in each["mcp_servers"].values()]
    for one in read:
        tables += (one.get("mcpServers") or one.get("servers") or {}).values()
    started = [table for table in tables if "command" in table]
    assert len(started) == 3
    for table in started:
        assert (table["command"], *table["args"][:2]) == ("toolwire", "mcp", "serve")
        args = ["." if each.startswith("${") else each for each in table["args"][2:]]
        # Parsed as the command would, without running it.
        serve_command.make_context("serve", args)


def test_limits_are_those_of_the_program():
    server, http = ServerLimits(), HttpLimits()
    rows = dict(re.findall(r"^\| ([a-z][a-z ]+) \| (.+) \|$", PAGE, re.MULTILINE))
    mega = 1024 * 1024
    assert rows["body of a request"] == (
        f"{http.body_bytes // mega} MB; a line on standard input {LONGEST_LINE // mega} MB"
    )
    assert rows["requests of one client at once"] == str(server.requests)
    assert rows["one call"] == f"{server.call_seconds / 3600:g} hour"
    assert rows["connections"] == str(http.connections)
    minutes = f"{server.session_seconds / 60:g} minutes"
    assert rows["sessions"] == f"{server.sessions}; each ends after {minutes} without use"
    head, silence = f"{http.head_seconds:g} seconds", f"{http.silence_seconds:g}"
    assert rows["request that arrives slowly"] == (
        f"{head} for its head, {silence} without a byte of its body"
    )
    assert server.detached_seconds == 120
    assert "within two minutes" in PAGE
    assert server.pause_seconds == 600
    assert "for ten minutes at most" in PAGE
