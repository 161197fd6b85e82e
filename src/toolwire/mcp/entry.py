"""The definition of one server, as the settings contain it."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, cast

import msgspec

from toolwire.errors import BadInput, UnknownName
from toolwire.tools.spec import Defer

Transport: TypeAlias = Literal["stdio", "http", "sse"]
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|([A-Za-z_]\w*))")
OWN_ONLY = ("trust", "believe_hints", "headers_command")
"""What a project may not set."""


class OAuthEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How to log in at a server, where discovery does not say."""

    client_id: str = ""
    client_secret_env: str = ""
    client_metadata_url: str = ""
    scopes: tuple[str, ...] = ()
    audience: str = ""
    authorization_url: str = ""
    token_url: str = ""
    registration_url: str = ""
    redirect_port: int = 0


class ServerEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One `[mcp_servers.NAME]` table."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_vars: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    transport: Transport | None = None
    headers: dict[str, str] = {}
    bearer_token_env: str = ""
    headers_command: str = ""
    enabled: bool = True
    required: bool = False
    trust: bool = False
    believe_hints: bool = False
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    timeout: float = 600.0
    max_seconds: float = 3600.0
    startup_timeout: float = 60.0
    defer: Defer = "auto"
    protocol: str = "auto"
    description: str = ""
    oauth: OAuthEntry = OAuthEntry()

    @property
    def kind(self) -> Transport:
        """The transport, from the command or the URL where it is not given."""
        return self.transport or ("http" if self.url else "stdio")


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """An entry and where it comes from."""

    entry: ServerEntry
    origin: str
    """`user`, `system`, `project`, `.mcp.json` or `flag`."""
    approved: bool = True


def read_entry(name: str, table: object, origin: str = "") -> ServerEntry:
    """The entry of a table; BadInput names what is wrong with it."""
    where = f"mcp_servers.{name} in {origin}" if origin else f"mcp_servers.{name}"
    if not _NAME.fullmatch(name):
        raise BadInput(f'{where}: a server name has letters, digits, "_" and "-" only')
    _check_names(where, table, ServerEntry)
    try:
        entry = msgspec.convert(table, ServerEntry)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {error}") from error
    if bool(entry.command) == bool(entry.url):
        raise BadInput(f"{where}: give either command or url")
    if entry.command and entry.kind != "stdio":
        raise BadInput(f"{where}: transport {entry.kind} needs a url, not a command")
    if entry.url and entry.kind == "stdio":
        raise BadInput(f"{where}: transport stdio needs a command, not a url")
    if min(entry.timeout, entry.max_seconds, entry.startup_timeout) <= 0:
        raise BadInput(f"{where}: a time limit must be above 0")
    return entry


def _check_names(where: str, table: object, struct: type[msgspec.Struct]) -> None:
    """BadInput names an unknown member and the nearest known one."""
    known = struct.__struct_fields__
    for name in cast(dict[str, object], table) if isinstance(table, dict) else ():
        if name not in known:
            raise BadInput(str(UnknownName(f"setting of {where}", name, known)))
        if name == "oauth":
            inner = cast(dict[str, object], table)[name]
            _check_names(f"{where}.oauth", inner, OAuthEntry)


def project_entry(name: str, table: Mapping[str, object], origin: str = "") -> ServerEntry:
    """The entry of a project's settings; what only the user may set is an error."""
    refused = [key for key in OWN_ONLY if key in table]
    if refused:
        where = f"mcp_servers.{name} in {origin}" if origin else f"mcp_servers.{name}"
        raise BadInput(f"{where}: a project may not set {', '.join(refused)}")
    return read_entry(name, dict(table), origin)


def cleaned_name(name: str) -> str:
    """A name from elsewhere with every other character replaced."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name) or "server"


def of_json(table: Mapping[str, object]) -> dict[str, object]:
    """The members of another program's `mcpServers` entry under our names."""
    known = {
        name: table[name]
        for name in ("command", "args", "env", "cwd", "url", "headers", "description")
        if table.get(name) is not None
    }
    kind = str(table.get("type") or table.get("transport") or "")
    if "httpUrl" in table:
        known |= {"url": table["httpUrl"], "transport": "http"}
    elif kind in ("sse", "http", "stdio"):
        known["transport"] = kind
    elif kind in ("streamable-http", "streamableHttp", "streamable_http"):
        known["transport"] = "http"
    return known


class Unset(Exception):
    """A variable that the entry names is not set."""


def expanded(entry: ServerEntry, environ: Mapping[str, str]) -> ServerEntry:
    """The entry with `$V`, `${V}` and `${V:-x}` filled in; Unset names what is missing."""

    def fill(text: str) -> str:
        return _VARIABLE.sub(replacement, text)

    def replacement(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        value = environ.get(name, "")
        if value or name in environ:
            return value
        if found[2] is None:
            raise Unset(f"the variable {name} is not set")
        return found[2]

    return msgspec.structs.replace(
        entry,
        command=fill(entry.command),
        args=tuple(map(fill, entry.args)),
        env={name: fill(value) for name, value in entry.env.items()},
        cwd=fill(entry.cwd),
        url=fill(entry.url),
        headers={name: fill(value) for name, value in entry.headers.items()},
    )


def definition(entry: ServerEntry) -> str:
    """A digest of the whole entry, values included: what an approval is bound to."""
    return _digest(msgspec.json.encode(entry, order="sorted"))


def cache_key(entry: ServerEntry) -> str:
    """A digest of what decides a server's lists; of variables and headers the names alone."""
    decisive = {
        "command": entry.command,
        "args": entry.args,
        "cwd": entry.cwd,
        "url": entry.url,
        "transport": entry.kind,
        "env": sorted({*entry.env, *entry.env_vars}),
        "headers": sorted(name.lower() for name in entry.headers),
        "protocol": entry.protocol,
    }
    return _digest(msgspec.json.encode(decisive, order="sorted"))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def shown(entry: ServerEntry) -> dict[str, object]:
    """The entry for people, values that may be secret hidden."""
    table: dict[str, object] = msgspec.to_builtins(entry)
    for name in ("env", "headers"):
        if name in table:
            table[name] = {key: _hidden(value) for key, value in _pairs(getattr(entry, name))}
    return table


def _pairs(table: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return table.items()


def _hidden(value: str) -> str:
    """A reference to a variable is shown; a literal value is not."""
    return value if _VARIABLE.fullmatch(value) else "[hidden]"
