"""Effects of a command: files it reads and writes, commands it starts, what is not known."""

import re
from enum import StrEnum
from functools import lru_cache

import msgspec

from toolwire.policy.shell.syntax import names

NEVER = 1_000_000
"""As `covered_from`: no rule names enough words."""


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """What one command does, beyond computing and printing."""

    known: bool = True
    """Whether the program is in the tables; any other needs a rule."""
    reads: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    """Folders of which every file may be read."""
    follows: bool = False
    """Links below those folders are followed."""
    writes: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    """Paths that are deleted, or replaced by something unrelated."""
    runs: tuple[tuple[str, ...], ...] = ()
    """Commands that it starts, each ruled on as well."""
    runs_at: int = 0
    """The index of the first word of the command it starts, if that is a part of its own words."""
    fed: bool = False
    """Further words for that command come from its input."""
    lists: bool = False
    """The names come from the command before it in the pipe."""
    script: str | None = None
    """Shell text that it runs."""
    changes: str = ""
    """What it changes besides files of the workspace: the network, processes, a repository."""
    opaque: str = ""
    """Why its effects cannot be derived from its words."""
    covered_from: int = NEVER
    """A rule that names more than this many words covers what is opaque."""
    words: tuple[str, ...] | None = None
    """The words that run instead of those written."""
    environ: tuple[tuple[str, str], ...] = ()
    """Variables that are set when it runs unasked."""
    assigns: tuple[tuple[str, str], ...] = ()
    """Variables that it sets for the command it starts."""
    folder: str | None = None
    """The folder that `cd` changes to."""
    repository: str = ""
    """The folder whose git repository and configuration it obeys."""


NOTHING = Effects()


def opaque(reason: str, covered_from: int = NEVER) -> Effects:
    """Effects of a command that cannot be derived from its words."""
    return Effects(opaque=reason, covered_from=covered_from)


class EffectKind(StrEnum):
    """What an operand or the value of an option is."""

    TEXT = "T"
    READ = "R"
    WRITE = "W"
    REMOVE = "D"
    TREE = "A"
    """A folder of which every file may be read."""
    CODE = "C"
    """Code or a program: what it does is not known."""


class Syntax(msgspec.Struct, frozen=True, kw_only=True):
    """The options and operands of one program."""

    flags: frozenset[str] = frozenset()
    values: dict[str, EffectKind] = {}
    """Options that take the next word, or what is attached, as their value."""
    optional: dict[str, EffectKind] = {}
    """Options whose value, if any, is attached."""
    operands: tuple[EffectKind, ...] = ()
    repeated: int = -1
    """Which of the operands may be repeated; -1 for none."""
    numbers: bool = False
    """`-5` is an option."""


class Given(msgspec.Struct, frozen=True):
    """One option as it was given."""

    name: str
    value: str
    kind: EffectKind
    at: int
    """The index of its word."""


class Line(msgspec.Struct, frozen=True):
    """The words of a command, classified by its syntax."""

    options: tuple[Given, ...] = ()
    operands: tuple[tuple[str, int], ...] = ()
    unknown: str = ""
    """The first word that the syntax does not know."""
    unknown_at: int = 0

    def has(self, *names: str) -> bool:
        """Whether one of these options was given."""
        return any(each.name in names for each in self.options)


@lru_cache(maxsize=512)
def syntax(text: str) -> Syntax:
    """The syntax that a line of a table writes.

    `-abc` flags, `--long`, `-x=R` an option with a value, `--x?T` with an attached one at most,
    `-#` numbers; behind `|` the operands, `R*` for any number of them.
    """
    flags: set[str] = set()
    values: dict[str, EffectKind] = {}
    optional: dict[str, EffectKind] = {}
    options, _, rest = text.partition("|")
    numbers = False
    for token in options.split():
        if token == "-#":  # noqa: S105 - an option
            numbers = True
        elif "=" in token:
            name, kind = token.split("=")
            values[name] = EffectKind(kind)
        elif "?" in token:
            name, kind = token.split("?")
            optional[name] = EffectKind(kind)
        elif token.startswith("--"):
            flags.add(token)
        else:
            flags.update(f"-{letter}" for letter in token[1:])
    kinds = rest.split()
    repeated = next((at for at, kind in enumerate(kinds) if kind.endswith("*")), -1)
    return Syntax(
        flags=frozenset((*flags, "--help", "--version")),
        values=values,
        optional=optional,
        operands=tuple(EffectKind(kind[0]) for kind in kinds),
        repeated=repeated,
        numbers=numbers,
    )


def read_line(words: tuple[str, ...], known: Syntax, start: int = 1) -> Line:
    """The options and operands of a command, from the word at `start`."""
    options: list[Given] = []
    operands: list[tuple[str, int]] = []
    at = start
    while at < len(words):
        word = words[at]
        if word == "--":
            operands += [(each, at + 1 + index) for index, each in enumerate(words[at + 1 :])]
            break
        if not word.startswith("-") or word == "-":
            operands.append((word, at))
            at += 1
            continue
        found = _long(words, at, known) if word.startswith("--") else _short(words, at, known)
        if found is None:
            return Line(tuple(options), tuple(operands), unknown=word, unknown_at=at)
        given, at = found
        options += given
    return Line(tuple(options), tuple(operands))


