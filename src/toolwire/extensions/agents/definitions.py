"""Definitions of subagents from Markdown files: ours, Claude Code's, gemini-cli's, opencode's."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from toolwire.extensions.agents.builtin import MOST_SECONDS, MOST_TURNS, AgentDefinition, Names
from toolwire.extensions.front_matter import Value, split_front, text_of
from toolwire.extensions.hooks.vocabulary import our_tool
from toolwire.storage.paths import state_paths

_LARGEST = 1 << 20
_MOST_FILES = 200
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_OPENCODE = {
    "bash": "run_shell_command",
    "read": "read_file",
    "write": "write_file",
    "edit": "replace",
    "patch": "apply_patch",
    "grep": "search_file_content",
    "glob": "glob",
    "list": "list_directory",
    "webfetch": "web_fetch",
    "todowrite": "todo",
}
_OPENCODE_PERMISSIONS = {
    "edit": ("replace", "write_file", "apply_patch"),
    "bash": ("run_shell_command",),
    "webfetch": ("web_fetch",),
}
"""Tools that an agent of opencode is denied."""
_FALSE = ("false", "no", "off")


class AgentSource(msgspec.Struct, frozen=True):
    """A folder with definitions, and the program that they are written for."""

    program: str
    folder: Path
    project: bool = False


class FoundAgents(msgspec.Struct, frozen=True):
    """Definitions by name, and a line about each file that is none."""

    agents: dict[str, AgentDefinition]
    problems: tuple[str, ...]


def agent_sources(
    environ: Mapping[str, str], cwd: Path, *, trusted: bool
) -> tuple[AgentSource, ...]:
    """Where definitions are read, highest precedence first; a project's only if it is trusted."""
    home = Path(environ.get("HOME") or Path.home())
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    project = (
        AgentSource("toolwire", cwd / ".toolwire" / "agents", True),
        AgentSource("claude", cwd / ".claude" / "agents", True),
        AgentSource("gemini", cwd / ".gemini" / "agents", True),
        AgentSource("opencode", cwd / ".opencode" / "agent", True),
    )
    user = (
        AgentSource("toolwire", state_paths(environ).config / "agents"),
        AgentSource("claude", home / ".claude" / "agents"),
        AgentSource("gemini", home / ".gemini" / "agents"),
        AgentSource("opencode", config / "opencode" / "agent"),
    )
    return (*(project if trusted else ()), *user)


def read_agents(sources: Iterable[AgentSource]) -> FoundAgents:
    """The definitions of all files; the first of a name counts."""
    agents: dict[str, AgentDefinition] = {}
    problems: list[str] = []
    for source in sources:
        for file in _files(source.folder):
            try:
                found = _read(source, file)
            except (OSError, ValueError) as error:
                problems.append(f"{file} does not define a subagent: {error}")
                continue
            if found is None:
                continue
            if found.name in agents:
                first = agents[found.name].file
                problems.append(f"{file} is not used: {first} defines {found.name} too")
            else:
                agents[found.name] = found
    return FoundAgents(agents, tuple(problems))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.glob("*.md") if one.is_file())[:_MOST_FILES]
    except OSError:
        return []


def _read(source: AgentSource, file: Path) -> AgentDefinition | None:
    """The definition of a file; None for an agent of opencode that is not a subagent."""
    data = file.read_bytes()
    if len(data) > _LARGEST:
        raise ValueError("it has more than 1 MB")
    members, prompt = split_front(data.decode("utf-8"))
    if members is None:
        raise ValueError("it has no front matter with a description")
    if source.program == "opencode" and text_of(members, "mode") == "primary":
        return None
    name = text_of(members, "name") or file.stem
    if not _NAME.fullmatch(name):
        raise ValueError(f'its name "{name[:60]}" has other characters than letters, digits, . _ -')
    if not prompt.strip():
        raise ValueError("it has no prompt below the front matter")
    allowed, without = _tools(source.program, members)
    minutes = _number(members, "timeout_mins")
    return AgentDefinition(
        name=name,
        description=text_of(members, "description"),
        prompt=prompt.strip(),
        tools=allowed,
        without=without,
        reads=text_of(members, "permissionMode") == "plan",
        model=_model(text_of(members, "model")),
        turns=int(_number(members, "max_turns") or _number(members, "maxTurns") or MOST_TURNS),
        seconds=_number(members, "seconds") or minutes * 60 or MOST_SECONDS,
        temperature=_number(members, "temperature") if "temperature" in members else None,
        origin=source.program if source.program != "toolwire" else _whose(source),
        file=file,
        project=source.project,
        digest=hashlib.sha256(data).hexdigest(),
    )


def _whose(source: AgentSource) -> str:
    return "project" if source.project else "user"


def _tools(program: str, members: Mapping[str, Value]) -> tuple[Names, Names]:
    """The tools that it gets and does not get, by our names."""
    given = members.get("tools", "")
    denied = _denied(members.get("permission", "")) if program == "opencode" else ()
    if isinstance(given, dict):
        off = [name for name, value in given.items() if value.lower() in _FALSE]
        return (), (*(_OPENCODE.get(name, name) for name in off), *denied)
    listed = _listed(given)
    if "tools" in members and not listed and program in ("claude", "toolwire", "gemini"):
        raise ValueError("its list of tools is empty; omit `tools` for all")
    off = _listed(members.get("disallowedTools", ""))
    ours = tuple(_ours(program, name) for name in listed)
    return ours, (*(_ours(program, name) for name in off), *denied)


def _denied(permission: Value) -> Names:
    """The tools that opencode's `permission` denies; all of them if it is that word alone."""
    every = dict.fromkeys(_OPENCODE_PERMISSIONS, permission)
    table = permission if isinstance(permission, dict) else every
    return tuple(
        tool
        for name, tools in _OPENCODE_PERMISSIONS.items()
        for tool in tools
        if table.get(name) == "deny"
    )


def _listed(value: Value) -> list[str]:
    names = value if isinstance(value, list) else value.split(",") if isinstance(value, str) else []
    # `Bash(git *)` names a tool and a restriction: the policy rules on what it may run.
    return [name.partition("(")[0].strip() for name in names if name.strip()]


def _ours(program: str, name: str) -> str:
    if program == "opencode":
        return _OPENCODE.get(name, name)
    if program in ("claude", "gemini"):
        return our_tool(program, name)
    return name


def _number(members: Mapping[str, Value], name: str) -> float:
    text = text_of(members, name)
    if not text:
        return 0.0
    try:
        found = float(text)
    except ValueError as error:
        raise ValueError(f"{name} is not a number: {text[:40]}") from error
    if found < 0:
        raise ValueError(f"{name} is negative")
    return found


def _model(name: str) -> str:
    """A model that we can open; other programs' short names mean the session's model."""
    return name if "/" in name else ""
