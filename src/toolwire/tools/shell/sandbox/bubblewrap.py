"""The command line of bubblewrap for a plan: where it may make namespaces and we may not."""

import os
from collections.abc import Sequence

from toolwire.request import JsonObject

PROGRAM = "bwrap"


def words(
    program: str, plan: JsonObject, hidden: Sequence[str], frozen: Sequence[str]
) -> list[str]:
    """What runs a fork server inside; paths that need no cover are left as they are."""
    said = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--as-pid-1"]
    if not plan["network"]:
        said.append("--unshare-net")
    said += ["--bind" if plan["open"] else "--ro-bind", "/", "/"]
    said += ["--proc", "/proc", "--dev", "/dev"]
    for path in plan["scratch"]:
        if path.startswith(("/tmp", "/var/tmp")):  # noqa: S108 - replaced by an empty one
            said += ["--tmpfs", path]
    for path in plan["state"]:
        said += ["--tmpfs", path]
    for path in plan["writable"]:
        said += ["--bind", path, path]
    for path in frozen:
        said += ["--ro-bind-try", path, path]
    for path in hidden:
        said += _mask(path)
    return [*said, "--"]


def _mask(path: str) -> list[str]:

    if os.path.isdir(path):
        return ["--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind-try", "/dev/null", path]
