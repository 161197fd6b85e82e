"""Rules of the user: what a rule matches, and rules against paths, which apply to every tool."""

import re
import shlex
from collections.abc import Iterable, Iterator
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

import msgspec

from toolwire.policy import Mode
from toolwire.policy.locations import Locations
from toolwire.policy.shell.commands import program_name
from toolwire.tools.search.patterns import Automaton, Step
from toolwire.tools.spec import Effect


class Verdict(StrEnum):
    """Verdict of a rule or ruling."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class RuleMatch(StrEnum):
    """Whether a rule applies; undecided if a word is known only when the command runs."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the rule file, or one saved answer. Every member given must match."""

    decision: Verdict
    tool: str = "*"
    """Name or pattern (`*`, `?`)."""
    server: str = ""
    """Name or pattern of an MCP server."""
    digest: str = ""
    """The texts of a server's tool that the user approved; others do not match."""
    effect: Effect | None = None
    command: tuple[str, ...] = ()
    """First words of a shell command; `*` matches anything within a word."""
    exact: bool = False
    """The command has these words and no others."""
    project: str = ""
    """The only workspace in which it applies; empty for all."""
    path: str = ""
    """Pattern of every path that is touched; `**` crosses folders."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Names of arguments with the pattern of each value."""
    modes: tuple[Mode, ...] = ()
    sandbox: Literal["", "off"] = ""
    """`off`: commands that it allows run outside the sandbox."""
    network: bool = False
    """Commands that it allows may use the network inside the sandbox."""
    reason: str = ""
    """For the user and the model."""
    origin: str = ""
    """Where it was written: a file, a flag, an answer."""

    def __str__(self) -> str:
        parts = [self.tool]
        if self.command:
            parts = [f"{self.tool}({' '.join(self.command)})"]
        parts += [f"server {self.server}"] if self.server else []
        parts += [f"path {self.path}"] if self.path else []
        return f"{self.decision} {', '.join(parts)}"

    @property
    def scope(self) -> str:
        """What it applies to, for the question that offers to store it."""
        if self.command:
            words = shlex.join(self.command)
            return f"exactly: {words}" if self.exact else f"every command that begins: {words}"
        named = f"every {self.tool}" + (f" of {self.server}" if self.server else "")
        return f"{named} on {self.path}" if self.path else f"{named} in the workspace"


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """One command of a shell text, as rules see it."""

    words: tuple[str, ...]
    source: str = ""
    """As written, for display."""
    opaque: str = ""
    """Why its effects cannot be derived from its words."""
    covered_from: int = 0
    """A rule that names more than this many words allows what is opaque."""

    @property
    def root(self) -> str:
        """The program's name without its folder."""
        return self.words[0].rsplit("/", 1)[-1]


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a call, as rules see it."""

    tool: str
    effect: Effect
    mode: Mode
    server: str = ""
    aliases: tuple[str, ...] = ()
    """Further names of the tool, which rules may use."""
    digest: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    command: Invocation | None = None
    path: str = ""


def match(rule: Rule, act: Act) -> RuleMatch:
    """Whether a rule applies to an act."""
    if not any(fnmatchcase(name, rule.tool) for name in (act.tool, *act.aliases)):
        return RuleMatch.NO
    if rule.digest and rule.digest != act.digest:
        return RuleMatch.NO
    if rule.server and not (act.server and fnmatchcase(act.server, rule.server)):
        return RuleMatch.NO
    if rule.effect is not None and rule.effect is not act.effect:
        return RuleMatch.NO
    if rule.modes and act.mode not in rule.modes:
        return RuleMatch.NO
    if rule.path and not (act.path and _path_applies(rule, act.path)):
        return RuleMatch.NO
    if rule.decision is Verdict.ALLOW and act.command is not None and rule.arguments:
        # A pattern over shell text does not decide on the commands in it.
        return RuleMatch.NO
    given = dict(act.arguments)
    for name, pattern in rule.arguments:
        if name not in given or not fnmatchcase(given[name], pattern):
            return RuleMatch.NO
    if not rule.command:
        return RuleMatch.YES
    if act.command is None:
        return RuleMatch.NO
    if rule.decision is Verdict.ALLOW:
        return _permits(rule, act.command)
    return _forbids(rule.command, act.command)


def _permits(rule: Rule, command: Invocation) -> RuleMatch:
    """Match for an allow rule: exactly these words, and enough of them."""
    prefix = rule.command
    if command.opaque and len(prefix) <= command.covered_from:
        return RuleMatch.NO
    words = command.words if rule.exact else _without_harmless_options(command.words)
    prefix = (program_name(prefix[0]), *prefix[1:])
    if len(words) < len(prefix) or (rule.exact and len(words) > len(prefix)):
        return RuleMatch.NO
    same = all(fnmatchcase(word, pattern) for pattern, word in zip(prefix, words, strict=False))
    return RuleMatch.YES if same else RuleMatch.NO


def _without_harmless_options(words: tuple[str, ...]) -> tuple[str, ...]:
    if words[0] == "git" and len(words) > 1 and words[1] in ("--no-pager", "-P"):
        return (words[0], *words[2:])
    return words


def _forbids(prefix: tuple[str, ...], command: Invocation) -> RuleMatch:
    """Match for a deny or ask rule: options in any order and spelling may match."""
    words = command.words
    if command.root.startswith("git-"):
        words = ("git", command.root[4:], *words[1:])
    program = program_name(prefix[0])
    # Some file systems ignore case.
    root = words[0].rsplit("/", 1)[-1]
    if not fnmatchcase(root.lower(), program.rsplit("/", 1)[-1].lower()):
        return RuleMatch.NO
    operands = [word for word in prefix[1:] if not word.startswith("-")]
    options = [word for word in prefix[1:] if word.startswith("-")]
    found = _operands_match(operands, words[1:])
    if found is RuleMatch.NO:
        return found
    return _weaker(found, _options_match(options, words))


def _weaker(one: RuleMatch, other: RuleMatch) -> RuleMatch:
    if RuleMatch.NO in (one, other):
        return RuleMatch.NO
    return RuleMatch.MAYBE if RuleMatch.MAYBE in (one, other) else RuleMatch.YES


def _operands_match(operands: list[str], words: tuple[str, ...]) -> RuleMatch:
    left = list(operands)
    certain = True
    after_option = False
    for word in words:
        if not left:
            break
        if word.startswith("-"):
            after_option = True
            continue
        if fnmatchcase(word, left[0]):
            left.pop(0)
        elif after_option:
            # It may be the value of the option before it.
            certain = False
        else:
            return RuleMatch.NO
        after_option = False
    if left:
        return RuleMatch.NO
    return RuleMatch.YES if certain else RuleMatch.MAYBE


_SAME_OPTIONS = {
    "--force": "f",
    "--recursive": "rR",
    "--delete": "dD",
    "--all": "aA",
    "--no-verify": "n",
    "--interactive": "i",
    "--global": "g",
    "--set-upstream": "u",
    "--in-place": "i",
    "--output": "o",
}


def _options_match(options: list[str], words: tuple[str, ...]) -> RuleMatch:
    """Whether all options are given, in any spelling."""
    given = words[1:]
    letters = {letter for word in given if re.match(r"-[^-]", word) for letter in word[1:]}
    long = [word.partition("=")[0] for word in given if word.startswith("--") and len(word) > 2]
    certain = True
    for option in options:
        found = _option_match(option, given, letters, long)
        if found is RuleMatch.NO and "--force".startswith(option) and _forced_reference(words):
            found = RuleMatch.YES
        if found is RuleMatch.NO:
            return RuleMatch.NO
        certain = certain and found is RuleMatch.YES
    return RuleMatch.YES if certain else RuleMatch.MAYBE


def _option_match(
    option: str, given: tuple[str, ...], letters: set[str], long: list[str]
) -> RuleMatch:
    name = option.partition("=")[0]
    if any(fnmatchcase(word, option) for word in given):
        return RuleMatch.YES
    if not option.startswith("--"):
        if {each.lower() for each in option[1:]} <= {each.lower() for each in letters}:
            return RuleMatch.YES
        # A long option may mean the same.
        meant = [each for each in long if set(_SAME_OPTIONS.get(each, "")) & set(option[1:])]
        if meant and len(option) == 2:
            return RuleMatch.YES
        return RuleMatch.MAYBE if long else RuleMatch.NO
    if any(len(each) > 3 and name.startswith(each) for each in long):
        # Programs accept abbreviated option names.
        return RuleMatch.YES
    same = _SAME_OPTIONS.get(name, "")
    if same and set(same) & letters:
        return RuleMatch.YES
    return RuleMatch.MAYBE if not same and name[2:3] in letters else RuleMatch.NO


def _forced_reference(words: tuple[str, ...]) -> bool:
    """`git push origin +main` and `--mirror` push by force."""
    forced = ("+", "--mir")
    return words[:2] == ("git", "push") and any(word.startswith(forced) for word in words[2:])


def _path_applies(rule: Rule, path: str) -> bool:
    if rule.decision is Verdict.ALLOW:
        return path_matches(rule.path, path)
    # A rule against a folder covers everything in it, and some file systems ignore case.
    pattern, path = rule.path.lower().removesuffix("/**"), path.lower()
    while path and not path_matches(pattern, path):
        path = path.rpartition("/")[0]
    return bool(path)


def path_matches(pattern: str, path: str) -> bool:
    """Whether a path fits: `*` within a name, `**` across folders; case as written."""
    return _path_pattern(pattern).fullmatch(path)


_WILDCARDS = {"**/": Step.FOLDERS, "**": Step.TEXT, "*": Step.NAME, "?": Step.LETTER}


@lru_cache(maxsize=256)
def _path_pattern(pattern: str) -> Automaton:
    automaton, state = Automaton(), 0
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        for takes in (_WILDCARDS[piece],) if piece in _WILDCARDS else piece:
            state = automaton.then(state, takes)
    automaton.accepts = state
    return automaton


_READERS = ("read_file", "read_many_files", "search_file_content")
_WRITERS = ("write_file", "replace", "apply_patch")
_GLOB_SIGNS = "*?"


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
    first = min((at for mark in _GLOB_SIGNS if (at := pattern.find(mark)) >= 0), default=-1)
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
