"""Builds a session's toolbox from the settings: tools, policy, context and scheduler."""

import hashlib
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolwire.agent.audit_log import Audit, AuditFile, AuditRecord
from toolwire.agent.events import Emit, no_events
from toolwire.agent.hook_chain import NO_HOOKS, HookChain
from toolwire.agent.questions import Approver, Editor
from toolwire.agent.scheduler import Scheduler
from toolwire.app.servers import ServerChoice, join_servers
from toolwire.app.workspace_facts import locations_of
from toolwire.config import Settings
from toolwire.errors import BadInput, ToolwireError
from toolwire.ids import new_id
from toolwire.model import Model
from toolwire.policy import Mode, rule_file
from toolwire.policy.engine import Policy, roots
from toolwire.policy.rule_file import ANSWERED, dump, limited, load, too_wide
from toolwire.policy.rules import Rule, Verdict, widened
from toolwire.policy.ruling import NO_USER, Terms
from toolwire.request import ToolSpec
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import locked_briefly, write_private
from toolwire.tools.discovered import discover
from toolwire.tools.files.paths import real
from toolwire.tools.registry import Registry, builtins, installed
from toolwire.tools.shell.environment import clean_environment
from toolwire.tools.shell.shells import end_shells
from toolwire.tools.spec import (
    Changing,
    EditorFiles,
    Restricts,
    SandboxSpec,
    Tool,
    ToolContext,
    Workspace,
)
from toolwire.tools.web.grounding import searches

if TYPE_CHECKING:
    from toolwire.extensions.skills import SessionSkills
    from toolwire.mcp.session import SessionServers

_NOT_POSIX = "commands are analysed as they run on Linux and macOS, not on Windows"


def read_rules(file: Path) -> tuple[Rule, ...]:
    """Returns the rules of a file; none without a file, an error if it is unreadable.

    Answers of earlier versions that allow more than their question showed are left out.
    """
    rules = load(_text(file), str(file))
    ignored = too_wide(_text(file), rules)
    return tuple(rule for rule in rules if rule not in ignored)


def ignored_rules(file: Path) -> tuple[Rule, ...]:
    """Returns the stored answers that `read_rules` leaves out."""
    return too_wide(_text(file), load(_text(file), str(file)))


def store_rule(file: Path, rule: Rule, note: str = ANSWERED) -> None:
    """Appends a rule to its file, below a note, unless it contains it; the rest is unchanged."""
    with locked_briefly(file):
        text = _text(file)
        before = load(text, str(file))
        if any(dump(each) == dump(rule) for each in before):
            return
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        added = f"{text}{gap}{note}\n{dump(rule)}"
        try:
            load(added, str(file))
        except BadInput as error:
            raise BadInput(
                f"cannot add a rule to {file}: write its rules as [[rule]] tables, "
                "not as a list in one line"
            ) from error
        write_private(file, added.encode())


def drop_rule(file: Path, same: Callable[[Rule], bool]) -> bool:
    """Removes the first `[[rule]]` of a file that `same` accepts; False if there is none."""
    with locked_briefly(file):
        text = _text(file)
        before = load(text, str(file))
        lines = text.splitlines(keepends=True)
        starts = [at for at, line in enumerate(lines) if line.strip() == "[[rule]]"]
        for start, end in zip(starts, (*starts[1:], len(lines)), strict=True):
            while end > start + 1 and lines[end - 1].lstrip()[:1] in ("", "#"):
                end -= 1
            found = load("".join(lines[start:end]), str(file))
            if len(found) != 1 or not same(found[0]):
                continue
            first = start - 1 if start and lines[start - 1].startswith(ANSWERED[:10]) else start
            left = "".join((*lines[:first], *lines[end:]))
            expected = list(before)
            expected.remove(found[0])
            if list(load(left, str(file))) != expected:
                raise BadInput(f"{file} cannot be changed automatically; edit it by hand")
            write_private(file, left.encode())
            return True
    return False


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}; check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8; save it again as UTF-8") from error


_SEARCH = "google_web_search"
_CEILINGS = "GIT_CEILING_DIRECTORIES"
RULES = "policy.toml"
AUDIT = "audit.jsonl"
NOTES = "AGENTS.md"
"""The user's own notes, which `save_memory` adds to."""

AskPerson: TypeAlias = Callable[[str, tuple[str, ...]], Awaitable[str]]
_log = logging.getLogger(__name__)


