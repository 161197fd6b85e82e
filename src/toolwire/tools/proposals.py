"""Values of a proposed edit: the contents of a file and its line counts."""

from pathlib import Path

import msgspec


class DiffStat(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that an edit adds and removes, those of the model and of the user apart."""

    model_added: int = 0
    model_removed: int = 0
    user_added: int = 0
    user_removed: int = 0


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """Proposed contents of a file: shown before the edit is approved."""

    path: Path
    before: str
    after: str
    new_file: bool = False
