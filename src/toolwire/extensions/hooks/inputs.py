"""What a hook gets on standard input: one JSON object, in the words of its program; pure."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from toolwire.agent.hooks import (
    HookedCall,
    HookedResult,
    HookEvent,
    Notification,
    PostCompact,
    PreCompact,
    SessionEnd,
    SessionStart,
    Stop,
    StopFailure,
    SubagentStart,
    SubagentStop,
    UserPromptSubmit,
)
from toolwire.extensions.hooks.definitions import MATCHED, Definition
from toolwire.extensions.hooks.vocabulary import mode_of, tool_input, tool_name, tool_response
from toolwire.messages import Text
from toolwire.request import JsonObject

_GEMINI_KINDS = {"permission_prompt": "ToolPermission"}


class AskedCall(msgspec.Struct, frozen=True):
    """A call about which the user would be asked."""

    call: HookedCall
    reason: str


Subject: TypeAlias = HookedCall | AskedCall | HookedResult | HookEvent
"""What a hook is run for."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What every input has."""

    id: str
    cwd: str
    mode: str
    transcript: str
    time: str
    """Now, for gemini-cli's hooks."""
    prompt: str = ""
    """The id of the prompt that is being worked on."""


def event_of(subject: Subject) -> str:
    """The event that a hook is run for."""
    match subject:
        case HookedCall():
            return "PreToolUse"
        case AskedCall():
            return "PermissionRequest"
        case HookedResult():
            return "PostToolUseFailure" if subject.error else "PostToolUse"
        case _:
            return type(subject).__name__


def input_of(hook: Definition, subject: Subject, session: Session) -> JsonObject:
    """The object for one hook."""
    gemini = hook.program == "gemini"
    common: JsonObject = {
        "session_id": session.id,
        "transcript_path": session.transcript,
        "cwd": session.cwd,
        **({} if gemini else {"permission_mode": mode_of(hook.program, session.mode)}),
        "hook_event_name": hook.written if gemini else hook.event,
        **({"timestamp": session.time} if gemini else {}),
        **({"prompt_id": session.prompt} if session.prompt and not gemini else {}),
    }
    return {**common, **_members(hook, subject)}


def matched_by(hook: Definition, subject: Subject) -> bool:
    """Whether the matcher of a hook accepts a subject."""
    member = MATCHED[hook.event]
    return not member or hook.matches(str(_members(hook, subject).get(member, "")))


def _members(hook: Definition, subject: Subject) -> JsonObject:
    gemini = hook.program == "gemini"
    match subject:
        case HookedCall():
            return _call(hook, subject)
        case AskedCall():
            suggestions: JsonObject = {"permission_suggestions": []}
            return {**_call(hook, subject.call), **suggestions, "message": subject.reason}
        case HookedResult():
            return _result(hook, subject)
        case SessionStart():
            return {"source": subject.source}
        case SessionEnd():
            return {"reason": subject.reason}
        case UserPromptSubmit():
            return {"prompt": subject.prompt}
        case Stop() if gemini:
            return {
                "prompt": subject.prompt,
                "prompt_response": subject.reply,
                "stop_hook_active": subject.active,
            }
        case Stop():
            return {"stop_hook_active": subject.active, "last_assistant_message": subject.reply}
        case StopFailure():
            return {"error": subject.error}
        case PreCompact():
            return {"trigger": subject.trigger, "custom_instructions": subject.words}
        case PostCompact():
            return {"trigger": subject.trigger}
        case Notification():
            kind = _GEMINI_KINDS.get(subject.type, subject.type) if gemini else subject.type
            details = (
                {} if subject.call is None or not gemini else {"details": _call(hook, subject.call)}
            )
            return {"message": subject.message, "notification_type": kind, **details}
        case SubagentStart():
            return {"agent_id": subject.agent_id, "agent_type": subject.agent_type}
        case SubagentStop():
            return {
                "agent_id": subject.agent_id,
                "agent_type": subject.agent_type,
                "stop_hook_active": subject.active,
                "last_assistant_message": subject.reply,
            }


def _call(hook: Definition, call: HookedCall) -> JsonObject:
    server: Mapping[str, object] = {}
    if call.server and hook.program == "gemini":
        server = {"mcp_context": {"server_name": call.server, "tool_name": call.name}}
    return {
        "tool_name": tool_name(hook.program, call),
        "tool_input": tool_input(hook.program, call),
        **({} if hook.program == "gemini" else {"tool_use_id": call.id}),
        **server,
    }


def _result(hook: Definition, result: HookedResult) -> JsonObject:
    output = result.output
    text = output.text or "\n".join(
        block.text for block in output.blocks if isinstance(block, Text)
    )
    spent: JsonObject = (
        {} if hook.program == "gemini" else {"duration_ms": round(result.seconds * 1000)}
    )
    if result.error and hook.program != "gemini":
        failed: JsonObject = {"error": text, "is_interrupt": False}
        return {**_call(hook, result.call), **failed, **spent}
    response = tool_response(hook.program, result.call, text, output.display, result.error)
    return {**_call(hook, result.call), "tool_response": response, **spent}
