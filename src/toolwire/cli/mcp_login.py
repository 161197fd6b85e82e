"""`toolwire mcp login` and `logout`."""

import asyncio
import os

import click

from toolwire.app.servers import Access
from toolwire.auth.credentials import open_store
from toolwire.cli.login import open_browser
from toolwire.cli.mcp_servers import Place, errors_reported
from toolwire.errors import ToolwireError
from toolwire.mcp.entry import Unset, expanded
from toolwire.mcp.login import LoginStore, Show
from toolwire.storage.paths import state_paths


@click.command("login")
@click.argument("name", metavar="NAME|URL")
@click.option("--no-browser", is_flag=True, help="Print the address; do not open a browser.")
def login_command(name: str, no_browser: bool) -> None:
    """Log in at a server with the browser; the tokens go to the credential store."""
    with errors_reported():
        place = Place.here()
        name, each = place.target(name)
        try:
            entry = expanded(each.entry, place.environ)
        except Unset as error:
            raise ToolwireError(f"MCP server {name}: {error}") from error
        access = Access(environ=place.environ, cwd=place.cwd)
        asyncio.run(access.log_in(name, entry, shower(no_browser)))
    click.echo(f"logged in at {name}", err=True)


@click.command("logout")
@click.argument("name", metavar="NAME|URL")
def logout_command(name: str) -> None:
    """Forget the login at a server."""
    with errors_reported():
        place = Place.here()
        url = name if "://" in name else place.need(name).entry.url
        store = LoginStore(open_store(state_paths(place.environ), place.environ))
        if not url or not store.delete(url):
            raise ToolwireError(f"there is no login at {name}")
    click.echo(f"the login at {name} is removed", err=True)


def shower(no_browser: bool = False) -> Show:
    """What shows the address of a login: on standard error, and in a browser."""

    def show(url: str) -> None:
        click.echo(f"open this address to log in:\n{url}", err=True)
        if not no_browser:
            open_browser(url, os.environ)

    return show
