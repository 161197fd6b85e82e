"""Keys, budgets, rates, turns and cool-downs: what outlives a change of the settings."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire import providers
from toolwire.app.model_choice import choose_model
from toolwire.auth.credentials import credential_for, open_store
from toolwire.client.http.exchange import HttpLimits
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.redact import Secret
from toolwire.config import Settings
from toolwire.config.gateway import GatewaySettings
from toolwire.errors import ToolwireError
from toolwire.gateway.admission import KeyAdmission
from toolwire.gateway.answer_cache import AnswerCache
from toolwire.gateway.database import DatabaseFailed
from toolwire.gateway.deployments import ModelOpener
from toolwire.gateway.ledger import FILE, Ledger, SqliteLedger
from toolwire.gateway.limits import LocalRates
from toolwire.gateway.queue import WaitingRoom
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.routing import CoolDowns, GatewayRoutes
from toolwire.gateway.store import Entry
from toolwire.providers._spec import ApiKey, NoAuth
from toolwire.providers.addresses import address
from toolwire.providers.custom import Upstream
from toolwire.storage.paths import state_paths

_LOOKUP_SECONDS = 30.0
"""How long the list of providers with credentials is used."""
_DAY = 86_400.0


def ledger_file(environ: Mapping[str, str]) -> Path:
    """Where the keys and the ledger are stored."""
    return state_paths(environ).state / "gateway" / FILE


def open_ledger(store: str, file: Path, *, clock: Callable[[], float] = time.time) -> Ledger:
    """The ledger on the server that `gateway.store` names, else in a file."""
    if not store:
        return SqliteLedger(file, clock=clock)
    from toolwire.gateway.postgres import PostgresLedger  # noqa: PLC0415 - optional

    return PostgresLedger(store, clock=clock)


class Accounts:
    """The store of keys and money, and what this process counts itself."""

    def __init__(
        self,
        file: Path,
        settings: GatewaySettings,
        token: Secret | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._pruned = 0.0
        self.left: Sequence[tuple[str, float]] = ()
        """Dollars that keys with budgets have left, by their names."""
        self.store = open_ledger(settings.store, file, clock=clock)
        self.cooling = CoolDowns(clock)
        self.transports: dict[float, Transport] = {}
        self.cache = AnswerCache(settings.cache_size, clock)
        self.room = WaitingRoom(
            most=settings.max_requests, queue=settings.queue, seconds=settings.queue_seconds
        )
        alone = settings.workers == 1 and not settings.store
        self.admission = KeyAdmission(
            store=self.store,
            room=self.room,
            # Several processes share the limits of a key, one counts faster by itself.
            rates=LocalRates(clock) if alone else self.store,
            turns=None if alone else self.store,
            clock=clock,
            monotonic=time.monotonic,
            token="" if token is None else token.reveal(),
            open_to_all=token is None,
        )

    def change(self, settings: GatewaySettings) -> None:
        """Applies new settings."""
        self._settings = settings
        self.cache.most = settings.cache_size
        self.room.change(
            most=settings.max_requests, queue=settings.queue, seconds=settings.queue_seconds
        )

    def busy(self, deployment: str) -> int:
        """Returns how many requests a deployment answers now."""
        return self.room.turns.by_slot[deployment]

    async def tidy(self) -> None:
        """Drops what killed processes left, and once a day what is too old."""
        await self.store.sweep()
        now = self._clock()
        if now - self._pruned >= _DAY:
            self._pruned = now
            await self.store.prune(now, self._settings.ledger_days)

    async def look(self) -> None:
        """Looks up what the budgets have left; a store that fails leaves the last figures."""
        with suppress(DatabaseFailed):
            self.left = await self.store.left(self._clock())

    def read(self, record: RequestRecord) -> None:
        """Books a request at its end, unless it was booked before its end mark."""
        if self.admission.ended(record.id):
            return
        if record.key_id and record.requested_model:
            self.store.book_soon(Entry(record, record.key_id))

    def close(self) -> None:
        """Finishes all writes."""
        self.store.close()


class EveryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One provider, or one model of it, for every request."""

    settings: Settings
    """With the provider of the upstream."""
    provider: str
    model: str
    """Empty to use the name that the client sends."""
    key: str = ""
    style: str = ""

    def name(self, requested: str) -> str:
        """Returns `provider/model` that answers a request for a name."""
        return f"{self.provider}/{self.model or requested}"


def every_request(
    settings: Settings, environ: Mapping[str, str], model: str, upstream: Upstream | None
) -> EveryRequest | None:
    """Returns what `--model` or `--upstream` choose; None without them."""
    if not model and upstream is None:
        return None
    chosen = choose_model(settings, environ, model=model, upstream=upstream)
    provider, _, name = chosen.name.partition("/")
    if upstream is not None and not model and not upstream.named:
        name = ""
    return EveryRequest(
        settings=chosen.settings, provider=provider, model=name, key=chosen.key, style=chosen.style
    )


def open_routes(
    settings: Settings,
    environ: Mapping[str, str],
    accounts: Accounts,
    every: EveryRequest | None = None,
    transport: Callable[[HttpLimits], Transport] = HttpTransport,
) -> tuple[GatewayRoutes, ModelOpener]:
    """Returns the routes of the settings; ToolwireError names one that cannot work."""
    if every is not None:
        own = msgspec.structs.replace(every.settings, gateway=settings.gateway)
        opener = ModelOpener(
            own,
            environ,
            transport,
            key=every.key,
            tool_style=every.style,
            transports=accounts.transports,
            cache=accounts.cache,
        )
    else:
        opener = ModelOpener(
            settings, environ, transport, transports=accounts.transports, cache=accounts.cache
        )
    routes = GatewayRoutes(
        settings,
        opener,
        cooling=accounts.cooling,
        busy=accounts.busy,
        providers=ReadyProviders(settings, environ),
        every=None if every is None else every.name,
    )
    return routes, opener


class ReadyProviders:
    """The providers that have credentials."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._clock = clock
        self._until = 0.0
        self._names: Sequence[str] = ()

    def __call__(self) -> Sequence[str]:
        """Returns their names; those of the user first."""
        now = self._clock()
        if now >= self._until:
            self._names, self._until = self._found(), now + _LOOKUP_SECONDS
        return self._names

    def _found(self) -> list[str]:
        own = [provider.name for provider in self._settings.providers]
        store = open_store(state_paths(self._environ), self._environ)
        found: list[str] = []
        for name in dict.fromkeys((*own, *providers.names())):
            provider = self._settings.provider(name)
            if isinstance(provider.auth, NoAuth) or (
                provider.local and isinstance(provider.auth, ApiKey)
            ):
                # A server on this machine may not run: it must be configured to be used.
                if name in own:
                    found.append(name)
                continue
            try:
                credential_for(provider, environ=self._environ, store=store)
                # Without a project there is no address: a login of the machine is not enough.
                if "{" in address(provider, self._environ):
                    continue
            except ToolwireError:
                continue
            found.append(name)
        return found
