"""Settings in the console: each value with its origin, changes, and the tool style control."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolwire import config
from toolwire.config import edit, trust
from toolwire.config.display import Row, file_states, rows
from toolwire.config.layers import config_files
from toolwire.config.merging import Resolved
from toolwire.config.schema import keys, rendered
from toolwire.gateway.console.calls import ApiError, ApiRoute, Call, Query
from toolwire.gateway.console.style import StyleReport, report_of
from toolwire.gateway.reload import NEED_RESTART

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console


class SettingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One setting."""

    key: str
    value: Any
    text: str
    """As TOML."""
    origin: str
    default: Any
    description: str
    type: str
    choices: list[str] | None
    needs: str
    """What a change needs: `none`, `restart` or `new_session`."""
    editable: bool
    secret: bool


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """One settings file."""

    layer: str
    path: str
    state: str


class SettingList(msgspec.Struct, frozen=True, kw_only=True):
    """All settings."""

    settings: list[SettingRow]
    files: list[FileRow]
    problem: str


class SettingChange(msgspec.Struct, frozen=True, kw_only=True):
    """A setting to store or to remove; a value as JSON, or as text of TOML."""

    key: str
    value: Any = None
    text: str | None = None
    unset: bool = False
    layer: Literal["user", "project"] = "user"


class ChangedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting after a change."""

    setting: SettingRow | None
    needs: str
    reloaded: bool
    problem: str


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the files were read again."""

    reloaded: bool
    problem: str
    needs_restart: list[str]


class StyleChange(msgspec.Struct, frozen=True, kw_only=True):
    """A tool style for all models, or for one."""

    style: Literal["auto", "xml", "native", "json"]
    model: str | None = None


def resolved(console: Console) -> Resolved:
    """The settings with the origin of each value; flags of the command line included."""
    host = console.host
    if host.options.resolve is not None:
        return host.options.resolve()
    return config.resolve(host.environ, host.folder, notice=lambda text: None)


def _needs(key: str) -> str:
    if key.startswith("gateway."):
        return "restart" if key.removeprefix("gateway.") in NEED_RESTART else "none"
    return "new_session"


_TYPES: dict[type[Any], str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}


def _row(row: Row) -> SettingRow:
    known = keys().get(row.key)
    default = None if known is None else msgspec.to_builtins(known.default, enc_hook=str)
    schema = {} if known is None or known.tables else _schema(known.kind)
    value: object = row.value if row.value is not None else default
    kind = _TYPES.get(type(value), "table")
    words = schema.get("enum")
    return SettingRow(
        key=row.key,
        value=row.value,
        text=row.text,
        origin=row.origin,
        default=default,
        description="" if known is None else known.doc,
        type="enum" if words else _type(schema, kind),
        choices=words,
        needs=_needs(row.key),
        editable=row.value != "[hidden]",
        secret=row.value == "[hidden]",
    )


def _type(schema: dict[str, Any], kind: str) -> str:
    named = schema.get("type", kind)
    return kind if not isinstance(named, str) or named == "object" else named


def _schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a setting without references, and without null."""
    try:
        (found,), parts = msgspec.json.schema_components((kind,), ref_template="#/{name}")
    except TypeError:
        return {}
    choices = [one for one in found.get("anyOf", [found]) if one.get("type") != "null"]
    first: dict[str, Any] = choices[0] if choices else {}
    if "$ref" in first:
        first = parts.get(first["$ref"].removeprefix("#/"), {})
    return first


def _listed(console: Console) -> SettingList:
    host = console.host
    return SettingList(
        settings=[_row(row) for row in rows(resolved(console))],
        files=[
            FileRow(layer=layer, path=path, state=state)
            for layer, path, state in file_states(host.environ, host.folder)
        ],
        problem=host.reloader.problem,
    )


async def listed(console: Console, call: Call) -> None:
    """Answers with all settings."""
    await call.answer(await asyncio.to_thread(_listed, console))


def store(console: Console, change: SettingChange) -> None:
    """Writes a setting to its file, as `toolwire config set` does."""
    host = console.host
    files = config_files(host.environ, host.folder)
    file = files.project if change.layer == "project" else files.user
    trusted = trust.is_trusted(host.folder, host.environ)
    if change.unset:
        edit.unset_value(files, file, change.key)
    else:
        text = change.text
        if text is None:
            text = change.value if isinstance(change.value, str) else rendered(change.value)
        edit.set_value(files, file, change.key, text, host.folder)
    if trusted and not trust.is_trusted(host.folder, host.environ):
        # The user changed the project's file here: it stays trusted.
        trust.trust(host.folder, trust.TrustAnswer.YES, host.environ)


async def change(console: Console, call: Call) -> None:
    """Stores or removes a setting, and reads the files again."""
    given = call.body(SettingChange)
    if not given.unset and given.text is None and given.value is None:
        raise ApiError(400, "value: a value or a text is missing", "unset removes a setting")
    await asyncio.to_thread(store, console, given)
    reloaded = await console.host.reloader.reload()
    found = await asyncio.to_thread(lambda: rows(resolved(console)))
    row = next((_row(one) for one in found if one.key == given.key), None)
    await call.answer(
        ChangedSetting(
            setting=row,
            needs=_needs(given.key),
            reloaded=reloaded,
            problem=console.host.reloader.problem,
        )
    )


async def reload(console: Console, call: Call) -> None:
    """Reads the settings files again."""
    reloader = console.host.reloader
    done = await reloader.reload()
    await call.answer(
        Reloaded(
            reloaded=done,
            problem=reloader.problem,
            needs_restart=[f"gateway.{name}" for name in reloader.waiting],
        )
    )


async def style(console: Console, call: Call) -> None:
    """Answers with the tool style of a model, the reason, and what it is shown."""
    await call.answer(await report_of(console, call.query.get("model", ""), resolved))


async def change_style(console: Console, call: Call) -> None:
    """Stores the tool style of all models, or of one."""
    given = call.body(StyleChange)
    key = "tool_style"
    if given.model:
        upstream = console.host.options.upstream
        if upstream is not None and given.model.startswith(f"{upstream.provider.name}/"):
            hint = f"start with --upstream …,style={given.style}, or choose for all models"
            raise ApiError(409, "the upstream of the command line has its style there", hint)
        console.host.settings().split(given.model)
        key = f'models."{given.model}".tool_style'
    await asyncio.to_thread(store, console, SettingChange(key=key, value=given.style))
    await console.host.reloader.reload()
    await call.answer(await report_of(console, given.model or "", resolved))


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/settings",
        does=listed,
        about="Every setting with its value and origin.",
        returns=SettingList,
    ),
    ApiRoute(
        method="POST",
        path="/settings",
        does=change,
        about="Store or remove a setting; comments of the file stay.",
        takes=SettingChange,
        returns=ChangedSetting,
    ),
    ApiRoute(
        method="GET",
        path="/settings/style",
        does=style,
        about="How tools are offered: the style, its reason, and what the model is shown.",
        query=(Query("model", "`provider/model`; the default model without it."),),
        returns=StyleReport,
    ),
    ApiRoute(
        method="POST",
        path="/settings/style",
        does=change_style,
        about="Store the tool style of all models, or of one.",
        takes=StyleChange,
        returns=StyleReport,
    ),
    ApiRoute(
        method="POST",
        path="/reload",
        does=reload,
        about="Read the settings files again.",
        returns=Reloaded,
    ),
)
