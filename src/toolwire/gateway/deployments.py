"""Deployments: models of providers, each with its credential, opened when first used."""

from asyncio import get_running_loop, timeout_at
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Protocol

import msgspec

from toolwire.app.model_stack import Opened, open_model
from toolwire.client.http.exchange import HttpLimits
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.retry import Learned, RetryPolicy
from toolwire.config import Settings
from toolwire.config.gateway import RouteTable, RouteTarget
from toolwire.errors import BadInput, ConnectionFailed, ToolwireError
from toolwire.events import ModelEvent, Notice
from toolwire.gateway.answer_cache import AnswerCache, cached
from toolwire.gateway.capture import WatchedTransport
from toolwire.gateway.parts import Slot
from toolwire.messages import Origin
from toolwire.model import Model, reading
from toolwire.providers._spec import Provider
from toolwire.request import HttpRequest, JsonObject, ModelRequest
from toolwire.wire.json_access import encode, parse_object

ATTEMPTS = 3
READ_BYTES = 16384
"""A connection's buffer: of hundreds of open streams, larger ones would be most of the memory."""


class Opener(Protocol):
    """Opens the model of a deployment with the options of its route."""

    async def __call__(self, target: RouteTarget, table: RouteTable) -> Opened:
        """Returns the model, ready for use."""
        ...


def deployment_name(target: RouteTarget) -> str:
    """Returns the name, unique among all deployments: `groq/qwen-3#GROQ_KEY_2`."""
    return f"{target.model}#{target.key}" if target.key else target.model


class OpenDeployment:
    """One model of one provider with one credential."""

    def __init__(self, target: RouteTarget, opened: Opened) -> None:
        self.name = deployment_name(target)
        self.opened = opened
        self.weight = target.weight
        self.slot = Slot(self.name, target.concurrent)
        self.ask = opened.in_style(opened.client)

    def made(self, origin: Origin) -> bool:
        """Whether a seal of this origin may have been made here."""
        opened = self.opened
        return (opened.provider.name, opened.model) == (origin.provider, origin.model)


class ModelOpener:
    """Opens models from the settings; one pool of connections for each timeout."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        transport: Callable[[HttpLimits], Transport] = HttpTransport,
        *,
        key: str = "",
        tool_style: str = "",
        transports: dict[float, Transport] | None = None,
        cache: AnswerCache | None = None,
    ) -> None:
        """`transports`: those of other openers, to share their connections."""
        self._settings = settings
        self._environ = environ
        self._make = transport
        self._key = key
        self._style = tool_style
        self._transports = {} if transports is None else transports
        self._cache = cache
        self._learned = Learned()

    async def __call__(self, target: RouteTarget, table: RouteTable) -> Opened:
        """Returns the model, ready for use."""
        settings = self._settings
        hold = settings.gateway.hold_seconds
        if table.extra:
            settings = with_members(settings, target.model, table.extra)
        opened = await open_model(
            target.model,
            settings=settings,
            environ=self._environ,
            transport=self._transport(table.timeout.silence),
            key=self._key_of(target),
            tool_style=str(table.tool_style) if table.tool_style != "auto" else self._style_of(),
            learned=self._learned,
            policy=RetryPolicy(attempts=ATTEMPTS, longest_delay=hold),
        )
        if opened.endpoint is not None:
            way = WatchedTransport(opened.endpoint.transport)
            client = msgspec.structs.replace(opened.endpoint, transport=way)
            opened = msgspec.structs.replace(opened, client=client, endpoint=client)
        first = table.timeout.first
        if first:
            opened = msgspec.structs.replace(opened, client=first_within(opened.client, first))
        if table.cache_seconds and self._cache is not None:
            client = cached(opened, self._cache, table.cache_seconds, tools=table.cache_tools)
            opened = msgspec.structs.replace(opened, client=client)
        return opened

    def _style_of(self) -> str:
        return self._style or str(self._settings.tool_style)

    def _key_of(self, target: RouteTarget) -> str:
        if not target.key:
            return self._key
        found = self._environ.get(target.key, "")
        if not found:
            raise BadInput(
                f"{target.key} is not set, which has the key of {target.model}; set the variable"
            )
        return found

    def _transport(self, silence: float) -> Transport:
        if silence not in self._transports:
            limits = HttpLimits(read_bytes=READ_BYTES)
            if silence:
                limits = msgspec.structs.replace(limits, read=silence)
            self._transports[silence] = self._make(limits)
        return self._transports[silence]

    async def aclose(self) -> None:
        """Closes every connection."""
        async with AsyncExitStack() as stack:
            for transport in self._transports.values():
                close = getattr(transport, "aclose", None)
                if close is not None:
                    stack.push_async_callback(close)


def with_members(settings: Settings, model: str, members: JsonObject) -> Settings:
    """Returns settings in which the model's provider gets these members in each body."""
    name = model.partition("/")[0]
    provider = settings.provider(name)
    before = provider.prepare

    def prepare(http: HttpRequest) -> HttpRequest:
        http = before(http) if before is not None else http
        body = parse_object(http.body, "request")
        return msgspec.structs.replace(http, body=encode({**body, **members}))

    changed: Provider = msgspec.structs.replace(provider, prepare=prepare)
    others = tuple(one for one in settings.providers if one.name != name)
    return msgspec.structs.replace(settings, providers=(*others, changed))


def first_within(model: Model, seconds: float) -> Model:
    """Returns the model, which fails if its first event takes longer."""

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        deadline = get_running_loop().time() + seconds
        async with reading(model(request)) as events:
            stream = aiter(events)
            while True:
                try:
                    async with timeout_at(deadline):
                        event = await anext(stream)
                except TimeoutError as error:
                    raise ConnectionFailed(
                        f"no event within {seconds:g} s", timed_out=True
                    ) from error
                except StopAsyncIteration:
                    return
                yield event
                if not isinstance(event, Notice):
                    break
            async for event in stream:
                yield event

    return ask


class Unopened(msgspec.Struct, frozen=True):
    """A deployment that could not be opened, such as one without a key."""

    name: str
    error: ToolwireError
