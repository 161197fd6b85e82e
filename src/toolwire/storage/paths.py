"""State directories: `TOOLWIRE_HOME` if it is set, else the platform's own."""

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec


class StatePaths(msgspec.Struct, frozen=True, kw_only=True):
    """The directories of one user, which may not exist yet."""

    config: Path
    cache: Path
    credentials: Path
    """The file with keys and logins."""
    sessions: Path
    """Session files and recordings."""
    state: Path
    """Internal state, such as the audit log."""


def state_paths(environ: Mapping[str, str]) -> StatePaths:
    """The directories for this environment."""
    home = environ.get("TOOLWIRE_HOME", "")
    if home:
        root = Path(home).expanduser()
        return StatePaths(
            config=root,
            cache=root / "cache",
            credentials=root / _CREDENTIALS,
            sessions=root / _SESSIONS,
            state=root,
        )
    from platformdirs import PlatformDirs  # noqa: PLC0415 - not needed when the home is given

    own = PlatformDirs("toolwire", appauthor=False)
    # Not next to the configuration, which users copy between machines and publish.
    return StatePaths(
        config=own.user_config_path,
        cache=own.user_cache_path,
        credentials=own.user_data_path / _CREDENTIALS,
        sessions=own.user_data_path / _SESSIONS,
        state=own.user_state_path,
    )


def usual_cache(environ: Mapping[str, str]) -> Path | None:
    """The cache directory of this environment's user, whatever `TOOLWIRE_HOME` is; None without a
    home.
    """
    home = environ.get("HOME", "")
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA", "")
        return Path(local) / "toolwire" / "Cache" if local else None
    if sys.platform == "darwin":
        return Path(home) / "Library" / "Caches" / "toolwire" if home else None
    base = environ.get("XDG_CACHE_HOME", "") or (f"{home}/.cache" if home else "")
    return Path(base) / "toolwire" if base else None


SESSION_FILES = ".files"
"""Suffix of the folder beside a session's file, which belongs to it: its checkpoints."""
_CREDENTIALS = "credentials.json"
_SESSIONS = "sessions"
