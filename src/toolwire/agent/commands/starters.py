"""Programs whose arguments are another command line: `env`, `timeout`, `sudo`, `xargs`, `find`."""

import re
from collections.abc import Iterator

import msgspec

from toolwire.agent.commands.inside import Inside, hiding, inner, running_text, starting
from toolwire.agent.commands.values import Access, Assignment, Command, Redirect, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL | re.ASCII)
_FROM_INPUT = Word("(from its input)", static=False)
_FROM_FIND = Word("(each file found)", static=False)


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a program that come before the command it starts."""

    flags: str = ""
    """One-letter options without a value."""
    values: str = ""
    """One-letter options with a value."""
    long_flags: tuple[str, ...] = ()
    long_values: tuple[str, ...] = ()
    operands: int = 0
    """Words between the options and the command."""
    assignments: bool = False
    """`NAME=value` may stand before the command."""
    own_permission: bool = False
    """It does more than start the command, so it must be permitted as well."""
    feeds: bool = False
    """It adds words from its input to the command."""
    numbers: bool = False
    """`-10` is an option."""


STARTERS = {
    "env": Starter(
        flags="i0v",
        values="u",
        long_flags=("ignore-environment", "null", "debug"),
        long_values=("unset",),
        assignments=True,
    ),
    "nice": Starter(values="n", long_values=("adjustment",), numbers=True),
    "nohup": Starter(),
    "setsid": Starter(flags="cfw", long_flags=("ctty", "fork", "wait")),
    "time": Starter(flags="pv", long_flags=("portability", "verbose")),
    "timeout": Starter(
        flags="v",
        values="ks",
        long_flags=("foreground", "preserve-status", "verbose"),
        long_values=("kill-after", "signal"),
        operands=1,
    ),
    "stdbuf": Starter(values="ioe", long_values=("input", "output", "error")),
    "ionice": Starter(
        flags="t", values="cn", long_flags=("ignore",), long_values=("class", "classdata")
    ),
    "unbuffer": Starter(flags="p"),
    "caffeinate": Starter(flags="disu", values="t"),
    "sudo": Starter(
        flags="AbEHknPS",
        values="ughp",
        long_flags=("non-interactive", "preserve-env", "set-home", "stdin", "background"),
        long_values=("user", "group", "host", "prompt"),
        assignments=True,
        own_permission=True,
    ),
    "doas": Starter(flags="n", values="u", own_permission=True),
    "pkexec": Starter(long_values=("user",), own_permission=True),
    "chroot": Starter(operands=1, own_permission=True),
    "busybox": Starter(own_permission=True),
    "toybox": Starter(own_permission=True),
    "xargs": Starter(
        flags="0rtxpo",
        values="dEILnPs",
        long_flags=("null", "no-run-if-empty", "verbose", "exit", "interactive", "open-tty"),
        long_values=("delimiter", "max-args", "max-procs", "max-chars"),
        feeds=True,
    ),
}


def look(command: Command) -> Inside | None:
    """What a starter starts; None for any other command."""
    name = command.root
    if name == "find" or name == "gfind":
        return _find(command)
    if name == "watch":
        return _watch(command)
    if name == "flock":
        return hiding(command, "flock runs another command", 2)
    starter = STARTERS.get(name)
    return None if starter is None else _start(command, starter)


def _start(command: Command, starter: Starter) -> Inside:
    rest = _after_options(command.words[1:], starter)
    if rest is None or len(rest) < starter.operands:
        return hiding(command, f"{command.root} is used with options that are not read")
    if not all(word.plain for word in rest[: starter.operands]):
        return hiding(command, f"{command.root} starts what is known only when it runs")
    rest = rest[starter.operands :]
    assignments: list[Assignment] = []
    while starter.assignments and rest and (found := _ASSIGNMENT.match(rest[0].text)):
        assignments.append(Assignment(found[1], msgspec.structs.replace(rest[0], text=found[2])))
        rest = rest[1:]
    if rest and not rest[0].static:
        return hiding(command, f"{command.root} starts what is known only when it runs")
    if starter.feeds:
        fed = _fed(command.words[1 : len(command.words) - len(rest)], rest)
        if fed is None:
            return hiding(command, f"{command.root} is used with options that are not read")
        rest = fed
    started = starting(command, rest, assignments=tuple(assignments))
    if starter.own_permission or not rest:
        return msgspec.structs.replace(started, command=command)
    return started


def _after_options(words: tuple[Word, ...], starter: Starter) -> tuple[Word, ...] | None:
    """The words after the options; None if an option is not known."""
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        if not word.static or not text.startswith("-") or text == "-":
            return words[at:]
        if not word.plain:
            return None
        if text == "--":
            return words[at + 1 :]
        taken = _option_length(text, starter)
        if taken == 0 or not all(each.plain for each in words[at : at + taken]):
            return None
        at += taken
    return ()


def _option_length(text: str, starter: Starter) -> int:
    """How many words an option takes; 0 if it is not known."""
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        if name in starter.long_values:
            return 1 if equals else 2
        return 1 if name in starter.long_flags and not equals else 0
    if starter.numbers and text[1:].isdigit():
        return 1
    for position, letter in enumerate(text[1:], 1):
        if letter in starter.values:
            return 1 if position < len(text) - 1 else 2
        if letter not in starter.flags:
            return 0
    return 1


def _fed(options: tuple[Word, ...], rest: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """The started command with what its input adds: at the end, or wherever the mark stands.

    None if the mark is not certain.
    """
    if not rest:
        return (Word("echo"), _FROM_INPUT)
    marks: list[str] = []
    for at, option in enumerate(options):
        letters, found, mark = option.text.partition("I")
        if not found or not re.match(r"-[a-zA-Z0-9]*\Z", letters):
            continue
        if letters != "-" or (not mark and at + 1 == len(options)):
            return None
        marks.append(mark or options[at + 1].text)
    if not marks:
        return (*rest, _FROM_INPUT)
    return tuple(
        Word(word.text, static=False) if any(mark in word.text for mark in marks) else word
        for word in rest
    )


def _watch(command: Command) -> Inside:
    rest = _after_options(
        command.words[1:],
        Starter(
            flags="bcdegptx", values="n", long_values=("interval",), long_flags=("color", "exec")
        ),
    )
    if not rest or not all(word.plain for word in rest):
        return hiding(command, "watch runs a text that is known only when it runs")
    return running_text(command, " ".join(word.text for word in rest))


_FIND_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})


def _find(command: Command) -> Inside:
    words = command.words
    if not all(word.static for word in words[1:]):
        return hiding(command, "find is given options that are known only when it runs")
    commands: list[Command] = []
    redirects: list[Redirect] = []
    for at, word in enumerate(words):
        if word.text in _FIND_STARTS:
            commands.append(_found_command(words[at + 1 :]))
        elif word.text == "-delete":
            commands.append(inner((Word("rm"), _FROM_FIND)))
        elif word.text in _FIND_WRITES and at + 1 < len(words):
            redirects.append(Redirect(Access.WRITE, words[at + 1], command.source))
    return Inside(
        command=command,
        commands=tuple(commands),
        redirects=tuple(redirects),
        named=tuple(Redirect(Access.READ, word, command.source) for word in _searched(words[1:])),
    )


def _searched(words: tuple[Word, ...]) -> Iterator[Word]:
    """The folders that find looks into, and files it compares with or reads."""
    before_tests = True
    for at, word in enumerate(words):
        before_tests = before_tests and (
            word.text in ("-H", "-L", "-P") or not word.text.startswith(("-", "(", "!"))
        )
        if before_tests and not word.text.startswith("-"):
            yield word
        elif re.match(r"-(?:newer|a?newer..|samefile|files0-from)", word.text):
            yield from words[at + 1 : at + 2]


def _found_command(words: tuple[Word, ...]) -> Command:
    taken: list[Word] = []
    for word in words:
        if word.text == ";" or (word.text == "+" and taken and taken[-1] is _FROM_FIND):
            break
        if word.text == "{}":
            taken.append(_FROM_FIND)
        else:
            taken.append(Word(word.text, static=False) if "{}" in word.text else word)
    return inner(tuple(taken) or (_FROM_FIND,))
