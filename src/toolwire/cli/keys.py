"""`toolwire keys` and `toolwire usage`: keys of the gateway, and what they spent."""

import asyncio
import csv
import io
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from toolwire.cli.terminal import echo_table, fail
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.gateway.ledger import Ledger
    from toolwire.gateway.store import KeyRules, Spending, UsageBy, UsageSum, VirtualKey

T = TypeVar("T")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_NANO = 1_000_000_000
_EVER = "-"


@click.group("keys")
def keys_command() -> None:
    """Create, list and revoke keys of the gateway. NAME is a key's name or id."""


@keys_command.command("create")
@click.argument("name")
@click.option("--models", multiple=True, metavar="GLOB", help="Allow only these provider/models.")
@click.option("--routes", multiple=True, metavar="GLOB", help="Allow only these routes.")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="USD/WINDOW",
    help="Limit the cost: 20/month; windows are hour, day, month and total. May be repeated.",
)
@click.option("--hard", is_flag=True, help="Reserve the most that each request can cost.")
@click.option("--refuse-unpriced", is_flag=True, help="Refuse models whose price is not known.")
@click.option("--rpm", type=click.IntRange(min=1), help="Requests a minute.")
@click.option("--tpm", type=click.IntRange(min=1), help="Tokens a minute.")
@click.option("--concurrent", type=click.IntRange(min=1), help="Requests at once; others wait.")
@click.option("--expires", metavar="DATE", help="Last day (2027-01-31), time, or duration (30d).")
@click.option("--scope", default="", metavar="LIST", help="More rights: raw, raw:PROVIDER, …")
@click.option("--raw-unmetered", is_flag=True, help="Allow /raw/ in spite of a budget.")
@_JSON
def create(name: str, as_json: bool, expires: str | None, **options: Any) -> None:
    """Create a key and print it; it is not shown again.

    \b
    toolwire keys create ci --models 'anthropic/*' --budget 20/month --rpm 60
    """

    async def work(store: "Ledger") -> "tuple[VirtualKey, str]":
        from toolwire.gateway.keys import new_key, read_expiry

        now = time.time()
        until = read_expiry(expires, now) if expires else None
        key, text = new_key(name, _rules(options), now=now, expires=until)
        await store.add_key(key)
        return key, text

    made = _done(work)
    if made is not None:
        _show_secret(*made, as_json=as_json)


def _rules(options: dict[str, Any]) -> "KeyRules":
    from toolwire.gateway.keys import read_budget, read_scopes
    from toolwire.gateway.store import KeyRules

    return KeyRules(
        models=options["models"],
        routes=options["routes"],
        budgets=tuple(read_budget(one) for one in options["budgets"]),
        hard=options["hard"],
        refuse_unpriced=options["refuse_unpriced"],
        raw_unmetered=options["raw_unmetered"],
        rpm=options["rpm"] or 0,
        tpm=options["tpm"] or 0,
        concurrent=options["concurrent"] or 0,
        scopes=read_scopes(options["scope"]),
    )