def _long(words: tuple[str, ...], at: int, known: Syntax) -> tuple[list[Given], int] | None:
    name, equals, value = words[at].partition("=")
    if name in known.optional:
        return [Given(name, value, known.optional[name], at)], at + 1
    if name in known.values:
        if equals:
            return [Given(name, value, known.values[name], at)], at + 1
        if _is_value(words, at + 1):
            return [Given(name, words[at + 1], known.values[name], at)], at + 2
        return None
    if name in known.flags and not equals:
        return [Given(name, "", EffectKind.TEXT, at)], at + 1
    return None


def _is_value(words: tuple[str, ...], at: int) -> bool:
    """Whether a word can be the value of the option before it.

    Programs differ in what they make of one that looks like an option itself, so it is not known.
    """
    return at < len(words) and re.fullmatch(r"-?|[^-].*|-[0-9].*", words[at], re.DOTALL) is not None


def _short(words: tuple[str, ...], at: int, known: Syntax) -> tuple[list[Given], int] | None:
    word = words[at]
    if known.numbers and word[1:].isascii() and word[1:].isdigit():
        return [Given("-#", word[1:], EffectKind.TEXT, at)], at + 1
    given: list[Given] = []
    for index in range(1, len(word)):
        name, rest = f"-{word[index]}", word[index + 1 :]
        if name in known.flags:
            given.append(Given(name, "", EffectKind.TEXT, at))
        elif name in known.optional:
            return [*given, Given(name, rest, known.optional[name], at)], at + 1
        elif name in known.values and rest:
            return [*given, Given(name, rest, known.values[name], at)], at + 1
        elif name in known.values and _is_value(words, at + 1):
            return [*given, Given(name, words[at + 1], known.values[name], at)], at + 2
        elif known.numbers and index > 1 and word[index:].isdigit():
            return [*given, Given("-#", word[index:], EffectKind.TEXT, at)], at + 1
        else:
            return None
    return given, at + 1


def unknown_word(name: str, line: Line) -> Effects:
    """A command with an option that is not in the table."""
    option = line.unknown.partition("=")[0][:40]
    return opaque(f"the option {option} of {name} is not known", line.unknown_at)


def of_line(name: str, line: Line, known: Syntax) -> Effects:
    """What a command does by the kinds of its values and operands."""
    if line.unknown:
        return unknown_word(name, line)
    kinds = _operand_kinds(len(line.operands), known)
    if kinds is None:
        at = line.operands[min(len(known.operands), len(line.operands) - 1)][1]
        return opaque(f"{name} has an operand that is not known", at)
    found: list[tuple[str, EffectKind, int]] = [
        (each.value, each.kind, each.at)
        for each in line.options
        if each.kind is not EffectKind.TEXT and (each.value or each.name in known.values)
    ]
    found += [
        (text, kind, at)
        for (text, at), kind in zip(line.operands, kinds, strict=True)
        if kind is not EffectKind.TEXT
    ]
    for _, kind, at in found:
        if kind is EffectKind.CODE:
            return opaque(f"{name} is given code or a program to run", at)

    def paths(kind: EffectKind) -> tuple[str, ...]:
        # "-" is standard input or output.
        return tuple(text for text, each, _ in found if each is kind and text != "-")

    return Effects(
        reads=paths(EffectKind.READ),
        trees=paths(EffectKind.TREE),
        writes=paths(EffectKind.WRITE),
        removes=paths(EffectKind.REMOVE),
    )


def _operand_kinds(count: int, known: Syntax) -> tuple[EffectKind, ...] | None:
    """The kind of each operand; None if there are too many."""
    if known.repeated < 0:
        return known.operands[:count] if count <= len(known.operands) else None
    before = known.operands[: known.repeated]
    after = known.operands[known.repeated + 1 :]
    if count <= len(before):
        return before[:count]
    if count <= len(before) + len(after):
        # Too few to be sure which is the last: `cp a` does nothing.
        return (*before, *after)[-count:] if after else before[:count]
    middle = count - len(before) - len(after)
    return (*before, *(known.operands[known.repeated],) * middle, *after)


_HARMLESS = names("""
    CI CLICOLOR COLUMNS DEBUG FORCE_COLOR LINES NODE_ENV NO_COLOR
    PYTHONDONTWRITEBYTECODE
    PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG TERM VERBOSE""")
_LOCALES = names("LANG LANGUAGE")
_LOCALE = re.compile(r"LC_[A-Z]+\Z")
_OWN = re.compile(r"(?:[A-Z]|[a-z_][a-z0-9_]*)\Z")
_LOWER_CASE_WITH_MEANING = re.compile(
    r"(?:.*_proxy|npm_.*|_|auto_resume|histchars|cdpath|path|fpath|manpath|module_path)\Z"
)


def is_harmless(name: str, value: str = "") -> bool:
    """Whether no program or shell is known to change its behaviour by this variable.

    Programs read upper-case names (`PAGER`, `LD_PRELOAD`, …) and no list of those is whole, so only
    known harmless ones pass; single letters and lower-case names are a script's own.
    """
    if name in _LOCALES or _LOCALE.match(name):
        return "/" not in value
    if name == "TZ":
        return not value.startswith((":", "/", "."))
    if name in _HARMLESS:
        return True
    return bool(_OWN.match(name)) and not _LOWER_CASE_WITH_MEANING.match(name)
