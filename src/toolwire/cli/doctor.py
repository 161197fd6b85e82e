"""`toolwire doctor`: report what is configured and reachable, and how to fix the rest.

`python -m toolwire.cli.doctor` fails if the embedded model needs its engine first.
"""

import asyncio
import os
import platform
import sys
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import click
import msgspec

from toolwire import config, prompted, providers
from toolwire.app.model_choice import choose_here, choose_model
from toolwire.auth.credentials import credential_for, open_store, without_secrets
from toolwire.cli.terminal import echo_table
from toolwire.client.http.exchange import HttpLimits
from toolwire.client.http.transport import HttpTransport, Outgoing, Transport
from toolwire.client.redact import hide_in_url
from toolwire.config import Settings, trust
from toolwire.config.display import file_states
from toolwire.embedded.catalogue import MODELS
from toolwire.embedded.machine import machine, sizes
from toolwire.embedded.partial import readable
from toolwire.embedded.weights import DownloadConsent, WeightStore, on_disk
from toolwire.errors import ToolwireError
from toolwire.providers import catalogue
from toolwire.providers._spec import Provider
from toolwire.providers.addresses import address
from toolwire.storage.paths import state_paths
from toolwire.wire.json_access import JsonObject, dump

_CORE = ("toolwire", "msgspec", "aiohttp", "click", "jsonschema-rs", "platformdirs")
_EXTRAS = (("keyring", "keyring"), ("google-auth", "vertex"), ("xllamacpp", "local"))
_PATIENCE = HttpLimits(connect=2.0, read=2.0, total=3.0)


class _Finding(msgspec.Struct, frozen=True, kw_only=True):
    """State of one provider."""

    name: str
    credential: str
    """Where the credential comes from; empty for none."""
    address: str = ""
    reached: str = ""
    model: str = ""
    style: str = ""
    reason: str = ""
    problem: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--offline", is_flag=True, help="Make no network requests.")
def doctor_command(as_json: bool, offline: bool) -> None:
    """Report what is configured and reachable, and each model's tool style with the reason."""
    settings, broken = _settings()
    findings, model = asyncio.run(_examine(settings, offline=offline))
    report: JsonObject = {
        "versions": _versions(),
        "places": _places(settings),
        "sandbox": _sandbox(settings),
        "telemetry": _telemetry(settings),
        "model": model,
        "providers": [msgspec.to_builtins(finding) for finding in findings],
        "problems": [*broken, *_stored_answers(), *_problems(findings)],
    }
    click.echo(without_secrets(dump(report))) if as_json else _print_report(report, findings)
    if broken:
        raise SystemExit(1)


def _settings() -> tuple[Settings, list[str]]:
    try:
        return config.load(os.environ, config.current_folder()), []
    except ToolwireError as error:
        return Settings(), [without_secrets(str(error))]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": f"{sys.platform} {platform.machine()}"}
    for package in _CORE:
        found[package] = _version(package) or "missing"
    for package, extra in _EXTRAS:
        found[package] = _version(package) or f"not installed (pip install 'toolwire[{extra}]')"
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _places(settings: Settings) -> dict[str, str]:
    where = state_paths(os.environ)
    return {
        "configuration": str(where.config),
        "read": ", ".join(map(str, settings.files)) or "no configuration file",
        **_config_files(),
        "credentials": str(where.credentials),
        "cache": str(where.cache),
    }


def _config_files() -> dict[str, str]:
    try:
        cwd = config.current_folder()
        trusted, found = trust.decide(cwd, os.environ), file_states(os.environ, cwd)
    except ToolwireError as error:
        return {"this folder": without_secrets(str(error))}
    words = {
        True: "trusted",
        False: "not trusted",
        None: "not trusted; you have not been asked yet",
    }
    listed = {layer: f"{file} ({state})" for layer, file, state in found}
    notes = "not read" if trusted is False else "read as text, never as commands or settings"
    return {**listed, "this folder": words[trusted], "its AGENTS.md": notes}


def _sandbox(settings: Settings) -> JsonObject:
    from toolwire.tools.shell.sandbox import detect

    level = settings.tools.sandbox
    kind = detect.kind()
    active = kind != "none" and level not in ("off", "none")
    return {"kind": kind, "active": active, "level": level, "about": detect.ABOUT[kind]}


def _telemetry(settings: Settings) -> str:
    """Returns where telemetry goes."""
    own = settings.telemetry
    sent = own.endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    places = [
        *((hide_in_url(sent) or "http://localhost:4318",) if own.enabled else ()),
        *((own.outfile,) if own.outfile else ()),
    ]
    words = "" if own.content == "none" else f", with the words of the conversation ({own.content})"
    return f"{' and '.join(places)}{words}" if places else "off"


async def _examine(settings: Settings, *, offline: bool) -> tuple[list[_Finding], dict[str, str]]:
    own = [provider.name for provider in settings.providers]
    names = dict.fromkeys((*providers.names(), *own))
    transport = HttpTransport(_PATIENCE)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_one(settings.provider(name), settings, transport, offline))
                for name in names
            ]
        model = await model_in_use(settings, transport, offline=offline)
    finally:
        await transport.aclose()
    return [task.result() for task in tasks], model


