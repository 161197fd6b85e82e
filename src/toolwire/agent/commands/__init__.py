"""Shell text → the commands it would run. Whatever is not understood becomes a doubt."""

from toolwire.agent.commands.reading import read
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
