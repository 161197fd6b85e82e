"""The subagents that a session could offer: found, listed, and approved by the user."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.config import Settings
from toolwire.extensions.agents.builtin import BUILT_IN, EXPLORE, AgentDefinition
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import approval_store
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool

if TYPE_CHECKING:
    from toolwire.extensions.agents.definitions import AgentSource, FoundAgents

RUN_AGENT = "run_agent"
_READING = (Effect.READ, Effect.NETWORK)
_PROJECT_FOLDERS = (".toolwire/agents", ".claude/agents", ".gemini/agents", ".opencode/agent")


class AgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One subagent in a list."""

    name: str
    description: str
    origin: str
    tools: tuple[str, ...]
    """Patterns of its tools; empty for all."""
    model: str = ""
    file: str = ""
    approved: bool = True
    skipped_because: str = ""


def find_agents(
    settings: Settings, environ: Mapping[str, str], cwd: Path
) -> tuple[dict[str, AgentDefinition], tuple[str, ...]]:
    """Every definition by name, and a line about each file that is none; files come first."""
    found = _from_files(settings, environ, cwd)
    known = {**{one.name: one for one in BUILT_IN}, **({} if found is None else found.agents)}
    if settings.agents.explore_model and known["explore"] is EXPLORE:
        model = settings.agents.explore_model
        known["explore"] = msgspec.structs.replace(EXPLORE, model=model)
    return known, () if found is None else found.problems


def _from_files(settings: Settings, environ: Mapping[str, str], cwd: Path) -> "FoundAgents | None":
    home = Path(environ.get("HOME") or Path.home())
    folders = (
        *(cwd / name for name in _PROJECT_FOLDERS),
        state_paths(environ).config / "agents",
        *(home / name / "agents" for name in (".claude", ".gemini")),
        Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode" / "agent",
    )
    if not any(folder.is_dir() for folder in folders):
        return None
    from toolwire.extensions.agents.definitions import (  # noqa: PLC0415 - only with files
        agent_sources,
        read_agents,
    )

    sources: tuple[AgentSource, ...]
    sources = agent_sources(environ, cwd, trusted=settings.trusted is True)
    return read_agents(sources)


def needs_approval(one: AgentDefinition, registry: Registry) -> bool:
    """Whether a definition of the project has tools that do more than read."""
    if not one.project:
        return False
    return any(tool.effect not in _READING for tool in tools_of(one, registry))


def approval_key(one: AgentDefinition) -> str:
    """The name of the user's answer about a definition."""
    return f"agent:{one.name}"


def agent_rows(
    settings: Settings, environ: Mapping[str, str], cwd: Path, registry: Registry
) -> list[AgentRow]:
    """Every subagent as it is listed, those that are not offered with the reason."""
    known, _ = find_agents(settings, environ, cwd)
    rows: list[AgentRow] = []
    for one in known.values():
        approved = is_approved(one, environ, cwd, registry)
        why = "" if approved else "it waits for approval: toolwire approve"
        why = "excluded by agents.exclude" if one.name in settings.agents.exclude else why
        rows.append(
            AgentRow(
                name=one.name,
                description=one.description,
                origin=one.origin,
                tools=one.tools,
                model=one.model,
                file=str(one.file or ""),
                approved=approved,
                skipped_because=why,
            )
        )
    return rows


def is_approved(
    one: AgentDefinition, environ: Mapping[str, str], cwd: Path, registry: Registry
) -> bool:
    """Whether a definition needs no approval, or the user approved it as it is."""
    if not needs_approval(one, registry):
        return True
    answers = approval_store(state_paths(environ).config)
    return answers.answer(cwd, approval_key(one), one.digest) is True


def tools_of(one: AgentDefinition, registry: Registry) -> list[Tool]:
    """The tools of a session that a subagent gets; none that runs agents."""

    def named(tool: Tool, patterns: Sequence[str]) -> bool:
        names = (tool.name, *tool.aliases)
        return any(
            fnmatchcase(name, pattern) or name.startswith(f"{pattern}__")
            for pattern in patterns
            for name in names
        )

    return [
        tool
        for tool in registry
        if not tool.delegates
        and (not one.reads or tool.effect in _READING)
        and (not one.tools or named(tool, one.tools))
        and not named(tool, one.without)
    ]


def untrusted(settings: Settings, cwd: Path) -> tuple[str, ...]:
    """A line about definitions that are not read, unless the user refused to trust the folder."""
    if settings.trusted is not None:
        return ()
    found = [name for name in _PROJECT_FOLDERS if any((cwd / name).glob("*.md"))]
    if not found:
        return ()
    words = f"the subagents of {', '.join(found)} are not used because this folder is not trusted"
    return (f'{words}; run "toolwire config trust"',)
