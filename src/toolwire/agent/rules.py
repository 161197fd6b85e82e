"""Rules a person keeps: what may run, what may not, what is asked; and what a rule matches."""

import re
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from toolwire.agent.commands import Command, Word
from toolwire.tools.automaton import Automaton, Step
from toolwire.tools.spec import Effect


class Decision(StrEnum):
    """What a ruling says."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Mode(StrEnum):
    """How much runs without a question."""

    DEFAULT = "default"
    AUTO_EDIT = "auto_edit"
    YOLO = "yolo"
    PLAN = "plan"


class Match(StrEnum):
    """Whether a rule applies; a word known only when it runs leaves it open."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the rule file, or one saved answer. Every member given must match."""

    decision: Decision
    tool: str = "*"
    """Name or pattern (`*`, `?`)."""
    server: str = ""
    """Name or pattern of an MCP server."""
    effect: Effect | None = None
    command: tuple[str, ...] = ()
    """First words of a shell command; `*` stands for anything within a word."""
    path: str = ""
    """Pattern of every path that is touched; `**` crosses folders."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Names of arguments with the pattern of each value."""
    modes: tuple[Mode, ...] = ()
    reason: str = ""
    """For people and the model."""
    origin: str = ""
    """Where it was written: a file, a flag, an answer."""

    def __str__(self) -> str:
        parts = [self.tool]
        if self.command:
            parts = [f"{self.tool}({' '.join(self.command)})"]
        parts += [f"server {self.server}"] if self.server else []
        parts += [f"path {self.path}"] if self.path else []
        return f"{self.decision} {', '.join(parts)}"


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a call would do, as rules see it."""

    tool: str
    effect: Effect
    mode: Mode
    server: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    command: Command | None = None
    path: str = ""


def match(rule: Rule, act: Act) -> Match:
    """Whether a rule speaks about an act."""
    if not fnmatchcase(act.tool, rule.tool):
        return Match.NO
    if rule.server and not (act.server and fnmatchcase(act.server, rule.server)):
        return Match.NO
    if rule.effect is not None and rule.effect is not act.effect:
        return Match.NO
    if rule.modes and act.mode not in rule.modes:
        return Match.NO
    if rule.path and not (act.path and _path_applies(rule, act.path)):
        return Match.NO
    if rule.decision is Decision.ALLOW and act.command is not None and rule.arguments:
        # A pattern over shell text says nothing about the commands in it.
        return Match.NO
    given = dict(act.arguments)
    for name, pattern in rule.arguments:
        if name not in given or not fnmatchcase(given[name], pattern):
            return Match.NO
    if not rule.command:
        return Match.YES
    if act.command is None:
        return Match.NO
    if rule.decision is Decision.ALLOW:
        return _permits(rule.command, act.command)
    return _forbids(rule.command, act.command)


_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/")


def _permits(prefix: tuple[str, ...], command: Command) -> Match:
    """To permit, the words must be exactly those, known, and enough of them."""
    if command.hidden and len(prefix) <= command.covered_from:
        return Match.NO
    words = _without_harmless_options(command.words)
    if len(words) < len(prefix):
        return Match.NO
    for at, (wanted, word) in enumerate(zip(prefix, words, strict=False)):
        text = word.text
        if at == 0 and not text.startswith(wanted):
            text = next(
                (text[len(each) :] for each in _SYSTEM_FOLDERS if text.startswith(each)), text
            )
        if not word.plain or not fnmatchcase(text, wanted):
            return Match.NO
    return Match.YES


def _without_harmless_options(words: tuple[Word, ...]) -> tuple[Word, ...]:
    if words[0].text == "git" and len(words) > 1 and words[1].text in ("--no-pager", "-P"):
        return (words[0], *words[2:])
    return words


def _forbids(prefix: tuple[str, ...], command: Command) -> Match:
    """To forbid, it is enough that the words may mean it: options in any order, other spellings."""
    words = command.words
    name = words[0]
    if not name.plain:
        return Match.MAYBE
    if not (fnmatchcase(name.text, prefix[0]) or _same_name(command.root, prefix[0])):
        return Match.NO
    wanted = [word for word in prefix[1:] if not word.startswith("-")]
    options = [word for word in prefix[1:] if word.startswith("-")]
    found = _operands_match(wanted, words[1:])
    if found is Match.NO:
        return found
    return _weaker(found, _options_match(options, words[1:]))


def _same_name(root: str, wanted: str) -> bool:
    # Some file systems take any case for the same program.
    return bool(root) and fnmatchcase(root.lower(), wanted.rsplit("/", 1)[-1].lower())


def _weaker(one: Match, other: Match) -> Match:
    if Match.NO in (one, other):
        return Match.NO
    return Match.MAYBE if Match.MAYBE in (one, other) else Match.YES


def _operands_match(wanted: list[str], words: tuple[Word, ...]) -> Match:
    left = list(wanted)
    certain = True
    after_option = False
    for word in words:
        if not left:
            break
        if not word.plain:
            return Match.MAYBE
        if word.text.startswith("-"):
            after_option = True
            continue
        if fnmatchcase(word.text, left[0]):
            left.pop(0)
        elif after_option:
            # It may be the value of the option before it.
            certain = False
        else:
            return Match.NO
        after_option = False
    if left:
        return Match.NO
    return Match.YES if certain else Match.MAYBE


def _options_match(options: list[str], words: tuple[Word, ...]) -> Match:
    given = [word.text for word in words if word.plain]
    open_ended = any(not word.static for word in words) or any(
        text.startswith("--") and len(text) > 2 for text in given
    )
    letters = {letter for text in given if re.match(r"-[^-]", text) for letter in text[1:]}
    for option in options:
        if any(fnmatchcase(text, option) for text in given):
            continue
        if not option.startswith("--") and set(option[1:].lower()) <= {
            each.lower() for each in letters
        }:
            continue
        if not open_ended:
            return Match.NO
        return Match.MAYBE
    return Match.YES


def _path_applies(rule: Rule, path: str) -> bool:
    if rule.decision is Decision.ALLOW:
        return path_matches(rule.path, path)
    # A rule against a folder is against all that is in it, and some file systems take any case.
    pattern, path = rule.path.lower(), path.lower()
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
