"""Keys of the gateway in the console: list, create, change, rotate, revoke."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from toolwire.gateway.console.calls import ApiError, ApiRoute, Call, Query
from toolwire.gateway.keys import (
    is_valid,
    new_key,
    read_budget,
    read_expiry,
    read_scopes,
    rotated,
)
from toolwire.gateway.store import NANO, KeyRules, Spending, VirtualKey, window_name

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console


class BudgetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One budget of a key, in dollars."""

    budget: str
    dollars: float
    window: str
    spent: float
    reserved: float
    left: float
    resets: float | None


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A key, never its secret."""

    id: str
    name: str
    state: str
    created: float
    expires: float | None
    revoked: float | None
    last_used: float | None
    models: tuple[str, ...]
    routes: tuple[str, ...]
    rpm: int
    tpm: int
    concurrent: int
    hard: bool
    refuse_unpriced: bool
    raw_unmetered: bool
    scopes: tuple[str, ...]
    budgets: list[BudgetRow]
    running: int
    requests_today: int
    old_until: float | None


class KeyList(msgspec.Struct, frozen=True):
    """All keys."""

    keys: list[KeyRow]


class OneKey(msgspec.Struct, frozen=True):
    """A key."""

    key: KeyRow


class NewSecret(msgspec.Struct, frozen=True):
    """A key with its secret, which is shown only now."""

    key: KeyRow
    secret: str


class KeyChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a key may do; members that are missing stay as they are."""

    models: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    routes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    budgets: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """`20/month`; windows are hour, day, month and total."""
    hard: bool | msgspec.UnsetType = msgspec.UNSET
    refuse_unpriced: bool | msgspec.UnsetType = msgspec.UNSET
    raw_unmetered: bool | msgspec.UnsetType = msgspec.UNSET
    rpm: int | msgspec.UnsetType = msgspec.UNSET
    tpm: int | msgspec.UnsetType = msgspec.UNSET
    concurrent: int | msgspec.UnsetType = msgspec.UNSET
    scopes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    expires: str | msgspec.UnsetType | None = msgspec.UNSET
    """Last day (`2027-01-31`), time, or duration (`30d`); null for none."""


class KeyCreation(KeyChange, frozen=True, kw_only=True):
    """A key to create."""

    name: str


_PLAIN = (
    *("models", "routes", "hard", "refuse_unpriced", "raw_unmetered", "rpm", "tpm"),
    "concurrent",
)


def _rules(before: KeyRules, change: KeyChange) -> KeyRules:
    given = {
        name: value for name in _PLAIN if (value := getattr(change, name)) is not msgspec.UNSET
    }
    for name in ("rpm", "tpm", "concurrent"):
        if given.get(name, 0) < 0:
            raise ApiError(400, f"{name} must not be negative; 0 sets no limit")
    if change.budgets is not msgspec.UNSET:
        given["budgets"] = tuple(read_budget(text) for text in change.budgets)
    if change.scopes is not msgspec.UNSET:
        given["scopes"] = read_scopes(",".join(change.scopes))
    return msgspec.structs.replace(before, **given)


def row_of(
    key: VirtualKey, spending: list[Spending], now: float, running: int, today: int
) -> KeyRow:
    """The key with what it spent."""
    rules = key.rules
    state = "active" if is_valid(key, now) else "expired"
    return KeyRow(
        id=key.id,
        name=key.name,
        state="revoked" if key.revoked is not None else state,
        created=key.created,
        expires=key.expires,
        revoked=key.revoked,
        last_used=key.last_used,
        models=rules.models,
        routes=rules.routes,
        rpm=rules.rpm,
        tpm=rules.tpm,
        concurrent=rules.concurrent,
        hard=rules.hard,
        refuse_unpriced=rules.refuse_unpriced,
        raw_unmetered=rules.raw_unmetered,
        scopes=rules.scopes,
        budgets=[
            BudgetRow(
                budget=one.budget.text,
                dollars=one.budget.dollars,
                window=one.budget.window,
                spent=one.spent / NANO,
                reserved=one.reserved / NANO,
                left=one.left / NANO,
                resets=one.resets,
            )
            for one in spending
        ],
        running=running,
        requests_today=today,
        old_until=key.old_until if key.old_until > now else None,
    )


