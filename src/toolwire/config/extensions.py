"""The settings of hooks and skills."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from toolwire.setting import Count, setting


class HookTable(msgspec.Struct, frozen=True, kw_only=True):
    """One `[[hooks.EVENT]]` table as it was written; read when hooks are first needed."""

    event: str
    table: Mapping[str, Any]
    kind: str
    """`system`, `user` or `project`: the file that has it."""
    file: Path | None = None


class HookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[hooks]` table of the configuration."""

    from_: Annotated[
        tuple[Literal["claude", "gemini"], ...],
        setting("Programs whose settings files define further hooks, which run as they are."),
    ] = ()
    enabled: Annotated[bool, setting("Run hooks.")] = True
    stop_limit: Annotated[
        Count, setting("How often in a row Stop hooks may refuse the end of a turn.")
    ] = 8
    idle_seconds: Annotated[
        Count,
        setting(
            "Seconds after a turn, with nothing written, before Notification hooks run; 0: never."
        ),
    ] = 60
    tables: tuple[HookTable, ...] = ()
    """What `[[hooks.EVENT]]` define, lowest precedence first."""

    @property
    def any(self) -> bool:
        """Whether there may be a hook to run."""
        return self.enabled and bool(self.tables or self.from_)


SKILL_FOLDERS = (".agents/skills", ".toolwire/skills", ".claude/skills", ".gemini/skills")
"""Folders of skills in a project and below the home folder, highest precedence first."""


class SkillSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[skills]` table of the configuration."""

    enabled: Annotated[bool, setting("Offer skills.")] = True
    exclude: Annotated[
        tuple[str, ...],
        setting(
            "Skills that are not offered; a project may add to them.", project=True, joins=True
        ),
    ] = ()
    paths: Annotated[tuple[str, ...], setting("Further folders of skills.")] = ()

    def folders(
        self, cwd: Path, home: Path, config: Path, *, trusted: bool
    ) -> list[tuple[Path, str, bool]]:
        """Folders of skills that exist, with their origin and whether the project brings them."""
        project = [(cwd / one, one, True) for one in SKILL_FOLDERS] if trusted else []
        user = [(home / one, f"~/{one}", False) for one in SKILL_FOLDERS]
        own = (config / "skills", "user", False)
        more = [(home / Path(one).expanduser(), one, False) for one in self.paths]
        found = (*project, *user, own, *more)
        return [one for one in found if one[0].is_dir() and self.enabled]
