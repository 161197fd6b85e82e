"""Whether any installed package declares an entry point of a group, without reading them all.

The standard library parses the metadata of every package; here most runs end after a look at one
small file of each.
"""

import os
from collections.abc import Iterable

_METADATA = (".dist-info", ".egg-info")
_FILE = "entry_points.txt"


def declared(group: str, folders: Iterable[str]) -> bool:
    """Whether a package in these folders of modules may declare such an entry point."""
    return any(_declares(group.encode(), folder or os.curdir) for folder in folders)


def _declares(group: bytes, folder: str) -> bool:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are enough for most
    except NotADirectoryError:
        # An archive of modules, which only the standard library looks into.
        return True
    except OSError:
        return False
    return any(
        group in _content(f"{folder}/{name}/{_FILE}") for name in names if name.endswith(_METADATA)
    )


def _content(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - one for every package
            return file.read()
    except OSError:
        return b""
