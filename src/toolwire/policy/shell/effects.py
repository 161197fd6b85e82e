"""What a command does: the files it reads and writes, what it starts, what is not known."""

import msgspec

NEVER = 1_000_000
"""As `covered_from`: no rule names enough words."""


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """What one command does, beyond computing and printing."""

    known: bool = True
    """Whether the program is in the tables; of any other a rule has to speak."""
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
    """The index of the first word of the command it starts, where it is a part of its own."""
    fed: bool = False
    """Further words for that command come from its input."""
    lists: bool = False
    """The names come from the command before it in the pipe."""
    script: str | None = None
    """Shell text that it runs."""
    changes: str = ""
    """What it changes besides files of the workspace: the network, processes, a repository."""
    opaque: str = ""
    """Why its words do not say what it does."""
    covered_from: int = NEVER
    """A rule that names more than this many words covers what is opaque."""
    words: tuple[str, ...] | None = None
    """What runs in place of the words as written."""
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
    """A command whose words do not say what it does."""
    return Effects(opaque=reason, covered_from=covered_from)
