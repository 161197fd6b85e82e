"""The ruling on shell text: each command, redirect and named file must be allowed on its own."""

from collections.abc import Iterator

import msgspec

from toolwire.agent.commands import Access, Command, Redirect, Script
from toolwire.agent.commands.values import names
from toolwire.agent.ground import Place
from toolwire.agent.rules import Act, Decision, Mode
from toolwire.agent.ruling import ALLOWED, Finding, Terms, forbidding, permitting, rule_on, shown
from toolwire.tools.spec import Effect

HARMLESS = names(
    "true false : cd pushd pwd exit return break continue shift wait set test [ exec read"
)
"""Builtins that only steer the shell text itself; where they lead is ruled on by itself."""
_TOOL_OF = {Access.WRITE: ("write_file", Effect.WRITE), Access.READ: ("read_file", Effect.READ)}


def findings(script: Script, act: Act, directory: str, terms: Terms) -> Iterator[Finding]:
    """What is found on each part of a text that starts in `directory`."""
    yield from _on_the_whole(script, act, terms)
    start = terms.ground.spot(directory or ".", writes=False)
    folders = terms.ground.folders(start.path, script.folders)
    if terms.mode is not Mode.YOLO and (folders is None or start.place is not Place.INSIDE):
        yield Finding(decision=Decision.ASK, reason="It may leave the workspace's directories.")
        folders = None
    for redirect in script.redirects:
        yield from _on_file(redirect, folders, terms)
    for redirect in script.named:
        yield from _on_named(redirect, folders, terms)
    for command in script.commands:
        yield _on_command(command, act, terms)


def _on_the_whole(script: Script, act: Act, terms: Terms) -> Iterator[Finding]:
    forbidden = forbidding(act, terms.rules)
    if forbidden is not None:
        yield forbidden
    if terms.mode is Mode.YOLO and not _watches_commands(terms):
        return
    for doubt in script.doubts:
        yield Finding(decision=Decision.ASK, reason=f"{doubt[:1].upper()}{doubt[1:]}.")


def _watches_commands(terms: Terms) -> bool:
    """Whether a rule is against some commands, so that those not understood may be meant."""
    return any(rule.command and rule.decision is not Decision.ALLOW for rule in terms.rules)


def _on_file(
    redirect: Redirect, folders: tuple[str, ...] | None, terms: Terms
) -> tuple[Finding, ...]:
    """A redirect is what the file tools would do there."""
    tool, effect = _TOOL_OF[redirect.access]
    spots = terms.ground.spots(redirect.target, folders, writes=redirect.access is Access.WRITE)
    return rule_on(Act(tool=tool, effect=effect, mode=terms.mode), spots, terms)


def _on_named(
    redirect: Redirect, folders: tuple[str, ...] | None, terms: Terms
) -> tuple[Finding, ...]:
    """A file given to a command: inside the workspace the command's own permission is enough."""
    tool, effect = _TOOL_OF[redirect.access]
    spots = terms.ground.spots(redirect.target, folders, writes=redirect.access is Access.WRITE)
    far = tuple(spot for spot in spots if not spot.is_near)
    act = Act(tool=tool, effect=effect, mode=terms.mode)
    near = tuple(spot for spot in spots if spot.is_near)
    forbidden = [
        forbidding(msgspec.structs.replace(act, path=spot.path), terms.rules) for spot in near
    ]
    found = tuple(each for each in forbidden if each is not None)
    return (*found, *(rule_on(act, far, terms) if far else ()))


def _on_command(command: Command, whole: Act, terms: Terms) -> Finding:
    act = msgspec.structs.replace(whole, command=command)
    forbidden = forbidding(act, terms.rules)
    if forbidden is not None:
        return forbidden
    harmless = command.words[0].plain and command.words[0].text in HARMLESS
    if not command.hidden and (command.transparent or harmless):
        return ALLOWED
    if terms.mode is Mode.YOLO and command.covered_from and _watches_commands(terms):
        if permitting(act, terms):
            return ALLOWED
        return _hidden(command)
    (found,) = rule_on(act, (), terms)
    if found.decision is Decision.ASK and command.hidden:
        return msgspec.structs.replace(found, reason=_hidden(command).reason)
    return found


def _hidden(command: Command) -> Finding:
    return Finding(
        decision=Decision.ASK,
        reason=f"{shown(command.source)} needs approval: {command.hidden}.",
    )