def _show_secret(key: "VirtualKey", text: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(dump({**_described(key), "key": text}))
    else:
        click.echo(text)
        click.echo("store it now: it is not shown again", err=True)


@keys_command.command("list")
@click.option("--all", "everything", is_flag=True, help="List revoked and expired keys too.")
@_JSON
def list_keys(everything: bool, as_json: bool) -> None:
    """List the keys with what they spent."""

    async def work(store: "Ledger") -> "list[tuple[VirtualKey, list[Spending]]]":
        from toolwire.gateway.keys import is_valid

        now = time.time()
        found = [key for key in await store.keys() if everything or is_valid(key, now)]
        return [(key, await store.spending(key, now)) for key in found]

    found = _done(work)
    if found is None:
        return
    if as_json:
        click.echo(dump([{**_described(key), **_spent(spending)} for key, spending in found]))
    elif found:
        head = ("NAME", "ID", "STATE", "SPENT", "LIMITS", "LAST USED")
        echo_table(head, [_row(key, spending) for key, spending in found])
    else:
        click.echo("no keys; create one with: toolwire keys create NAME", err=True)


@keys_command.command("show")
@click.argument("name")
@_JSON
def show(name: str, as_json: bool) -> None:
    """Show a key, its limits and what it spent; never the key itself."""

    async def work(store: "Ledger") -> "tuple[VirtualKey, list[Spending]]":
        key = await _find(store, name)
        return key, await store.spending(key, time.time())

    found = _done(work)
    if found is None:
        return
    key, spending = found
    members = {**_described(key), **_spent(spending)}
    if as_json:
        click.echo(dump(members))
        return
    width = max(map(len, members))
    for label, value in members.items():
        if value not in (None, "", [], 0, False):
            click.echo(f"{label.ljust(width)}  {_plain(value)}")


@keys_command.command("rotate")
@click.argument("name")
@_JSON
def rotate(name: str, as_json: bool) -> None:
    """Give a key a new secret and print it; the old one is valid for another 24 hours."""

    async def work(store: "Ledger") -> "tuple[VirtualKey, str]":
        from toolwire.gateway.keys import is_valid, rotated

        key = await _find(store, name)
        if not is_valid(key, time.time()):
            raise BadInput(f'the key "{key.name}" is revoked or expired; create a new one')
        changed, text = rotated(key, time.time())
        await store.change_key(changed)
        return changed, text

    made = _done(work)
    if made is not None:
        _show_secret(*made, as_json=as_json)


@keys_command.command("revoke")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def revoke(names: tuple[str, ...]) -> None:
    """Revoke keys; the gateway refuses them from the next request on."""

    async def work(store: "Ledger") -> "list[VirtualKey]":
        found = [await _find(store, name) for name in names]
        for key in found:
            if key.revoked is None:
                await store.change_key(msgspec.structs.replace(key, revoked=time.time()))
        return found

    for key in _done(work) or ():
        click.echo(f"revoked {key.name} ({key.id})", err=True)


async def _find(store: "Ledger", name: str) -> "VirtualKey":
    known = await store.keys()
    found = [key for key in known if name in (key.id, key.name)]
    # A name may be used again after its key was revoked.
    current = [key for key in found if key.revoked is None] or found
    if not current:
        raise UnknownName("key", name, dict.fromkeys(key.name for key in known))
    return current[-1]


def _done(work: "Callable[[Ledger], Awaitable[T]]") -> T | None:
    """Returns the result of work on the store; None after an error, which is reported."""
    from toolwire import config
    from toolwire.gateway.accounts import ledger_file, open_ledger

    async def run() -> T:
        settings = config.load(os.environ, Path.cwd())
        store = open_ledger(settings.gateway.store, ledger_file(os.environ))
        try:
            return await work(store)
        finally:
            store.close()

    try:
        return asyncio.run(run())
    except ToolwireError as error:
        fail(error)
        return None


def _described(key: "VirtualKey") -> JsonObject:
    from toolwire.gateway.keys import is_valid

    rules = msgspec.to_builtins(key.rules)
    now = time.time()
    return {
        "id": key.id,
        "name": key.name,
        "state": "revoked" if key.revoked is not None else _state(is_valid(key, now)),
        "created": _iso(key.created),
        "expires": _iso(key.expires),
        "revoked": _iso(key.revoked),
        "last_used": _iso(key.last_used),
        "old_secret_until": _iso(key.old_until) if key.old_until > now else None,
        **rules,
        "budgets": [budget.text for budget in key.rules.budgets],
    }


def _state(valid: bool) -> str:
    return "active" if valid else "expired"


def _spent(spending: "list[Spending]") -> JsonObject:
    return {
        "spending": [
            {
                "budget": one.budget.text,
                "spent": one.spent / _NANO,
                "reserved": one.reserved / _NANO,
                "resets": _iso(one.resets),
            }
            for one in spending
        ]
    }


def _row(key: "VirtualKey", spending: "list[Spending]") -> tuple[str, ...]:
    rules = key.rules
    spent = ", ".join(f"${one.spent / _NANO:.2f} of {one.budget.text}" for one in spending)
    limits = [f"{rules.rpm} rpm"] if rules.rpm else []
    limits += [f"{rules.tpm} tpm"] if rules.tpm else []
    limits += [f"{rules.concurrent} at once"] if rules.concurrent else []
    limits += [*rules.routes, *rules.models]
    state = str(_described(key)["state"])
    used = _iso(key.last_used) or _EVER
    return key.name, key.id, state, spent or _EVER, ", ".join(limits) or _EVER, used


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_plain(one) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
    if isinstance(value, dict):
        return f"${value['spent']:.4f} of {value['budget']}, ${value['reserved']:.4f} reserved"
    return str(value)


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


@click.command("usage")
@click.option(
    "--by",
    type=click.Choice(["key", "model", "day"]),
    default="key",
    show_default=True,
    help="What to sum by.",
)
@click.option("--since", default="", metavar="DATE", help="First day, in UTC: 2026-11-01.")
@click.option("--until", default="", metavar="DATE", help="Last day, in UTC.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@_JSON
def usage_command(by: "UsageBy", since: str, until: str, as_csv: bool, as_json: bool) -> None:
    """Print requests, tokens and cost of the gateway."""
    if as_csv and as_json:
        raise click.UsageError("--csv and --json contradict each other; give one")
    for name, day in (("--since", since), ("--until", until)):
        _check_day(name, day)

    async def work(store: "Ledger") -> "list[UsageSum]":
        # What a killed gateway had not booked.
        await store.sweep()
        return await store.usage(by, since, until)

    found = _done(work)
    if found is None:
        return
    rows = [{by: one.name, **_members(one)} for one in found]
    if as_json:
        click.echo(dump(rows))
    elif as_csv:
        click.echo(_csv(by, rows), nl=False)
    elif rows:
        head = (by.upper(), "REQUESTS", "ERRORS", "INPUT", "CACHED", "OUTPUT", "COST", "UNPRICED")
        echo_table(head, [_usage_row(one) for one in found])
    else:
        click.echo("no requests", err=True)


def _check_day(name: str, day: str) -> None:
    if day:
        try:
            datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError as error:
            raise click.UsageError(f'{name}: "{day}" is not a date; write 2026-11-01') from error


def _members(one: "UsageSum") -> JsonObject:
    members: JsonObject = msgspec.to_builtins(one)
    del members["name"]
    return members


def _csv(by: str, rows: list[JsonObject]) -> str:
    from toolwire.gateway.store import UsageSum

    out = io.StringIO()
    names = [by, *UsageSum.__struct_fields__[1:]]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _usage_row(one: "UsageSum") -> tuple[str, ...]:
    counts = (one.requests, one.errors, one.input, one.cached, one.output)
    return (
        one.name or _EVER,
        *(f"{count:,}" for count in counts),
        f"${one.cost:.4f}",
        str(one.unpriced),
    )
