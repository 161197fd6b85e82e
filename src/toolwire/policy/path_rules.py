"""Rules against paths, applied to every tool and to files that a call does not name."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from toolwire.policy.locations import Locations
from toolwire.policy.rules import Act, Mode, Rule, RuleMatch, Verdict, match
from toolwire.tools.spec import Effect

_READERS = ("read_file", "read_many_files", "search_file_content")
_WRITERS = ("write_file", "replace", "apply_patch")
_WILDCARDS = "*?"


def widened(rules: Iterable[Rule], locations: Locations) -> tuple[Rule, ...]:
    """The rules, with those against a path extended to every tool that reaches it the same way.

    A file that may not be read may not be edited either: an edit shows its lines. Paths are those
    of `rule_file.with_absolute_paths`; one through a link also covers the link's target.
    """
    return tuple(each for rule in rules for each in _widened(rule, locations))


def _widened(rule: Rule, locations: Locations) -> Iterator[Rule]:
    yield rule
    if rule.decision is Verdict.ALLOW or not rule.path:
        return
    meant = [rule]
    if not (rule.command or rule.arguments or rule.server):
        if rule.effect in (None, Effect.READ) and _covers(rule.tool, _READERS):
            meant.append(msgspec.structs.replace(rule, tool="*", effect=None))
        elif rule.effect in (None, Effect.WRITE) and _covers(rule.tool, _WRITERS):
            meant.append(msgspec.structs.replace(rule, tool="*", effect=Effect.WRITE))
    real = _resolved(rule.path, locations)
    if real != rule.path:
        meant += [msgspec.structs.replace(each, path=real) for each in meant]
    yield from (each for each in dict.fromkeys(meant) if each != rule)


def _covers(pattern: str, tools: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, pattern) for tool in tools)


def _resolved(pattern: str, locations: Locations) -> str:
    """The pattern with links in its fixed prefix resolved."""
    first = min((at for mark in _WILDCARDS if (at := pattern.find(mark)) >= 0), default=-1)
    if first < 0:
        return locations.resolve(pattern)
    fixed = pattern[:first].rpartition("/")[0]
    return f"{locations.resolve(fixed or '/').rstrip('/')}{pattern[len(fixed) :]}"


def restriction(rules: Iterable[Rule], mode: Mode, tool: str, path: str) -> str:
    """`deny` or `ask` where a rule is against reading a path that no call names, else empty."""
    act = Act(tool=tool, effect=Effect.READ, mode=mode, path=path)
    found = ""
    for rule in rules:
        if match(rule, act) is RuleMatch.YES:
            if rule.decision is Verdict.DENY:
                return Verdict.DENY
            found = Verdict.ASK
    return found


def against_paths(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules that can hide a file."""
    return tuple(rule for rule in rules if rule.path and rule.decision is not Verdict.ALLOW)