async def _rows(console: Console, keys: list[VirtualKey]) -> list[KeyRow]:
    store, now = console.host.accounts.store, console.host.gateway.parts.clock()
    running = Counter(one.record.key_id for one in console.host.gateway.watch.running)
    today = await store.requests_by_key(window_name("day", now))
    return [
        row_of(key, await store.spending(key, now), now, running[key.id], today.get(key.id, 0))
        for key in keys
    ]


async def _find(console: Console, call: Call) -> VirtualKey:
    name = call.parts["id"]
    known = await console.host.accounts.store.keys()
    found = [key for key in known if name in (key.id, key.name)]
    # A name may be used again after its key was revoked.
    current = [key for key in found if key.revoked is None] or found
    if not current:
        raise ApiError(404, f'no key "{name[:100]}"')
    return current[-1]


async def listed(console: Console, call: Call) -> None:
    """Answers with all keys."""
    now = console.host.gateway.parts.clock()
    known = await console.host.accounts.store.keys()
    if call.query.get("all", "") in ("", "0"):
        known = [key for key in known if is_valid(key, now)]
    await call.answer(KeyList(await _rows(console, known)))


async def shown(console: Console, call: Call) -> None:
    """Answers with one key."""
    await _answer(console, call, await _find(console, call))


async def _answer(console: Console, call: Call, key: VirtualKey) -> None:
    await call.answer(OneKey((await _rows(console, [key]))[0]))


async def _answer_secret(console: Console, call: Call, key: VirtualKey, secret: str) -> None:
    row = (await _rows(console, [key]))[0]
    await call.answer(NewSecret(row, secret), 201 if call.parts.get("id") is None else 200)


async def create(console: Console, call: Call) -> None:
    """Creates a key; its secret is shown only now."""
    given = call.body(KeyCreation)
    now = console.host.gateway.parts.clock()
    until = read_expiry(given.expires, now) if isinstance(given.expires, str) else None
    key, secret = new_key(given.name, _rules(KeyRules(), given), now=now, expires=until)
    await console.host.accounts.store.add_key(key)
    await _answer_secret(console, call, key, secret)


async def change(console: Console, call: Call) -> None:
    """Changes what a key may do."""
    given = call.body(KeyChange)
    key = await _active(console, call)
    now = console.host.gateway.parts.clock()
    expires = key.expires
    if given.expires is not msgspec.UNSET:
        expires = None if given.expires is None else read_expiry(given.expires, now)
    changed = msgspec.structs.replace(key, rules=_rules(key.rules, given), expires=expires)
    await console.host.accounts.store.change_key(changed)
    await _answer(console, call, changed)


async def _active(console: Console, call: Call) -> VirtualKey:
    key = await _find(console, call)
    if key.revoked is not None:
        raise ApiError(409, f'the key "{key.name}" is revoked', "create a new one")
    return key


async def rotate(console: Console, call: Call) -> None:
    """Gives a key a new secret; the old one is valid for another day."""
    key = await _active(console, call)
    changed, secret = rotated(key, console.host.gateway.parts.clock())
    await console.host.accounts.store.change_key(changed)
    await _answer_secret(console, call, changed, secret)


async def revoke(console: Console, call: Call) -> None:
    """Revokes a key."""
    key = await _find(console, call)
    if key.revoked is None:
        now = console.host.gateway.parts.clock()
        key = msgspec.structs.replace(key, revoked=now)
        await console.host.accounts.store.change_key(key)
    await _answer(console, call, key)


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/keys",
        does=listed,
        about="Keys with what they spent.",
        query=(Query("all", "`1` for revoked and expired ones too."),),
        returns=KeyList,
    ),
    ApiRoute(
        method="POST",
        path="/keys",
        does=create,
        about="Create a key; its secret is shown only now.",
        takes=KeyCreation,
        returns=NewSecret,
        status=201,
    ),
    ApiRoute(method="GET", path="/keys/{id}", does=shown, about="One key.", returns=OneKey),
    ApiRoute(
        method="POST",
        path="/keys/{id}",
        does=change,
        about="Change what a key may do.",
        takes=KeyChange,
        returns=OneKey,
    ),
    ApiRoute(
        method="DELETE", path="/keys/{id}", does=revoke, about="Revoke a key.", returns=OneKey
    ),
    ApiRoute(
        method="POST",
        path="/keys/{id}/rotate",
        does=rotate,
        about="Give a key a new secret.",
        returns=NewSecret,
    ),
    ApiRoute(
        method="POST",
        path="/keys/{id}/revoke",
        does=revoke,
        about="Revoke a key.",
        returns=OneKey,
    ),
)
