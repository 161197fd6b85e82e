"""Rulings, the terms they depend on, and the ruling on one act at one location."""

from collections.abc import Iterable, Mapping

import msgspec

from toolwire.policy import Mode
from toolwire.policy.locations import Location, Locations, Zone
from toolwire.policy.rules import Act, Rule, RuleMatch, Verdict, match
from toolwire.tools.spec import Effect, Permit, SandboxSpec

_LOOKS = tuple(
    Rule(
        decision=Verdict.ALLOW,
        tool="background",
        arguments=(("action", action),),
        modes=tuple(Mode),
        origin="built in",
    )
    for action in ("list", "read")
)
_STOPS = Rule(
    decision=Verdict.ALLOW,
    tool="background",
    arguments=(("action", "stop"),),
    origin="built in",
)
BUILT_IN = (
    Rule(decision=Verdict.ALLOW, tool="google_web_search", origin="built in"),
    *_LOOKS,
    _STOPS,
)
"""A search goes to the model's vendor, as every prompt does. A background process was
allowed to start, and `background` reaches nothing else; plan mode only reads.
"""


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the call may run, and why."""

    decision: Verdict
    reason: str = ""
    """One line for the user, and for the model if the call is denied."""
    rule: str = ""
    """The rule or mode that decided."""
    roots: tuple[str, ...] = ()
    """The programs a shell command would start."""
    asks: tuple[str, ...] = ()
    """Everything that needs approval, one line each."""
    remembers: tuple[Rule, ...] = ()
    """Rules that "always" would add; empty if the call can only be approved once."""
    protected: bool = False
    """Whether it touches a protected file, which only the user can approve."""
    permit: Permit | None = None
    """Permit of a shell command that runs without asking."""
    approved: Permit | None = None
    """Permit of a shell command that the user approved."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The ruling on one part of a call."""

    decision: Verdict
    reason: str = ""
    rule: str = ""
    remembers: tuple[Rule, ...] = ()


NO_USER = (
    "There is no one to approve it here. Reach the goal with what is allowed, or tell the user "
    "what to allow: --allowed-tools, a rule in the rule file, or another --approval-mode."
)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a ruling depends on besides the call."""

    locations: Locations
    mode: Mode = Mode.DEFAULT
    rules: tuple[Rule, ...] = ()
    servers: Mapping[str, str] = {}
    """Tool names and the MCP server of each."""
    aliases: Mapping[str, tuple[str, ...]] = {}
    """Tool names and further names of each, which rules may use."""
    digests: Mapping[str, str] = {}
    """Names of servers' tools and the digest of the texts of each."""
    headless: bool = False
    """No user can be asked: calls that need approval are denied."""
    advice: str = NO_USER
    """The end of such a denial: how the call could be allowed."""
    shell: str = "run_shell_command"
    """The tool whose `command` is shell text."""
    sandbox: SandboxSpec = SandboxSpec()
    """Confinement of commands that run without asking."""
    unproven: str = ""
    """Why no shell text can be proven harmless on this system; empty where it can."""


ALLOWED = Finding(decision=Verdict.ALLOW)
_STRICTNESS = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)


def strictest(findings: Iterable[Finding]) -> tuple[Verdict, tuple[Finding, ...]]:
    """The strictest verdict, and all findings with it."""
    findings = tuple(findings)
    decision = max(
        (finding.decision for finding in findings), key=_STRICTNESS.index, default=Verdict.ALLOW
    )
    return decision, tuple(each for each in findings if each.decision is decision)


def rule_on(act: Act, locations: tuple[Location, ...], terms: Terms) -> tuple[Finding, ...]:
    """One finding for each location the act touches; one if it touches none."""
    if not locations:
        return (_rule_on_one(act, None, terms),)
    return tuple(
        _rule_on_one(msgspec.structs.replace(act, path=location.path), location, terms)
        for location in locations
    )


def _rule_on_one(act: Act, location: Location | None, terms: Terms) -> Finding:
    forbidden = forbidding(act, terms.rules)
    if forbidden is not None:
        return forbidden
    near = location is None or location.is_near
    permitted = next((rule for rule in permitting(act, terms) if near or rule.path), None)
    if terms.mode is Mode.PLAN and act.effect in _CHANGES:
        if permitted is None or Mode.PLAN not in permitted.modes:
            return _planned(act)
        return Finding(decision=Verdict.ALLOW, rule=str(permitted))
    if permitted is not None:
        return Finding(decision=Verdict.ALLOW, rule=str(permitted))
    if by_mode(terms.mode, act.effect, Zone.INSIDE if location is None else location.zone):
        return Finding(decision=Verdict.ALLOW, rule=f"mode {terms.mode}")
    return Finding(
        decision=Verdict.ASK,
        reason=_question(act, location),
        rule=f"mode {terms.mode}",
        remembers=_remembered(act, location),
    )


