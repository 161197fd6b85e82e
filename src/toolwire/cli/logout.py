"""`toolwire logout`: remove a provider's stored credentials."""

import os

import click

from toolwire.cli.login import guarded, own_store, provider_named
from toolwire.providers import ApiKey, GoogleLogin, OAuth


@click.command("logout")
@click.argument("name", metavar="PROVIDER")
def command(name: str) -> None:
    """Remove the stored credentials of PROVIDER from the keyring and the file."""
    guarded(lambda: _log_out(name))


def _log_out(name: str) -> None:
    provider = provider_named(name)
    gone = own_store().delete(provider.name)
    if gone:
        click.echo(f"removed the credential for {provider.title} from {', '.join(gone)}", err=True)
    else:
        click.echo(f"nothing was stored for {provider.title}", err=True)
    if isinstance(provider.auth, ApiKey | GoogleLogin | OAuth):
        for variable in provider.auth.env:
            if os.environ.get(variable):
                click.echo(f"{variable} is still set and will be used", err=True)
    if isinstance(provider.auth, OAuth) and provider.auth.flow == "code-assist":
        click.echo("the Gemini CLI's login file was not changed", err=True)
