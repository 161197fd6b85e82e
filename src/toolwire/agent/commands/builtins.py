"""The shell's own commands that change what later commands mean, or run text."""

import re

import msgspec

from toolwire.agent.commands.inside import Inside, hiding, running_text, starting
from toolwire.agent.commands.values import Assignment, Command, Word, names

_CHANGES_THE_SHELL = names("""
    alias unalias shopt enable hash bind complete compopt compgen let mapfile readarray getopts
    fc history coproc caller dirs popd ulimit umask suspend logout disown typeset declare local
    readonly export unset""")
_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_SET_OPTIONS = re.compile(
    r"[-+][eufxvnCh]+\Z|[-+][eufxvnCh]*o\Z|pipefail\Z|errexit\Z|nounset\Z|xtrace\Z|noclobber\Z|--\Z"
)
_UNKNOWN = Word("", static=False)


def look(command: Command) -> Inside | None:
    """What a builtin does; None for any other command."""
    name, arguments = command.words[0].text, command.words[1:]
    match name:
        case "eval":
            return _eval(command, arguments)
        case "source" | ".":
            return hiding(command, "it runs a file in this shell", 1)
        case "trap":
            return _trap(command, arguments)
        case "cd" | "pushd":
            return _folder(command, arguments)
        case "command" | "builtin" | "exec":
            return _same_shell(command, arguments)
        case "read":
            return _read(command, arguments)
        case "printf" | "wait" if any(_may_be(word, "-v", "-p") for word in arguments):
            return hiding(command, f"{name} sets a variable by name")
        case "test" | "[" if any(_may_be(word, "-v", "-R") for word in arguments):
            return hiding(command, "it tests a variable by name, which may run a command")
        case "set" if not all(word.plain and _SET_OPTIONS.match(word.text) for word in arguments):
            return hiding(command, "it changes how the shell works")
        case _ if name in _CHANGES_THE_SHELL:
            return hiding(command, f"{name} changes what later commands mean")
        case _:
            return None


def _may_be(word: Word, *options: str) -> bool:
    return not word.static or word.glob or word.text.startswith(options)


def _eval(command: Command, arguments: tuple[Word, ...]) -> Inside:
    if not all(word.plain for word in arguments):
        return hiding(command, "eval runs a text that is known only when it runs")
    if arguments and arguments[0].text == "--":
        arguments = arguments[1:]
    return running_text(command, " ".join(word.text for word in arguments))


def _trap(command: Command, arguments: tuple[Word, ...]) -> Inside:
    if not arguments or not arguments[0].plain or arguments[0].text.startswith("-"):
        return hiding(command, "trap runs a text that is known only when it runs")
    return running_text(command, arguments[0].text)


def _folder(command: Command, arguments: tuple[Word, ...]) -> Inside:
    places = [word for word in arguments if word.text not in ("-L", "--")]
    if len(places) != 1 or not places[0].static or places[0].text.startswith(("-", "+")):
        return Inside(command=command, folders=(Word("~", tilde=True),))
    return Inside(command=command, folders=(places[0],))


def _same_shell(command: Command, arguments: tuple[Word, ...]) -> Inside:
    name = command.words[0].text
    if not arguments:
        return starting(command, ())
    first = arguments[0]
    if name == "command" and first.plain and first.text in ("-v", "-V"):
        return Inside(command=command)
    if first.plain and first.text in ("--", "-p") and name != "exec":
        return starting(command, arguments[1:])
    if not first.static or first.text.startswith("-"):
        return hiding(command, f"{name} is used with options that are not read")
    return starting(command, arguments)


def _read(command: Command, arguments: tuple[Word, ...]) -> Inside:
    """`read` puts unknown text into variables; its options take values that look like names."""
    names = [word for word in arguments if not word.text.startswith("-")]
    if not all(word.plain and _NAME.match(word.text) for word in names):
        return hiding(command, "read sets a variable by name")
    set_names = [word.text for word in names] or ["REPLY"]
    assignments = tuple(Assignment(name, _UNKNOWN) for name in set_names if name != "REPLY")
    return Inside(command=msgspec.structs.replace(command), assignments=assignments)
