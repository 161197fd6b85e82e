"""What git does not store of a snapshot: permissions, and folders without files."""

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from toolwire.extensions.checkpoints.states import FileState


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What git does not store: permissions, and folders without files."""

    usual: Mapping[str, int]
    """The most common permissions, by `100644`, `100755` and `folder`."""
    files: Mapping[str, int]
    """Other permissions of files, by path."""
    folders: Mapping[str, int]
    """Other permissions of folders."""
    empty: tuple[str, ...]


def table_of(paths: Mapping[str, str], empty: Iterable[str], top: str) -> Table:
    """The table of files with git's modes, and of empty folders, as they are now below `top`."""
    files: dict[str, int] = {}
    counts: dict[str, Counter[int]] = {}
    folders: dict[str, int] = {}
    for name, kind in paths.items():
        if kind == "120000":
            continue
        with suppress(OSError):
            mode = stat.S_IMODE(os.lstat(f"{top}/{name}").st_mode)
            files[name] = mode
            counts.setdefault(kind, Counter())[mode] += 1
        _add_folders(name, folders, top)
    for name in empty:
        _add_folders(f"{name}/", folders, top)
    counts["folder"] = Counter(folders.values())
    usual = {
        kind: min(count.items(), key=lambda each: (-each[1], each[0]))[0]
        for kind, count in counts.items()
        if count
    }
    return Table(
        usual=usual,
        files={k: v for k, v in files.items() if v != usual[paths[k]]},
        folders={k: v for k, v in folders.items() if v != usual["folder"]},
        empty=tuple(empty),
    )


def packed(table: Table) -> bytes:
    """The table as it is stored."""
    return json.dumps(msgspec.to_builtins(table), sort_keys=True).encode()


def unpacked(text: bytes) -> Table:
    """A stored table."""
    return msgspec.convert(json.loads(text), Table)


def state_of(mode: str, digest: str, name: str, table: Table) -> FileState | None:
    """A file of a snapshot; None for what is not a file."""
    if mode in ("000000", "160000"):
        return None
    if mode == "120000":
        return FileState("link", digest)
    usual = table.usual.get(mode, 0o755 if mode == "100755" else 0o644)
    return FileState("file", digest, table.files.get(name, usual))


def _add_folders(name: str, folders: dict[str, int], top: str) -> None:
    at = name.rfind("/")
    while at > 0 and (folder := name[:at]) not in folders:
        with suppress(OSError):
            folders[folder] = stat.S_IMODE(os.lstat(f"{top}/{folder}").st_mode)
        at = name.rfind("/", 0, at)
