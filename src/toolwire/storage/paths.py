"""Where state lives: `TOOLWIRE_HOME` if it is set, else the platform's own directories."""

from collections.abc import Mapping
from pathlib import Path

import msgspec


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The directories of one user, not yet made."""

    config: Path
    cache: Path
    credentials: Path
    """The file that holds keys and logins."""
    sessions: Path
    """What was said and done, one journal or file a session."""
    state: Path
    """What the program keeps for itself, such as the audit log."""


def places(environ: Mapping[str, str]) -> Places:
    """The places for this environment."""
    home = environ.get("TOOLWIRE_HOME", "")
    if home:
        root = Path(home).expanduser()
        return Places(
            config=root,
            cache=root / "cache",
            credentials=root / _CREDENTIALS,
            sessions=root / _SESSIONS,
            state=root,
        )
    from platformdirs import PlatformDirs  # noqa: PLC0415 - not needed when the home is given

    own = PlatformDirs("toolwire", appauthor=False)
    # Not beside the configuration, which people copy between machines and publish.
    return Places(
        config=own.user_config_path,
        cache=own.user_cache_path,
        credentials=own.user_data_path / _CREDENTIALS,
        sessions=own.user_data_path / _SESSIONS,
        state=own.user_state_path,
    )


_CREDENTIALS = "credentials.json"
_SESSIONS = "sessions"
