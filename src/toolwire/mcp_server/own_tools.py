"""Our tools as a catalogue: each call through the policy and the scheduler."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from toolwire.agent.events import AgentEvent, Emit, ToolFinished, ToolOutputText
from toolwire.agent.questions import (
    Approver,
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    UserAnswer,
)
from toolwire.app.toolbox import Toolbox
from toolwire.errors import UnknownName
from toolwire.ids import new_id
from toolwire.mcp.lists import members
from toolwire.mcp_server.catalogue import Catalogue, OfferedTool
from toolwire.mcp_server.exchange import ELICITATION, ServedRequest
from toolwire.messages import Media, MediaKind, Text, ToolCall
from toolwire.request import JsonObject
from toolwire.terminal_text import terminal_text
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Run, Tool, ToolContext, ToolOutput
from toolwire.wire.json_access import dump

ALL = "all"
_ASKS_THE_USER = "ask_user"
_NOT_READING = (_ASKS_THE_USER, "todo", "background")
"""Tools without effect on files that are of use only inside a session."""
_MOST_SHOWN = 4000
"""Characters of a diff or a command in a question."""
_MOST_PROGRESS = 2000
_NOT_ASKED = (
    "This client cannot ask its user (it declares no elicitation). Start the server with another "
    "--approval-mode, or allow the tool in the settings (tools.allowed) or in the rule file."
)


def chosen(registry: Registry, names: Sequence[str]) -> Registry:
    """The tools of a list; without one those that only read, `all` for every tool."""
    if not names:
        reading = (one for one in registry if one.effect is Effect.READ)
        return Registry(reading).without(_NOT_READING)
    if ALL in names:
        return registry.without((_ASKS_THE_USER,))
    found: dict[str, Tool] = {}
    for name in names:
        tool = registry.get(name)
        if tool is None:
            raise UnknownName("tool", name, (*registry.names, ALL))
        found[tool.name] = tool
    return Registry(found.values())


class _Turns:
    """Lets calls that only read run side by side, and every other one alone, in turn."""

    def __init__(self) -> None:
        self._readers = 0
        """Calls that run; -1 for one that runs alone."""
        self._next = asyncio.Lock()
        """Held by the call that waits to run alone: later ones wait behind it."""
        self._free = asyncio.Condition()

    @asynccontextmanager
    async def turn(self, *, alone: bool) -> AsyncGenerator[None]:
        """Waits for the turn of a call."""
        async with self._next, self._free:
            await self._free.wait_for(lambda: self._readers == 0 if alone else self._readers >= 0)
            self._readers += -1 if alone else 1
        try:
            yield
        finally:
            await asyncio.shield(self._leave(alone=alone))

    async def _leave(self, *, alone: bool) -> None:
        async with self._free:
            self._readers -= -1 if alone else 1
            self._free.notify_all()


class OwnTools:
    """Calls of a client, each with a scheduler of its own on one toolbox."""

    def __init__(self, toolbox: Toolbox, names: Sequence[str] = ()) -> None:
        turns = _Turns()
        offered = chosen(toolbox.registry, names)
        taking_turns = (
            msgspec.structs.replace(tool, run=_in_turn(tool.run, tool.effect, turns))
            for tool in offered
        )
        self._toolbox = msgspec.structs.replace(toolbox, registry=Registry(taking_turns))

    def offer(self, catalogue: Catalogue) -> None:
        """Adds them to a catalogue."""
        for tool in self._toolbox.registry:
            catalogue.add(
                OfferedTool(
                    name=tool.name,
                    title=tool.title,
                    description=tool.description,
                    parameters=tool.parameters,
                    hints=_hints(tool.effect),
                    run=partial(self._call, tool),
                )
            )

    async def _call(self, tool: Tool, arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
        ended: list[ToolFinished] = []

        async def take(event: AgentEvent) -> None:
            match event:
                case ToolFinished():
                    ended.append(event)
                case ToolOutputText():
                    await exchange.progress(message=event.text[-_MOST_PROGRESS:])
                case _:
                    pass

        call = ToolCall(id=new_id(), name=tool.name, arguments=dump(arguments), made_id=True)
        await self._run(call, exchange, take)
        [finished] = ended
        parts = [*finished.result.parts, *finished.beside]
        if finished.error_type == "needs_approval":
            parts.append(Text(_NOT_ASKED))
        return {
            "content": [_block(part) for part in parts if isinstance(part, Text | Media)],
            "isError": not finished.success,
        }

    async def _run(self, call: ToolCall, exchange: ServedRequest, emit: Emit) -> None:
        toolbox = self._toolbox
        if exchange.can(ELICITATION):
            context = msgspec.structs.replace(toolbox.context, ask=partial(_ask, exchange))
            toolbox = msgspec.structs.replace(toolbox, context=context)
        await toolbox.scheduler(approver(exchange), emit=emit).run((call,))


def _in_turn(run: Run, effect: Effect, turns: _Turns) -> Run:
    async def waiting(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        async with turns.turn(alone=effect not in (Effect.READ, Effect.NETWORK)):
            return await run(arguments, context)

    return waiting


def _hints(effect: Effect) -> JsonObject:
    reads = effect in (Effect.READ, Effect.NETWORK)
    return {
        "readOnlyHint": reads,
        "destructiveHint": not reads,
        "openWorldHint": effect not in (Effect.READ, Effect.WRITE),
    }


def _block(part: Text | Media) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.kind in (MediaKind.IMAGE, MediaKind.AUDIO) and part.base64:
        return {"type": str(part.kind), "data": part.base64, "mimeType": part.mime}
    if part.base64:
        uri = f"toolwire:{part.name or part.kind}"
        resource = {"uri": uri, "mimeType": part.mime, "blob": part.base64}
        return {"type": "resource", "resource": resource}
    return {"type": "text", "text": f"[{part.kind}: {part.url or part.name}]"}


def approver(exchange: ServedRequest) -> Approver | None:
    """Asks the client's user; None for a client that cannot."""
    if not exchange.can(ELICITATION):
        return None

    async def ask(question: Confirmation) -> UserAnswer:
        answer = await exchange.ask(ELICITATION, _form(_words(question), _CHOICES), "approval")
        content = members(answer.get("content"))
        yes = answer.get("action") == "accept" and content.get("answer") == Choice.ONCE
        return UserAnswer(choice=Choice.ONCE if yes else Choice.CANCEL)

    return ask


