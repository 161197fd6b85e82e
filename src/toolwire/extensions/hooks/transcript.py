"""The conversation as JSON lines for hooks, one message each, with Claude Code's members."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from toolwire.agent.hooks import HookedCall
from toolwire.extensions.hooks.definitions import Definition, named_files
from toolwire.extensions.hooks.vocabulary import tool_input, tool_name
from toolwire.messages import Message, Part, Refusal, Text, Thinking, ToolCall, ToolResult
from toolwire.request import JsonObject
from toolwire.storage.private_files import write_private
from toolwire.tools.spec import Effect
from toolwire.wire.json_access import dump
from toolwire.wire.repair import parse_arguments

_ALWAYS = ("Stop", "SubagentStop", "SessionEnd", "PreCompact")
"""Events whose hooks usually read the whole conversation."""
_LARGEST = 1 << 20
_WORD = "transcript"


def reads_transcript(hook: Definition, cwd: Path) -> bool:
    """Whether a hook may read the transcript: it says so, or its text or script names it."""
    if hook.transcript or hook.event in _ALWAYS or _WORD in hook.command:
        return True
    for file in named_files(hook, cwd):
        try:
            with file.open("rb") as stream:
                if _WORD.encode() in stream.read(_LARGEST):
                    return True
        except OSError:
            continue
    return False


def write_transcript(file: Path, messages: Iterable[Message], common: Mapping[str, str]) -> None:
    """Writes the conversation so far; only its owner can read it."""
    lines = "".join(f"{dump(_line(message, common))}\n" for message in messages)
    write_private(file, lines.encode("utf-8", "replace"))


def _line(message: Message, common: Mapping[str, str]) -> JsonObject:
    parts = [block for part in message.parts if (block := _block(part)) is not None]
    only = message.parts[0] if len(message.parts) == 1 else None
    content = only.text if isinstance(only, Text) and message.role == "user" else parts
    return {
        "type": message.role,
        "message": {"role": message.role, "content": content},
        **common,
    }


def _block(part: Part) -> JsonObject | None:
    match part:
        case Text() | Refusal():
            return {"type": "text", "text": part.text}
        case Thinking():
            return {"type": "thinking", "thinking": part.text}
        case ToolCall():
            arguments = parse_arguments(part.arguments).value or {}
            call = HookedCall(id=part.id, name=part.name, arguments=arguments, effect=Effect.OTHER)
            return {
                "type": "tool_use",
                "id": part.id,
                "name": tool_name("claude", call),
                "input": tool_input("claude", call),
            }
        case ToolResult():
            return {
                "type": "tool_result",
                "tool_use_id": part.call_id,
                "content": part.text,
                **({"is_error": True} if part.is_error else {}),
            }
        case _:
            return None
