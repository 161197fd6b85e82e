"""Programs whose words are another command: env, timeout, nice, xargs, bash -c."""

import re

import msgspec

from toolwire.policy.shell.effects import Effects, opaque

_NAME = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a program before the command that it starts."""

    flags: str = ""
    values: str = ""
    long_flags: tuple[str, ...] = ()
    long_values: tuple[str, ...] = ()
    operands: int = 0
    """Words between the options and the command."""
    assignments: bool = False
    numbers: bool = False


STARTERS = {
    "env": Starter(flags="i0", values="u", long_flags=("--ignore-environment",), assignments=True),
    "nice": Starter(values="n", long_values=("--adjustment",), numbers=True),
    "ionice": Starter(flags="t", values="cn"),
    "nohup": Starter(),
    "timeout": Starter(
        flags="v",
        values="ks",
        long_flags=("--foreground", "--preserve-status", "--verbose"),
        long_values=("--kill-after", "--signal"),
        operands=1,
    ),
    "stdbuf": Starter(values="ioe", long_values=("--input", "--output", "--error")),
    "setsid": Starter(flags="w", long_flags=("--wait",)),
    "command": Starter(flags="p"),
    "builtin": Starter(),
    "sudo": Starter(flags="EHnSk", values="ug"),
    "xargs": Starter(
        flags="0rtx",
        values="dEnLPs",
        long_flags=("--null", "--no-run-if-empty", "--verbose", "--exit"),
        long_values=("--delimiter", "--max-args", "--max-procs", "--max-lines", "--max-chars"),
    ),
}


class Inner(msgspec.Struct, frozen=True):
    """The command inside another one, and the variables set for it."""

    words: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    at: int = 0
    """The index of its first word."""


def inner(words: tuple[str, ...]) -> Inner | Effects:
    """The command that a starter starts, or why it is not known."""
    starter = STARTERS[words[0]]
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            at += 1
            break
        step = _option(words, at, starter)
        if not step:
            return opaque(f"the option {words[at][:40]} of {words[0]} is not known", at)
        at += step
    assignments: list[tuple[str, str]] = []
    while starter.assignments and at < len(words) and (found := _NAME.match(words[at])):
        assignments.append((found[1], words[at][found.end() :]))
        at += 1
    at += starter.operands
    return Inner(words[at:], tuple(assignments), at)


def _option(words: tuple[str, ...], at: int, starter: Starter) -> int:
    """How many words an option takes; 0 if it is not known."""
    word = words[at]
    if word.startswith("--"):
        name, equals, _ = word.partition("=")
        if name in starter.long_values:
            return 1 if equals else _with_value(words, at)
        return 1 if name in starter.long_flags and not equals else 0
    if starter.numbers and word[1:].isdigit():
        return 1
    for index, letter in enumerate(word[1:], 1):
        if letter in starter.values:
            return 1 if word[index + 1 :] else _with_value(words, at)
        if letter not in starter.flags:
            return 0
    return 1


def _with_value(words: tuple[str, ...], at: int) -> int:
    """Two words for an option and its value; 0 if what follows looks like an option."""
    return 2 if at + 1 < len(words) and not words[at + 1].startswith("-") else 0
