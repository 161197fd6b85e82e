"""JSON style: tool calls by response schema, for models without native calls."""

from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from toolwire.events import ModelEvent, Notice
from toolwire.messages import Text
from toolwire.model import Model, reading
from toolwire.prompted.json.prompt import Example, Rendering, prompt
from toolwire.prompted.json.schema import NAME_RULE, REPLY, response_schema
from toolwire.prompted.json.stream import JsonAnswer
from toolwire.request import (
    FreeformTool,
    JsonObject,
    ModelRequest,
    OutputFormat,
    ServerTool,
    ToolSpec,
)
from toolwire.wire.names import ToolNames

__all__ = ["Example", "Prepared", "prepare", "wrap"]


class Prepared(msgspec.Struct, frozen=True):
    """A request without native tools, and the reader of its answer."""

    request: ModelRequest
    names: ToolNames
    raw_reply: bool = False
    notices: tuple[Notice, ...] = ()


def wrap(
    model: Model,
    new_id: Callable[[], str],
    *,
    examples: Sequence[Example] = (),
    result_limit: int | None = None,
    instructions: str | None = None,
) -> Model:
    """The model with tools; `result_limit` caps the characters of a result, `instructions` replace
    the system prompt made from the tools.
    """

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        prepared = prepare(
            request, examples=examples, result_limit=result_limit, instructions=instructions
        )
        if prepared is None:
            async with reading(model(request)) as events:
                async for event in events:
                    yield event
            return
        answer = JsonAnswer(new_id, prepared.names, raw_reply=prepared.raw_reply)
        notices = prepared.notices
        async with reading(model(prepared.request)) as events:
            async for event in events:
                # After the first event, since before it another model may still be tried.
                for notice in notices:
                    yield notice
                notices = ()
                for read in answer.read(event):
                    yield read

    return ask


def prepare(
    request: ModelRequest,
    *,
    examples: Sequence[Example] = (),
    result_limit: int | None = None,
    instructions: str | None = None,
) -> Prepared | None:
    """The request to send; None if it has no tools and is sent unchanged."""
    past = any(message.calls or message.results for message in request.messages)
    if not request.tools and not past:
        return None
    names = ToolNames(request.tools, NAME_RULE, wrap_freeform=True)
    tools = _offered(request)
    choice = request.tool_choice
    must_call = bool(tools) and choice is not None and choice.mode == "required"
    reply = _reply_schema(request.output)
    several = request.parallel_calls is True
    wanted = response_schema(tools, names, reply=None if must_call else reply, several=several)
    rendering = Rendering(names, result_limit)
    if instructions is None:
        instructions = prompt(tools, names, reply=not must_call, several=several, examples=examples)
    sent = msgspec.structs.replace(
        request,
        messages=rendering.messages(request.messages),
        system=(*request.system, Text(instructions)),
        tools=(),
        tool_choice=None,
        parallel_calls=None,
        output=OutputFormat(kind="json_schema", schema=wanted.schema, name="answer"),
    )
    notices = [
        *(_left_out(tool) for tool in request.tools if isinstance(tool, ServerTool)),
        *(
            Notice("schema_weakened", f"{loss.path}: {loss.what}: {loss.why}")
            for loss in wanted.losses
        ),
        *rendering.notices,
    ]
    return Prepared(sent, names, reply is not REPLY, tuple(notices))


def _offered(request: ModelRequest) -> list[ToolSpec | FreeformTool]:
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    only = choice.names if choice is not None else ()
    return [
        tool
        for tool in request.tools
        if not isinstance(tool, ServerTool) and (not only or tool.name in only)
    ]


def _reply_schema(output: OutputFormat | None) -> JsonObject:
    if output is None or output.kind == "text":
        return REPLY
    return output.schema or {"type": "object"}


def _left_out(tool: ServerTool) -> Notice:
    return Notice(
        "tool_left_out",
        f'the vendor\'s own tool "{tool.kind}" cannot be offered in the json style',
    )
