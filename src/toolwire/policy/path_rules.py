"""Rules against paths: what they mean for every tool, and for files that a call does not name."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from toolwire.policy.locations import Locations
from toolwire.policy.rules import Act, Match, Mode, Rule, Verdict, match
from toolwire.tools.spec import Effect

_READERS = ("read_file", "read_many_files", "search_file_content")
_WRITERS = ("write_file", "replace", "apply_patch")
_WILDCARDS = "*?"


def widened(rules: Iterable[Rule], ground: Locations) -> tuple[Rule, ...]:
    """The rules, those against a path extended to every tool that reaches it in the same way.

    A file that may not be read may not be edited either: an edit shows its lines. Paths are those
    of `rule_file.grounded`; one that leads through a link is also meant where the link leads.
    """
    return tuple(each for rule in rules for each in _widened(rule, ground))


def _widened(rule: Rule, ground: Locations) -> Iterator[Rule]:
    yield rule
    if rule.decision is Verdict.ALLOW or not rule.path:
        return
    meant = [rule]
    if not (rule.command or rule.arguments or rule.server):
        if rule.effect in (None, Effect.READ) and _covers(rule.tool, _READERS):
            meant.append(msgspec.structs.replace(rule, tool="*", effect=None))
        elif rule.effect in (None, Effect.WRITE) and _covers(rule.tool, _WRITERS):
            meant.append(msgspec.structs.replace(rule, tool="*", effect=Effect.WRITE))
    real = _resolved(rule.path, ground)
    if real != rule.path:
        meant += [msgspec.structs.replace(each, path=real) for each in meant]
    yield from (each for each in dict.fromkeys(meant) if each != rule)


def _covers(pattern: str, tools: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for tool in tools)


def _resolved(pattern: str, ground: Locations) -> str:
    """The pattern with the links in its fixed beginning followed."""
    first = min((at for mark in _WILDCARDS if (at := pattern.find(mark)) >= 0), default=-1)
    if first < 0:
        return ground.resolve(pattern)
    fixed = pattern[:first].rpartition("/")[0]
    return f"{ground.resolve(fixed or '/').rstrip('/')}{pattern[len(fixed) :]}"


def restriction(rules: Iterable[Rule], mode: Mode, tool: str, path: str) -> str:
    """`deny` or `ask` where a rule is against reading a path that no call names, else empty."""
    act = Act(tool=tool, effect=Effect.READ, mode=mode, path=path)
    found = ""
    for rule in rules:
        if match(rule, act) is Match.YES:
            if rule.decision is Verdict.DENY:
                return Verdict.DENY
            found = Verdict.ASK
    return found


def against_paths(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Those of the rules that can hide a file."""
    return tuple(rule for rule in rules if rule.path and rule.decision is not Verdict.ALLOW)
