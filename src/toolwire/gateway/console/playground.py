"""What the playground needs beside the gateway's own routes: formats, tools, and programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from toolwire.errors import BadInput
from toolwire.gateway.console.calls import ApiError, ApiRoute, Call
from toolwire.gateway.console.snippets import LANGUAGES, snippet
from toolwire.messages import ToolCall
from toolwire.wire.json_access import dump, encode

if TYPE_CHECKING:
    from toolwire.app.toolbox import Toolbox
    from toolwire.gateway.console.api import Console

FORMATS = (
    ("openai-chat", "OpenAI Chat Completions", "/v1/chat/completions"),
    ("openai-responses", "OpenAI Responses", "/v1/responses"),
    ("anthropic-messages", "Anthropic Messages", "/v1/messages"),
    ("gemini", "Gemini", "/v1beta/models/{model}:streamGenerateContent?alt=sse"),
)
_STYLES = ["auto", "xml", "native", "json"]
_EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_UNFIT = frozenset({"ask_user", "todo"})
"""Tools that read nothing: they need a session."""


class FormatRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client format, and the address of its route."""

    name: str
    title: str
    path: str


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A read-only tool."""

    name: str
    description: str
    schema: dict[str, Any]


class Playground(msgspec.Struct, frozen=True, kw_only=True):
    """What a page offers."""

    formats: list[FormatRow]
    tools: list[ToolRow]
    styles: list[str]
    efforts: list[str]
    project: str


class ToolToRun(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a read-only tool."""

    name: str
    arguments: dict[str, Any] = {}


class ToolRan(msgspec.Struct, frozen=True, kw_only=True):
    """Its result."""

    content: str
    ok: bool
    seconds: float


class CodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to write as a program."""

    format: str
    language: str
    body: dict[str, Any]
    model: str = ""
    source: str = ""
    """Format of the body, which is translated; empty if it is in `format` already."""


class CodeText(msgspec.Struct, frozen=True):
    """The program."""

    text: str


async def _toolbox(console: Console) -> Toolbox:
    """The tools of the gateway's folder, in the mode that only reads."""
    from toolwire.app.toolbox import make_toolbox  # noqa: PLC0415 - loads the tools
    from toolwire.policy import Mode  # noqa: PLC0415 - loads the policy

    host = console.host
    return await make_toolbox(
        host.settings(), environ=host.environ, cwd=host.folder, mode=Mode.PLAN, headless=True
    )


async def offered(console: Console, call: Call) -> None:
    """Answers with formats, tools and styles."""
    toolbox = await _toolbox(console)
    try:
        tools = [
            ToolRow(name=one.name, description=one.description, schema=dict(one.parameters))
            for one in toolbox.registry
            if str(one.effect) == "read" and not one.server and one.name not in _UNFIT
        ]
    finally:
        await toolbox.close()
    await call.answer(
        Playground(
            formats=[FormatRow(name=n, title=t, path=p) for n, t, p in FORMATS],
            tools=tools,
            styles=_STYLES,
            efforts=_EFFORTS,
            project=str(console.host.folder),
        )
    )


async def run_tool(console: Console, call: Call) -> None:
    """Runs a read-only tool in the gateway's folder."""
    given = call.body(ToolToRun)
    toolbox = await _toolbox(console)
    try:
        tool = toolbox.registry.get(given.name)
        if tool is None or str(tool.effect) != "read" or tool.server:
            raise ApiError(400, f'"{given.name[:100]}" is not a read-only tool of toolwire')
        began = time.perf_counter()
        made = ToolCall(id="call_playground", name=given.name, arguments=dump(given.arguments))
        answers = await toolbox.scheduler().run([made])
        result = answers.results[0]
        await call.answer(
            ToolRan(
                content=result.text,
                ok=not result.is_error,
                seconds=time.perf_counter() - began,
            )
        )
    finally:
        await toolbox.close()


def _translated(body: bytes, source: str, target: str) -> bytes:
    from toolwire.codec import translate  # noqa: PLC0415 - loads the rules of every vendor

    if source not in {name for name, _, _ in FORMATS}:
        raise ApiError(400, f'source: "{source[:50]}" is not a client format')
    try:
        return translate(body, source, target).http.body
    except BadInput as error:
        raise ApiError(400, f"body: {error}") from error


async def as_code(console: Console, call: Call) -> None:
    """Answers with a program that sends a request."""
    given = call.body(CodeRequest)
    path = next((path for name, _, path in FORMATS if name == given.format), None)
    if path is None:
        raise ApiError(400, f'format: "{given.format[:50]}" is not a client format')
    if given.language not in LANGUAGES:
        raise ApiError(400, f'language: "{given.language[:50]}" is none of {", ".join(LANGUAGES)}')
    body = encode(given.body)
    if given.source and given.source != given.format:
        body = _translated(body, given.source, given.format)
    path = path.replace("{model}", given.model or "MODEL")
    text = snippet(given.language, given.format, console.host.origin, path, body)
    await call.answer(CodeText(text))


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/playground",
        does=offered,
        about="Formats, read-only tools and styles.",
        returns=Playground,
    ),
    ApiRoute(
        method="POST",
        path="/playground/tool",
        does=run_tool,
        about="Run a read-only tool in the gateway's folder.",
        takes=ToolToRun,
        returns=ToolRan,
        session=True,
    ),
    ApiRoute(
        method="POST",
        path="/playground/code",
        does=as_code,
        about="A request as curl, Python or TypeScript.",
        takes=CodeRequest,
        returns=CodeText,
    ),
)
