"""Tool names, inputs and texts as the program of a hook's definition knows them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from toolwire.agent.hooks import HookedCall
from toolwire.extensions.hooks.definitions import Definition, Program
from toolwire.mcp.names import aliases
from toolwire.request import JsonObject

Members: TypeAlias = Mapping[str, str]
"""Our names of arguments and theirs."""
_STATUS = {"done": "completed"}


class ToolWords(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of ours as another program knows it."""

    name: str
    members: Members = {}
    out: Callable[[JsonObject], JsonObject] | None = None
    """The input, where other names of members are not enough."""
    back: Callable[[JsonObject], JsonObject] | None = None


def _steps_out(member: str, text: str) -> Callable[[JsonObject], JsonObject]:
    def out(given: JsonObject) -> JsonObject:
        items = cast(list[JsonObject], given.get("items", []))
        steps = [
            {
                text: one.get("text", ""),
                "status": _STATUS.get(str(one.get("status")), one["status"]),
            }
            for one in items
        ]
        return {member: steps}

    return out


def _steps_back(member: str, text: str) -> Callable[[JsonObject], JsonObject]:
    ours = {theirs: our for our, theirs in _STATUS.items()}

    def back(given: JsonObject) -> JsonObject:
        steps = cast(list[JsonObject], given.get(member, []))
        return {
            "items": [
                {"text": one.get(text, ""), "status": ours.get(str(one["status"]), one["status"])}
                for one in steps
            ]
        }

    return back


def _address_out(given: JsonObject) -> JsonObject:
    prompt = str(given.get("prompt", ""))
    urls = [word for word in prompt.split() if word.startswith(("http://", "https://"))]
    return {"url": urls[0] if urls else "", "prompt": prompt}


def _address_back(given: JsonObject) -> JsonObject:
    prompt, url = str(given.get("prompt", "")), str(given.get("url", ""))
    return {"prompt": prompt if url in prompt else f"{url} {prompt}".strip()}


_CLAUDE: Mapping[str, ToolWords] = {
    "run_shell_command": ToolWords(name="Bash"),
    "read_file": ToolWords(name="Read", members={"absolute_path": "file_path"}),
    "write_file": ToolWords(name="Write"),
    "replace": ToolWords(name="Edit"),
    "glob": ToolWords(name="Glob"),
    "search_file_content": ToolWords(name="Grep", members={"include": "glob"}),
    "list_directory": ToolWords(name="LS"),
    "web_fetch": ToolWords(name="WebFetch", out=_address_out, back=_address_back),
    "google_web_search": ToolWords(name="WebSearch"),
    "todo": ToolWords(
        name="TodoWrite", out=_steps_out("todos", "content"), back=_steps_back("todos", "content")
    ),
}
_GEMINI: Mapping[str, ToolWords] = {
    "read_file": ToolWords(name="read_file", members={"absolute_path": "file_path"}),
    "search_file_content": ToolWords(name="grep_search"),
    "todo": ToolWords(
        name="write_todos",
        out=_steps_out("todos", "description"),
        back=_steps_back("todos", "description"),
    ),
}
_WORDS: Mapping[str, Mapping[str, ToolWords]] = {
    "toolwire": {},
    "claude": _CLAUDE,
    "gemini": _GEMINI,
}
OUR_NAMES = {words.name: name for name, words in _CLAUDE.items()}
"""Claude Code's names of tools, and ours."""
_MODES: Mapping[str, Mapping[str, str]] = {
    "claude": {"auto_edit": "acceptEdits", "yolo": "bypassPermissions"},
}


def mode_of(program: Program, mode: str) -> str:
    """The approval mode in the program's word."""
    return _MODES.get(program, {}).get(mode, mode)


def tool_name(program: Program, call: HookedCall) -> str:
    """The tool as the program names it."""
    if call.server and program != "toolwire":
        tool = call.name
        for start in (f"{call.server}__", f"mcp__{call.server}__", f"mcp_{call.server}_"):
            tool = tool.removeprefix(start)
        _, claude, gemini = aliases(call.server, tool)
        return claude if program == "claude" else gemini
    known = _WORDS[program].get(call.name)
    return call.name if known is None else known.name


def tool_input(program: Program, call: HookedCall) -> JsonObject:
    """The arguments as the program names them."""
    known = None if call.server else _WORDS[program].get(call.name)
    if known is None:
        return call.arguments
    if known.out is not None:
        return known.out(call.arguments)
    return {known.members.get(name, name): value for name, value in call.arguments.items()}


def our_input(
    program: Program, call: HookedCall, changed: JsonObject, *, merged: bool
) -> JsonObject:
    """Our arguments after a change by a hook; those that it cannot name stay.

    `merged`: what the change does not name stays too.
    """
    given = {**tool_input(program, call), **changed} if merged else changed
    known = None if call.server else _WORDS[program].get(call.name)
    if known is None:
        return given
    if known.back is not None:
        return {**call.arguments, **known.back(given)}
    ours = {theirs: our for our, theirs in known.members.items()}
    kept = {name: value for name, value in call.arguments.items() if name in _UNNAMED}
    return {**kept, **{ours.get(name, name): value for name, value in given.items()}}


_UNNAMED = ("instruction", "directory", "expected_replacements")
"""Arguments that other programs' tools do not have."""


def tool_response(program: Program, call: HookedCall, text: str, display: str, error: str) -> Any:
    """The result as the program's hooks get it."""
    if program == "gemini":
        failure = {"error": {"message": text, "type": error}} if error else {}
        return {"llmContent": text, "returnDisplay": display or text, **failure}
    if program == "claude":
        match tool_name(program, call):
            case "Bash":
                return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
            case "Write" | "Edit":
                return {"filePath": call.arguments.get("file_path", ""), "success": True}
            case _:
                return {"content": text}
    return {"text": text, **({"display": display} if display else {})}


def refused_text(hook: Definition, call: HookedCall, reason: str, *, by_code: bool) -> str:
    """What the model gets in place of a call's result."""
    if hook.program == "gemini":
        return f"Tool execution blocked: {reason}"
    ran = f"[{hook.command}]: " if by_code and hook.program == "claude" else ""
    return f"PreToolUse:{tool_name(hook.program, call)} hook error: {ran}{reason}"


def blocked_text(hook: Definition, call: HookedCall, reason: str) -> str:
    """What the model gets behind a result that a hook objects to."""
    named = f'"{hook.shown}"'
    tool = tool_name(hook.program, call)
    return f"PostToolUse:{tool} hook blocking error from command: {named}: {reason}"


MODIFIED = "[System] Tool input parameters were modified by a hook before execution."
"""gemini-cli's words behind the result of a call with other arguments."""


def hook_context(texts: list[str]) -> str:
    """Context of hooks as the model gets it."""
    return "".join(f"\n\n<hook_context>{text}</hook_context>" for text in texts if text)


def our_tool(program: str, name: str) -> str:
    """Our name of a tool that the program names; a name that it does not know stays."""
    ours = {words.name: our for our, words in _WORDS.get(program, {}).items()}
    return ours.get(name, name)
