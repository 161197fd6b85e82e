"""Shell text → the commands it would run. Whatever is not understood becomes a doubt."""

from toolwire.agent.commands.values import (
    NEVER,
    Access,
    Assignment,
    Command,
    Redirect,
    Script,
    Word,
)

__all__ = ["NEVER", "Access", "Assignment", "Command", "Redirect", "Script", "Word", "read"]


def read(text: str) -> Script:
    """Everything that the text would run; never raises for any text."""
    from toolwire.agent.commands.reading import read_script  # noqa: PLC0415 - loads the grammar

    return read_script(text)
