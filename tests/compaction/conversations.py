"""Sessions of many turns with tools, as the turn builds them."""

from collections.abc import Iterator

import msgspec

from toolwire.messages import Message, Text, ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec

SYSTEM = "You are a coding agent. " * 200
TOOLS = tuple(
    ToolSpec(name=name, description="Does its work. " * 20, parameters={"type": "object"})
    for name in ("read_file", "replace", "run_shell_command")
)


def begun() -> ModelRequest:
    """The first request."""
    return ModelRequest(
        model="m",
        system=(Text(SYSTEM),),
        tools=TOOLS,
        messages=(
            Message(role="user", parts=(Text("where I work"),)),
            Message(role="assistant", parts=(Text("Got it. Thanks for the context!"),)),
            Message(role="user", parts=(Text("do it"),)),
        ),
    )


def said(request: ModelRequest, *messages: Message) -> ModelRequest:
    return msgspec.structs.replace(request, messages=(*request.messages, *messages))


def called(at: int) -> tuple[Message, Message]:
    """One call and its answer."""
    call = ToolCall(id=f"toolu_{at}", name="read_file", arguments=f'{{"absolute_path":"/p/{at}"}}')
    answer = ToolResult(call_id=call.id, name=call.name, parts=(Text(f"line {at}\n" * 30),))
    return (
        Message(role="assistant", parts=(Text(f"step {at}"), call)),
        Message(role="user", parts=(answer,)),
    )


def session(turns: int) -> Iterator[ModelRequest]:
    """Every request of a session; each tenth turn the user says something new."""
    request = begun()
    yield request
    for at in range(1, turns):
        request = said(request, *called(at))
        if at % 10 == 0:
            request = said(
                request,
                Message(role="assistant", parts=(Text("done"),)),
                Message(role="user", parts=(Text(f"and now {at}"),)),
            )
        yield request
