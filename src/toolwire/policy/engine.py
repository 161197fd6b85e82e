"""The policy: decides by effect, mode, zone and rules; what is not understood is asked."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from toolwire.messages import ToolCall
from toolwire.policy import Mode
from toolwire.policy.locations import Location, Zone
from toolwire.policy.rules import Act, Rule, Verdict, against_paths, restriction
from toolwire.policy.ruling import Finding, Ruling, Terms, rule_on, shown, strictest
from toolwire.policy.shell import Unproven, prove
from toolwire.policy.shell.command_ruling import CommandRuling
from toolwire.policy.shell.commands import effects_of, inner_commands, program_name
from toolwire.policy.shell.ruling import ShellRuling
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Permit, Restricts, SandboxSpec

if TYPE_CHECKING:
    from pathlib import Path

_GAINS_RIGHTS = frozenset({"sudo", "su", "doas", "pkexec"})


def permits(shell: CommandRuling, text: str, terms: Terms) -> tuple[Permit, Permit]:
    """The permit of a command that runs unasked, and the permit after approval.

    An approved command runs as the user saw it; an unasked one runs as the proven text.
    """
    path = terms.locations.search_path
    return (
        Permit(
            command=text,
            sandbox=_unasked(shell, terms),
            # What a rule allows may be a program of the workspace.
            environ=(("PATH", path),) if path and not shell.rules else (),
            note=_note(shell),
        ),
        Permit(sandbox=_approved(shell, terms)),
    )


def _note(shell: CommandRuling) -> str:
    if not shell.left_out:
        return ""
    named = ", ".join(dict.fromkeys(shell.left_out))
    return f"Left out of the search: {named}."


def _unasked(shell: CommandRuling, terms: Terms) -> SandboxSpec:
    spec = terms.sandbox
    if spec.level == "off":
        return spec
    rules = shell.rules
    if rules and all(rule is not None and rule.sandbox == "off" for rule in rules):
        return SandboxSpec(container=spec.container)
    return msgspec.structs.replace(
        spec,
        level="read-only" if terms.mode is Mode.PLAN else spec.level,
        network=spec.network or any(rule is not None and rule.network for rule in rules),
        writable=(*spec.writable, *_far(shell, writes=True)),
        readable=(*spec.readable, *_far(shell, writes=False)),
    )


def _approved(shell: CommandRuling, terms: Terms) -> SandboxSpec:
    spec = terms.sandbox
    if spec.level == "off":
        return spec
    if not _GAINS_RIGHTS.isdisjoint(shell.roots):
        # No other rights can be gained inside the sandbox; approving `sudo` approves them.
        return SandboxSpec()
    return msgspec.structs.replace(
        spec,
        level="approved",
        network=True,
        writable=(*spec.writable, *_far(shell, writes=True)),
        readable=(*spec.readable, *_far(shell, writes=False)),
    )


def _far(shell: CommandRuling, *, writes: bool) -> tuple[str, ...]:
    """Paths outside the workspace, or protected, that the ruling names."""
    far = (Zone.OUTSIDE, Zone.PROTECTED)
    found = (
        location.path
        for location, written in shell.touched
        if location.zone in far and written == writes
    )
    return tuple(dict.fromkeys(found))


def rule(
    tool: str, effect: Effect, paths: Iterable[str], arguments: JsonObject, terms: Terms
) -> Ruling:
    """The ruling on a call: pure, and never more permissive after an error."""
    try:
        ruling = _rule(tool, effect, tuple(paths), arguments, terms)
    except Exception as error:  # the outermost edge of the engine: any failure asks
        ruling = Ruling(
            decision=Verdict.ASK,
            reason=f"The policy could not rule on this call ({type(error).__name__}).",
            rule="engine error",
        )
    if terms.headless and ruling.decision is Verdict.ASK:
        return msgspec.structs.replace(
            ruling, decision=Verdict.DENY, reason=f"{ruling.reason} {terms.advice}"
        )
    return ruling


def _rule(
    tool: str, effect: Effect, paths: tuple[str, ...], arguments: JsonObject, terms: Terms
) -> Ruling:
    act = Act(
        tool=tool,
        effect=effect,
        mode=terms.mode,
        server=terms.servers.get(tool, ""),
        aliases=terms.aliases.get(tool, ()),
        digest=terms.digests.get(tool, ""),
        arguments=tuple((name, _as_text(value)) for name, value in arguments.items()),
    )
    command = arguments.get("command")
    if tool == terms.shell and isinstance(command, str):
        directory = terms.locations.start(_as_text(arguments.get("directory") or ""))
        return _rule_on_shell(command, directory, act, terms)
    writes = effect is not Effect.READ
    locations = tuple(terms.locations.locate(path, writes=writes) for path in paths)
    ruling = _ruling(rule_on(act, locations, terms), ())
    return msgspec.structs.replace(ruling, protected=_any_protected(locations))


def _rule_on_shell(command: str, directory: str, act: Act, terms: Terms) -> Ruling:
    shell = ShellRuling(act, terms)
    text = shell.rule(command, directory)
    roots = tuple(dict.fromkeys(shell.roots))
    ruling = _ruling(tuple(shell.findings), roots or _first_words(command))
    allowed, approved = permits(shell, text, terms)
    protected = _any_protected(location for location, _ in shell.touched)
    return msgspec.structs.replace(ruling, permit=allowed, approved=approved, protected=protected)


def _any_protected(locations: Iterable[Location]) -> bool:
    return any(location.zone is Zone.PROTECTED for location in locations)


def _ruling(found: tuple[Finding, ...], roots: tuple[str, ...]) -> Ruling:
    decision, deciding = strictest(found)
    reasons = tuple(dict.fromkeys(each.reason for each in deciding if each.reason))
    more = f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else ""
    asking = decision is Verdict.ASK
    complete = asking and all(each.remembers for each in deciding)
    remembers = (rule for each in deciding for rule in each.remembers) if complete else ()
    return Ruling(
        decision=decision,
        reason=" ".join(reasons[:3]) + more,
        rule=next((each.rule for each in deciding if each.rule), ""),
        roots=roots,
        asks=reasons if asking else (),
        remembers=tuple(dict.fromkeys(remembers)),
    )


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def roots(command: str) -> tuple[str, ...]:
    """Programs that a shell text would start, for the question to the user."""
    script = prove(command)
    if isinstance(script, Unproven):
        return _first_words(command)
    started = (
        words
        for each in script.commands()
        if each.words
        for words in inner_commands(tuple(word.text for word in each.words))
    )
    names = (program_name(words[0]) for words in started if not effects_of(words).runs_at)
    return tuple(dict.fromkeys(names))


def _first_words(command: str) -> tuple[str, ...]:
    """The first word of an unproven text, as its name."""
    return tuple(shown(word) for word in command.split()[:1])


SaveRule: TypeAlias = Callable[[Rule], None]
"""Stores a rule for all later sessions."""

_MOST_RULINGS = 1024


class Scope(StrEnum):
    """Scope of an approval beyond its call."""

    SESSION = "session"
    ALWAYS = "always"
    EVERYWHERE = "everywhere"
    SERVER = "server"


class Policy:
    """Policy with memory: applies the rules and records approvals."""

    def __init__(self, terms: Terms, save: SaveRule) -> None:
        self._shared = _Shared(terms)
        self._save = save
        self._rulings: dict[str, Ruling] = {}

    @property
    def terms(self) -> Terms:
        """What it rules by."""
        return self._shared.terms

    @terms.setter
    def terms(self, terms: Terms) -> None:
        self._shared.terms = terms

    def __call__(
        self, call: ToolCall, effect: Effect, paths: "tuple[Path, ...]", arguments: JsonObject
    ) -> Ruling:
        self.terms.locations.refresh()
        ruling = rule(call.name, effect, (str(path) for path in paths), arguments, self.terms)
        self._rulings.pop(call.id, None)
        self._rulings[call.id] = ruling
        while len(self._rulings) > _MOST_RULINGS:
            self._rulings.pop(next(iter(self._rulings)))
        return ruling

    @property
    def restricts(self) -> Restricts | None:
        """Check of a path that no call names; None without rules against reading."""
        # Answers of the user only allow: restrictions are known from the start.
        rules = against_paths(self.terms.rules)
        if not rules:
            return None
        return lambda tool, path: restriction(rules, self.terms.mode, tool, path)

    def serve(self, registry: Registry) -> None:
        """Rules on the tools of servers as the registry has them now."""
        served = [tool for tool in registry if tool.server]
        self.terms = msgspec.structs.replace(
            self.terms,
            servers={tool.name: tool.server for tool in served},
            aliases={tool.name: registry.aliases_of(tool) for tool in served},
            digests={tool.name: tool.digest for tool in served},
        )

    def set_mode(self, mode: Mode) -> None:
        """Rules in another mode from now on; answers of the user still apply."""
        self.terms = msgspec.structs.replace(self.terms, mode=mode)

    def set_headless(self, headless: bool) -> None:
        """Denies from now on what would be asked, or asks again."""
        self.terms = msgspec.structs.replace(self.terms, headless=headless)

    def ruling(self, call_id: str) -> Ruling | None:
        """The last ruling on a call, if it is still remembered."""
        return self._rulings.get(call_id)

    def remember(self, call: ToolCall, scope: str) -> None:
        """Records an approval: for the session, this project, all projects, or an MCP server."""
        ruling = self._rulings.get(call.id)
        if ruling is None or ruling.decision is not Verdict.ASK:
            return
        if scope not in tuple(Scope):
            return
        rules = ruling.remembers
        if scope == Scope.SERVER:
            server = self.terms.servers.get(call.name, "")
            rules = (Rule(decision=Verdict.ALLOW, server=server),) if server else ()
        stored = scope in (Scope.ALWAYS, Scope.EVERYWHERE)
        origin = f"answer: {scope}" if stored else "answer: this session"
        project = self.terms.locations.roots[0] if scope == Scope.ALWAYS else ""
        rules = tuple(
            msgspec.structs.replace(each, origin=origin, project=project) for each in rules
        )
        self.terms = msgspec.structs.replace(self.terms, rules=(*self.terms.rules, *rules))
        if stored:
            for each in rules:
                self._save(each)

    def inner(self) -> "Policy":
        """This policy for the calls of a session inside, whose ids are not those of this one.

        Mode, rules and answers are the same at any time.
        """
        found = Policy(self.terms, self._save)
        found._shared = self._shared
        return found


class _Shared:
    """The terms of one or more policies."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
