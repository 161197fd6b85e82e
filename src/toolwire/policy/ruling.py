"""What a ruling is, the terms it is made on, and the ruling on one act at one place."""

from collections.abc import Iterable, Mapping

import msgspec

from toolwire.policy.locations import Location, Locations, Zone
from toolwire.policy.rules import Act, Match, Mode, Rule, Verdict, match
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
"""A search goes to the model's own vendor, as every prompt does. What runs in the background was
allowed to start, and `background` reaches no more than that; plan mode only looks.
"""


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """May the call run, and why."""

    decision: Verdict
    reason: str = ""
    """One line for people, and for the model if the call is refused."""
    rule: str = ""
    """The rule or mode that decided."""
    roots: tuple[str, ...] = ()
    """The programs a shell command would start."""
    asks: tuple[str, ...] = ()
    """All that would need a yes, one line each."""
    remembers: tuple[Rule, ...] = ()
    """What "always" would add; empty if a yes can only be given once."""
    permit: Permit | None = None
    """What a shell command runs as, if no person has to be asked."""
    approved: Permit | None = None
    """What it runs as after a yes."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The ruling on one part of a call."""

    decision: Verdict
    reason: str = ""
    rule: str = ""
    remembers: tuple[Rule, ...] = ()


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """All that a ruling depends on beside the call."""

    ground: Locations
    mode: Mode = Mode.DEFAULT
    rules: tuple[Rule, ...] = ()
    servers: Mapping[str, str] = {}
    """Tool names and the MCP server each comes from."""
    headless: bool = False
    """Nobody can be asked: what would be asked is denied."""
    shell: str = "run_shell_command"
    """The tool whose `command` is shell text."""
    sandbox: SandboxSpec = SandboxSpec()
    """How commands are confined that run without a yes."""


ALLOWED = Finding(decision=Verdict.ALLOW)
_STRICTNESS = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)


def strictest(findings: Iterable[Finding]) -> tuple[Verdict, tuple[Finding, ...]]:
    """The strictest decision, and all findings that make it."""
    findings = tuple(findings)
    decision = max(
        (finding.decision for finding in findings), key=_STRICTNESS.index, default=Verdict.ALLOW
    )
    return decision, tuple(each for each in findings if each.decision is decision)


def rule_on(act: Act, spots: tuple[Location, ...], terms: Terms) -> tuple[Finding, ...]:
    """One finding for each place the act touches; one if it touches none."""
    if not spots:
        return (_rule_on_one(act, None, terms),)
    return tuple(
        _rule_on_one(msgspec.structs.replace(act, path=spot.path), spot, terms) for spot in spots
    )


def _rule_on_one(act: Act, spot: Location | None, terms: Terms) -> Finding:
    forbidden = forbidding(act, terms.rules)
    if forbidden is not None:
        return forbidden
    near = spot is None or spot.is_near
    permitted = next((rule for rule in permitting(act, terms) if near or rule.path), None)
    if terms.mode is Mode.PLAN and act.effect in _CHANGES:
        if permitted is None or Mode.PLAN not in permitted.modes:
            return _planned(act)
        return Finding(decision=Verdict.ALLOW, rule=str(permitted))
    if permitted is not None:
        return Finding(decision=Verdict.ALLOW, rule=str(permitted))
    if by_mode(terms.mode, act.effect, Zone.INSIDE if spot is None else spot.place):
        return Finding(decision=Verdict.ALLOW, rule=f"mode {terms.mode}")
    return Finding(
        decision=Verdict.ASK,
        reason=_question(act, spot),
        rule=f"mode {terms.mode}",
        remembers=_remembered(act, spot),
    )


def forbidding(act: Act, rules: tuple[Rule, ...]) -> Finding | None:
    """The strictest rule against an act; deny wins over ask."""
    asked: Finding | None = None
    for rule in rules:
        if rule.decision is Verdict.ALLOW:
            continue
        found = match(rule, act)
        if found is Match.YES and rule.decision is Verdict.DENY:
            return Finding(
                decision=Verdict.DENY,
                reason=rule.reason or f"A rule forbids {_subject(act)}.",
                rule=str(rule),
            )
        if found is not Match.NO and asked is None:
            unsure = "may forbid" if rule.decision is Verdict.DENY else "wants a question for"
            asked = Finding(
                decision=Verdict.ASK,
                reason=rule.reason or f"A rule {unsure} {_subject(act)}.",
                rule=str(rule),
            )
    return asked


def permitting(act: Act, terms: Terms) -> tuple[Rule, ...]:
    """Rules that allow an act; a server's tool does not pass for ours by its name."""
    return tuple(
        rule
        for rule in (*terms.rules, *(() if act.server else BUILT_IN))
        if rule.decision is Verdict.ALLOW and match(rule, act) is Match.YES
    )


_CHANGES = frozenset({Effect.WRITE, Effect.EXECUTE, Effect.OTHER})


def by_mode(mode: Mode, effect: Effect, place: Zone) -> bool:
    """Whether a mode lets an effect through at a place without a question."""
    if place is Zone.NOWHERE:
        return True
    if mode is Mode.YOLO:
        # Protected files govern what runs later: changing them is asked even here.
        return place is not Zone.PROTECTED or effect is Effect.READ
    if effect is Effect.READ:
        return place is Zone.INSIDE
    if mode is Mode.AUTO_EDIT:
        return place is Zone.INSIDE and effect in (Effect.WRITE, Effect.NETWORK)
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
    """A text short enough for a line, its control characters made visible."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."


def _question(act: Act, spot: Location | None) -> str:
    if act.command is not None:
        return f"{shown(act.command.source)} needs approval."
    if spot is None or spot.place is Zone.INSIDE:
        return f"{_subject(act)} needs approval."
    where = {
        Zone.OUTSIDE: "is outside the workspace",
        Zone.PROTECTED: f"is protected ({spot.why})",
        Zone.UNKNOWN: "is a place known only when it runs",
    }.get(spot.place, "needs approval")
    verb = "writing" if act.effect is Effect.WRITE else "reading"
    if act.effect not in (Effect.WRITE, Effect.READ):
        verb = act.tool
    return f"{verb} {shown(spot.path)} {where}."


def _remembered(act: Act, spot: Location | None) -> tuple[Rule, ...]:
    if act.command is not None:
        return _remembered_command(act)
    if spot is None or spot.is_near:
        return (Rule(decision=Verdict.ALLOW, tool=act.tool, server=act.server),)
    if spot.place is not Zone.OUTSIDE or any(mark in spot.path for mark in "*?"):
        return ()
    return (Rule(decision=Verdict.ALLOW, tool=act.tool, path=spot.path),)


_WITH_SUBCOMMANDS = frozenset(
    {"git", "npm", "yarn", "pnpm", "cargo", "go", "docker", "kubectl", "gh", "pip", "pip3", "uv"}
)


def _remembered_command(act: Act) -> tuple[Rule, ...]:
    command = act.command
    if command is None or command.opaque:
        return ()
    words = command.words
    size = 1
    if words[0] in _WITH_SUBCOMMANDS and len(words) > 1 and words[1].replace("-", "").isalnum():
        size = 1 if words[1].startswith("-") else 2
    if any(mark in word for word in words[:size] for mark in "*?["):
        return ()
    return (Rule(decision=Verdict.ALLOW, tool=act.tool, command=words[:size]),)
