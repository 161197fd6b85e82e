"""What looking into one command gives."""

from shlex import quote

import msgspec

from toolwire.agent.commands.values import NEVER, Assignment, Command, Redirect, Word


class Inside(msgspec.Struct, frozen=True, kw_only=True):
    """A command as understood, and all that it would start, open and set."""

    command: Command
    commands: tuple[Command, ...] = ()
    texts: tuple[str, ...] = ()
    """Shell texts that it would run."""
    redirects: tuple[Redirect, ...] = ()
    named: tuple[Redirect, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    folders: tuple[Word, ...] = ()
    doubts: tuple[str, ...] = ()


def inner(words: tuple[Word, ...]) -> Command:
    """A command that another one starts, written as if it stood alone."""
    source = " ".join(quote(word.text) if word.plain else word.text for word in words)
    return Command(words=words, source=source)


def hiding(command: Command, why: str, covered_from: int = NEVER) -> Inside:
    """The command does more than its words say; only a rule that names more words permits it."""
    return Inside(command=msgspec.structs.replace(command, hidden=why, covered_from=covered_from))


def starting(
    command: Command, words: tuple[Word, ...], *, assignments: tuple[Assignment, ...] = ()
) -> Inside:
    """The command only starts another one, given by its words."""
    return Inside(
        command=msgspec.structs.replace(command, transparent=True),
        commands=(inner(words),) if words else (),
        assignments=assignments,
    )


def running_text(command: Command, text: str) -> Inside:
    """The command only runs another shell text."""
    return Inside(command=msgspec.structs.replace(command, transparent=True), texts=(text,))
