"""`toolwire providers`: list the providers, or show one."""

import os

import click

from toolwire import config, providers
from toolwire.cli.lines import echo_table, fail
from toolwire.client.redact import hide_in_url
from toolwire.config import Settings
from toolwire.errors import ToolwireError, UnknownName
from toolwire.providers._spec import OAuth, Provider
from toolwire.providers.addresses import variables
from toolwire.providers.document import changed, described, key_set, key_variables, way_in, written
from toolwire.wire.json_access import dump


@click.command("providers")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, as_json: bool) -> None:
    """List the providers and which key is set, or show one in detail."""
    try:
        settings = config.load(os.environ, config.current_folder())
        found = [settings.provider(name)] if name else _all(settings)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
        return
    if as_json:
        rows = [
            {**described(one, os.environ), "base_url": hide_in_url(one.base_url)} for one in found
        ]
        click.echo(dump(rows[0] if name else rows))
    elif name:
        _print_one(found[0])
    else:
        head = ("PROVIDER", "DIALECT", "KEY", "SET", "WHERE")
        echo_table(head, (_row(provider) for provider in found))


def _all(settings: Settings) -> list[Provider]:
    built_in = {name: providers.get(name) for name in providers.names()}
    return list((built_in | {own.name: own for own in settings.providers}).values())


def _row(provider: Provider) -> tuple[str, ...]:
    found = key_set(provider.auth, os.environ)
    known = key_variables(provider.auth)
    return (
        provider.name,
        provider.dialect,
        found or (known[0] if known else "-"),
        "yes" if found else "no" if known else "-",
        "this machine" if provider.local else "",
    )


def _print_one(provider: Provider) -> None:
    click.echo(f"{provider.name}: {provider.title}")
    for title, text in _facts(provider):
        if text:
            click.echo(f"  {title:<14} {text}")
    reasons = dict(provider.reasons)
    quirks = changed(provider.quirks)
    if quirks:
        click.echo("Quirks")
    for quirk in quirks:
        value = written(getattr(provider.quirks, quirk)) or "none"
        click.echo(f"  {quirk}: {value}\n      {reasons.get(quirk, '')}")
    if provider.rules:
        click.echo("Models that differ")
    for rule in provider.rules:
        click.echo(f"  {rule.pattern}\n      {rule.reason}")


def _facts(provider: Provider) -> list[tuple[str, str]]:
    auth = provider.auth
    known = key_variables(auth)
    found = key_set(auth, os.environ)
    state = f"{found} is set" if found else f"set {' or '.join(known)}" if known else ""
    return [
        ("dialect", provider.dialect),
        ("other formats", ", ".join(dialect for dialect, _ in provider.other_dialects)),
        ("address", hide_in_url(provider.base_url)),
        ("address from", ", ".join(variables(provider))),
        *((f"{{{blank.name}}}", " or ".join(blank.env)) for blank in provider.placeholders),
        ("credentials", f"{way_in(auth)}; {state}" if state else way_in(auth)),
        ("terms", auth.terms if isinstance(auth, OAuth) else ""),
        ("native calls", "yes" if provider.native_tools else "no"),
        ("default model", provider.default_model),
        ("docs", provider.docs),
    ]