_CHOICES: JsonObject = {
    "type": "string",
    "title": "Run it?",
    "description": "once: run this one call. no: do not run it.",
    "enum": ["once", "no"],
}


async def _ask(exchange: ServedRequest, question: str, choices: tuple[str, ...]) -> str:
    """The user's answer to a tool's own question; empty if there is none."""
    field: JsonObject = {"type": "string", "title": "Answer"}
    if choices:
        field["enum"] = list(choices)
    answer = await exchange.ask(ELICITATION, _form(terminal_text(question), field), "question")
    found = members(answer.get("content")).get("answer")
    return found if answer.get("action") == "accept" and isinstance(found, str) else ""


def _form(message: str, answer: JsonObject) -> JsonObject:
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def _words(question: Confirmation) -> str:
    """The question as text, everything that is not plain made visible."""
    match question.details:
        case EditDetails() as edit:
            files = ", ".join(str(path) for path in edit.paths)
            what = f"{files}\n{edit.diff}"
        case ExecDetails() as command:
            place = f"\nin {command.directory}" if command.directory else ""
            what = f"{command.command}{place}"
        case _:
            what = question.call.arguments
    if len(what) > _MOST_SHOWN:
        what = f"{what[:_MOST_SHOWN]}\n… ({len(what) - _MOST_SHOWN:,} more characters)"
    return terminal_text(f"{question.title}: {question.reason}\n{what}".strip())