class Toolbox(msgspec.Struct, frozen=True, kw_only=True):
    """What a session needs to run calls."""

    registry: Registry
    """The tools that are offered."""
    policy: Policy
    context: ToolContext
    audit: Audit
    servers: "SessionServers | None" = None
    """The MCP servers, if any is configured."""
    skills: "SessionSkills | None" = None
    """The skills, if there are any."""
    unusable: tuple[Tool, ...] = ()
    """Tools that the model for side questions cannot serve."""

    async def close(self) -> None:
        """Ends the processes that its commands left running, and its servers."""
        try:
            if self.servers is not None:
                await self.servers.close()
        finally:
            await end_shells(self.context.owner)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Returns the tools as the next request declares them."""
        return self.registry.specs() if self.servers is None else self.servers.specs()

    def hosted(self, deps: object, restricts: Restricts | None) -> "Toolbox":
        """Returns a copy with the host program's dependencies and further rules against paths."""
        both = _both(self.context.restricts, restricts)
        context = msgspec.structs.replace(self.context, deps=deps, restricts=both)
        return msgspec.structs.replace(self, context=context)

    def within(self, tools: Iterable[Tool]) -> "Toolbox":
        """Returns a toolbox for a session inside: the same policy, these tools of ours only."""
        registry, policy = Registry(tools), self.policy.inner()
        return Toolbox(
            registry=registry,
            policy=policy,
            context=msgspec.structs.replace(self.context, seen={}, call_id=""),
            audit=self.audit.within(policy, registry),
        )

    def recording(self, changing: Changing) -> "Toolbox":
        """Returns a copy whose edits are received before they are made."""
        context = msgspec.structs.replace(self.context, changing=changing)
        return msgspec.structs.replace(self, context=context)

    def with_model(self, model: Model, dialect: str) -> "Toolbox":
        """Returns a copy with a model for side questions, and the tools that work with it."""
        context = msgspec.structs.replace(self.context, model=model, model_dialect=dialect)
        tools = self.registry.with_tools(self.unusable)
        unusable = () if searches(context) else tuple(filter(None, (tools.get(_SEARCH),)))
        self.registry.take(tools.without(one.name for one in unusable))
        return msgspec.structs.replace(self, context=context, unusable=unusable)

    def scheduler(
        self,
        approver: Approver | None = None,
        editor: Editor | None = None,
        emit: Emit = no_events,
        *,
        hooks: HookChain = NO_HOOKS,
        deps: object = None,
    ) -> Scheduler:
        """Returns a scheduler that applies this policy and records approvals and rulings."""
        return Scheduler(
            self.registry,
            context=self.context
            if deps is None
            else msgspec.structs.replace(self.context, deps=deps),
            policy=self.policy,
            approver=approver,
            editor=editor,
            emit=self.audit.listening(emit),
            remember=self.policy.remember,
            roots=roots,
            hooks=hooks,
        )


@asynccontextmanager
async def open_toolbox(settings: Settings, **options: Any) -> AsyncGenerator[Toolbox]:
    """Opens a toolbox (options as in `make_toolbox`) and closes it with the block."""
    toolbox = await make_toolbox(settings, **options)
    try:
        yield toolbox
    finally:
        await toolbox.close()


async def make_toolbox(
    settings: Settings,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    mode: Mode = Mode.DEFAULT,
    headless: bool = False,
    advice: str = NO_USER,
    folders: Sequence[Path] = (),
    allowed: Sequence[str] = (),
    secrets: Iterable[str] = (),
    tools: Iterable[Tool] = (),
    model: Model | None = None,
    model_dialect: str = "",
    ask: AskPerson | None = None,
    temp: Path | None = None,
    registry: Registry | None = None,
    rules: bool = True,
    notice: Callable[[str], None] = _log.warning,
    servers: ServerChoice | None = None,
    hidden: Sequence[Path] = (),
    container: str = "",
    files: EditorFiles | None = None,
    live_seconds: float = 1.0,
) -> Toolbox:
    """Returns the toolbox of one session in a folder; the caller closes it.

    `advice` is how a call could be allowed that no user can approve, `folders` belong to the
    workspace too, `allowed` are entries of `--allowed-tools`, `tools` those of the host program,
    `temp` is where long outputs are stored. A `registry` replaces all tools;
    without `rules` the user's rule file is neither read nor written, and no ruling is recorded.
    Without `servers` no MCP server is used; `files` are those of an editor.
    No tool reads or writes what is `hidden`; commands run in the `container`, if one is named.
    """
    own = state_paths(environ)
    context = ToolContext(
        workspace=workspace_of(cwd, environ, temp, folders),
        owner=new_id(),
        environ=clean_environment(environ, secrets, settings.tools.environment),
        settings=msgspec.structs.replace(
            settings.tools, memory_file=settings.tools.memory_file or str(own.config / NOTES)
        ),
        sandbox=msgspec.structs.replace(
            sandbox_of(settings, cwd), hidden=tuple(map(str, hidden)), container=container
        ),
        model=model,
        model_dialect=model_dialect,
        ask=ask,
        files=files,
        live_seconds=live_seconds,
        seen={},
    )
    if registry is None:
        registry = await open_registry(
            settings, environ=context.environ, cwd=cwd, tools=tools, context=context
        )
    locations = locations_of(context.workspace, environ)
    standing = tuple(
        rule
        for rule in (read_rules(own.config / RULES) if rules else ())
        if rule.project in ("", str(context.workspace.roots[0]))
    )
    terms = Terms(
        locations=locations,
        mode=mode,
        rules=widened(
            rule_file.with_absolute_paths((*standing, *_listed(settings, allowed)), locations),
            locations,
        )
        + _hiding(tuple(hidden)),
        headless=headless,
        advice=advice,
        sandbox=context.sandbox,
        unproven=_NOT_POSIX if sys.platform == "win32" else "",
    )
    policy = Policy(terms, _rule_writer(own.config / RULES, notice) if rules else _not_stored)
    context = msgspec.structs.replace(context, restricts=policy.restricts)
    record = AuditFile(own.state / AUDIT, notice).write if rules else _unrecorded
    audit = Audit(policy, registry, record)
    policy.serve(registry)
    toolbox = Toolbox(registry=registry, policy=policy, context=context, audit=audit)
    if servers is None:
        return toolbox
    joined = await join_servers(
        toolbox, settings, environ=environ, cwd=cwd, choice=servers, ask=ask
    )
    return msgspec.structs.replace(toolbox, servers=joined)


