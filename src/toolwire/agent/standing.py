"""Policy with memory: applies the rules and records approvals."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.agent.confirmations import Choice, Confirmation
from toolwire.agent.path_rules import against_paths, restriction
from toolwire.agent.policy import rule
from toolwire.agent.rules import Decision, Rule
from toolwire.agent.ruling import Ruling, Terms
from toolwire.messages import ToolCall
from toolwire.tools.spec import Effect, Restricts

Keep: TypeAlias = Callable[[Rule], None]
"""Writes a rule that holds from now on."""

_MOST_RULINGS = 1024


class StandingPolicy:
    """The scheduler asks it for rulings, and tells it of each yes that holds on."""

    def __init__(self, terms: Terms, keep: Keep) -> None:
        self.terms = terms
        self._keep = keep
        self._rulings: dict[str, Ruling] = {}

    def __call__(self, call: ToolCall, effect: Effect, places: tuple[Path, ...] = ()) -> Ruling:
        ruling = rule(call, effect, (str(place) for place in places), self.terms)
        self._rulings.pop(call.id, None)
        self._rulings[call.id] = ruling
        while len(self._rulings) > _MOST_RULINGS:
            self._rulings.pop(next(iter(self._rulings)))
        return ruling

    @property
    def restricts(self) -> Restricts | None:
        """What the rules say of a tool that comes across a path; None if there are none."""
        # Answers of the user only allow: what restricts is known from the start.
        rules = against_paths(self.terms.rules)
        if not rules:
            return None
        return lambda tool, path: restriction(rules, self.terms.mode, tool, path)

    def ruling(self, call_id: str) -> Ruling | None:
        """The last ruling on a call, as long as it is remembered."""
        return self._rulings.get(call_id)

    def remember(self, confirmation: Confirmation, choice: Choice) -> None:
        """Keeps a yes: for the session, for always, or for a whole MCP server."""
        ruling = self._rulings.get(confirmation.call.id)
        if ruling is None or ruling.decision is not Decision.ASK:
            return
        if choice not in (Choice.SESSION, Choice.ALWAYS, Choice.SERVER):
            return
        rules = ruling.remembers
        if choice is Choice.SERVER:
            server = self.terms.servers.get(confirmation.call.name, "")
            rules = (Rule(decision=Decision.ALLOW, server=server),) if server else ()
        origin = "answer: always" if choice is Choice.ALWAYS else "answer: this session"
        rules = tuple(msgspec.structs.replace(each, origin=origin) for each in rules)
        self.terms = msgspec.structs.replace(self.terms, rules=(*self.terms.rules, *rules))
        if choice is Choice.ALWAYS:
            for each in rules:
                self._keep(each)
