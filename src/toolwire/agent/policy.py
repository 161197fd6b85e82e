"""Policy: may a call run? Effects × mode × place × rules; whatever is not understood is asked."""

from collections.abc import Iterable
from typing import cast

import msgspec

from toolwire.agent.permits import permits
from toolwire.agent.rules import Act, Decision
from toolwire.agent.ruling import Finding, Ruling, Terms, rule_on, shown, strictest
from toolwire.agent.shell_ruling import ShellRuling
from toolwire.messages import ToolCall
from toolwire.policy.shell import Unproven, prove
from toolwire.policy.shell.commands import effects_of, inner_commands, program_name
from toolwire.request import JsonObject
from toolwire.tools.spec import Effect

NOBODY = (
    "There is no one to approve it here. Reach the goal with what is allowed, or tell the user "
    "what to allow: --allowed-tools, a rule in the rule file, or another --approval-mode."
)


def rule(call: ToolCall, effect: Effect, places: Iterable[str], terms: Terms) -> Ruling:
    """The ruling on a call: pure, and never more generous when something goes wrong."""
    try:
        ruling = _rule(call, effect, tuple(places), terms)
    except Exception as error:  # the outermost edge of the engine: any failure asks
        ruling = Ruling(
            decision=Decision.ASK,
            reason=f"The policy could not rule on this call ({type(error).__name__}).",
            rule="engine error",
        )
    if terms.headless and ruling.decision is Decision.ASK:
        return msgspec.structs.replace(
            ruling, decision=Decision.DENY, reason=f"{ruling.reason} {NOBODY}"
        )
    return ruling


def _rule(call: ToolCall, effect: Effect, places: tuple[str, ...], terms: Terms) -> Ruling:
    arguments = _arguments(call)
    act = Act(
        tool=call.name,
        effect=effect,
        mode=terms.mode,
        server=terms.servers.get(call.name, ""),
        arguments=tuple((name, _as_text(value)) for name, value in arguments.items()),
    )
    command = arguments.get("command")
    if call.name == terms.shell and isinstance(command, str):
        return _rule_on_shell(command, _as_text(arguments.get("directory") or ""), act, terms)
    writes = effect is not Effect.READ
    spots = tuple(terms.ground.spot(place, writes=writes) for place in places)
    return _ruling(rule_on(act, spots, terms), ())


def _rule_on_shell(command: str, directory: str, act: Act, terms: Terms) -> Ruling:
    shell = ShellRuling(act, terms)
    text = shell.rule(command, directory)
    roots = tuple(dict.fromkeys(shell.roots))
    ruling = _ruling(tuple(shell.findings), roots or _first_words(command))
    allowed, approved = permits(shell, text, terms)
    return msgspec.structs.replace(ruling, permit=allowed, approved=approved)


def _ruling(found: tuple[Finding, ...], roots: tuple[str, ...]) -> Ruling:
    decision, deciding = strictest(found)
    reasons = tuple(dict.fromkeys(each.reason for each in deciding if each.reason))
    more = f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else ""
    asking = decision is Decision.ASK
    complete = asking and all(each.remembers for each in deciding)
    remembers = (rule for each in deciding for rule in each.remembers) if complete else ()
    return Ruling(
        decision=decision,
        reason=" ".join(reasons[:3]) + more,
        rule=next((each.rule for each in deciding if each.rule), ""),
        roots=roots,
        asks=reasons if asking else (),
        remembers=tuple(dict.fromkeys(remembers)),
    )


def _arguments(call: ToolCall) -> JsonObject:
    decoded: object = msgspec.json.decode(call.arguments or "{}")
    if not isinstance(decoded, dict):
        raise TypeError("arguments are no object")
    return cast(JsonObject, decoded)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def roots(command: str) -> tuple[str, ...]:
    """The programs a shell text would start, for the question to the person."""
    script = prove(command)
    if isinstance(script, Unproven):
        return _first_words(command)
    started = (
        words
        for each in script.commands()
        if each.words
        for words in inner_commands(tuple(word.text for word in each.words))
    )
    names = (program_name(words[0]) for words in started if not effects_of(words).runs_at)
    return tuple(dict.fromkeys(names))


def _first_words(command: str) -> tuple[str, ...]:
    """The first word of a text that is not proven, to name it by."""
    return tuple(shown(word) for word in command.split()[:1])