def sandbox_of(settings: Settings, cwd: Path) -> SandboxSpec:
    """Returns the sandbox; BadInput if the system does not support the named level."""
    tools = settings.tools
    level = tools.sandbox
    if level in ("off", "none") or (level == "auto" and sys.platform == "win32"):
        return SandboxSpec()
    if level != "auto":
        from toolwire.tools.shell.sandbox import detect  # noqa: PLC0415 - starts a process

        if detect.kind() == "none":
            raise BadInput(
                f'this system has no sandbox for "{level}"; use --sandbox auto or --sandbox off'
            )
    return SandboxSpec(
        level="read-only" if level == "read-only" else "workspace-write",
        network=tools.sandbox_network,
        writable=tuple(str(cwd / Path(path).expanduser()) for path in tools.sandbox_writable),
    )


def workspace_of(
    cwd: Path, environ: Mapping[str, str], temp: Path | None = None, folders: Sequence[Path] = ()
) -> Workspace:
    """Returns the workspace; a project's long outputs are stored in the user's cache."""
    root = cwd.resolve()
    project = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()
    return Workspace(
        roots=tuple(dict.fromkeys((root, *(each.resolve() for each in folders)))),
        temp=temp or state_paths(environ).cache / "projects" / project,
        home=Path(environ.get("HOME") or Path.home()),
        ceilings=tuple(map(Path, filter(None, environ.get(_CEILINGS, "").split(os.pathsep)))),
    )


async def open_registry(
    settings: Settings,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    tools: Iterable[Tool] = (),
    context: ToolContext | None = None,
) -> Registry:
    """Returns the built-in, installed and discovered tools after the allow and deny lists.

    Tools of the host program replace others of that name, and only a deny list removes them.
    The environment is passed to the discovery command.
    """
    found = builtins(settings.tools).with_tools(installed())
    discovery, call = settings.tools.discovery_command, settings.tools.call_command
    if discovery and call:
        context = context or ToolContext(
            workspace=workspace_of(cwd, environ), environ=environ, sandbox=sandbox_of(settings, cwd)
        )
        found = found.with_tools(
            await discover(discovery, call, cwd=cwd, environ=environ, context=context)
        )
    own = Registry(tools)
    core, exclude = settings.tools.core, settings.tools.exclude
    found = found.permitted(core, exclude).without(own.names)
    return limited(found.with_tools(own.permitted((), exclude)), core, exclude)


def _both(one: Restricts | None, other: Restricts | None) -> Restricts | None:
    """Returns the stricter of two rules against paths."""
    if one is None or other is None:
        return one or other
    return lambda tool, path: min(one(tool, path), other(tool, path), key=("deny", "ask", "").index)


def _listed(settings: Settings, allowed: Sequence[str]) -> tuple[Rule, ...]:
    lists = rule_file.of_lists(allowed=settings.tools.allowed, exclude=settings.tools.exclude)
    flags = rule_file.of_lists(allowed=allowed, origin="--allowed-tools")
    return (*lists, *flags)


@lru_cache(maxsize=64)
def _hiding(paths: tuple[Path, ...]) -> tuple[Rule, ...]:
    """Rules against these paths and what is in them; many sessions have the same ones."""
    reason = "It belongs to the program that runs this session."
    meant = dict.fromkeys(str(one) for path in paths for one in (path, real(path) or path))
    return tuple(Rule(decision=Verdict.DENY, path=each, reason=reason) for each in meant)


def _not_stored(rule: Rule) -> None:
    del rule


def _unrecorded(entry: AuditRecord) -> None:
    del entry


def _rule_writer(file: Path, notice: Callable[[str], None]) -> Callable[[Rule], None]:
    def keep(rule: Rule) -> None:
        try:
            store_rule(file, rule)
        except ToolwireError as error:
            notice(f"the answer applies to this session only: {error}")

    return keep
