"""Variables that may be set without changing what a command does."""

import re

from toolwire.policy.shell.syntax import names

_HARMLESS = names("""
    CI CLICOLOR COLUMNS DEBUG FORCE_COLOR LINES NODE_ENV NO_COLOR
    PYTHONDONTWRITEBYTECODE
    PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG TERM VERBOSE""")
_LOCALES = names("LANG LANGUAGE")
_LOCALE = re.compile(r"LC_[A-Z]+\Z")
_OWN = re.compile(r"(?:[A-Z]|[a-z_][a-z0-9_]*)\Z")
_LOWER_CASE_WITH_MEANING = re.compile(
    r"(?:.*_proxy|npm_.*|_|auto_resume|histchars|cdpath|path|fpath|manpath|module_path)\Z"
)


def is_harmless(name: str, value: str = "") -> bool:
    """Whether no program or shell is known to change its behaviour by this variable.

    Programs read upper-case names (`PAGER`, `LD_PRELOAD`, …) and no list of those is whole, so only
    known harmless ones pass; single letters and lower-case names are a script's own.
    """
    if name in _LOCALES or _LOCALE.match(name):
        return "/" not in value
    if name == "TZ":
        return not value.startswith((":", "/", "."))
    if name in _HARMLESS:
        return True
    return bool(_OWN.match(name)) and not _LOWER_CASE_WITH_MEANING.match(name)
