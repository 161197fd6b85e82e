"""The command about rules: which calls are allowed, asked and denied."""

from typing import TYPE_CHECKING

from toolwire.terminal_text import one_line

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp


async def permissions(app: "TerminalApp", argument: str) -> None:
    """Shows the rules in force, in the order in which they are read."""
    del argument
    rules = app.session.toolbox.policy.terms.rules
    app.say(f"approval mode: {app.session.mode}")
    for rule in rules:
        where = f"   ({rule.origin})" if rule.origin else ""
        app.say(f"{one_line(str(rule))}{one_line(where)}")
    if not rules:
        app.say("no rules; answers for longer than once are stored in policy.toml", "dim")
