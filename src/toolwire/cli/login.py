"""`toolwire login` and `logout`: store a provider's key, log in with the vendor, or forget both."""

import asyncio
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import click

from toolwire import providers
from toolwire.auth.copilot import DeviceCode
from toolwire.auth.credentials import credential_for, first_use_terms, open_store
from toolwire.auth.store import Store, Stored, StoredKey, StoredLogin
from toolwire.client.redact import Secret, without_secrets
from toolwire.errors import ErrorKind, ProviderError, ToolwireError, UnknownName
from toolwire.providers import ApiKey, GoogleLogin, NoAuth, OAuth, Provider
from toolwire.storage.paths import state_paths
from toolwire.tools.shell.environment import NEUTRAL, find_program, helper_environment

_PROGRAMS = ("xdg-open", "open", "wslview", "x-www-browser")
_NAMED = ("DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "WSL_INTEROP", "VSCODE_*", "BROWSER")


def open_browser(url: str, environ: Mapping[str, str]) -> bool:
    """Opens a browser (`BROWSER` or the desktop's default); False if there is none."""
    command = _command(environ)
    if not command:
        return False
    given = [word.replace("%s", url) for word in command]
    try:
        subprocess.Popen(  # noqa: S603 - a program of the user's, by absolute path
            given if given != command else [*command, url],
            cwd=NEUTRAL,
            env=helper_environment(environ, _NAMED),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    return True


def _command(environ: Mapping[str, str]) -> list[str]:
    try:
        own = shlex.split(environ.get("BROWSER", ""))
    except ValueError:
        own = []
    candidates = ([own] if own else []) + [[name] for name in _PROGRAMS]
    for name, *rest in candidates:
        if found := find_program(name, environ, (Path.cwd(),)):
            return [found, *rest]
    return []


BAD_CREDENTIALS = 41
CANCELLED = 130
_REFUSALS = (ErrorKind.AUTH, ErrorKind.PERMISSION)


@click.command("login")
@click.argument("name", metavar="PROVIDER")
@click.option(
    "--key",
    help="The key; `-` reads it from standard input. Other users of this machine may see a key "
    "given here: omit it to be prompted, or pipe it in.",
)
@click.option("--file", "in_file", is_flag=True, help="Store it in a file, not in the keyring.")
@click.option("--oauth", is_flag=True, help="Log in with the vendor instead of entering a key.")
@click.option("--no-browser", is_flag=True, help="Print the URL; do not open a browser.")
def login_command(name: str, key: str | None, in_file: bool, oauth: bool, no_browser: bool) -> None:
    """Store a key for PROVIDER, or log in with the vendor.

    Without --key you are prompted without echo, or the key is read from standard input when that
    is piped. It is stored in the system keyring, else in a file that only you can read.
    """
    if oauth and key is not None:
        raise click.UsageError("give --key or --oauth, not both")
    guarded(lambda: _log_in(name, key, in_file, oauth, no_browser))


def guarded(work: Callable[[], None]) -> None:
    """Runs a command; exits with the documented code of its failure."""
    try:
        work()
    except (KeyboardInterrupt, click.Abort):
        click.echo("toolwire: cancelled, nothing was stored", err=True)
        raise SystemExit(CANCELLED) from None
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        _leave(error)


def own_store() -> Store:
    """Returns this user's credential store; its notices go to standard error."""
    return open_store(state_paths(os.environ), os.environ, _notice)


def _log_in(name: str, key: str | None, in_file: bool, oauth: bool, no_browser: bool) -> None:
    provider, store = providers.get(name), own_store()
    if isinstance(provider.auth, NoAuth):
        _notice(f"{provider.title} needs no credentials")
        return
    flow = _flow_of(provider)
    if flow == "code-assist" and key is not None:
        raise click.UsageError("a Google token expires within the hour and is not stored")
    if oauth and not flow:
        raise click.UsageError(f"{provider.title} has no login; give a key")
    asks_for_key = isinstance(provider.auth, ApiKey) and not oauth
    stored = _given(provider, key) if key is not None or asks_for_key else None
    if stored is None and flow:
        stored = _in_browser(provider, flow, store, no_browser)
    elif stored is None:
        _check_google(provider, store)
    if stored is not None:
        where = store.write(provider.name, stored, in_file=in_file)
        _notice(f"stored the credential for {provider.title} in {where}")


def _flow_of(provider: Provider) -> str:
    match provider.auth:
        case OAuth(flow=flow):
            return flow
        case ApiKey(login=flow):
            return flow
        case _:
            return ""


def _given(provider: Provider, key: str | None) -> Stored:
    """Returns the key from the option, the pipe or the prompt."""
    if key is None and sys.stdin.isatty():
        if isinstance(provider.auth, ApiKey) and provider.auth.url:
            _notice(f"get a key at {provider.auth.url}")
        key = click.prompt(f"Key for {provider.title}", hide_input=True, err=True)
    elif key is None or key == "-":
        key = sys.stdin.readline()
    secret = Secret(str(key).strip())
    if not secret:
        raise click.UsageError("the key is empty")
    # A header allows no others; usually two lines were pasted, or a name with the key.
    if not all("!" <= character <= "~" for character in secret.reveal()):
        raise click.UsageError("this is not a key: it contains spaces or non-ASCII characters")
    return StoredKey(key=secret)


def _in_browser(provider: Provider, flow: str, store: Store, no_browser: bool) -> Stored | None:
    terms = first_use_terms(provider, store.file)
    if terms:
        _notice(terms)

    def show(url: str) -> None:
        _notice(f"open this URL and approve the login:\n\n  {url}\n")
        if not no_browser and sys.stderr.isatty():
            open_browser(url, os.environ)

    def show_code(code: DeviceCode) -> None:
        _notice(f"your code is {code.user_code}")
        show(code.verification_uri)

    if flow == "openrouter":
        from toolwire.auth import openrouter

        site = os.environ.get("TOOLWIRE_OPENROUTER_SITE") or openrouter.SITE
        return StoredLogin(token=asyncio.run(openrouter.login(show, site=site)))
    if flow == "copilot":
        from toolwire.auth import copilot

        settings = copilot.CopilotSettings.from_environ(os.environ)
        login = copilot.login(settings, show_code, sleep=asyncio.sleep, now=time.time)
        return StoredLogin(token=asyncio.run(login))
    credential = credential_for(provider, environ=os.environ, store=store, notice=_notice)
    project = asyncio.run(credential.project())
    _notice(f"{provider.title} works with the login {credential.origin}, project {project}")
    return None


def _check_google(provider: Provider, store: Store) -> None:
    credential = credential_for(provider, environ=os.environ, store=store)
    asyncio.run(credential(False))
    _notice(f"{provider.title} works with {credential.origin}")


def _notice(message: str) -> None:
    click.echo(message, err=True)


def _leave(error: ToolwireError) -> NoReturn:
    click.echo(f"toolwire: {without_secrets(str(error))}", err=True)
    refused = isinstance(error, ProviderError) and error.kind in _REFUSALS
    raise SystemExit(BAD_CREDENTIALS if refused else 1)


@click.command("logout")
@click.argument("name", metavar="PROVIDER")
def logout_command(name: str) -> None:
    """Remove the stored credentials of PROVIDER from the keyring and the file."""
    guarded(lambda: _log_out(name))


def _log_out(name: str) -> None:
    provider = providers.get(name)
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
