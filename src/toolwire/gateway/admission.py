"""Who may send a request, and when: keys, rates, turns and budgets."""

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import TypeVar

import msgspec

from toolwire.errors import ErrorKind
from toolwire.gateway.claims import claim_of
from toolwire.gateway.guard import Failures
from toolwire.gateway.keys import digest_of, may_use, opens, split_key
from toolwire.gateway.limits import KeyTurns, RateLimiter
from toolwire.gateway.parts import Caller, Deployment, Estimate, GatewayRefusal, Route
from toolwire.gateway.queue import QueueTurn, WaitingRoom, busy
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import (
    ADMIN,
    ANONYMOUS,
    NANO,
    Claim,
    Entry,
    GatewayStore,
    LedgerFailed,
    Spending,
    VirtualKey,
)

T = TypeVar("T")
_OWNER = Caller(key=ADMIN, id=ADMIN, tenant=ADMIN, admin=True)
_KNOWN = 4_096
_FIRST_LOOK = 0.02
_LAST_LOOK = 0.25
"""Seconds between two looks at a limit that other processes count too."""


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
        if len(deployments) == 1 and self._turn.moved(deployments[0].slot):
            return deployments[0]
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
        turns: KeyTurns | None = None,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        token: str = "",
        open_to_all: bool = False,
    ) -> None:
        """`open_to_all`: no credential is needed; `turns`: other processes count too."""
        self.store = store
        self.room = room
        self._rates = rates
        self._turns = turns
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
            split = split_key(credential)
            name = ADMIN if split is None else split[0]
            if wait > 0 and (address, name) not in self._seen:
                continue
            caller = self._admin(credential) if split is None else await self._by_key(*split, now)
            if caller is not None:
                self._seen[(address, name)] = None
                self._seen.move_to_end((address, name))
                if len(self._seen) > _KNOWN:
                    self._seen.popitem(last=False)
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

    def _admin(self, credential: str) -> Caller | None:
        """The owner of the gateway, if this is its token."""
        if self._token is None or not hmac.compare_digest(self._token, digest_of(credential)):
            return None
        return _OWNER

    async def _by_key(self, key: str, secret: str, now: float) -> Caller | None:
        """The caller of a virtual key, if it is valid."""
        stored = await self.store.key(key)
        if not opens(stored, secret, now) or stored is None:
            return None
        return KeyCaller(
            key=stored.name,
            id=stored.id,
            tenant=f"key:{stored.id}",
            scopes=frozenset(stored.rules.scopes),
            stored=stored,
        )

    async def admit(
        self, caller: Caller, record: RequestRecord, estimate: Estimate, route: Route
    ) -> AdmittedRequest:
        """Waits for a turn; GatewayRefusal if the route, rate, queue or budget forbids it."""
        stored = _stored(caller)
        tokens = estimate.input
        if stored is None:
            entered = self.room.enter_now(caller.id)
            if entered is not None:
                return AdmittedRequest(self, caller, entered, record, tokens)
        claim = None if stored is None else claim_of(stored, record, estimate, route)
        turn = await self._enter(caller, record, tokens)
        if claim is not None and stored is not None:
            try:
                await self._reserve(stored, claim)
            except BaseException:
                turn.leave()
                self._leave_key(stored, record)
                # Cancelled meanwhile: the reservation may have been made.
                self.store.release(record.id)
                raise
        return AdmittedRequest(self, caller, turn, record, tokens)

    async def admit_raw(
        self, caller: Caller, record: RequestRecord, tokens: int
    ) -> AdmittedRequest:
        """Waits for a turn of a request whose cost is not known; GatewayRefusal if it may not."""
        stored = _stored(caller)
        if stored is not None and stored.rules.budgets and not stored.rules.raw_unmetered:
            raise GatewayRefusal(
                ErrorKind.PERMISSION,
                f'the key "{stored.name}" has a budget, and requests below /raw/ are not metered; '
                "create it with --raw-unmetered to allow them",
                status=403,
                should_retry=False,
            )
        return AdmittedRequest(
            self, caller, await self._enter(caller, record, tokens), record, tokens
        )

    async def _enter(self, caller: Caller, record: RequestRecord, tokens: int) -> QueueTurn:
        """Waits for a turn, if the rate of the key allows it."""
        stored = _stored(caller)
        if stored is not None and stored.rules.rates:
            wait = await self._rates.take(stored.id, stored.rules.rates, tokens)
            if wait > 0:
                raise _too_fast(stored, wait)
        began = self.monotonic()
        limit = stored.rules.concurrent if stored is not None else 0
        try:
            if not limit or self._turns is None:
                return await self.room.enter(caller.id, limit)
            try:
                await self._key_turn(self._turns, record.id, caller.id, limit)
                return await self.room.enter(caller.id)
            except BaseException:
                # Cancelled meanwhile: it may have been counted.
                self._turns.leave(record.id)
                raise
        finally:
            record.waited = self.monotonic() - began

    async def _key_turn(self, turns: KeyTurns, request: str, key: str, most: int) -> None:
        """Waits until fewer requests of a key run in all processes."""
        until = self.monotonic() + self.room.seconds
        wait = _FIRST_LOOK
        while not await self._checked(turns.enter(request, key, most)):
            if self.monotonic() >= until:
                raise busy(f"no turn within {self.room.seconds:g} s")
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LAST_LOOK)

    def _leave_key(self, stored: VirtualKey | None, record: RequestRecord) -> None:
        if stored is not None and stored.rules.concurrent and self._turns is not None:
            self._turns.leave(record.id)

    async def _checked(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except LedgerFailed as error:
            raise GatewayRefusal(
                ErrorKind.OVERLOADED,
                "the ledger cannot be written, so no limit can be checked; try again later",
                retry_after=10.0,
            ) from error

    async def _reserve(self, stored: VirtualKey, claim: Claim) -> None:
        refused = await self._checked(self.store.reserve(claim))
        if refused is not None:
            raise _spent(stored, refused)

    async def book(self, caller: Caller, record: RequestRecord) -> None:
        """Books a request with its answer; a ledger that cannot be written does not stop it."""
        if record.id in self._booked:
            return
        self._booked.add(record.id)
        try:
            stored = _stored(caller)
            reserved = stored is not None and bool(stored.rules.budgets)
            await self.store.book(Entry(record, caller.id, reserved=reserved))
        except LedgerFailed:
            self._booked.discard(record.id)

    def ended(self, request: str) -> bool:
        """Whether a request that has ended is booked."""
        booked = request in self._booked
        self._booked.discard(request)
        return booked

    def settle(self, caller: Caller, record: RequestRecord, tokens: int) -> None:
        """Ends the turn of a key, and corrects its rate by the tokens that a request used."""
        stored = _stored(caller)
        self._leave_key(stored, record)
        if stored is not None and stored.rules.tpm:
            used = record.usage.total_input + record.usage.total_output
            self._rates.correct(stored.id, stored.rules.rates, used - tokens)


def _stored(caller: Caller) -> VirtualKey | None:
    return caller.stored if isinstance(caller, KeyCaller) else None


def _allows_model(stored: VirtualKey, deployment: Deployment) -> bool:
    return may_use(msgspec.structs.replace(stored.rules, routes=()), "", deployment.opened.name)


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
