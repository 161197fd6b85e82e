"""Who may send a request, and when: keys, rates, turns and budgets."""

import hmac
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import ceil

import msgspec

from toolwire.agent.usage import cost
from toolwire.errors import ErrorKind
from toolwire.events import Usage
from toolwire.gateway.guard import Failures
from toolwire.gateway.keys import digest_of, may_use, opens, split_key
from toolwire.gateway.limits import RateLimiter
from toolwire.gateway.parts import Caller, Deployment, Estimate, GatewayRefusal, Route
from toolwire.gateway.queue import QueueTurn, WaitingRoom
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import (
    NANO,
    Claim,
    Entry,
    GatewayStore,
    LedgerFailed,
    Spending,
    VirtualKey,
)
from toolwire.providers._spec import ModelInfo, Prices

ADMIN = "admin"
ANONYMOUS = "anonymous"
_KNOWN = 4_096
_OVERHEAD = 1_000
"""Tokens that vendors add to a request of their own, such as instructions for tools."""
_UNLIMITED = 32_000
"""Tokens of an answer where neither the client nor the catalogue names a limit."""


class KeyCaller(Caller, frozen=True, kw_only=True):
    """A caller with a virtual key."""

    stored: VirtualKey


class AdmittedRequest:
    """A request that may run, until it is settled."""

    def __init__(
        self,
        admission: "KeyAdmission",
        caller: Caller,
        turn: QueueTurn,
        record: RequestRecord,
        tokens: int,
    ) -> None:
        self._admission = admission
        self._caller = caller
        self._turn = turn
        self._record = record
        self._tokens = tokens
        """Estimated tokens that were taken from the rate."""
        self._settled = False

    def allows(self, deployment: Deployment) -> bool:
        """Whether the key may use a deployment of the route."""
        stored = _stored(self._caller)
        return stored is None or _allows_model(stored, deployment)

    async def move(self, deployments: Sequence[Deployment]) -> Deployment:
        """Takes the first deployment with room for a request; waits for one if none has."""
        began = self._admission.monotonic()
        try:
            slot = await self._turn.move(tuple(one.slot for one in deployments))
        finally:
            self._record.waited += self._admission.monotonic() - began
        return next(one for one in deployments if one.slot.name == slot.name)

    async def book(self, record: RequestRecord) -> None:
        """Books the request; awaited before the end mark of its answer goes out."""
        await self._admission.book(self._caller, record)

    def settle(self, record: RequestRecord) -> None:
        """Releases the turn, and corrects the rate of the key by the true tokens."""
        if self._settled:
            return
        self._settled = True
        self._turn.leave()
        self._admission.settle(self._caller, record, self._tokens)


