"""Hooks run by hand, for an event that the user describes as JSON."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from toolwire.agent import hooks as events
from toolwire.agent.hooks import HookedCall, HookedResult, HookEvent
from toolwire.errors import BadInput
from toolwire.extensions.hooks.definitions import TOOL_EVENTS, Definition
from toolwire.extensions.hooks.inputs import AskedCall, Subject
from toolwire.extensions.hooks.session import HookSession, SessionHooks
from toolwire.request import JsonObject
from toolwire.tools.spec import Effect, ToolOutput

_MEMBERS = {
    "notification_type": "type",
    "stop_hook_active": "active",
    "last_assistant_message": "reply",
}
"""Members of inputs, and our names of them."""
_USUAL: JsonObject = {
    **dict.fromkeys(("prompt", "reply", "error", "message"), ""),
    **dict.fromkeys(("agent_id", "agent_type"), "test"),
    "trigger": "manual",
    "type": "permission_prompt",
}


def read_subject(event: str, given: JsonObject) -> Subject:
    """The call, result or event that the members describe."""
    if event not in TOOL_EVENTS:
        kind = cast(type[msgspec.Struct], getattr(events, event))
        named = {_MEMBERS.get(name, name): value for name, value in {**_USUAL, **given}.items()}
        known = {name: named[name] for name in kind.__struct_fields__ if name in named}
        try:
            return cast(HookEvent, msgspec.convert(known, kind))
        except msgspec.ValidationError as error:
            raise BadInput(f"{event}: {error}") from error
    arguments: Any = given.get("tool_input", {})
    if not isinstance(arguments, dict):
        raise BadInput("tool_input is not an object")
    call = HookedCall(
        id=str(given.get("tool_use_id", "test")),
        name=str(given.get("tool_name", "run_shell_command")),
        arguments=cast(JsonObject, arguments),
        effect=Effect.OTHER,
    )
    if event == "PreToolUse":
        return call
    if event == "PermissionRequest":
        return AskedCall(call, str(given.get("message", "")))
    error = str(given.get("error", "failed")) if event == "PostToolUseFailure" else ""
    output = ToolOutput(text=str(given.get("tool_response", error)))
    return HookedResult(call=call, output=output, error=error)


async def tried(hooks: Iterable[Definition], subject: object, session: HookSession) -> object:
    """What the hooks of a subject answer together, as JSON; None if nothing."""
    running = SessionHooks(hooks, session)
    try:
        match subject:
            case HookedCall():
                answer = await running.before_call(subject)
            case AskedCall():
                answer = await running.before_question(subject.call, subject.reason)
            case HookedResult():
                answer = await running.after_call(subject)
            case _:
                answer = await running.on_event(cast(HookEvent, subject))
    finally:
        await running.close()
    if answer is None:
        return None
    return {"decision": type(answer).__name__.lower(), **msgspec.to_builtins(answer)}
