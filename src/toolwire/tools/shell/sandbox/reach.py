"""What Landlock alone can allow: it has no exceptions, so parts of folders are named."""

import os
from collections.abc import Sequence

from toolwire.request import JsonObject


def without_exceptions(plan: JsonObject, hidden: Sequence[str]) -> JsonObject:
    """The plan with rules that leave the hidden paths out.

    In a writable folder that holds a hidden file, entries that are there can be changed, and new
    ones cannot be made.
    """
    listable: list[str] = []
    # Processes come and go: a list of them would be old at once.
    hidden = [path for path in hidden if not path.startswith("/proc/")]
    holes = plan["writable"]
    readable = _spread("/", [path for path in hidden if path not in holes], listable)
    writable = [one for path in plan["writable"] for one in _spread(path, hidden, listable)]
    everything = {"readable": readable, "listable": listable}
    if plan["open"]:
        return plan | everything
    scratch = [one for path in plan["scratch"] for one in _spread(path, hidden, listable)]
    return plan | everything | {"writable": writable, "scratch": scratch}


def _spread(path: str, hidden: Sequence[str], listable: list[str]) -> list[str]:
    """The path if nothing in it is hidden, else the parts of it of which that is true."""
    if path in hidden:
        return []
    inside = [one for one in hidden if one.startswith(f"{path.rstrip('/')}/")]
    if not inside:
        return [path]
    listable.append(path)
    try:
        # A rule at a link would hold for what it points to.
        entries = [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
    except OSError:
        return []
    return [part for entry in entries for part in _spread(entry, inside, listable)]
