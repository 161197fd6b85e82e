"""`python -m toolwire`: the same as the `toolwire` command."""

import os
import sys


def _forget_current_folder() -> None:
    """Removes the current folder from sys.path: a project's modules would shadow ours."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib is slow to load
    try:
        here = os.getcwd()  # noqa: PTH109 - same
    except OSError:
        # It was deleted; the command reports that.
        return
    if not sys.flags.safe_path and sys.path[:1] == [here] and ours != here:
        del sys.path[0]


_forget_current_folder()

from toolwire.cli import main  # noqa: E402 - not before

main()
