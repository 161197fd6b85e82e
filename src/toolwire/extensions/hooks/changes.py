"""What hooks change besides their answer: files that the model has seen, and variables."""

import os

from toolwire.tools.files.text import digest_of, stamp_of

_MOST_SEEN = 2_000
_LARGEST_SEEN = 16 << 20
_RUNS_CODE = ("LD_", "DYLD_", "BASH_", "GIT_CONFIG", "GIT_SSH", "GIT_EXTERNAL")
_RUNS_CODE_NAMES = frozenset(("ENV", "IFS", "PS4", "SHELLOPTS", "PROMPT_COMMAND", "NODE_OPTIONS"))
"""Variables that make other programs run their value: the policy's proofs rest on their absence."""
_OF_THE_SHELL = frozenset(("_", "SHLVL", "PWD", "OLDPWD"))


def may_be_set(name: str) -> bool:
    """Whether a hook may set a variable of later commands."""
    if name in _RUNS_CODE_NAMES or name in _OF_THE_SHELL:
        return False
    return not name.startswith(_RUNS_CODE)


def unchanged_files(seen: dict[str, str]) -> dict[str, str]:
    """Files that are as the model saw them, with their stamps."""
    found: dict[str, str] = {}
    for path, version in list(seen.items())[-_MOST_SEEN:]:
        stamp = version.partition(" ")[0]
        if stamp and _stamp(path) == stamp:
            found[path] = stamp
    return found


def see_changes(seen: dict[str, str], before: dict[str, str]) -> None:
    """Takes over what a hook changed, so that the next edit does not fail for it."""
    for path, stamp in before.items():
        if _stamp(path) in ("", stamp):
            continue
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a name
                now = stamp_of(os.fstat(file.fileno()))
                digest = digest_of(file.read(_LARGEST_SEEN))
        except OSError:
            continue
        seen[path] = f"{now} {digest}"


def _stamp(path: str) -> str:
    try:
        return stamp_of(os.stat(path))  # noqa: PTH116 - a name
    except OSError:
        return ""
