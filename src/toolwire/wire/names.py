"""Tool names that a wire format accepts, and their mapping to the original names."""

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from toolwire.messages import CallKind
from toolwire.request import AnyTool, FreeformTool, ServerTool


class NameRule(msgspec.Struct, frozen=True):
    """Which names a wire format accepts."""

    limit: int = 64
    allowed: str = "a-zA-Z0-9_-"
    """Characters, as inside a regular expression's brackets."""
    first: str = "a-zA-Z0-9_-"
    """Characters a name may begin with."""

    def accepts(self, name: str) -> bool:
        """Whether the name may be sent unchanged."""
        return (
            0 < len(name) <= self.limit
            and re.fullmatch(f"[{self.first}][{self.allowed}]*", name) is not None
        )


class WireTool(msgspec.Struct, frozen=True):
    """The tool behind a name on the wire."""

    name: str
    namespace: str = ""
    wrapped: bool = False
    """A freeform tool offered as a function of one string, since the format has no freeform tools.
    """


class ToolNames:
    """Names in both directions for one request. An alias is stable: it depends on the name only."""

    def __init__(
        self,
        tools: Iterable[AnyTool] = (),
        rule: NameRule | None = None,
        *,
        wrap_freeform: bool = False,
        keep_namespaces: bool = False,
    ) -> None:
        self._rule = rule or NameRule()
        self._keep_namespaces = keep_namespaces
        self._tools: dict[str, WireTool] = {}
        self._wire: dict[tuple[str, str], str] = {}
        offered = [
            (tool.name, tool.namespace, wrap_freeform and isinstance(tool, FreeformTool))
            for tool in tools
            if not isinstance(tool, ServerTool)
        ]
        if offered:
            given = self._assigned(tuple(offered), self._rule, keep_namespaces)
            self._tools.update(given._tools)
            self._wire.update(given._wire)

    @property
    def plain(self) -> bool:
        """Whether no name was changed."""
        return all(
            wire == tool.name and not tool.namespace and not tool.wrapped
            for wire, tool in self._tools.items()
        )

    @property
    def verbatim(self) -> bool:
        """Whether calls name every tool as it was offered, namespaces included."""
        return all(
            wire == tool.name and not tool.wrapped and (self._keep_namespaces or not tool.namespace)
            for wire, tool in self._tools.items()
        )

    def wire_name(self, name: str, namespace: str = "") -> str:
        """The name to send."""
        known = self._wire.get((namespace, name))
        if known is None and namespace == name:
            known = self._wire.get(("", name))
        return known or self._add(WireTool(name, namespace))

    def chosen_name(self, name: str) -> str:
        """The name to send for an offered tool without its namespace, as in a tool choice."""
        known = self._wire.get(("", name)) or next(
            (wire for (_, own), wire in self._wire.items() if own == name), None
        )
        return known or self.wire_name(name)

    def original(self, wire_name: str) -> WireTool:
        """The tool of a received name; an unknown name is the tool's own."""
        return self._tools.get(wire_name) or WireTool(wire_name)

    def kind(self, name: str, namespace: str = "") -> CallKind | None:
        """Freeform if the tool is offered wrapped; None if unknown."""
        tool = self._tools.get(self._wire.get((namespace, name), ""))
        return CallKind.FREEFORM if tool is not None and tool.wrapped else None

    @staticmethod
    @lru_cache(maxsize=64)
    def _assigned(
        offered: tuple[tuple[str, str, bool], ...], rule: NameRule, keep_namespaces: bool
    ) -> "ToolNames":
        """Shared by all requests that offer these tools; never added to."""
        names = ToolNames(rule=rule, keep_namespaces=keep_namespaces)

        def late(tool: tuple[str, str, bool]) -> tuple[bool, bool]:
            name, namespace, _ = tool
            return not rule.accepts(names._full(name, namespace)), namespace != ""

        # Accepted names stay unchanged in any order; the others get aliases afterwards.
        for tool in sorted(offered, key=late):
            names._add(WireTool(*tool))
        return names

    def _full(self, name: str, namespace: str) -> str:
        # OpenAI names the namespace of a tool that was loaded late like the tool itself.
        plain = self._keep_namespaces or namespace in ("", name)
        return name if plain else f"{namespace}__{name}"

    def _add(self, tool: WireTool) -> str:
        known = self._wire.get((tool.namespace, tool.name))
        if known is not None:
            return known
        full = self._full(tool.name, tool.namespace)
        taken = self._tools.get(full)
        # Formats that send namespaces may use one name in several of them.
        same = taken is not None and self._keep_namespaces and taken.name == tool.name
        wire = full if self._rule.accepts(full) and (taken is None or same) else self._alias(tool)
        self._tools.setdefault(wire, tool)
        self._wire[tool.namespace, tool.name] = wire
        return wire

    def _alias(self, tool: WireTool) -> str:
        rule = self._rule
        # Name and namespace together distinguish tools whose joined names are equal.
        whole = f"{tool.namespace}\0{tool.name}" if tool.namespace else tool.name
        digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
        body = re.sub(f"[^{rule.allowed}]", "_", self._full(tool.name, tool.namespace))
        if not body or re.match(f"[{rule.first}]", body) is None:
            body = f"t_{body}"
        for length in range(8, len(digest)):
            alias = f"{body[: rule.limit - length - 1]}_{digest[:length]}"
            if alias not in self._tools:
                return alias
        raise AssertionError("sha-256 collision")