def forbidding(act: Act, rules: tuple[Rule, ...]) -> Finding | None:
    """The strictest rule against an act; deny wins over ask."""
    ask: Finding | None = None
    for rule in rules:
        if rule.decision is Verdict.ALLOW:
            continue
        found = match(rule, act)
        if found is RuleMatch.YES and rule.decision is Verdict.DENY:
            return Finding(
                decision=Verdict.DENY,
                reason=rule.reason or f"A rule forbids {_subject(act)}.",
                rule=str(rule),
            )
        if found is not RuleMatch.NO and ask is None:
            unsure = "may forbid" if rule.decision is Verdict.DENY else "requires approval for"
            ask = Finding(
                decision=Verdict.ASK,
                reason=rule.reason or f"A rule {unsure} {_subject(act)}.",
                rule=str(rule),
            )
    return ask


def permitting(act: Act, terms: Terms) -> tuple[Rule, ...]:
    """The rule that allows an act; a server's tool does not match by a built-in tool's name."""
    return tuple(
        rule
        for rule in (*terms.rules, *(() if act.server else BUILT_IN))
        if rule.decision is Verdict.ALLOW and match(rule, act) is RuleMatch.YES
    )


_CHANGES = frozenset({Effect.WRITE, Effect.EXECUTE, Effect.OTHER})


def by_mode(mode: Mode, effect: Effect, zone: Zone) -> bool:
    """Whether a mode allows an effect in a zone without asking."""
    if zone is Zone.DEVICE:
        return True
    if mode is Mode.YOLO:
        # Protected files control what runs later: changing them needs approval even here.
        return zone is not Zone.PROTECTED or effect is Effect.READ
    if effect is Effect.READ:
        return zone is Zone.INSIDE
    if mode is Mode.AUTO_EDIT:
        return zone is Zone.INSIDE and effect in (Effect.WRITE, Effect.NETWORK)
    return False


def _planned(act: Act) -> Finding:
    return Finding(
        decision=Verdict.DENY,
        reason=f"Plan mode only reads: {_subject(act)} does not run. Put the step in the plan.",
        rule="mode plan",
    )


def _subject(act: Act) -> str:
    if act.command is not None:
        return shown(act.command.source or act.command.root)
    return f"{act.tool} on {act.path}" if act.path else act.tool


def shown(text: str) -> str:
    """The text cut to one line, with control characters visible."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."


def _question(act: Act, location: Location | None) -> str:
    if act.command is not None:
        return f"{shown(act.command.source)} needs approval."
    if location is None or location.zone is Zone.INSIDE:
        return f"{_subject(act)} needs approval."
    where = {
        Zone.OUTSIDE: "is outside the workspace",
        Zone.PROTECTED: f"is protected ({location.why})",
        Zone.UNKNOWN: "is known only when it runs",
    }.get(location.zone, "needs approval")
    verb = "writing" if act.effect is Effect.WRITE else "reading"
    if act.effect not in (Effect.WRITE, Effect.READ):
        verb = act.tool
    return f"{verb} {shown(location.path)} {where}."


def _remembered(act: Act, location: Location | None) -> tuple[Rule, ...]:
    if act.command is not None:
        return _remembered_command(act)
    if location is None or location.is_near:
        return (Rule(decision=Verdict.ALLOW, tool=act.tool, server=act.server, digest=act.digest),)
    if location.zone is not Zone.OUTSIDE or any(mark in location.path for mark in "*?"):
        return ()
    return (Rule(decision=Verdict.ALLOW, tool=act.tool, path=location.path),)


_SUBCOMMANDS = {
    "git": """add am blame branch checkout cherry-pick commit diff fetch grep log ls-files merge mv
        pull push remote restore revert rev-parse shortlog show stash status switch tag""",
    "npm": "audit ls outdated test view",
    "pnpm": "audit list outdated test",
    "yarn": "audit info list outdated test",
    "cargo": "bench build check clippy doc fmt metadata test tree",
    "go": "build doc env fmt list mod test vet version",
    "docker": "images inspect logs ps stats version",
    "kubectl": "describe explain get logs top version",
    "gh": "issue pr release repo run status workflow",
    "pip": "check freeze list show",
    "pip3": "check freeze list show",
    "uv": "lock tree version",
}
"""Subcommands that an answer may allow with any arguments: none of them runs what it is given."""


def is_prefix(words: tuple[str, ...]) -> bool:
    """Whether these first words of a command may be allowed with any others after them."""
    return len(words) > 1 and words[1] in _SUBCOMMANDS.get(words[0], "").split()


def _remembered_command(act: Act) -> tuple[Rule, ...]:
    """The program and its subcommand where that is safe, else exactly this command."""
    command = act.command
    if command is None or command.opaque:
        return ()
    words = command.words
    prefix = is_prefix(words)
    kept = words[:2] if prefix else words
    if any(mark in word for word in kept for mark in "*?["):
        return ()
    return (Rule(decision=Verdict.ALLOW, tool=act.tool, command=kept, exact=not prefix),)
