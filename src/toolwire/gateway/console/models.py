"""Models and providers in the console: routes, the state of deployments, and a test of one."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from toolwire import providers
from toolwire.auth.credentials import credential_for, open_store
from toolwire.client.redact import hide_in_url
from toolwire.collect import Collector
from toolwire.errors import ToolwireError
from toolwire.events import Notice
from toolwire.gateway.accounts import ReadyProviders
from toolwire.gateway.console.calls import ApiError, ApiRoute, Call
from toolwire.gateway.console.probe import WEATHER
from toolwire.gateway.console.style import default_model, split
from toolwire.gateway.deployments import OpenDeployment, deployment_name
from toolwire.gateway.routing import GatewayRoutes
from toolwire.gateway.usage import UsageRow
from toolwire.messages import Message, Text
from toolwire.model import reading
from toolwire.prompted import StyleChoice, choose
from toolwire.providers import catalogue
from toolwire.providers._spec import ApiKey, ModelInfo, NoAuth
from toolwire.providers.addresses import address
from toolwire.request import ModelRequest
from toolwire.storage.paths import state_paths

if TYPE_CHECKING:
    from toolwire.config import Settings
    from toolwire.config.gateway import RouteTarget
    from toolwire.gateway.console.api import Console

_TEST_SECONDS = 60.0
_LATENCY_DAYS = 7
"""Days whose requests the latencies of a model are taken from."""


class RouteRow(msgspec.Struct, frozen=True, kw_only=True):
    """A route of the settings."""

    name: str
    balance: str
    deployments: list[str]
    fallback: list[str]
    long_context: str


class PriceRow(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None


class DeploymentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model of one provider with one credential."""

    name: str
    provider: str
    model: str
    state: str
    until: float | None
    last_error: str
    last_error_at: float | None
    key_from: str
    p50: float | None
    p95: float | None
    requests: int
    errors: int
    prices: PriceRow | None
    context: int | None
    output: int | None
    style: StyleChoice
    conformance: str


class ProviderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, and where its key comes from; never the key."""

    name: str
    title: str
    dialect: str
    base_url: str
    ready: bool
    key_from: str
    key_env: str
    models: int


class NameRow(msgspec.Struct, frozen=True, kw_only=True):
    """A name that clients may send."""

    id: str
    model: str
    owner: str


class ModelReport(msgspec.Struct, frozen=True, kw_only=True):
    """Routes, deployments, providers, and names for clients."""

    routes: list[RouteRow]
    deployments: list[DeploymentRow]
    providers: list[ProviderRow]
    names: list[NameRow]


class ModelToTest(msgspec.Struct, frozen=True):
    """A name that clients may send."""

    model: str


class TestedCall(msgspec.Struct, frozen=True):
    """The call that the model made."""

    name: str
    arguments: str


class TestedUsage(msgspec.Struct, frozen=True):
    """Tokens of the test."""

    input: int
    output: int


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a model answered one tiny request with a tool."""

    ok: bool
    model: str
    seconds: float
    first_event: float | None = None
    call: TestedCall | None = None
    text: str = ""
    usage: TestedUsage = TestedUsage(0, 0)
    cost: float | None = None
    request: str = ""
    error: str = ""
    hint: str = ""


async def report(console: Console, call: Call) -> None:
    """Answers with routes, deployments, providers and names."""
    today = datetime.fromtimestamp(console.host.gateway.parts.clock(), UTC).date()
    since = today - timedelta(days=_LATENCY_DAYS - 1)
    store = console.host.accounts.store
    past = await store.usage_rows(("model",), since.isoformat(), today.isoformat(), "", "")
    by_model = {row.model: row for row in past if row.model}
    await call.answer(await asyncio.to_thread(_report, console, by_model))


def _report(console: Console, past: Mapping[str, UsageRow]) -> ModelReport:
    settings = console.host.settings()
    routes = settings.gateway.routes
    rows = [
        RouteRow(
            name=name,
            balance=table.balance,
            deployments=[deployment_name(one) for one in table.targets],
            fallback=list(table.fallback),
            long_context=table.long_context,
        )
        for name, table in routes.items()
    ]
    ready = ReadyProviders(settings, console.host.environ)()
    return ModelReport(
        routes=rows,
        deployments=_deployments(console, settings, ready, past),
        providers=_providers(console, settings, ready),
        names=[
            NameRow(id=one.id, model=one.model or one.id, owner=one.owner)
            for one in console.host.gateway.parts.listed
        ],
    )


def _deployments(
    console: Console, settings: Settings, ready: Sequence[str], past: Mapping[str, UsageRow]
) -> list[DeploymentRow]:
    found: dict[str, RouteTarget | None] = {}
    for table in settings.gateway.routes.values():
        for target in table.targets:
            found[deployment_name(target)] = target
        others = (*table.fallback, table.long_context)
        found |= {name: None for name in others if name and name not in found}
    routes = console.host.gateway.parts.routes
    opened = routes.deployments if isinstance(routes, GatewayRoutes) else {}
    found |= {name: None for name in opened if name not in found}
    usual = default_model(console, settings)
    if usual and usual not in found:
        found[usual] = None
    times: dict[str, list[float]] = defaultdict(list)
    errors: dict[str, int] = defaultdict(int)
    # The ledger knows models; which of several credentials was used is known in memory alone.
    for watched in console.host.gateway.watch.newest():
        if not watched.running and watched.record.deployment:
            times[watched.record.deployment].append(watched.record.duration)
            errors[watched.record.deployment] += bool(watched.record.error)
    return [
        _deployment(
            console,
            settings,
            name,
            opened.get(name),
            past.get(name) or _measured(times[name], errors[name]),
            ready,
        )
        for name in found
    ]


