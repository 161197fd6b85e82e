"""Builds models from settings: client, retries, tool style."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import msgspec

from toolwire.agent.usage import billed_to, cost
from toolwire.auth.credentials import SigningCredential, credential_for, no_notice, open_store
from toolwire.client.http.transport import Transport
from toolwire.client.model import Endpoint, connect
from toolwire.client.reask import falling_back, with_reask
from toolwire.client.retry import USUAL, Learned, RetryPolicy
from toolwire.config import Settings
from toolwire.context.cache import PrefixMeter, with_cache_marks
from toolwire.events import ModelEvent, Notice, Usage
from toolwire.ids import new_id
from toolwire.model import Model, reading
from toolwire.prompted import StyleChoice, ToolStyle, choose
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider
from toolwire.providers.addresses import address, variables
from toolwire.request import ModelRequest
from toolwire.storage.paths import state_paths

if TYPE_CHECKING:
    from toolwire.app.model_choice import Chosen
    from toolwire.app.options import SessionOptions
    from toolwire.embedded.weights import DownloadConsent


Wrapper: TypeAlias = Callable[[Model], Model]


def _unchanged(ask: Model) -> Model:
    return ask


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is ready for use, and how it was resolved."""

    client: Model
    """Without wrappers; `model_stack` puts them on."""
    provider: Provider
    model: str
    style: StyleChoice
    in_style: Wrapper = _unchanged
    """Makes the client speak the tool style."""
    origin: str
    """Where its credential comes from, as text."""
    info: ModelInfo | None = None
    endpoint: Endpoint | None = None
    """The server behind the client; None for a model of the host program."""
    reask: bool = True
    """False for a model of the host program, whose replies are taken as they are."""

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self.provider.name}/{self.model}"

    @property
    def server(self) -> str:
        """Host and port of its server; empty without one."""
        if self.endpoint is None:
            return ""
        parts = urlsplit(self.endpoint.base)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return f"{parts.hostname}:{port}" if parts.hostname else ""

    @property
    def ask(self) -> Model:
        """The model for requests outside of a session."""
        return model_stack((self,))

    def price(self, usage: Usage) -> float | None:
        """Returns the US dollars of an answer; None without a known price."""
        return cost(usage, self.info.prices if self.info is not None else None)


def model_stack(
    models: Sequence[Opened], *, cache_marks: bool = False, session: Wrapper | None = None
) -> Model:
    """Returns the models in all their wrappers as one, which asks them in order of preference.

    The client is innermost: it sends, retries before the first event, and drops parameters that
    the server has refused (`Learned`). Around it, each wrapper sees what those above it made:

    - the tool style rewrites requests and replies, so all others see tool calls, never their text;
    - re-asking follows the style: only a parsed reply shows that it is empty or broken;
    - cache marks are the last change to a request of one model, and differ by vendor;
    - the fallback chooses between complete models, each with its own style, marks and price;
    - `session` counts tokens for the compressor: of the model that answered, and once;
    - the cache report is outermost: it compares the requests that the turn makes.
    """
    stacks: list[tuple[str, Model]] = []
    for one in models:
        ask = one.in_style(one.client)
        if one.reask:
            ask = with_reask(ask)
        if cache_marks:
            quirks = one.provider.quirks_for(one.model)
            ask = with_cache_marks(ask, one.provider.dialect, quirks)
        stacks.append((one.name, billed_to(ask, one.model, one.price)))
    ask = falling_back(stacks) if len(stacks) > 1 else stacks[0][1]
    if session is not None:
        ask = with_cache_report(session(ask))
    return ask


async def open_model(
    name: str,
    *,
    settings: Settings,
    environ: Mapping[str, str],
    transport: Transport,
    key: str = "",
    base_url: str = "",
    tool_style: str = ToolStyle.AUTO,
    learned: Learned | None = None,
    policy: RetryPolicy = USUAL,
    cwd: Path | None = None,
    consent: DownloadConsent | None = None,
    notice: Callable[[str], None] = no_notice,
) -> Opened:
    """Returns `provider/model` ready for use: credential, address, retries and tool style set.

    `cwd` is the folder described to a small model; `consent` is for downloading the embedded
    model, if it is used.
    """
    provider, model = settings.split(name)
    if settings.allow_insecure_http:
        provider = msgspec.structs.replace(provider, allow_insecure_http=True)
    store = open_store(state_paths(environ), environ)
    credential = credential_for(provider, flag=key, environ=environ, store=store, notice=notice)
    bound = "" if base_url else await credential.base_url()
    base = bound or address(provider, environ, override=base_url)
    if not bound and (base_url or any(map(environ.get, variables(provider)))):
        # Another server may speak the format with mistakes of its own.
        provider = msgspec.structs.replace(provider, faithful=False)
    info = catalogue.find(provider.name, model, settings.models)
    style = choose(provider, model, tool_style, info=info)
    if provider.in_process and base == provider.base_url:
        transport = await embedded_transport(model, environ, transport, consent, notice)
    client = connect(
        provider,
        model,
        transport=transport,
        credential=credential,
        origin=credential.origin,
        base_url=base,
        quirks=catalogue.quirks_of(provider, model, settings.models),
        learned=learned,
        policy=policy,
        project=credential.project,
        sign=credential.sign if isinstance(credential, SigningCredential) else None,
    )
    in_style = partial(styled, provider=provider, model=model, choice=style)
    if provider.small and style.style is ToolStyle.JSON and cwd is not None:
        in_style = partial(shown_small, cwd=cwd, environ=environ)
    return Opened(
        client=client,
        provider=provider,
        model=model,
        style=style,
        in_style=in_style,
        origin=credential.origin,
        info=info,
        endpoint=client,
    )


