"""A policy that remembers answers, on the workspace as it is on disk."""

import re
from collections.abc import Callable, Mapping
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.agent.confirmations import Choice, Confirmation
from toolwire.agent.ground import Ground
from toolwire.agent.path_rules import against_paths, restriction
from toolwire.agent.policy import rule
from toolwire.agent.rules import Decision, Rule
from toolwire.agent.ruling import Ruling, Terms
from toolwire.messages import ToolCall
from toolwire.tools.paths import real
from toolwire.tools.protection import protected
from toolwire.tools.spec import Effect, Restricts, Workspace

Keep: TypeAlias = Callable[[Rule], None]
"""Writes a rule that holds from now on."""

_MOST_RULINGS = 1024
_MOST_MATCHES = 1000


def ground_of(workspace: Workspace, environ: Mapping[str, str]) -> Ground:
    """The workspace for policy: links are followed, protected files known."""

    def resolve(path: str) -> str:
        found = real(path)
        # No such path can be: nothing of the workspace is meant.
        return "/" if found is None else str(found)

    return Ground(
        roots=tuple(str(root) for root in workspace.roots),
        home=str(workspace.home),
        temp=str(workspace.temp),
        resolve=resolve,
        protected=lambda path: protected(path, workspace, environ),
        matches=_matches,
    )


def _matches(pattern: str) -> tuple[str, ...] | None:
    """What a pattern matches now; None where bash may differ, or for very many."""
    if "[" in pattern or "\\" in pattern or "**" in pattern or re.search(r"/\.[^/]*[*?]", pattern):
        return None
    found = tuple(islice(iglob(pattern), _MOST_MATCHES + 1))  # noqa: PTH207 - hidden names as in bash
    return None if len(found) > _MOST_MATCHES else found


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
