"""Servers from the settings of other programs, and what of them is not taken."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec

from toolwire.errors import BadInput
from toolwire.mcp.entry import cleaned_name, of_json
from toolwire.mcp.lists import members, text

Table: TypeAlias = Mapping[str, Any]
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_MEMBER = re.compile(r'"((?:\\.|[^"\\])*)"\s*:')
_LINE = re.compile(r"\(at line (\d+)")
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_ENV = re.compile(r"\$\{env:(\w+)\}")
_INPUT = re.compile(r"\$\{input:[^}]*\}")


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A server under our names, and the members that were left out."""

    table: dict[str, Any]
    left_out: tuple[str, ...] = ()
    why: str = ""
    """Why it cannot be taken; empty if it can."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program has its servers, and how to read one."""

    files: tuple[str, ...]
    """Below the home folder or, without `~`, below the current one; the first that exists."""
    key: str
    read: Callable[[Table], dict[str, Any]]
    takes: tuple[str, ...]
    """Members that `read` understands."""


def parse(content: str, file: str) -> Table:
    """The document of a file: TOML by its ending, else JSON with comments."""
    plain = content
    try:
        if file.endswith(".toml"):
            return tomllib.loads(content)
        plain = _STRING_OR_COMMENT.sub(_without_comment, content)
        plain = _LAST_COMMA.sub(lambda at: at[1] or " ", plain)
        return members(json.loads(plain))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        key = _member_at(error, plain)
        raise BadInput(f"{file} cannot be read{f' at {key}' if key else ''}: {error}") from error


def _without_comment(found: re.Match[str]) -> str:
    """A text as it is; of a comment only its lines, by which an error is found."""
    if found[0][0] == '"':
        return found[0]
    return re.sub(r"[^\n]", " ", found[0])


def _member_at(error: ValueError, content: str) -> str:
    """The member in which a document is broken, as far as that can be seen."""
    if isinstance(error, json.JSONDecodeError):
        before = _MEMBER.findall(content, 0, error.pos)
        return f'"{before[-1]}"' if before else ""
    line = _LINE.search(str(error))
    if line is None:
        return ""
    name, equals, _ = content.split("\n")[int(line[1]) - 1].partition("=")
    return name.strip() if equals else ""


def read(name: str, document: Table, folder: Path) -> dict[str, Imported]:
    """Every server of a document of that program, by its cleaned name."""
    program = PROGRAMS[name]
    tables = members(document.get(program.key))
    if name == "claude":
        project = members(members(document.get("projects")).get(str(folder)))
        tables = {**tables, **members(project.get("mcpServers"))}
    return {
        cleaned_name(each): _imported(program, members(table)) for each, table in tables.items()
    }


def _imported(program: Program, table: Table) -> Imported:
    known = _replaced(program.read(table))
    left_out = tuple(key for key in table if key not in program.takes)
    if _INPUT.search(json.dumps(known)):
        return Imported(table=known, left_out=left_out, why="it asks for input when it starts")
    if not known.get("command") and not known.get("url"):
        return Imported(table=known, left_out=left_out, why="it has neither a command nor a url")
    return Imported(table=known, left_out=left_out)


def _replaced(value: Any) -> Any:
    """`${env:NAME}` as our settings write it."""
    if isinstance(value, str):
        return _ENV.sub(r"${\1}", value)
    if isinstance(value, list):
        return [_replaced(each) for each in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _replaced(each) for key, each in cast(dict[str, Any], value).items()}
    return value


_COMMON = ("command", "args", "env", "cwd", "url", "headers", "description", "type", "transport")


def _gemini(table: Table) -> dict[str, Any]:
    found = of_json(table)
    if "url" in table and "httpUrl" not in table and "type" not in table:
        found["transport"] = "sse"
    if isinstance(table.get("timeout"), int | float):
        found["timeout"] = table["timeout"] / 1000
    found |= _renamed(table, {"includeTools": "include_tools", "excludeTools": "exclude_tools"})
    oauth = members(table.get("oauth"))
    names = {
        "clientId": "client_id",
        "authorizationUrl": "authorization_url",
        "tokenUrl": "token_url",
        "registrationUrl": "registration_url",
        "scopes": "scopes",
    }
    if own := _renamed(oauth, names):
        found["oauth"] = own
    return found