async def open_models(
    chosen: Chosen,
    options: SessionOptions,
    *,
    environ: Mapping[str, str],
    transport: Transport,
    notice: Callable[[str], None],
    cwd: Path | None = None,
    consent: DownloadConsent | None = None,
) -> list[Opened]:
    """Returns the model and its fallbacks."""
    settings = chosen.settings
    style = options.tool_style or chosen.style or settings.tool_style
    learned = Learned()
    first = await open_model(
        chosen.name,
        settings=settings,
        environ=environ,
        transport=transport,
        key=options.key or chosen.key,
        base_url=options.base_url,
        tool_style=style,
        learned=learned,
        cwd=cwd,
        consent=consent,
        notice=notice,
    )
    others: tuple[str, ...] = () if options.upstream is not None else settings.fallback
    rest = [
        await open_model(
            name,
            settings=settings,
            environ=environ,
            transport=transport,
            learned=learned,
            cwd=cwd,
            consent=consent,
            notice=notice,
        )
        for name in others
        if name != chosen.name
    ]
    if first.style.warning:
        notice(first.style.warning)
    return [first, *rest]


def with_cache_report(ask: Model) -> Model:
    """Wraps the model: emits a notice when a request breaks the prompt cache."""
    meter = PrefixMeter()

    async def reporting(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        change = meter.add(request)
        if change is not None and change.why:
            share = change.shared / change.previous if change.previous else 1.0
            yield Notice("prefix", f"{share:.0%} of the last prompt is reused: {change.why}")
        async with reading(ask(request)) as events:
            async for event in events:
                yield event

    return reporting


def styled(ask: Model, provider: Provider, model: str, choice: StyleChoice) -> Model:
    """Returns the model, which speaks a tool style."""
    match choice.style:
        case ToolStyle.XML:
            from toolwire.prompted import xml  # noqa: PLC0415 - start-up time

            return xml.wrap(ask, new_id)
        case ToolStyle.JSON:
            from toolwire.prompted import json  # noqa: PLC0415 - start-up time

            return json.wrap(ask, new_id)
        case ToolStyle.NATIVE | ToolStyle.AUTO:
            rule = provider.rule_for(model)
            if rule is None or not rule.leaked:
                return ask
            from toolwire.prompted import leaked  # noqa: PLC0415 - start-up time

            return leaked.wrap(ask, rule.leaked, new_id)


async def embedded_transport(
    model: str,
    environ: Mapping[str, str],
    transport: Transport,
    consent: DownloadConsent | None,
    notice: Callable[[str], None],
) -> Transport:
    """Returns the embedded model, its file in place; loaded on the first request."""
    from toolwire.embedded import catalogue  # noqa: PLC0415 - start-up time
    from toolwire.embedded.engine import EmbeddedTransport  # noqa: PLC0415 - start-up time
    from toolwire.embedded.weights import DownloadConsent, WeightStore  # noqa: PLC0415 - start-up time

    store = WeightStore.of(
        state_paths(environ), environ, transport, consent or DownloadConsent(), notice
    )
    way = EmbeddedTransport(catalogue.find(model), store, transport)
    await way.prepare()
    return way


def shown_small(ask: Model, cwd: Path, environ: Mapping[str, str]) -> Model:
    """Wraps the model: short tool forms, and the folder's files as choices."""
    from toolwire.app.toolbox import workspace_of  # noqa: PLC0415 - start-up time
    from toolwire.embedded import small  # noqa: PLC0415 - start-up time
    from toolwire.embedded.small.project import known_files  # noqa: PLC0415 - start-up time

    workspace = workspace_of(cwd, environ)
    return small.wrap(ask, new_id, lambda: known_files(workspace, environ))
