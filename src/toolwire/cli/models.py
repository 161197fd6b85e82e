"""`toolwire models`: list the known models."""

import os

import click
import msgspec

from toolwire import config
from toolwire.cli.lines import echo_table, fail
from toolwire.config import Settings
from toolwire.errors import ToolwireError, UnknownName
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump


@click.command("models")
@click.option("--provider", "-p", help="List only this provider's models.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(provider: str | None, as_json: bool) -> None:
    """List the known models: context, output limit, price per million tokens, abilities.

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
    found = _found(settings, provider)
    if as_json:
        click.echo(dump([_described(info) for info in found]))
    elif found:
        head = ("MODEL", "CONTEXT", "OUTPUT", "IN", "OUT", "CACHED", "ABILITIES")
        echo_table(head, (_row(info) for info in found))
    else:
        click.echo(f"no known models of {provider}; use any as {provider}/<model>", err=True)


def _found(settings: Settings, provider: str | None) -> tuple[ModelInfo, ...]:
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


def _described(info: ModelInfo) -> JsonObject:
    return {"name": f"{info.provider}/{info.id}", **msgspec.to_builtins(info)}


def _row(info: ModelInfo) -> tuple[str, ...]:
    prices = info.prices
    figures = (prices.input, prices.output, prices.cache_read) if prices else (None, None, None)
    able = {"tools": info.tools, "images": info.images, "thinking": info.thinking}
    return (
        f"{info.provider}/{info.id}",
        *(str(size or "-") for size in (info.context, info.output)),
        *("-" if figure is None else f"{figure:g}" for figure in figures),
        " ".join(name for name, has in able.items() if has),
    )
