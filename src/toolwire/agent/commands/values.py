"""What shell text would run, as values: commands with their words, redirects, and doubts."""

from enum import StrEnum

import msgspec

NEVER = 1_000_000
"""As `covered_from`: no prefix is long enough to cover it."""


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


class Word(msgspec.Struct, frozen=True):
    """One word of a command."""

    text: str
    """Its value with the quotes resolved; for a dynamic word, its source."""
    static: bool = True
    """The value is known before running."""
    glob: bool = False
    """Unquoted `*`, `?` or `[`: stands for file names."""
    tilde: bool = False
    """Begins with an unquoted `~`."""
    pipe: bool = False
    """A process substitution: a pipe to commands that are listed themselves."""
    quoted: bool = False
    """Some of it was quoted or escaped, so it is no keyword."""

    @property
    def plain(self) -> bool:
        """Whether it stands for just its text."""
        return self.static and not self.glob and not self.tilde


class Assignment(msgspec.Struct, frozen=True):
    """`NAME=value`, before a command or alone."""

    name: str
    value: Word


class Access(StrEnum):
    """What a redirect does to its file."""

    READ = "read"
    WRITE = "write"


class Redirect(msgspec.Struct, frozen=True):
    """A file opened by the shell, or by a program's option that names an output file."""

    access: Access
    target: Word
    source: str = ""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One simple command that would run."""

    words: tuple[Word, ...]
    source: str = ""
    """As written, for people."""
    through: tuple[str, ...] = ()
    """The wrappers it was found inside, outermost first."""
    transparent: bool = False
    """It only starts other commands, which are listed too: it needs no permission of its own."""
    hidden: str = ""
    """Why its words do not tell what it does (code in a string, a remote machine); may be empty."""
    covered_from: int = 0
    """A rule must name more than this many words to permit what is hidden."""

    @property
    def root(self) -> str:
        """The program's name without its folder; empty if not known."""
        name = self.words[0] if self.words else None
        return name.text.rsplit("/", 1)[-1] if name is not None and name.plain else ""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a shell text would do, as far as reading tells."""

    commands: tuple[Command, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    folders: tuple[Word, ...] = ()
    """Where it changes directory to, in order."""
    named: tuple[Redirect, ...] = ()
    """Files that known commands are given as arguments."""
    doubts: tuple[str, ...] = ()
    """Why it cannot be known what runs; any doubt means: ask."""