def _claude(table: Table) -> dict[str, Any]:
    return of_json(table)


def _codex(table: Table) -> dict[str, Any]:
    found = {
        name: table[name]
        for name in ("command", "args", "env", "cwd", "url", "env_vars", "enabled", "required")
        if name in table
    }
    found |= _renamed(
        table,
        {
            "bearer_token_env_var": "bearer_token_env",
            "enabled_tools": "include_tools",
            "disabled_tools": "exclude_tools",
            "startup_timeout_sec": "startup_timeout",
            "tool_timeout_sec": "timeout",
        },
    )
    by_name = {
        key: f"${{{value}}}" for key, value in members(table.get("env_http_headers")).items()
    }
    headers = {**members(table.get("http_headers")), **by_name}
    return {**found, "headers": headers} if headers else found


def _opencode(table: Table) -> dict[str, Any]:
    command = table.get("command")
    words = cast(list[Any], command) if isinstance(command, list) else []
    found: dict[str, Any] = {"command": words[0], "args": words[1:]} if words else {}
    found |= _renamed(table, {"environment": "env", "url": "url", "headers": "headers"})
    if table.get("enabled") is False:
        found["enabled"] = False
    timeout = table.get("timeout")
    if isinstance(timeout, int | float):
        found["startup_timeout"] = timeout / 1000
    return found


def _kilocode(table: Table) -> dict[str, Any]:
    found = of_json(table)
    if table.get("disabled") is True:
        found["enabled"] = False
    if isinstance(table.get("timeout"), int | float):
        found["timeout"] = table["timeout"]
    if own := _renamed(table, {"disabledTools": "exclude_tools"}):
        found |= own
    if text(table.get("type")) == "" and "url" in table:
        found["transport"] = "sse"
    return found


def _renamed(table: Table, names: Mapping[str, str]) -> dict[str, Any]:
    return {new: table[old] for old, new in names.items() if table.get(old) not in (None, [], {})}


PROGRAMS: Mapping[str, Program] = {
    "gemini": Program(
        files=("~/.gemini/settings.json",),
        key="mcpServers",
        read=_gemini,
        takes=(*_COMMON, "httpUrl", "timeout", "includeTools", "excludeTools", "oauth"),
    ),
    "claude": Program(files=("~/.claude.json",), key="mcpServers", read=_claude, takes=_COMMON),
    "codex": Program(
        files=("~/.codex/config.toml",),
        key="mcp_servers",
        read=_codex,
        takes=(
            *("command", "args", "env", "cwd", "url", "env_vars", "enabled", "required"),
            *("bearer_token_env_var", "enabled_tools", "disabled_tools", "startup_timeout_sec"),
            *("tool_timeout_sec", "http_headers", "env_http_headers"),
        ),
    ),
    "opencode": Program(
        files=("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
        key="mcp",
        read=_opencode,
        takes=("type", "command", "environment", "url", "headers", "enabled", "timeout"),
    ),
    "kilocode": Program(
        files=(
            ".kilocode/mcp.json",
            "~/.config/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
            "~/Library/Application Support/Code/User/globalStorage/kilocode.kilo-code/settings/"
            "mcp_settings.json",
            "~/.kilocode/cli/global/settings/mcp_settings.json",
        ),
        key="mcpServers",
        read=_kilocode,
        takes=(*_COMMON, "disabled", "timeout", "disabledTools"),
    ),
    "vscode": Program(
        files=(
            ".vscode/mcp.json",
            "~/.config/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/mcp.json",
        ),
        key="servers",
        read=_claude,
        takes=_COMMON,
    ),
    "cursor": Program(
        files=(".cursor/mcp.json", "~/.cursor/mcp.json"),
        key="mcpServers",
        read=_claude,
        takes=_COMMON,
    ),
}