class KeyAdmission:
    """Admits callers with the gateway's token or a virtual key."""

    def __init__(
        self,
        *,
        store: GatewayStore,
        room: WaitingRoom,
        rates: RateLimiter,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        token: str = "",
        open_to_all: bool = False,
    ) -> None:
        """`open_to_all`: no credential is needed."""
        self.store = store
        self.room = room
        self._rates = rates
        self._clock = clock
        self.monotonic = monotonic
        self._token = digest_of(token) if token else None
        self._open = open_to_all
        self._failures = Failures()
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Addresses and the keys that were valid there."""
        self._booked: set[str] = set()
        """Requests that were booked before their end."""

    async def identify(self, credentials: Sequence[str], address: str) -> Caller:
        """Returns the caller; one valid credential is enough. GatewayRefusal without one."""
        now = self._clock()
        wait = self._failures.blocked(address, now)
        for credential in dict.fromkeys(credentials):
            caller = await self._caller(credential, address, now, blocked=wait > 0)
            if caller is not None:
                return caller
        if self._open:
            return Caller(key=ANONYMOUS, id=ANONYMOUS, tenant=ANONYMOUS)
        if wait > 0:
            raise GatewayRefusal(
                ErrorKind.RATE_LIMIT,
                "too many wrong keys from this address; try again later",
                status=429,
                retry_after=float(ceil(wait)),
            )
        if not any(credentials):
            raise _unauthorised("an API key is missing")
        self._failures.add(address, now)
        raise _unauthorised("the API key is not valid")

    async def _caller(
        self, credential: str, address: str, now: float, *, blocked: bool
    ) -> Caller | None:
        split = split_key(credential)
        name = ADMIN if split is None else split[0]
        if blocked and (address, name) not in self._seen:
            return None
        caller = await self._matched(credential, split, now)
        if caller is not None:
            self._seen[(address, name)] = None
            self._seen.move_to_end((address, name))
            if len(self._seen) > _KNOWN:
                self._seen.popitem(last=False)
        return caller

    async def _matched(
        self, credential: str, split: tuple[str, str] | None, now: float
    ) -> Caller | None:
        if split is not None:
            stored = await self.store.key(split[0])
            if not opens(stored, split[1], now) or stored is None:
                return None
            scopes = frozenset(stored.rules.scopes)
            return KeyCaller(
                key=stored.name,
                id=stored.id,
                tenant=f"key:{stored.id}",
                scopes=scopes,
                stored=stored,
            )
        if self._token is not None and hmac.compare_digest(self._token, digest_of(credential)):
            return Caller(key=ADMIN, id=ADMIN, tenant=ADMIN, admin=True)
        return None

    async def admit(
        self, caller: Caller, record: RequestRecord, estimate: Estimate, route: Route
    ) -> AdmittedRequest:
        """Waits for a turn; GatewayRefusal if the route, rate, queue or budget forbids it."""
        stored = _stored(caller)
        claim = None if stored is None else claim_of(stored, record, estimate, route)
        tokens = estimate.input
        if stored is not None and stored.rules.rates:
            wait = await self._rates.take(stored.id, stored.rules.rates, tokens)
            if wait > 0:
                raise _too_fast(stored, wait)
        began = self.monotonic()
        limit = stored.rules.concurrent if stored is not None else 0
        try:
            turn = await self.room.enter(caller.id, limit)
        finally:
            record.waited = self.monotonic() - began
        if claim is not None and stored is not None:
            try:
                await self._reserve(stored, claim)
            except BaseException:
                turn.leave()
                # Cancelled meanwhile: the reservation may have been made.
                self.store.release(record.id)
                raise
        return AdmittedRequest(self, caller, turn, record, tokens)

    async def _reserve(self, stored: VirtualKey, claim: Claim) -> None:
        try:
            refused = await self.store.reserve(claim)
        except LedgerFailed as error:
            raise GatewayRefusal(
                ErrorKind.OVERLOADED,
                "the ledger cannot be written, so no budget can be reserved; try again later",
                retry_after=10.0,
            ) from error
        if refused is not None:
            raise _spent(stored, refused)

    async def book(self, caller: Caller, record: RequestRecord) -> None:
        """Books a request with its answer; a ledger that cannot be written does not stop it."""
        if record.id in self._booked:
            return
        self._booked.add(record.id)
        try:
            # A copy: what follows the end mark still changes the record.
            await self.store.book(Entry(msgspec.structs.replace(record), caller.id))
        except LedgerFailed:
            self._booked.discard(record.id)

    def ended(self, request: str) -> bool:
        """Whether a request that has ended is booked."""
        booked = request in self._booked
        self._booked.discard(request)
        return booked

    def settle(self, caller: Caller, record: RequestRecord, tokens: int) -> None:
        """Corrects the rate of a key by the tokens that a request used."""
        stored = _stored(caller)
        if stored is not None and stored.rules.tpm:
            used = record.usage.total_input + record.usage.total_output
            self._rates.correct(stored.id, stored.rules.rates, used - tokens)


def _stored(caller: Caller) -> VirtualKey | None:
    return caller.stored if isinstance(caller, KeyCaller) else None


def _allows_model(stored: VirtualKey, deployment: Deployment) -> bool:
    return may_use(msgspec.structs.replace(stored.rules, routes=()), "", deployment.opened.name)


def claim_of(
    stored: VirtualKey, record: RequestRecord, estimate: Estimate, route: Route
) -> Claim | None:
    """Returns what a request reserves of its key's budgets; GatewayRefusal if it may not run.

    A hard budget is charged for the dearest model that the route may ask, all bytes of the request
    as tokens, and the longest answer.
    """
    rules = stored.rules
    usable = [one for one in route.all if may_use(rules, route.name, one.opened.name)]
    if not usable:
        raise GatewayRefusal(
            ErrorKind.PERMISSION,
            f'the key "{stored.name}" may not use "{route.name}"',
            status=403,
            should_retry=False,
        )
    infos = [one.opened.info for one in usable]
    asked = infos if rules.hard else infos[:1]
    unpriced = [one for one, info in zip(usable, infos, strict=True) if _prices(info) is None]
    if unpriced and (rules.refuse_unpriced or (rules.hard and rules.budgets)):
        raise GatewayRefusal(
            ErrorKind.PERMISSION,
            f"no price of {unpriced[0].opened.name} is known, which the key "
            f'"{stored.name}" requires',
            status=403,
            should_retry=False,
        )
    if not rules.budgets:
        return None
    tokens = estimate.input
    if rules.hard:
        tokens += record.bytes_in + _OVERHEAD
    return Claim(
        id=record.id,
        key=stored.id,
        route=route.name,
        at=record.time,
        budgets=rules.budgets,
        input_cost=max(_input_cost(info, tokens, hard=rules.hard) for info in asked),
        output_price=max(_output_price(info) for info in asked),
        max_output=_most_output(asked, estimate, hard=rules.hard),
        hard=rules.hard,
    )


def _prices(info: ModelInfo | None) -> Prices | None:
    return None if info is None else info.prices


def _input_cost(info: ModelInfo | None, tokens: int, *, hard: bool) -> int:
    prices = _prices(info)
    if prices is None:
        return 0
    usages = [Usage(input=tokens)]
    if hard:
        # Writing to the cache may cost more than reading.
        usages.append(Usage(input=tokens, cache_write=tokens))
    return ceil(max(cost(usage, prices) or 0.0 for usage in usages) * NANO)


def _output_price(info: ModelInfo | None) -> float:
    return (cost(Usage(input=0, output=1), _prices(info)) or 0.0) * NANO


def _most_output(
    infos: Sequence[ModelInfo | None], estimate: Estimate, *, hard: bool
) -> int | None:
    if not hard or estimate.max_output is not None:
        return estimate.max_output
    return max((info.output if info is not None else 0) or _UNLIMITED for info in infos)


def _unauthorised(message: str) -> GatewayRefusal:
    return GatewayRefusal(
        ErrorKind.AUTH, message, status=401, code="invalid_api_key", should_retry=False
    )


def _too_fast(stored: VirtualKey, wait: float) -> GatewayRefusal:
    rules = stored.rules
    limits = [f"{rules.rpm:,} requests"] if rules.rpm else []
    limits += [f"{rules.tpm:,} tokens"] if rules.tpm else []
    return GatewayRefusal(
        ErrorKind.RATE_LIMIT,
        f'the key "{stored.name}" is limited to {" and ".join(limits)} a minute; '
        f"try again in {ceil(wait)} s",
        status=429,
        retry_after=wait,
    )


def _spent(stored: VirtualKey, found: Spending) -> GatewayRefusal:
    words = f"${found.spent / NANO:,.4f} of ${found.budget.dollars:,.4f}"
    if found.reserved:
        words += f", ${found.reserved / NANO:,.4f} reserved"
    if found.resets is not None:
        words += f"; it starts anew {datetime.fromtimestamp(found.resets, UTC):%Y-%m-%d %H:%M} UTC"
    window = "" if found.budget.window == "total" else f" of this {found.budget.window}"
    return GatewayRefusal(
        ErrorKind.QUOTA,
        f'the budget{window} of the key "{stored.name}" is spent: {words}',
        status=429,
        code="insufficient_quota",
        should_retry=False,
    )
