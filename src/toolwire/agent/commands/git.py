"""git: options and settings through which it runs other commands or writes files."""

import re

from toolwire.agent.commands.inside import Inside, hiding
from toolwire.agent.commands.values import Access, Command, Redirect, Word, names

_MAKES_FOLDERS = names("clone init worktree bundle mv fast-export checkout-index")
_REMOTE = names("clone fetch pull push remote ls-remote archive submodule")
_HELPER = re.compile(r"\w+::")
"""`ext::command`: an address that names a program."""
_SEARCHED = ("--grep", "--author", "--committer", "-S", "-G", "--format", "--pretty")
_SAID = ("--message", "--author", "--trailer")
HARMLESS_OPTIONS = frozenset({"--no-pager", "-P", "--literal-pathspecs", "--no-optional-locks"})
_RUNS = (
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--ext-diff",
    "--open-files-in-pager",
    "--extcmd",
    "--config",
    "--template",
)
_HIDING_SUBCOMMANDS = names("""
    config bisect filter-branch difftool mergetool daemon send-email shell submodule hook
    instaweb p4 svn cvsserver web--browse credential maintenance fast-import""")


def look(command: Command) -> Inside:
    """What a git command would run beside git."""
    words = command.words
    at = 1
    while at < len(words) and words[at].plain and words[at].text in HARMLESS_OPTIONS:
        at += 1
    if at == len(words):
        return Inside(command=command)
    if not words[at].plain:
        return hiding(command, "what git does is known only when it runs")
    subcommand = words[at].text
    if subcommand.startswith("-"):
        # -c, --exec-path, --git-dir, -C: all can name settings that run commands.
        if subcommand in ("--version", "--help", "-h", "-v"):
            return Inside(command=command)
        return hiding(command, f"git is used with {subcommand}, which can make it run commands", at)
    if subcommand in _HIDING_SUBCOMMANDS:
        return hiding(command, f"git {subcommand} can run other commands", at + 1)
    redirects: list[Redirect] = []
    named: list[Redirect] = []
    access = Access.WRITE if subcommand in _MAKES_FOLDERS else Access.READ
    for position, word in enumerate(words[at + 1 :], at + 1):
        if word.static and _runs(word.text, subcommand):
            return hiding(command, f"git {subcommand} is told to run something", position)
        if word.static and _writes(word.text, subcommand):
            redirects.append(Redirect(Access.WRITE, _target(words, position), command.source))
        if not _is_words(words, position, subcommand):
            named += [Redirect(access, place, command.source) for place in _places(word)]
    return Inside(command=command, redirects=tuple(redirects), named=tuple(named))


def _is_words(words: tuple[Word, ...], position: int, subcommand: str) -> bool:
    """Whether a word is what an option searches for or says, and no path."""
    before, text = words[position - 1].text, words[position].text
    options = _SEARCHED if subcommand in ("log", "show", "diff", "shortlog", "rev-list") else ()
    if subcommand in ("commit", "tag", "merge", "stash", "notes"):
        options = _SAID
        if re.match(r"-[a-z]*m\Z", before):
            return True
    return before in options or text.startswith(tuple(f"{each}=" for each in options))


def _places(word: Word) -> list[Word]:
    """Where a word may lead: one without a dash may be a path, an option's value looks like one."""
    if not word.static:
        return []
    if not word.text.startswith("-"):
        # A revision is a path too, of a file that is not there; patterns are git's to match.
        return [word] if word.plain or word.tilde else []
    _, equals, value = word.text.partition("=")
    if not equals:
        value = word.text[2:]
    return [Word(value)] if value.startswith(("/", "../")) or value == ".." else []


def _runs(text: str, subcommand: str) -> bool:
    if subcommand in _REMOTE and _HELPER.match(text):
        return True
    name = text.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 3 and any(option.startswith(name) for option in _RUNS)
    short = {"grep": "O", "rebase": "x", "clone": "uc", "fetch": "u", "difftool": "x"}.get(
        subcommand, ""
    )
    return name.startswith("-") and any(letter in name[1:] for letter in short)


def _writes(text: str, subcommand: str) -> bool:
    name = text.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 3 and (
            "--output".startswith(name) or "--output-directory".startswith(name)
        )
    return subcommand in ("archive", "format-patch", "bundle") and text.startswith("-o")


def _target(words: tuple[Word, ...], position: int) -> Word:
    _, equals, value = words[position].text.partition("=")
    if equals:
        return Word(value)
    if words[position].text.startswith("-o") and len(words[position].text) > 2:
        return Word(words[position].text[2:])
    return words[position + 1] if position + 1 < len(words) else Word("", static=False)
