"""What differs between operating systems: the only package that imports a module one of them lacks.

Both back ends define the same names. `posix` is for Linux and macOS, `windows` for Windows; the
other one refuses to be imported.
"""

import sys

if sys.platform == "win32":
    from toolwire.platform.jobs import Lifeline
    from toolwire.platform.windows import (
        FILE,
        FOLDER,
        access_at,
        account_home,
        bytes_waiting,
        discard_input,
        handle_signals,
        has_input,
        keep_attributes,
        link_at,
        lock_file,
        mkdir_at,
        open_at,
        pread,
        raw_echo,
        raw_keys,
        read_input,
        replace_at,
        scandir,
        stat_at,
        sync_folder,
        unlink_at,
        wait_for_bytes,
        wait_for_input,
    )
else:
    from toolwire.platform.posix import (
        FILE,
        FOLDER,
        Lifeline,
        access_at,
        account_home,
        bytes_waiting,
        discard_input,
        handle_signals,
        has_input,
        keep_attributes,
        link_at,
        lock_file,
        mkdir_at,
        open_at,
        pread,
        raw_echo,
        raw_keys,
        read_input,
        replace_at,
        scandir,
        stat_at,
        sync_folder,
        unlink_at,
        wait_for_bytes,
        wait_for_input,
    )

__all__ = [
    "FILE",
    "FOLDER",
    "Lifeline",
    "access_at",
    "account_home",
    "bytes_waiting",
    "discard_input",
    "handle_signals",
    "has_input",
    "keep_attributes",
    "link_at",
    "lock_file",
    "mkdir_at",
    "open_at",
    "pread",
    "raw_echo",
    "raw_keys",
    "read_input",
    "replace_at",
    "scandir",
    "stat_at",
    "sync_folder",
    "unlink_at",
    "wait_for_bytes",
    "wait_for_input",
]
