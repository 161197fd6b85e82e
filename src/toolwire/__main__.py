"""`python -m toolwire`: the same as the `toolwire` command."""

from toolwire.cli import main

main()
