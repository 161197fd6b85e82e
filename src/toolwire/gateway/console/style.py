"""The tool style control: which style a model gets and why, and what the model is shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import msgspec

from toolwire import dialects
from toolwire.app.model_stack import styled
from toolwire.errors import ToolwireError
from toolwire.events import Finished, ModelEvent, StopReason
from toolwire.gateway.console.calls import ApiError
from toolwire.gateway.routing import GatewayRoutes
from toolwire.messages import Message, Text
from toolwire.model import reading
from toolwire.prompted import StyleChoice, ToolStyle, choose
from toolwire.providers import catalogue
from toolwire.request import ModelRequest, ToolSpec

if TYPE_CHECKING:
    from toolwire.config import Settings
    from toolwire.config.merging import Resolved
    from toolwire.gateway.console.api import Console
    from toolwire.providers._spec import Provider

_TITLES = {
    ToolStyle.AUTO: "Let it decide",
    ToolStyle.XML: "Tags (XML)",
    ToolStyle.NATIVE: "Native",
    ToolStyle.JSON: "Constrained JSON",
}
_LINES = 60
_EXAMPLE = ToolSpec(
    name="read_file",
    description="Reads part of a text file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to read."},
            "limit": {"type": "integer", "description": "How many lines."},
        },
        "required": ["path"],
    },
)


class ModelStyle(msgspec.Struct, frozen=True, kw_only=True):
    """The style of one model."""

    model: str
    setting: str
    origin: str
    style: str
    reason: str
    warning: str


class StyleNow(msgspec.Struct, frozen=True, kw_only=True):
    """The style in use."""

    model: str
    style: str
    reason: str
    warning: str


class StyleOption(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of the control, and what it would mean."""

    style: str
    title: str
    style_then: str
    reason: str
    warning: str


class StyleReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the control shows."""

    setting: str
    origin: str
    models: list[ModelStyle]
    now: StyleNow
    options: list[StyleOption]
    preview: dict[str, str]
    note: str


async def report_of(
    console: Console, model: str, resolve: Callable[[Console], Resolved]
) -> StyleReport:
    """The control for a model; without one for the model that is used by default."""
    found = await asyncio.to_thread(resolve, console)
    settings = found.settings
    name = model or default_model(console, settings)
    if not name:
        raise ApiError(404, "no model is used by default", "name one, or set default_model")
    provider, short = split(console, settings, name)
    stored = settings.models
    info = catalogue.find(provider.name, short, stored)
    setting = str(settings.tool_style)
    now = choose(provider, short, setting, info=info)
    options: list[StyleOption] = []
    preview: dict[str, str] = {}
    for style, title in _TITLES.items():
        then = choose(provider, short, str(style), info=info)
        options.append(
            StyleOption(
                style=str(style),
                title=title,
                style_then=str(then.style),
                reason=then.reason,
                warning=then.warning,
            )
        )
        preview[str(style)] = await shown_to_model(provider, short, then)
    return StyleReport(
        setting=setting,
        origin=found.origins.get("tool_style", "default"),
        models=_models(console, settings, found),
        now=StyleNow(model=name, style=str(now.style), reason=now.reason, warning=now.warning),
        options=options,
        preview=preview,
        note="running sessions keep theirs",
    )


def default_model(console: Console, settings: Settings) -> str:
    """The model of requests that name none; empty if there is none."""
    upstream = console.host.options.upstream
    if upstream is not None:
        return f"{upstream.provider.name}/{upstream.model}"
    listed = console.host.gateway.parts.listed
    name = console.host.options.model or settings.default_model
    return name or (listed[0].model if listed else "")


def split(console: Console, settings: Settings, name: str) -> tuple[Provider, str]:
    """The provider and the model of a name; the provider may be that of the command line."""
    routes = console.host.gateway.parts.routes
    opened = routes.deployments.get(name) if isinstance(routes, GatewayRoutes) else None
    if opened is not None:
        return opened.opened.provider, opened.opened.model
    try:
        return settings.split(name)
    except ToolwireError:
        upstream = console.host.options.upstream
        if upstream is None or name.partition("/")[0] != upstream.provider.name:
            raise
        return upstream.provider, name.partition("/")[2]


def _models(console: Console, settings: Settings, found: Resolved) -> list[ModelStyle]:
    names = {one.model for one in console.host.gateway.parts.listed if one.model}
    names |= {f"{one.provider}/{one.id}" for one in settings.models}
    rows: list[ModelStyle] = []
    setting = str(settings.tool_style)
    for name in sorted(names):
        try:
            provider, short = split(console, settings, name)
        except ToolwireError:
            continue
        info = catalogue.find(provider.name, short, settings.models)
        chosen = choose(provider, short, setting, info=info)
        own = info.tool_style if info is not None else ""
        rows.append(
            ModelStyle(
                model=name,
                setting=own or "auto",
                origin=found.origins.get(f'models."{name}"', "") if own else "default",
                style=str(chosen.style),
                reason=chosen.reason,
                warning=chosen.warning,
            )
        )
    return rows


async def shown_to_model(provider: Provider, model: str, choice: StyleChoice) -> str:
    """The first lines of what a model is shown of its tools, for one tool as an example."""
    asked: list[ModelRequest] = []

    async def listen(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        yield Finished(reason=StopReason.END)

    request = ModelRequest(
        model=model or "model",
        messages=(Message(role="user", parts=(Text("…"),)),),
        tools=(_EXAMPLE,),
    )
    try:
        async with reading(styled(listen, provider, model, choice)(request)) as events:
            async for _ in events:
                pass
    except ToolwireError:
        # What the model would answer is not needed.
        pass
    if not asked:
        return ""
    sent = asked[0]
    if sent.tools:
        body = dialects.get(provider.dialect).encode_request(sent, provider.quirks).http.body
        tools = msgspec.json.decode(body)
        if provider.dialect == "code-assist":
            tools = tools.get("request", {})
        text = msgspec.json.format(msgspec.json.encode({"tools": tools.get("tools")})).decode()
    else:
        text = "\n\n".join(part.text for part in sent.system)
    return "\n".join(text.splitlines()[:_LINES])
