"""`toolwire providers` and `models`: list the providers and the known models."""

import os

import click
import msgspec

from toolwire import config, providers
from toolwire.cli.terminal import echo_table, fail
from toolwire.client.redact import hide_in_url
from toolwire.config import Settings
from toolwire.errors import ToolwireError, UnknownName
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, OAuth, Provider
from toolwire.providers.addresses import variables
from toolwire.providers.document import changed, described, key_set, key_variables, way_in, written
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump


@click.command("providers")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def providers_command(name: str | None, as_json: bool) -> None:
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


@click.command("models")
@click.option("--provider", "-p", help="List only this provider's models.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models_command(provider: str | None, as_json: bool) -> None:
    """List the known models: context, output limit, price per million tokens, capabilities.

    A provider may offer others; use any of them as provider/model.
    """
    try:
        settings = config.load(os.environ, config.current_folder())
        if provider:
            settings.provider(provider)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
        return
    found = _known_models(settings, provider)
    if as_json:
        click.echo(dump([_described_model(info) for info in found]))
    elif found:
        head = ("MODEL", "CONTEXT", "OUTPUT", "IN", "OUT", "CACHED", "ABILITIES")
        echo_table(head, (_model_row(info) for info in found))
    else:
        click.echo(f"no known models of {provider}; use any as {provider}/<model>", err=True)


def _known_models(settings: Settings, provider: str | None) -> tuple[ModelInfo, ...]:
    """Returns the catalogue with the user's models, and the user's provider names."""
    known = catalogue.models(provider, settings.models)
    names = {(info.provider, info.id) for info in known}
    bare = tuple(
        ModelInfo(provider=own.name, id=model)
        for own in settings.providers
        if provider in (None, own.name)
        for model in own.models
        if (own.name, model) not in names
    )
    return (*known, *bare)


def _described_model(info: ModelInfo) -> JsonObject:
    return {"name": f"{info.provider}/{info.id}", **msgspec.to_builtins(info)}


def _model_row(info: ModelInfo) -> tuple[str, ...]:
    prices = info.prices
    figures = (prices.input, prices.output, prices.cache_read) if prices else (None, None, None)
    able = {"tools": info.tools, "images": info.images, "thinking": info.thinking}
    return (
        f"{info.provider}/{info.id}",
        *(str(size or "-") for size in (info.context, info.output)),
        *("-" if figure is None else f"{figure:g}" for figure in figures),
        " ".join(name for name, has in able.items() if has),
    )
