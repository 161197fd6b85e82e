"""Programs that run code given as text: shells are read in turn, other languages are hidden."""

import re

from toolwire.agent.commands.inside import Inside, hiding, running_text
from toolwire.agent.commands.values import Command, names

_SHELLS = frozenset({"bash", "sh", "dash", "ash"})
"""Shells whose language we read. Others (zsh, fish, ksh) differ, so their text is never read."""
_NOT_IN_SH = re.compile(
    r"\[\[|\(\(|&>|\|&|<<<|[<>]\(|\$'|\$\"|function|>&[^0-9-]|select|=\(|time|coproc"
)
"""To a plain POSIX shell `[[ a && b ]]` and `((b))` run `b`."""
_OTHER_SHELLS = names("zsh fish ksh mksh csh tcsh rbash pwsh powershell nu elvish xonsh")
_CODE_OPTIONS = {
    "python": ("-c", "-"),
    "pypy": ("-c", "-"),
    "perl": ("-e", "-E", "-"),
    "ruby": ("-e", "-"),
    "node": ("-e", "-p", "--eval", "--print", "-"),
    "deno": ("eval", "-"),
    "bun": ("-e", "--eval", "-"),
    "php": ("-r", "-B", "-R", "-E", "-"),
    "lua": ("-e", "-"),
    "Rscript": ("-e", "-"),
    "R": ("-e", "-"),
    "osascript": ("-e", "-"),
    "julia": ("-e", "-E", "-"),
    "elixir": ("-e", "-"),
    "scala": ("-e",),
    "groovy": ("-e",),
    "ghc": ("-e",),
    "tclsh": ("-",),
    "guile": ("-c", "-"),
    "racket": ("-e",),
    "sbcl": ("--eval",),
    "clojure": ("-e", "-M"),
}


def look(command: Command) -> Inside | None:
    """What an interpreter runs; None for any other command."""
    name = command.root
    if name in _SHELLS:
        return _shell(command)
    if name in _OTHER_SHELLS:
        return _other_shell(command)
    family = re.sub(r"[0-9.]+\Z", "", name)
    if family in _CODE_OPTIONS:
        return _language(command, _CODE_OPTIONS[family])
    return None


def _shell(command: Command) -> Inside:
    arguments = command.words[1:]
    if not all(word.plain for word in arguments):
        return hiding(command, "a shell is given what is known only when it runs")
    texts = [word.text for word in arguments]
    at = 0
    while at < len(texts) and re.match(r"-[eux]+\Z|-o\Z|pipefail\Z", texts[at]):
        at += 1
    if (
        at + 1 < len(texts)
        and re.match(r"-[eux]*c\Z", texts[at])
        and not texts[at + 1].startswith("-")
    ):
        if command.root != "bash" and _NOT_IN_SH.search(texts[at + 1]):
            return hiding(command, "sh may read this text in another way than bash")
        return running_text(command, texts[at + 1])
    if at == len(texts):
        return hiding(command, "a shell runs whatever comes on its input")
    if texts[at].startswith("-"):
        return hiding(command, "a shell is started with options that are not read")
    return hiding(command, "a shell runs a file", at + 1 if at else 0)


def _other_shell(command: Command) -> Inside:
    for at, word in enumerate(command.words[1:], 1):
        if not word.plain or word.text.startswith("-"):
            return hiding(command, "a shell runs a text in a language that is not read", at)
    if len(command.words) == 1:
        return hiding(command, "a shell runs whatever comes on its input")
    return hiding(command, "a shell runs a file", 0)


def _language(command: Command, options: tuple[str, ...]) -> Inside:
    if len(command.words) == 1:
        return hiding(command, "an interpreter runs whatever comes on its input")
    for at, word in enumerate(command.words[1:], 1):
        if not word.plain:
            return hiding(command, "an interpreter is given what is known only when it runs", at)
        if _is_code(word.text, options):
            return hiding(command, "the command is code in another language", at)
        if not word.text.startswith("-"):
            break
    return hiding(command, "", 0)


def _is_code(text: str, options: tuple[str, ...]) -> bool:
    if text in options or text.startswith(tuple(f"{each}=" for each in options if each != "-")):
        return True
    letters = {each[1] for each in options if len(each) == 2 and each[0] == "-"}
    return (
        bool(re.match(r"-[A-Za-z]", text))
        and not text.startswith("--")
        and bool(letters & set(text[1:]))
    )
