"""What of another program's settings becomes ours: settings, tables, rules, and the account."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec

from toolwire import providers
from toolwire.client.redact import is_secret_name
from toolwire.config.schema import keys, rendered
from toolwire.errors import BadInput
from toolwire.mcp import imports
from toolwire.mcp.lists import members
from toolwire.policy.rules import Rule, Verdict

Table: TypeAlias = Mapping[str, Any]
State: TypeAlias = Literal["taken", "mapped", "not taken"]
ABSENT = "toolwire has no such setting"


class ImportedMember(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one member of the other program's settings."""

    key: str
    state: State
    words: str
    """Where it went, or why not."""


class Plan:
    """Collects what a document gives; nothing is written by it."""

    def __init__(self, *, shared: bool = False, project: str = "") -> None:
        self.shared = shared
        """The document came with the project: it may forbid, and allows nothing."""
        self.project = project
        """The only workspace in which the rules apply; empty for all."""
        self.settings: dict[str, Any] = {}
        self.servers: dict[str, dict[str, Any]] = {}
        self.providers: dict[str, dict[str, Any]] = {}
        self.rules: list[Rule] = []
        self.asked: list[tuple[str, Rule]] = []
        """Rules that allow something, for which the user is asked."""
        self.entries: list[ImportedMember] = []

    def take(self, key: str, ours: str, value: Any) -> None:
        """A setting, if ours takes such a value."""
        known = keys()[ours]
        if self.project and not known.project:
            self.leave(key, f"a project may not set {ours}")
            return
        try:
            known.read(value)
        except BadInput as error:
            self.leave(key, str(error))
            return
        self.settings[ours] = value
        self._add(key, "taken" if key == ours else "mapped", f"{ours} = {rendered(value)}")

    def rule(self, key: str, rule: Rule) -> None:
        """A rule; one that allows is not taken from a file that others wrote."""
        if self.shared and rule.decision == "allow":
            self.leave(key, "a file of the project allows nothing; answer when you are asked")
            return
        rule = msgspec.structs.replace(rule, project=self.project)
        if rule not in self.rules:
            self.rules.append(rule)
        self._add(key, "mapped", f"rule: {rule}")

    def take_servers(self, program: str, document: Table, folder: Any) -> None:
        """The MCP servers, with what of each is left out."""
        for name, one in imports.read(program, document, folder).items():
            key = f"{imports.PROGRAMS[program].key}.{name}"
            if one.why:
                self.leave(key, one.why)
                continue
            self.servers[name] = self._without_secrets(key, one.table)
            self._add(key, "mapped", f"mcp_servers.{name}")
            for member in one.left_out:
                if member == "alwaysAllow" and not self.shared:
                    tools = members(members(document.get(imports.PROGRAMS[program].key)).get(name))
                    self._ask_about(f"{key}.{member}", name, texts(tools.get(member)))
                    continue
                self.leave(f"{key}.{member}", _WHY_NOT.get(member, ABSENT))

    def _ask_about(self, key: str, server: str, tools: tuple[str, ...]) -> None:
        for tool in tools:
            rule = Rule(decision=Verdict.ALLOW, server=server, tool=tool, project=self.project)
            self.asked.append((f"{key}: {tool}", rule))

    def _without_secrets(self, key: str, table: dict[str, Any]) -> dict[str, Any]:
        """A server's table with the names of secret variables in place of their values."""
        found = dict(table)
        names = list(texts(table.get("env_vars")))
        for member in ("env", "headers"):
            kept: dict[str, Any] = {}
            for name, value in members(table.get(member)).items():
                if not is_secret_name(name) or str(value).removeprefix("Bearer ").startswith("$"):
                    kept[name] = value
                    continue
                names += [name] if member == "env" else []
                self.leave(f"{key}.{member}.{name}", _SECRET_OF[member].format(name))
            found[member] = kept
        found["env_vars"] = names
        return {name: value for name, value in found.items() if value not in ({}, [])}

    def take_provider(self, key: str, name: str, table: dict[str, Any]) -> None:
        """A provider of the user's own."""
        if self.project:
            self.leave(key, "a project may not define providers")
            return
        if name in providers.names():
            # Another address of a provider that is known here: its format stays.
            table = {"extends": name, **{k: v for k, v in table.items() if k != "dialect"}}
        self.providers[name] = table
        self._add(key, "mapped", f"providers.{name}")

    def leave(self, key: str, why: str) -> None:
        """A member that is not taken."""
        self._add(key, "not taken", why)

    def _add(self, key: str, state: State, words: str) -> None:
        self.entries.append(ImportedMember(key=key, state=state, words=words))


_SECRET_OF = {
    "env": "secrets are never taken over; set {} where you start",
    "headers": "secrets are never taken over; use bearer_token_env or toolwire mcp login",
}
_WHY_NOT = {
    "trust": "trust is never taken over",
    "alwaysAllow": "answer when you are asked",
}

Special: TypeAlias = Callable[[Plan, str, Any], None]


class MemberReader(msgspec.Struct, frozen=True, kw_only=True):
    """How the members of one program's document are read."""

    same: Mapping[str, str] = {}
    """Their path and ours, where the value is the same."""
    special: Mapping[str, Special] = {}
    """Paths with a function of their own; it gets the whole value."""
    ignored: tuple[str, ...] = ()
    """Paths that say nothing about how the program works, such as `$schema`."""

    def read(self, plan: Plan, document: Table) -> None:
        """Adds every member of the document to the plan."""
        for key, value in self._members(document):
            if key in self.special:
                self.special[key](plan, key, value)
            elif key in self.same:
                plan.take(key, self.same[key], value)
            elif key not in self.ignored:
                plan.leave(key, ABSENT)

    def _members(self, table: Table, above: str = "") -> Iterator[tuple[str, Any]]:
        for name, value in table.items():
            key = f"{above}{name}"
            known = key in self.special or key in self.same or key in self.ignored
            if isinstance(value, dict) and value and not known:
                yield from self._members(cast(Table, value), f"{key}.")
            else:
                yield key, value


def texts(value: Any) -> tuple[str, ...]:
    """The texts of a list, or the one text; others are left out."""
    if isinstance(value, str):
        return (value,)
    listed = cast(list[Any], value) if isinstance(value, list) else []
    return tuple(each for each in listed if isinstance(each, str))


def nothing(plan: Plan, key: str, value: Any) -> None:
    """For members that are read elsewhere."""
    del plan, key, value


def because(why: str) -> Special:
    """For members that are never taken."""

    def leave(plan: Plan, key: str, value: Any) -> None:
        del value
        plan.leave(key, why)

    return leave
