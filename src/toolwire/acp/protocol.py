"""Values of the Agent Client Protocol, version 1: what a client can do, and what it sends."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from toolwire import __version__
from toolwire.errors import BadInput
from toolwire.mcp.entry import ServerEntry, cleaned_name, read_entry
from toolwire.mcp.lists import members, text
from toolwire.mcp.peer import RpcError
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import INVALID_PARAMS

VERSION = 1
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
CANCELLED: JsonObject = {"stopReason": "cancelled"}
"""The answer to a prompt that was cancelled."""
LOGIN = "toolwire-login"
ENVIRONMENT = "environment"
VARIABLES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")


class ClientFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """What the editor offers."""

    reads: bool = False
    writes: bool = False
    terminal: bool = False
    display_terminal: bool = False
    """Draws output of commands that we run."""
    form: bool = False
    url: bool = False
    login: bool = False
    """Runs a login in a terminal."""


def read_features(params: JsonObject) -> ClientFeatures:
    """What the parameters of `initialize` say."""
    offered = members(params.get("clientCapabilities"))
    files, asks = members(offered.get("fs")), members(offered.get("elicitation"))
    return ClientFeatures(
        reads=files.get("readTextFile") is True,
        writes=files.get("writeTextFile") is True,
        terminal=offered.get("terminal") is True,
        display_terminal=members(offered.get("_meta")).get("terminal_output") is True,
        form=isinstance(asks.get("form"), dict),
        url=isinstance(asks.get("url"), dict),
        login=members(offered.get("auth")).get("terminal") is True,
    )


def greeting(features: ClientFeatures) -> JsonObject:
    """The answer to `initialize`."""
    return {
        "protocolVersion": VERSION,
        "agentInfo": {"name": "toolwire", "title": "toolwire", "version": __version__},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": {
                "list": {},
                "resume": {},
                "close": {},
                "delete": {},
                "fork": {},
                "additionalDirectories": {},
            },
        },
        "authMethods": auth_methods(features),
    }


def auth_methods(features: ClientFeatures) -> list[JsonObject]:
    """How the user can give a model's credential."""
    login: JsonObject = {
        "id": LOGIN,
        "name": "Log in to a provider",
        "description": "Stores a provider's key, or logs in to it.",
        "type": "terminal",
        "args": ["login"],
    }
    environment: JsonObject = {
        "id": ENVIRONMENT,
        "name": "Environment variables",
        "description": f"Start the editor with one of {', '.join(VARIABLES)} set.",
    }
    return [login, environment] if features.login else [environment]


def auth_required(words: str, features: ClientFeatures) -> RpcError:
    """The error for a session without a usable model."""
    return RpcError(AUTH_REQUIRED, words, {"authMethods": auth_methods(features)})


def bad(words: str) -> RpcError:
    """The error for parameters that do not fit."""
    return RpcError(INVALID_PARAMS, words)


def text_of(params: Mapping[str, Any], name: str) -> str:
    """A member that has to be text."""
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise bad(f"{name} is not a text")
    return value


def folder_of(value: Any, name: str) -> Path:
    """An existing folder with an absolute path."""
    if not isinstance(value, str) or "\0" in value or not Path(value).is_absolute():
        raise bad(f"{name} is not an absolute path: {value}")
    path = Path(value)
    if not path.is_dir():
        raise bad(f"{name} is not a folder: {value}")
    return path.resolve()


def folders_of(params: JsonObject) -> tuple[Path, ...]:
    """The additional directories of a session."""
    listed = _list(params, "additionalDirectories")
    return tuple(folder_of(each, "additionalDirectories") for each in listed)


def servers_of(params: JsonObject) -> dict[str, ServerEntry]:
    """The MCP servers that the editor brings to a session."""
    found: dict[str, ServerEntry] = {}
    for each in _list(params, "mcpServers"):
        table = members(each)
        name = cleaned_name(text_of(table, "name"))
        entry: dict[str, object] = {}
        if table.get("type") in ("http", "sse"):
            entry |= {"url": _literal(text(table.get("url"))), "transport": table["type"]}
            entry["headers"] = _pairs(table, "headers")
        else:
            command = _literal(text(table.get("command")))
            entry |= {"command": command, "env": _pairs(table, "env")}
            entry["args"] = [_literal(text(one)) for one in _list(table, "args")]
        try:
            found[name] = read_entry(name, entry, "mcpServers")
        except BadInput as error:
            raise bad(str(error)) from error
    return found


def _list(table: JsonObject, name: str) -> list[Any]:
    found = table.get(name)
    if found is not None and not isinstance(found, list):
        raise bad(f"{name} is not a list")
    return cast(list[Any], found or [])


def _pairs(table: JsonObject, name: str) -> dict[str, str]:
    """A list of names and values as a table."""
    pairs = map(members, _list(table, name))
    return {
        text(one.get("name")): _literal(text(one.get("value"))) for one in pairs if one.get("name")
    }


def _literal(value: str) -> str:
    """The value as the settings write it: no `$` in it names a variable."""
    return value.replace("$", "${TOOLWIRE_LITERAL:-$}")
