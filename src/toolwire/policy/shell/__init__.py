"""Proof of shell text: a small grammar of our own, what its commands do, and the rewritten text.

`prove(text)` returns a `Script` whose `text` is what runs (every word quoted, nothing left for the
shell to expand), or `Unproven` with the reason. What the commands of a script do is in `effects`.
"""

from toolwire.policy.shell.parser import prove
from toolwire.policy.shell.syntax import (
    Assignment,
    Command,
    Script,
    Subshell,
    Unproven,
    Word,
)

__all__ = ["Assignment", "Command", "Script", "Subshell", "Unproven", "Word", "prove"]
