"""The command line: one file per command."""

import sys

_FEW_COLLECTIONS = 20_000
"""New objects between two looks for garbage: loading modules makes many and leaves none of it."""


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
    # On its way out the interpreter walks all objects several times over, to no use here.
    atexit.register(gc.freeze)
    from toolwire.cli.commands import toolwire
    from toolwire.cli.streams import protect_streams

    protect_streams()
    toolwire()


def _fill_streams() -> None:
    """Streams that the parent closed lead nowhere: files we open must not take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open("/dev/null", mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - pathlib is slow to load; stays open
