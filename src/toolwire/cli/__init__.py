"""The command line: one file per command."""

import sys

_FEW_COLLECTIONS = 20_000
"""Garbage collection threshold: loading modules creates many objects and no garbage."""


def main() -> None:
    """Run the `toolwire` command."""
    _fill_streams()
    if sys.argv[1:] == ["--version"]:
        from toolwire import __version__

        sys.stdout.write(f"toolwire {__version__}\n")
        return
    import atexit
    import gc

    gc.set_threshold(_FEW_COLLECTIONS, *gc.get_threshold()[1:])
    # At exit the interpreter would traverse all objects several times for nothing.
    atexit.register(gc.freeze)
    from toolwire.cli.commands import toolwire
    from toolwire.cli.terminal import protect_streams

    protect_streams()
    toolwire()


def _fill_streams() -> None:
    """Reopens closed stdio on /dev/null, so later files do not get descriptors 0 to 2."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open("/dev/null", mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - pathlib is slow to load; stays open
