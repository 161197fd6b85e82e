"""Routes: which models a name stands for, and in which order they are asked."""

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from toolwire.client.reask import asks_elsewhere
from toolwire.config import Settings
from toolwire.config.gateway import RouteTable, RouteTarget
from toolwire.errors import ErrorKind, ProviderError, ToolwireError, UnknownName, nearest_name
from toolwire.gateway.cooling import Cooling, cause_of
from toolwire.gateway.deployments import OpenDeployment, Opener, Unopened, deployment_name
from toolwire.gateway.parts import Deployment, GatewayRefusal
from toolwire.messages import Origin, Text
from toolwire.prompted import ToolStyle
from toolwire.providers import catalogue
from toolwire.request import ModelRequest, ModelSettings

_WILD = ("*", "?", "[")
_NAMES = 500
"""Names without a route of their own that are remembered; clients may send any."""
_MOST_LISTED = 10
_REOPEN_SECONDS = 30.0
"""After which deployments that could not be opened are tried again; a key may have been added."""


class CoolDowns:
    """State of every deployment; outlives a change of the settings."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._states: dict[str, Cooling] = {}
        self.errors: dict[str, tuple[float, str]] = {}
        """The last error of each deployment, and when it happened."""

    def ready(self, name: str) -> bool:
        """Whether a deployment may be asked."""
        state = self._states.get(name)
        return state is None or state.ready(self._clock())

    def of(self, name: str) -> Cooling:
        """Returns the state of a deployment."""
        return self._states.get(name, _FRESH)

    def cooling(self) -> dict[str, Cooling]:
        """Returns the deployments that are cooling now."""
        now = self._clock()
        return {name: state for name, state in self._states.items() if now < state.until}

    def sent(self, name: str) -> None:
        """Takes note that a request is sent."""
        if name in self._states:
            self._states[name] = self._states[name].sent(self._clock())

    def worked(self, name: str) -> None:
        """Takes note of the first event of an answer."""
        if name in self._states:
            state = self._states[name].worked(self._clock())
            if state == _FRESH:
                del self._states[name]
            else:
                self._states[name] = state

    def failed(self, name: str, error: ToolwireError) -> None:
        """Takes note of an error."""
        self.errors.pop(name, None)
        self.errors[name] = (self._clock(), str(error))
        if len(self.errors) > _NAMES:
            del self.errors[next(iter(self.errors))]
        delay = error.retry_after if isinstance(error, ProviderError) else None
        state = self.of(name).failed(cause_of(error), delay, self._clock())
        if state != _FRESH:
            self._states[name] = state


_FRESH = Cooling()


class ModelRoute:
    """The deployments behind one name."""

    def __init__(
        self,
        name: str,
        table: RouteTable,
        deployments: Sequence[OpenDeployment],
        *,
        cooling: CoolDowns,
        fallback: Sequence[OpenDeployment] = (),
        long_context: OpenDeployment | None = None,
        busy: Callable[[str], int],
    ) -> None:
        self.name = name
        self.table = table
        self.deployments = tuple(deployments)
        self.fallback = tuple(fallback)
        self.long_context = long_context
        self.reopen_at = math.inf
        """When deployments that could not be opened are tried again."""
        self._cooling = cooling
        self._busy = busy
        self._turn = 0
        self._current = [0] * len(self.deployments)

    @property
    def all(self) -> tuple[OpenDeployment, ...]:
        """Returns every deployment that a request may reach."""
        extra = () if self.long_context is None else (self.long_context,)
        return tuple(dict.fromkeys((*self.deployments, *self.fallback, *extra)))

    @property
    def balanced(self) -> bool:
        """Whether any of the deployments may be asked first."""
        return self.table.balance != "in_order"

    def order(
        self,
        conversation: str,
        seal_origin: Origin | None,
        allowed: Callable[[Deployment], bool] | None = None,
    ) -> list[OpenDeployment]:
        """Returns the deployments in the order to try them; never empty.

        First the one that made the newest seal of the conversation, then by the conversation, so
        that prompt caches stay warm, then by the balance. Those that cool down are left out, but
        the last one left is always tried: its own error says more.
        """
        found = [*self._preferred(conversation), *self.fallback]
        if allowed is not None:
            found = [one for one in found if allowed(one)]
        if len(found) == 1:
            return found
        ready = [one for one in found if self._cooling.ready(one.name)]
        if not ready:
            ready = sorted(found, key=lambda one: self._cooling.of(one.name).until)[:1]
        if seal_origin is not None:
            # Sorting is stable: the others stay in their order.
            ready.sort(key=lambda one: not one.made(seal_origin))
        return ready

    def _preferred(self, conversation: str) -> Sequence[OpenDeployment]:
        found = self.deployments
        if not self.balanced or len(found) < 2:
            return found
        if conversation:
            return sorted(found, key=lambda one: score(conversation, one.name, one.weight))
        match self.table.balance:
            case "weighted":
                return self._weighted()
            case "least_busy":
                return sorted(found, key=lambda one: self._busy(one.name) / one.weight)
            case _:
                self._turn = (self._turn + 1) % len(found)
                return (*found[self._turn - 1 :], *found[: self._turn - 1])

    def _weighted(self) -> list[OpenDeployment]:
        """Returns the deployment whose turn it is by weight, then the others."""
        # Smooth: a deployment of weight 3 beside one of 1 is not asked three times in a row.
        weights = [one.weight for one in self.deployments]
        self._current = [now + one for now, one in zip(self._current, weights, strict=True)]
        first = max(range(len(weights)), key=self._current.__getitem__)
        self._current[first] -= sum(weights)
        by_need = sorted(range(len(weights)), key=lambda at: (at != first, -self._current[at]))
        return [self.deployments[at] for at in by_need]

    def adapted(self, request: ModelRequest) -> ModelRequest:
        """Returns the request with what the route fixes."""
        if self.table.effort is not None:
            request = ModelSettings(effort=self.table.effort).applied(request)
        if self.table.system_prefix:
            system = (Text(self.table.system_prefix), *request.system)
            request = msgspec.structs.replace(request, system=system)
        return request

    def choices(self, rest: Sequence[Deployment], *, sealed: bool) -> Sequence[Deployment]:
        """Returns those of the rest that may be asked next, whichever has room first."""
        if sealed or not self.balanced:
            return rest[:1]
        names = {one.name for one in self.deployments}
        return [one for one in rest if one.name in names] or rest[:1]

    def after(
        self, error: ToolwireError, tried: Sequence[Deployment], rest: Sequence[Deployment]
    ) -> list[Deployment]:
        """Returns what to ask after an error before the first event; empty to give up."""
        if isinstance(error, ProviderError) and error.kind == ErrorKind.CONTEXT_TOO_LONG:
            longer = self.long_context
            names = [one.name for one in tried]
            return [longer] if longer is not None and longer.name not in names else []
        return list(rest) if asks_elsewhere(error) else []


def score(conversation: str, deployment: str, weight: int) -> float:
    """Returns the rank of a deployment for a conversation, the lowest first (rendezvous hash).

    It depends on nothing else: when a deployment is added or removed, all other conversations
    stay where they are.
    """
    digest = hashlib.sha256(f"{conversation}\0{deployment}".encode()).digest()
    share = (int.from_bytes(digest[:8], "big") + 1) / (2**64 + 1)
    return -math.log(share) / weight


def matching(name: str, routes: Iterable[str]) -> str | None:
    """Returns the route of a name: the same one, else the pattern with the longest literal part."""
    routes = tuple(routes)
    if name in routes:
        return name
    found = [one for one in routes if any(sign in one for sign in _WILD)]
    found = [one for one in found if fnmatchcase(name, one)]
    return max(found, key=lambda one: (_literal(one), one), default=None)


def _literal(pattern: str) -> int:
    return len(pattern) - sum(pattern.count(sign) for sign in _WILD)


class GatewayRoutes:
    """All routes of the settings, and models by their own names."""

    def __init__(
        self,
        settings: Settings,
        opener: Opener,
        *,
        cooling: CoolDowns,
        busy: Callable[[str], int],
        providers: Callable[[], Sequence[str]],
        every: Callable[[str], str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`providers` returns those with credentials; `every` the model that answers a name,
        whatever the settings have.
        """
        self.settings = settings
        self._opener = opener
        self._cooling = cooling
        self._busy = busy
        self._providers = providers
        self._every = every
        self._clock = clock
        self._open: OrderedDict[str, ModelRoute] = OrderedDict()
        for name, table in settings.gateway.routes.items():
            _check(settings, name, table)

    @property
    def tables(self) -> Mapping[str, RouteTable]:
        """Returns the configured routes."""
        return self.settings.gateway.routes

    async def find(self, name: str, style: str = "") -> ModelRoute:
        """Returns the route of a model name; GatewayRefusal (404) if none fits.

        `style` is a tool style in place of the one of the settings.
        """
        if self._every is not None:
            model = self._every(name)
            found = self._open.get(model) if not style else None
            if found is not None and self._clock() < found.reopen_at:
                return found
            return await self._single(model, style)
        route = matching(name, self.tables)
        if route is not None:
            return await self._opened(route, self.tables[route], style)
        return await self._single(self._by_name(name), style)

    async def _single(self, model: str, style: str) -> ModelRoute:
        # Named like the model, not as by the client: no alias avoids the limits of a key.
        return await self._opened(model, RouteTable(to=(model,)), style)

    async def _opened(self, name: str, table: RouteTable, style: str) -> ModelRoute:
        key = f"{name}\0{style}" if style else name
        found = self._open.get(key)
        if found is None or self._clock() >= found.reopen_at:
            if style:
                table = msgspec.structs.replace(table, tool_style=_style(style))
            found = await self._opening(name, table)
            self._open[key] = found
            if len(self._open) > _NAMES + len(self.tables):
                self._open.popitem(last=False)
        return found

    @property
    def deployments(self) -> dict[str, OpenDeployment]:
        """Returns those that were opened so far."""
        return {one.name: one for route in self._open.values() for one in route.all}

    async def check(self) -> list[str]:
        """Opens every route; returns what is wrong with deployments, such as a missing key."""
        wrong: list[str] = []
        for name, table in self.tables.items():
            _, failed = await self._open_all(table.targets, table)
            others = (*table.fallback, table.long_context)
            targets = [_target(one) for one in others if one]
            failed += (await self._open_all(targets, table))[1]
            wrong += [f'gateway.routes."{name}": {one.name}: {one.error}' for one in failed]
        return wrong

    def _by_name(self, name: str) -> str:
        """Returns `provider/model` of a name without a route."""
        provider, slash, _ = name.partition("/")
        if slash and self._is_provider(provider):
            return name
        ready = frozenset(self._providers())
        found = [
            f"{info.provider}/{info.id}"
            for info in catalogue.models(overrides=self.settings.models)
            if info.id == name and info.provider in ready
        ]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(found[:_MOST_LISTED])
            raise _unknown(f'the model "{name}" is offered by {listed}; name one of them')
        raise _unknown(self._nearest(name, ready))

    def _is_provider(self, name: str) -> bool:
        try:
            self.settings.provider(name)
        except ToolwireError:
            return False
        return True

    def _nearest(self, name: str, ready: frozenset[str]) -> str:
        models = [
            info
            for info in catalogue.models(overrides=self.settings.models)
            if info.provider in ready
        ]
        known = {info.id: f"{info.provider}/{info.id}" for info in reversed(models)}
        known |= {full: full for full in known.values()}
        known |= {route: route for route in self.tables}
        near = nearest_name(name, known)
        if near:
            return f'unknown model "{name[:200]}"; did you mean "{known[near]}"?'
        listed = ", ".join((*self.tables, *known.values())[:_MOST_LISTED])
        hint = f"known: {listed}" if listed else "no provider has a key; set one and try again"
        return f'unknown model "{name[:200]}"; {hint}'

    async def _opening(self, name: str, table: RouteTable) -> ModelRoute:
        first, failed = await self._open_all(table.targets, table)
        fallback, more = await self._open_all(map(_target, table.fallback), table)
        failed += more
        if not first and not fallback:
            raise failed[0].error
        longer, more = await self._open_all(
            [_target(table.long_context)] if table.long_context else [], table
        )
        route = ModelRoute(
            name,
            table,
            first,
            cooling=self._cooling,
            fallback=fallback,
            long_context=longer[0] if longer else None,
            busy=self._busy,
        )
        if failed or more:
            route.reopen_at = self._clock() + _REOPEN_SECONDS
        return route

    async def _open_all(
        self, targets: Iterable[RouteTarget], table: RouteTable
    ) -> tuple[list[OpenDeployment], list[Unopened]]:
        opened: list[OpenDeployment] = []
        failed: list[Unopened] = []
        for target in targets:
            try:
                opened.append(OpenDeployment(target, await self._opener(target, table)))
            except ToolwireError as error:
                failed.append(Unopened(deployment_name(target), error))
        return opened, failed

    def failed(self, deployment: Deployment, error: ToolwireError) -> None:
        """Takes note of an error of a deployment."""
        self._cooling.failed(deployment.name, error)

    def worked(self, deployment: Deployment) -> None:
        """Takes note of a deployment's first event."""
        self._cooling.worked(deployment.name)

    def sent(self, deployment: Deployment) -> None:
        """Takes note that a request is sent to a deployment."""
        self._cooling.sent(deployment.name)


def _style(text: str) -> ToolStyle:
    try:
        return ToolStyle(text)
    except ValueError:
        raise UnknownName("tool style", text, tuple(ToolStyle)) from None


def _target(model: str) -> RouteTarget:
    return RouteTarget(model=model)


def _check(settings: Settings, name: str, table: RouteTable) -> None:
    """Raises for a route whose models have unknown providers."""
    models = [one.model for one in table.targets]
    for model in (*models, *table.fallback, table.long_context):
        if model:
            try:
                settings.split(model)
            except ToolwireError as error:
                error.args = (f'gateway.routes."{name}": {error}',)
                raise


def _unknown(message: str) -> GatewayRefusal:
    return GatewayRefusal(
        ErrorKind.NOT_FOUND, message, status=404, code="model_not_found", should_retry=False
    )
