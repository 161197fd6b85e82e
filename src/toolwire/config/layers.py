"""Settings files and their layers, lowest precedence first: defaults to flags."""

import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from toolwire import providers
from toolwire.config import trust
from toolwire.config.extensions import HookSettings, HookTable
from toolwire.config.gateway import GatewaySettings, RouteTable, read_route
from toolwire.config.schema import Key, dotted, keys, names_in, shown
from toolwire.config.settings import Settings
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider
from toolwire.storage.paths import state_paths

if TYPE_CHECKING:
    from toolwire.mcp.entry import Configured

FILE = "config.toml"
PROJECT_FILE = Path(".toolwire") / FILE
SYSTEM_VARIABLE = "TOOLWIRE_SYSTEM_CONFIG"


class ConfigFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Settings files, lowest precedence first; they may not exist."""

    system: Path
    user: Path
    project: Path


def current_folder() -> Path:
    """Returns the current folder; BadInput if it was deleted."""
    try:
        return Path.cwd()
    except OSError as error:
        raise BadInput("the current folder no longer exists; change to another") from error


def config_files(environ: Mapping[str, str], cwd: Path) -> ConfigFiles:
    """Returns the files for this environment and folder."""
    return ConfigFiles(
        system=_system(environ),
        user=state_paths(environ).config / FILE,
        project=cwd / PROJECT_FILE,
    )


def _system(environ: Mapping[str, str]) -> Path:
    named = environ.get(SYSTEM_VARIABLE, "")
    if named:
        file = Path(named).expanduser()
        if not file.exists():
            raise BadInput(f"{SYSTEM_VARIABLE}: no file {file}; correct the variable or unset it")
        return file
    if sys.platform == "win32":
        return Path(environ.get("PROGRAMDATA") or r"C:\ProgramData") / "toolwire" / FILE
    return Path("/etc/toolwire") / FILE


def read_text(file: Path) -> str | None:
    """Returns the file's text with its line ends; None without a file."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = error.strerror or os.strerror(error.errno or 0)
        raise BadInput(f"{file} cannot be read: {why}; check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8; save it again as UTF-8") from error


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
    tables: Mapping[str, Mapping[str, object]], layer: "Layer"
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


DEFAULT = "default"
_KEYWORDS = {"from": "from_"}
"""Settings that are words of Python, and their fields."""
FLAG = "flag"


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


def load(
    environ: Mapping[str, str],
    cwd: Path,
    *,
    flags: Mapping[str, object] | None = None,
    trusted: bool | None = None,
    ask: trust.Ask | None = None,
    notice: Callable[[str], None] | None = None,
) -> Settings:
    """Returns the settings of this user in this folder; missing files are skipped.

    `flags` are values by path (`limits.turns`), None for those not given. A project's file applies
    if the folder is trusted: by `trusted`, else the environment, else the stored answer, else
    `ask`. A file skipped for that is reported to `notice`.
    """
    resolved = resolve(environ, cwd, flags=flags, trusted=trusted, ask=ask, notice=notice)
    return resolved.settings


def resolve(
    environ: Mapping[str, str],
    cwd: Path,
    *,
    flags: Mapping[str, object] | None = None,
    trusted: bool | None = None,
    ask: trust.Ask | None = None,
    notice: Callable[[str], None] | None = None,
) -> Resolved:
    """Returns the settings with the origin of each value."""
    files = config_files(environ, cwd)
    if trusted is None:
        trusted = _trusted(files, environ, cwd, ask, notice or _to_stderr)
    found = _Merged()
    for layer in (
        *_of_files(files, with_project=bool(trusted)),
        *_of_variables(environ, cwd),
        *_of_flags(flags or {}, cwd),
    ):
        found.add(layer, files.user)
    for words in found.notices:
        (notice or _to_stderr)(words)
    return found.resolved(trusted=trusted)


def check_file(files: ConfigFiles, file: Path, text: str) -> None:
    """Validates a file with this text, on top of the lower layers."""
    found = _Merged()
    for kind in ("system", "user", "project"):
        one: Path = getattr(files, kind)
        content = text if one == file else read_text(one)
        if content is not None:
            found.add(file_layer(one, content, kind), files.user)
        if one == file:
            return


def has_project_file(files: ConfigFiles) -> bool:
    """Whether the folder has project settings; the user's file is not a project's."""
    try:
        return files.project.exists() and not (
            files.user.exists() and files.project.samefile(files.user)
        )
    except OSError:
        return True


def parse(file: Path, text: str) -> dict[str, Any]:
    """Parses the file's text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file} is not TOML: {error}; correct it there") from error


def file_layer(file: Path, text: str, kind: str = "user") -> Layer:
    """Returns the layer of a file with this text."""
    return Layer(origin=str(file), table=parse(file, text), base=file.parent, file=file, kind=kind)


def _trusted(
    files: ConfigFiles,
    environ: Mapping[str, str],
    cwd: Path,
    ask: trust.Ask | None,
    notice: Callable[[str], None],
) -> bool | None:
    brings = has_project_file(files)
    prompt = _project_prompt(environ, cwd)
    trusted = trust.decide(cwd, environ, ask if brings or prompt else None)
    if trusted is None and brings:
        changed = "it changed since this folder was trusted"
        why = changed if trust.has_changed(cwd, environ) else "this folder is not trusted"
        notice(
            f"{files.project} is skipped because {why}; "
            'run "toolwire config trust" to use it, or "toolwire config trust --no"'
        )
    if trusted and (brings or prompt):
        trust.pin(cwd, environ)
    return trusted


def _project_prompt(environ: Mapping[str, str], cwd: Path) -> bool:
    """Whether the folder has a system prompt that the environment requests."""
    choice = environ.get("GEMINI_SYSTEM_MD", "").strip().lower()
    if choice in ("", "0", "false"):
        return False
    return any((cwd / file).is_file() for file in trust.PROMPT_FILES)


def _to_stderr(message: str) -> None:
    sys.stderr.write(f"toolwire: {message}\n")


def _of_files(files: ConfigFiles, *, with_project: bool) -> Iterator[Layer]:
    sources = {"system": files.system, "user": files.user}
    if with_project and has_project_file(files):
        sources["project"] = files.project
    for kind, file in sources.items():
        text = read_text(file)
        if text is not None:
            yield file_layer(file, text, kind)


def _of_variables(environ: Mapping[str, str], cwd: Path) -> Iterator[Layer]:
    for key in keys().values():
        text = environ.get(key.variable, "") if key.variable else ""
        if text:
            try:
                table = _nested(key.path, key.from_text(text))
            except ToolwireError as error:
                raise BadInput(f"{key.variable}: {error}") from error
            yield Layer(origin=key.variable, table=table, base=cwd)


def _of_flags(flags: Mapping[str, object], cwd: Path) -> Iterator[Layer]:
    for path, value in flags.items():
        if value is not None:
            yield Layer(origin=FLAG, table=_nested(path, value), base=cwd)


def _nested(path: str, value: object) -> dict[str, Any]:
    outer, dot, inner = path.partition(".")
    return {outer: _nested(inner, value) if dot else value}


class _Merged:
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