def _measured(times: list[float], errors: int) -> UsageRow:
    """The requests in memory."""
    times = sorted(times)
    if not times:
        return UsageRow()
    return UsageRow(
        requests=len(times),
        errors=errors,
        p50=times[len(times) // 2],
        p95=times[min(len(times) - 1, int(len(times) * 0.95))],
    )


def _deployment(
    console: Console,
    settings: Settings,
    name: str,
    opened: OpenDeployment | None,
    used: UsageRow,
    ready: Sequence[str],
) -> DeploymentRow:
    model = name.partition("#")[0]
    if opened is not None:
        provider, short, info = opened.opened.provider, opened.opened.model, opened.opened.info
        style = opened.opened.style
    else:
        provider, short = split(console, settings, model)
        info = catalogue.find(provider.name, short, settings.models)
        style = choose(provider, short, settings.tool_style, info=info)
    cooling = console.host.accounts.cooling
    until = cooling.of(name).until
    now = console.host.gateway.parts.clock()
    at, words = cooling.errors.get(name, (None, ""))
    state = "ready" if opened is not None else "unused"
    if opened is None and provider.name not in ready and not isinstance(provider.auth, NoAuth):
        state = "no_key"
    if until > now:
        state = "cooling"
    return DeploymentRow(
        name=name,
        provider=provider.name,
        model=short,
        state=state,
        until=until if until > now else None,
        last_error=words,
        last_error_at=at,
        key_from=name.partition("#")[2] or (opened.opened.origin if opened is not None else ""),
        p50=used.p50,
        p95=used.p95,
        requests=used.requests,
        errors=used.errors,
        prices=_prices(info),
        context=(info.context or None) if info is not None else None,
        output=(info.output or None) if info is not None else None,
        style=style,
        conformance=console.conformance.badge(model),
    )


def _prices(info: ModelInfo | None) -> PriceRow | None:
    if info is None or info.prices is None:
        return None
    prices = info.prices
    return PriceRow(input=prices.input, output=prices.output, cached=prices.cache_read)


def _providers(console: Console, settings: Settings, ready: Sequence[str]) -> list[ProviderRow]:
    environ = console.host.environ
    store = open_store(state_paths(environ), environ)
    own = [provider.name for provider in settings.providers]
    found: list[ProviderRow] = []
    for name in dict.fromkeys((*own, *providers.names())):
        provider = settings.provider(name)
        origin = ""
        try:
            origin = credential_for(provider, environ=environ, store=store).origin
            base = address(provider, environ)
        except ToolwireError:
            base = provider.base_url
        env = provider.auth.env[0] if isinstance(provider.auth, ApiKey) else ""
        found.append(
            ProviderRow(
                name=name,
                title=provider.title,
                dialect=provider.dialect,
                base_url=hide_in_url(base),
                ready=name in ready,
                key_from=origin if name in ready else "",
                key_env=env,
                models=len(catalogue.models(name, settings.models)),
            )
        )
    return sorted(found, key=lambda row: (not row.ready, row.name))


async def test(console: Console, call: Call) -> None:
    """Sends one tiny request with a tool to a model."""
    given = call.body(ModelToTest)
    if not given.model:
        raise ApiError(400, "model: a name is missing")
    began = time.perf_counter()
    try:
        route = await console.host.gateway.parts.routes.find(given.model)
        async with asyncio.timeout(_TEST_SECONDS):
            result = await _tested(route.all[0].opened, began)
    except TimeoutError:
        result = _failed(given.model, began, f"no answer within {_TEST_SECONDS:.0f} s")
    except ToolwireError as error:
        result = _failed(given.model, began, str(error))
    await call.answer(result)


def _failed(model: str, began: float, words: str) -> TestResult:
    hint = "see the key and the address of the provider" if "key" in words else ""
    seconds = time.perf_counter() - began
    return TestResult(ok=False, model=model, seconds=seconds, error=words, hint=hint)


async def _tested(opened: Opened, began: float) -> TestResult:
    words = "What is the weather in Paris? Use the tool."
    request = ModelRequest(
        model=opened.model,
        messages=(Message(role="user", parts=(Text(words),)),),
        tools=(WEATHER,),
        max_output_tokens=256,
        stream=True,
    )
    collector = Collector()
    first: float | None = None
    async with reading(opened.in_style(opened.client)(request)) as events:
        async for event in events:
            if isinstance(event, Notice):
                continue
            first = time.perf_counter() - began if first is None else first
            collector.add(event)
    message, finished = collector.message(), collector.finished
    usage = finished.usage if finished is not None else None
    made = message.calls[0] if message.calls else None
    return TestResult(
        ok=made is not None,
        model=opened.name,
        seconds=time.perf_counter() - began,
        first_event=first,
        call=None if made is None else TestedCall(made.name, made.arguments),
        text=message.text[:2000],
        usage=TestedUsage(usage.total_input, usage.total_output) if usage else TestedUsage(0, 0),
        cost=opened.price(usage) if usage is not None else None,
        error="" if made is not None else "the model answered without a call of the tool",
        hint="" if made is not None else "try another tool style for it",
    )


if TYPE_CHECKING:
    from toolwire.app.model_stack import Opened

ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/models",
        does=report,
        about="Routes, deployments with their state, providers, and names for clients.",
        returns=ModelReport,
    ),
    ApiRoute(
        method="POST",
        path="/models/test",
        does=test,
        about="Send one tiny request with a tool to a model.",
        takes=ModelToTest,
        returns=TestResult,
    ),
)
