"""The command line: one file per command."""

import sys

_FEW_COLLECTIONS = 20_000
"""New objects between two looks for garbage: loading modules makes many and leaves none of it."""


def main() -> None:
    """Run the `toolwire` command."""
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

    toolwire()
