"""Tables of settings read and merged, the higher layers on top."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from toolwire import providers
from toolwire.config.extensions import HookSettings, HookTable
from toolwire.config.gateway import GatewaySettings, RouteTable, read_route
from toolwire.config.schema import Key, dotted, keys, names_in, shown
from toolwire.config.settings import Settings
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider

if TYPE_CHECKING:
    from toolwire.mcp.entry import Configured

DEFAULT = "default"
_KEYWORDS = {"from": "from_"}
"""Settings that are words of Python, and their fields."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The settings and their origins."""

    settings: Settings
    values: Mapping[str, Any]
    """By path, defaults included; tables with names as they were written."""
    origins: Mapping[str, str]
    """By path: `default`, a file, a variable or `flag`; with a comma if lists were joined."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one source."""

    origin: str
    table: Mapping[str, Any]
    base: Path
    """The folder that its relative paths start from."""
    file: Path | None = None
    kind: str = "user"
    """`system`, `user` or `project`."""

    @property
    def project(self) -> bool:
        """Whether the project brings it."""
        return self.kind == "project"


def tables_of(key: str, found: object) -> dict[str, dict[str, Any]]:
    """Returns the tables below a key, by name."""
    if not isinstance(found, dict):
        raise BadInput(f"{key} must be tables; write [{key}.<name>]")
    for name, entry in cast(dict[str, object], found).items():
        if not isinstance(entry, dict):
            raise BadInput(f"{key}.{name} must be a table; write [{key}.{name}]")
    return cast(dict[str, dict[str, Any]], found)


def read_providers(
    tables: Mapping[str, Mapping[str, object]], below: Mapping[str, Provider]
) -> dict[str, Provider]:
    """Returns the providers of lower layers with those of these tables."""
    done = dict(below)

    def find(name: str) -> Provider:
        # Only earlier entries, so that none can extend itself through another.
        return done[name] if name in done else providers.get(name)

    for name, table in tables.items():
        if name in providers.names() and "extends" not in table:
            raise BadInput(
                f"providers.{name} is built in; "
                f'write extends = "{name}" to change it, or choose another name'
            )
        if not name or "/" in name:
            raise BadInput(f'providers."{name}": a name may not be empty or contain a slash')
        done[name] = providers.custom(name, table, find)
    return done


def read_models(
    tables: Mapping[str, Mapping[str, object]], below: Mapping[str, ModelInfo]
) -> dict[str, ModelInfo]:
    """Returns the models of lower layers with those of these tables."""
    described = {name: catalogue.described(name, entry) for name, entry in tables.items()}
    others = {name: info for name, info in below.items() if name not in described}
    return others | described


def read_servers(
    tables: Mapping[str, Mapping[str, object]], layer: Layer
) -> dict[str, "Configured"]:
    """Returns the MCP servers of a layer; those of a project are not approved yet."""
    if not tables:
        return {}
    from toolwire.mcp.entry import Configured, project_entry, read_entry  # noqa: PLC0415 - start-up time

    read = project_entry if layer.project else read_entry
    return {
        name: Configured(
            entry=read(name, dict(table)), origin=layer.kind, approved=not layer.project
        )
        for name, table in tables.items()
    }


