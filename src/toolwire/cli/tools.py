"""`toolwire tools`: list the tools, or call one."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from toolwire import config
from toolwire.agent.events import AgentEvent, ToolFinished, ToolOutputText
from toolwire.agent.questions import Approver, Choice, Confirmation, UserAnswer
from toolwire.app.servers import ServerChoice
from toolwire.app.toolbox import Toolbox, open_toolbox
from toolwire.cli.chat_input import remembered, shown
from toolwire.cli.session_options import SANDBOX
from toolwire.cli.terminal import YES, ask_line, can_ask, echo_table, fail
from toolwire.config import Settings
from toolwire.errors import ToolwireError, UnknownName
from toolwire.ids import new_id
from toolwire.messages import Message, Text, ToolCall
from toolwire.request import JsonObject, ModelRequest
from toolwire.terminal_text import one_line
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect
from toolwire.wire.json_access import dump, parse, parse_object

_CHOICES = {**dict.fromkeys(YES, Choice.ONCE), "a": Choice.ALWAYS, "n": Choice.CANCEL}
_ADVICE = "There is no one to approve it here; use a terminal, or approve it with --yes."


@click.group("tools")
def tools_command() -> None:
    """List the tools, or call one as the agent would."""


@tools_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_tools(as_json: bool) -> None:
    """List the tools offered to the model in this folder."""
    try:
        cwd = Path.cwd()
        settings = _settings(cwd)
        found = asyncio.run(_offered(settings, cwd))
    except ToolwireError as error:
        fail(error)
        return
    if as_json:
        click.echo(dump([_described(found, name) for name in found.names]))
        return
    rows = ((one.name, one.effect, _first_sentence(one.description)) for one in found)
    echo_table(("TOOL", "EFFECT", "WHAT IT DOES"), rows)


async def _offered(settings: Settings, cwd: Path) -> Registry:
    async with open_toolbox(
        settings, environ=os.environ, cwd=cwd, notice=_notice, servers=ServerChoice()
    ) as toolbox:
        _note_servers(toolbox)
        return toolbox.registry


def _note_servers(toolbox: Toolbox) -> None:
    for words in () if toolbox.servers is None else toolbox.servers.notices():
        _notice(words)


@tools_command.command("call")
@click.argument("name")
@click.argument("arguments", metavar="JSON")
@click.option(
    "--cwd",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Work in this folder instead of the current one.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, with the parts as sent to the model."
)
@click.option("--yes", is_flag=True, help="Approve the call without asking.")
@SANDBOX
def call_tool(
    name: str, arguments: str, folder: Path | None, as_json: bool, yes: bool, sandbox: str | None
) -> None:
    """Call one tool with a JSON object of arguments, as the agent would.

    A call that needs approval is confirmed on a terminal, or approved with --yes.
    """
    cwd = (folder or Path.cwd()).resolve()
    try:
        parse_object(arguments, "JSON")
        settings = _settings(cwd, sandbox)
        finished, answers = asyncio.run(_called(name, arguments, cwd, settings, as_json, yes))
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
        return
    if as_json:
        error = {"type": finished.error_type, "message": finished.result.text}
        parts = _gemini_parts(name, arguments, finished, answers)
        printed = {"parts": parts, "display": finished.display}
        click.echo(dump({**printed, "error": None if finished.success else error}))
    elif finished.success:
        for part in (*finished.result.parts, *answers.parts[1:]):
            click.echo(part.text if isinstance(part, Text) else f"[{type(part).__name__.lower()}]")
    else:
        click.echo(finished.result.text, err=True)
    if not finished.success:
        raise SystemExit(1)


async def _called(
    name: str, arguments: str, cwd: Path, settings: Settings, quiet: bool, yes: bool
) -> tuple[ToolFinished, Message]:
    ended: list[ToolFinished] = []

    async def keep(event: AgentEvent) -> None:
        if isinstance(event, ToolFinished):
            ended.append(event)
        elif isinstance(event, ToolOutputText) and not quiet:
            click.echo(event.text, err=True)

    approver = _approver(yes)
    call = ToolCall(id=new_id(), name=name, arguments=arguments, made_id=True)
    async with AsyncExitStack() as opened:
        toolbox = await opened.enter_async_context(
            open_toolbox(
                settings,
                environ=os.environ,
                cwd=cwd,
                headless=approver is None,
                notice=_notice,
                servers=ServerChoice(),
                advice=_ADVICE,
            )
        )
        _note_servers(toolbox)
        tool = toolbox.registry.get(name)
        if tool is not None and tool.effect is Effect.NETWORK and settings.default_model:
            toolbox = await _with_model(toolbox, settings, opened)
        answers = await toolbox.scheduler(approver, emit=keep).run([call])
    return ended[0], answers


async def _with_model(toolbox: Toolbox, settings: Settings, opened: AsyncExitStack) -> Toolbox:
    """Returns the toolbox with the default model for side questions."""
    from toolwire.app import open_model
    from toolwire.client.http.transport import HttpTransport

    transport = HttpTransport()
    opened.push_async_callback(transport.aclose)
    model = await open_model(
        settings.default_model, settings=settings, environ=os.environ, transport=transport
    )
    # Also a tool that this model cannot serve: its own error says what it needs.
    context = msgspec.structs.replace(
        toolbox.context, model=model.ask, model_dialect=model.provider.dialect
    )
    return msgspec.structs.replace(toolbox, context=context)


def _notice(text: str) -> None:
    click.echo(text, err=True)


def _settings(cwd: Path, sandbox: str | None = None) -> Settings:
    return config.load(os.environ, cwd, flags={"tools.sandbox": sandbox})


def _described(found: Registry, name: str) -> JsonObject:
    tool = found.need(name)
    return {
        "name": tool.name,
        "description": tool.description,
        "effect": tool.effect,
        "aliases": list(tool.aliases),
        "parameters": tool.parameters,
        "server": tool.server,
    }


def _first_sentence(text: str) -> str:
    line = text.strip().partition("\n")[0]
    sentence, stop, _ = line.partition(". ")
    return sentence + stop.strip()


def _approver(yes: bool) -> Approver | None:
    """Returns the approver: --yes, the user at the terminal, or none."""

    async def agree(question: Confirmation) -> UserAnswer:
        del question
        return UserAnswer(choice=Choice.ONCE)

    async def ask(question: Confirmation) -> UserAnswer:
        click.echo(f"{shown(question)}\n{remembered(question)}", err=True, nl=False)
        longer = ", a: always in this project" if question.remembers else ""
        words = f"{one_line(question.title)}: run it? (y: yes{longer}, n: no) [n]:"
        typed = await asyncio.to_thread(ask_line, words)
        return UserAnswer(choice=_CHOICES.get((typed or "n").lower(), Choice.CANCEL))

    if yes:
        return agree
    return ask if can_ask() else None


def _gemini_parts(name: str, arguments: str, finished: ToolFinished, answers: Message) -> list[Any]:
    """Returns the parts that answer this call, as sent to Gemini."""
    from toolwire import dialects

    call = ToolCall(id=finished.call_id, name=name, arguments=arguments, made_id=True)
    messages = (
        Message(role="user", parts=(Text(name),)),
        Message(role="assistant", parts=(call,)),
        answers,
    )
    encoded = dialects.get("gemini").encode_request(ModelRequest(model="", messages=messages))
    return parse(encoded.http.body, "request")["contents"][-1]["parts"]