async def _one(
    provider: Provider, settings: Settings, transport: HttpTransport, offline: bool
) -> _Finding:
    model = _model(provider, settings)
    choice = prompted.choose(
        provider, model, info=catalogue.find(provider.name, model, settings.models)
    )
    finding = _Finding(
        name=provider.name,
        credential="",
        model=model,
        style=str(choice.style),
        reason=choice.reason,
    )
    try:
        store = open_store(state_paths(os.environ), os.environ)
        credential = credential_for(provider, environ=os.environ, store=store)
        found = msgspec.structs.replace(finding, credential=credential.origin)
        where = address(provider, os.environ)
    except ToolwireError as error:
        return msgspec.structs.replace(finding, problem=without_secrets(str(error)))
    found = msgspec.structs.replace(found, address=hide_in_url(where))
    if provider.in_process and where == provider.base_url:
        lacking = "" if find_spec("xllamacpp") else "needs pip install 'toolwire[local]'"
        return msgspec.structs.replace(found, address="in this process", problem=lacking)
    if offline or "{" in where:
        return found
    return await _reach(found, transport)


def _model(provider: Provider, settings: Settings) -> str:
    named, _, model = settings.default_model.partition("/")
    return model if named == provider.name else provider.default_model


async def _reach(finding: _Finding, transport: HttpTransport) -> _Finding:
    # Any response proves that the server is reachable; its status does not matter.
    try:
        async with transport.open(Outgoing(method="GET", url=finding.address)) as answer:
            return msgspec.structs.replace(finding, reached=f"yes (HTTP {answer.status})")
    except ToolwireError as error:
        problem = without_secrets(str(error))
        return msgspec.structs.replace(finding, reached="no", problem=problem)


def _stored_answers() -> list[str]:
    """Returns a line for each stored answer that is not honoured any more."""
    from toolwire.app.toolbox import RULES, ignored_rules
    from toolwire.policy.rule_file import ANSWERED

    file = state_paths(os.environ).config / RULES
    try:
        return [
            f'{file}: "{rule}" allows more than its question showed and is ignored; delete it, or '
            f'remove the line "{ANSWERED}" above it to keep it'
            for rule in ignored_rules(file)
        ]
    except ToolwireError as error:
        return [without_secrets(str(error))]


def _problems(findings: list[_Finding]) -> list[str]:
    if any(finding.credential and not finding.problem for finding in findings):
        return []
    return [
        "no provider is ready; set a key such as ANTHROPIC_API_KEY, run "
        '"toolwire login PROVIDER", or start a local server such as Ollama'
    ]


def _print_report(report: JsonObject, findings: list[_Finding]) -> None:
    for title in ("versions", "places"):
        click.echo(title.capitalize())
        for name, value in report[title].items():
            click.echo(f"  {name:<14} {value}")
    sandbox = report["sandbox"]
    click.echo("Sandbox")
    click.echo(f"  {'active' if sandbox['active'] else 'not active'}: {sandbox['about']}")
    click.echo(f"  level: {sandbox['level']}")
    click.echo(f"Telemetry\n  {report['telemetry']}")
    model = report["model"]
    click.echo("Model")
    click.echo(f"  {model['name'] or 'none'}, because {model['reason']}")
    click.echo(f"  ready: {model['ready']}")
    ready = [finding for finding in findings if finding.credential and not _is_absent(finding)]
    click.echo("Providers")
    if ready:
        head = ("  PROVIDER", "CREDENTIALS", "REACHED", "MODEL", "STYLE")
        echo_table(head, (_row(finding) for finding in ready))
        for finding in ready:
            click.echo(f"  {finding.name}: {finding.style} because {finding.reason}")
            if finding.problem:
                click.echo(f"  {finding.name}: {finding.problem}")
    others = [finding.name for finding in findings if finding not in ready]
    click.echo(f"  not set up here: {', '.join(others) or 'none'}")
    click.echo("  (toolwire providers NAME shows what one needs)")
    for problem in report["problems"]:
        click.echo(f"Problem: {problem}")


def _is_absent(finding: _Finding) -> bool:
    """Returns whether a problem is worth reporting; a local server that is down is not."""
    return finding.reached == "no" and finding.credential.startswith("no ")


def _row(finding: _Finding) -> tuple[str, ...]:
    reached = finding.reached or "not tried"
    return (f"  {finding.name}", finding.credential, reached, finding.model, finding.style)


async def engine_needed() -> bool:
    """Whether the embedded model's engine must be installed before a model can be used."""
    if find_spec("xllamacpp") is not None:
        return False
    transport = HttpTransport()
    try:
        settings = config.load(os.environ, config.current_folder())
        model = await model_in_use(settings, transport, offline=False)
    finally:
        await transport.aclose()
    return model["name"].startswith("local/")


async def model_in_use(
    settings: Settings, transport: Transport, *, offline: bool
) -> dict[str, str]:
    """Returns name, reason and readiness as text."""
    choose = partial(choose_model, settings, os.environ)
    try:
        chosen = await choose_here(choose, settings, os.environ, transport, look=not offline)
    except ToolwireError as error:
        return {"name": "", "reason": str(error), "ready": "no"}
    provider, _, model = chosen.name.partition("/")
    ready = "see its provider below"
    if provider == "local" and model in MODELS:
        ready = _embedded(model, transport)
    return {"name": chosen.name, "reason": chosen.reason, "ready": ready}


def _embedded(model: str, transport: Transport) -> str:
    weights = MODELS[model]
    if find_spec("xllamacpp") is None:
        return "no: pip install 'toolwire[local]'"
    try:
        found = sizes(weights, machine())
    except ToolwireError as error:
        return f"no: {error}"
    store = WeightStore.of(state_paths(os.environ), os.environ, transport, DownloadConsent())
    file = store.named or on_disk(weights, store)
    how = f"{found.threads} threads, {found.context} tokens of context"
    if file is not None and file.is_file():
        return f"yes: {file} ({how})"
    return f"its file is downloaded once, on consent: {readable(weights.size)} ({how})"


if __name__ == "__main__":
    raise SystemExit(int(asyncio.run(engine_needed())))