class Merged:
    """Merges layers, the higher ones on top."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._origins: dict[str, str] = {}
        self._raw: dict[str, Any] = {}
        self._providers: dict[str, Provider] = {}
        self._models: dict[str, ModelInfo] = {}
        self._servers: dict[str, Configured] = {}
        self._routes: dict[str, RouteTable] = {}
        self._hooks: list[HookTable] = []
        self.notices: list[str] = []
        self._files: list[Path] = []
        self._by_project: set[str] = set()

    def add(self, layer: Layer, user: Path) -> None:
        """Adds a layer, completely or not at all."""
        try:
            for key, value in _values(self._without_hooks(layer)):
                if layer.project and not key.project:
                    raise BadInput(f"{key.path}: a project may not set this; move it to {user}")
                if layer.project:
                    self._by_project.add(key.path)
                if key.tables:
                    self._name(key, tables_of(key.path, value), layer)
                else:
                    self._set(key, key.read(value), layer)
        except ToolwireError as error:
            raise BadInput(f"{layer.origin}: {error}") from error
        if layer.file is not None:
            self._files.append(layer.file)

    def _without_hooks(self, layer: Layer) -> Mapping[str, Any]:
        """Returns the table without `[[hooks.EVENT]]`, whose entries are read when needed."""
        hooks = layer.table.get("hooks")
        if not isinstance(hooks, dict):
            return layer.table
        table, rest = cast(dict[str, Any], hooks), dict[str, Any]()
        for event, entries in table.items():
            if event in names_in("hooks"):
                rest[event] = entries
                continue
            if not isinstance(entries, list):
                raise BadInput(f"hooks.{event} must be a list of tables; write [[hooks.{event}]]")
            path = dotted("hooks", event)
            self._raw[path], self._origins[path] = entries, layer.origin
            self._hooks += (
                HookTable(event=event, table=one, kind=layer.kind, file=layer.file)
                for one in cast(list[Any], entries)
            )
        return {**layer.table, "hooks": rest}

    def _set(self, key: Key, value: Any, layer: Layer) -> None:
        origin = layer.origin
        if layer.project and key.tighter:
            before = self._values.get(key.path, key.default)
            if key.tighter.index(value) < key.tighter.index(before):
                raise BadInput(
                    f"{key.path}: a project may only tighten this, and {shown(value)} is looser "
                    f"than {shown(before)}"
                )
        if key.file and value:
            value = str(layer.base / Path(value).expanduser())
        if key.joins and key.path in self._values:
            value = tuple(dict.fromkeys((*self._values[key.path], *value)))
            origin = f"{self._origins[key.path]}, {origin}"
        self._values[key.path], self._origins[key.path] = value, origin

    def _name(self, key: Key, tables: dict[str, dict[str, Any]], layer: Layer) -> None:
        match key.path:
            case "providers":
                self._providers = read_providers(tables, self._providers)
            case "models":
                self._models = read_models(tables, self._models)
            case "gateway.routes":
                self._routes |= {name: read_route(name, table) for name, table in tables.items()}
            case _:
                tables = self._without_clashes(tables, layer)
                self._servers |= read_servers(tables, layer)
        for name, table in tables.items():
            path = dotted(*key.path.split("."), name)
            self._raw[path], self._origins[path] = table, layer.origin

    def _without_clashes(
        self, tables: dict[str, dict[str, Any]], layer: Layer
    ) -> dict[str, dict[str, Any]]:
        """Returns the servers without those of a project that the user also has."""
        if not layer.project:
            return tables
        for name in tables.keys() & self._servers.keys():
            self.notices.append(
                f"the MCP server {name} of {layer.origin} is ignored: you have one of that name"
            )
        return {name: table for name, table in tables.items() if name not in self._servers}

    def resolved(self, *, trusted: bool | None) -> Resolved:
        """Returns the merged settings."""
        plain = {path: key.default for path, key in keys().items() if not key.tables}
        return Resolved(
            settings=self._settings(trusted=trusted),
            values=plain | self._values | self._raw,
            origins=dict.fromkeys(plain, DEFAULT) | self._origins,
        )

    def _settings(self, *, trusted: bool | None) -> Settings:
        changes: dict[str, Any] = {}
        for path, value in self._values.items():
            group, dot, name = path.partition(".")
            if dot:
                changes.setdefault(group, {})[_KEYWORDS.get(name, name)] = value
            else:
                changes[group] = value
        usual = Settings(
            providers=tuple(self._providers.values()),
            models=tuple(self._models.values()),
            mcp_servers=self._servers,
            gateway=GatewaySettings(routes=self._routes),
            hooks=HookSettings(tables=tuple(self._hooks)),
            files=tuple(self._files),
            set_by_project=frozenset(self._by_project),
            trusted=trusted,
        )
        for group, values in changes.items():
            before = getattr(usual, group)
            if isinstance(before, msgspec.Struct):
                changes[group] = msgspec.structs.replace(before, **values)
        return msgspec.structs.replace(usual, **changes)


def _values(table: Mapping[str, Any], group: str = "") -> Iterator[tuple[Key, Any]]:
    known = names_in(group)
    for name, value in table.items():
        path = f"{group}.{name}" if group else name
        if name not in known:
            raise UnknownName(f"setting of {group}" if group else "setting", name, known)
        if path in keys():
            yield keys()[path], value
        elif isinstance(value, dict):
            yield from _values(cast(dict[str, Any], value), path)
        else:
            raise BadInput(f"{path} must be a table; write [{path}]")
