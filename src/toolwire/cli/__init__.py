"""The command line: one file per command."""

import sys


def main() -> None:
    """Run the `toolwire` command."""
    if sys.argv[1:] == ["--version"]:
        from toolwire import __version__

        sys.stdout.write(f"toolwire {__version__}\n")
        return
    from toolwire.cli.commands import toolwire

    toolwire()
