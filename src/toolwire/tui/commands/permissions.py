"""The command about rules: which calls are allowed, asked and denied."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.app.toolbox import RULES, drop_rule, store_rule
from toolwire.config.schema import rendered
from toolwire.errors import BadInput
from toolwire.policy import rule_file
from toolwire.policy.engine import rule
from toolwire.policy.rules import Rule, Verdict, widened
from toolwire.policy.ruling import BUILT_IN, Ruling
from toolwire.storage.paths import state_paths
from toolwire.terminal_text import one_line
from toolwire.tools.spec import Effect
from toolwire.tui.views.lists import EDITED, ListItem, ListView, Picked

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_SHELL = "run_shell_command"
_ACTIONS = {"a": "adds", "Del": "removes", "t": "tries a command"}
_ADD = "allow, ask or deny, then a tool or run_shell_command(git log)"


async def permissions(app: "TerminalApp", argument: str) -> None:
    """Shows the rules in force with their origin; adds, removes and tries them."""
    word, _, rest = argument.partition(" ")
    match word:
        case "":
            await _list(app)
        case "try":
            app.say(_tried(app, rest))
        case "allow" | "ask" | "deny":
            app.say(_added(app, argument), "dim")
        case _:
            raise BadInput("/permissions try COMMAND, or /permissions allow|ask|deny TOOL")


async def _list(app: "TerminalApp") -> None:
    key, message, doing = "", "", ""
    while True:
        rules = app.session.toolbox.policy.terms.rules
        items = [_item(str(at), one) for at, one in enumerate(rules)]
        items += [_item("", one) for one in BUILT_IN]
        labels = {"a": _ADD, "t": "command"}
        view = ListView(
            app.surface,
            f"rules in {app.session.mode} mode; a deny comes before an ask, an ask before an allow",
            items,
            actions=_ACTIONS,
            enter="",
            chosen=key,
            entry=(labels[doing], "") if doing else None,
            message=message,
        )
        picked: Picked = await app.open(view)
        key, message = picked.key, ""
        try:
            match picked.action:
                case "a" | "t":
                    doing = picked.action
                    continue
                case "Del":
                    message = _removed(app, rules, key)
                case _ if picked.action == EDITED:
                    message = _tried(app, picked.text) if doing == "t" else _added(app, picked.text)
                case _:
                    return
        except BadInput as error:
            message = str(error)
        doing = ""


def _item(key: str, one: Rule) -> ListItem:
    limits = [f"in {one.modes[0]}…" if one.modes else "", "this project" if one.project else ""]
    about = f"{one.scope}. {one.reason}".strip()
    where = one.origin or "-"
    return ListItem(
        key=key,
        cells=(
            str(one.decision),
            str(one).partition(" ")[2],
            ", ".join(filter(None, limits)),
            where,
        ),
        about=about,
    )


def _file(app: "TerminalApp") -> Path:
    return state_paths(app.start.environ).config / RULES


def _added(app: "TerminalApp", text: str) -> str:
    """Stores a rule and applies it; returns what happened."""
    decision, _, entry = text.strip().partition(" ")
    if decision not in tuple(Verdict) or not entry.strip():
        raise BadInput(f"write {_ADD}")
    file = _file(app)
    found = rule_file.load(f"{decision} = [{rendered(entry.strip())}]", str(file))
    for one in found:
        store_rule(file, one, "# added with /permissions")
    policy = app.session.toolbox.policy
    places = rule_file.with_absolute_paths(found, policy.terms.locations)
    rules = (*policy.terms.rules, *widened(places, policy.terms.locations))
    policy.terms = msgspec.structs.replace(policy.terms, rules=rules)
    return f"added to {file}: {'; '.join(map(str, found))}"


def _removed(app: "TerminalApp", rules: tuple[Rule, ...], key: str) -> str:
    if not key:
        raise BadInput("a built-in rule cannot be removed; add one that denies")
    chosen = rules[int(key)]
    policy = app.session.toolbox.policy
    locations = policy.terms.locations

    def same(one: Rule) -> bool:
        placed = widened(rule_file.with_absolute_paths((one,), locations), locations)
        return any(rule_file.dump(each) == rule_file.dump(chosen) for each in placed)

    stored = drop_rule(_file(app), same)
    if not stored and not chosen.origin.startswith("answer"):
        raise BadInput(f"it comes from {one_line(chosen.origin)}; change it there")
    left = tuple(one for at, one in enumerate(rules) if at != int(key))
    policy.terms = msgspec.structs.replace(policy.terms, rules=left)
    return f"removed: {chosen}" + (f", also from {_file(app)}" if stored else "")


def _tried(app: "TerminalApp", command: str) -> str:
    """What would happen to a command now, and why; nothing is run."""
    if not command.strip():
        raise BadInput("name a command: /permissions try git push")
    terms = app.session.toolbox.policy.terms
    ruling: Ruling = rule(_SHELL, Effect.EXECUTE, (), {"command": command}, terms)
    by = f" ({ruling.rule})" if ruling.rule else ""
    return one_line(f"{ruling.decision}: {command}   {ruling.reason}{by}")
