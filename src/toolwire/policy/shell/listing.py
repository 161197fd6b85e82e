"""`find … | xargs …`: file names on their way from one command to the next, kept apart by NUL."""

import msgspec

from toolwire.policy.shell.effects import Effects
from toolwire.policy.shell.search_programs import FOUND
from toolwire.policy.shell.starters import Inner, inner

_FIND_PRINTS_OTHERWISE = frozenset(
    {"-printf", "-ls", "-exec", "-delete", "-quit", "-fprint", "-fls"}
)
_GIT_NAMES = frozenset(
    {"-c", "-d", "-m", "-o", "-z", "--cached", "--deleted", "--modified", "--others"}
    | {"--exclude-standard"}
)
_XARGS = frozenset({"-0", "-r", "-t", "--null", "--no-run-if-empty", "-n", "-P"})


class Listed(msgspec.Struct, frozen=True):
    """Both commands written so that a name cannot become two words or an option."""

    producer: tuple[str, ...]
    words: tuple[str, ...]
    effects: Effects


def with_nulls(producer: tuple[str, ...], words: tuple[str, ...]) -> Listed | None:
    """A lister of files and the xargs behind it; None if the names cannot be kept apart."""
    started = inner(words)
    if not isinstance(started, Inner) or not started.words:
        return None
    options = tuple(word for word in words[1 : started.at] if word.startswith("-"))
    if not all(word in _XARGS or word[:2] in ("-n", "-P") for word in options):
        return None
    found = _producer(producer)
    if found is None:
        return None
    written, roots, prefixed = found
    command = started.words if prefixed else (*started.words, "--")
    head = tuple(word for word in words[1 : started.at] if word not in ("-0", "--null", "--"))
    effects = Effects(reads=roots, runs=((*command, FOUND),), lists=True)
    return Listed(written, ("xargs", "-0", *head, *command), effects)


def _producer(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], bool] | None:
    """The lister with NUL between names, where it looks, and whether names start with a folder."""
    match words[:1]:
        case ("find",):
            return _find(words)
        case ("git",) if "ls-files" in words:
            at = words.index("ls-files")
            rest = words[at + 1 :]
            if all(word in _GIT_NAMES for word in rest if word.startswith("-")):
                return (*words[: at + 1], "-z", *rest), (".",), False
        case ("rg",) if {"-l", "--files", "--files-with-matches"} & set(words):
            return (words[0], "-0", *words[1:]), (".",), False
        case ("grep",) if any(word in words for word in ("-l", "-rl", "-lr", "-rli", "-ril")):
            return (words[0], "-Z", *words[1:]), (".",), False
        case _:
            pass
    return None


def _find(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], bool] | None:
    if _FIND_PRINTS_OTHERWISE & set(words):
        return None
    at = 1
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!"):
        at += 1
    starts, expression = words[1:at], words[at:]
    if any(word in ("-L", "-H", "-follow") for word in words):
        return None
    if "-print0" in expression:
        written = words
    elif "-print" in expression:
        written = tuple("-print0" if word == "-print" else word for word in words)
    elif expression:
        written = ("find", *starts, "(", *expression, ")", "-print0")
    else:
        written = ("find", *starts, "-print0")
    return written, starts or (".",), True
