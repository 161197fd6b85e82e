"""The tools of servers among those of a session: offered, or found by the model first."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from toolwire.mcp import search
from toolwire.mcp.connection import State
from toolwire.mcp.resources import resource_tools
from toolwire.mcp.servers import Server, Servers
from toolwire.request import ToolSpec
from toolwire.tools.registry import ADDED, ORIGINAL, Registry
from toolwire.tools.spec import Defer, Effect, Tool, ToolContext, ToolOutput
from toolwire.tools.typed import tool
from toolwire.wire.json_access import dump

FIND = "find_tools"
RESERVED = (*ORIGINAL, *ADDED, FIND, "list_mcp_resources", "read_mcp_resource")
"""Names that no server's tool gets, also where ours are not offered: rules name them."""
MOST_DECLARED = 40
_SHARE = 10
"""A tenth of the window is the most that servers' tools may take."""
_MOST_NAMED = 200
_LETTERS_PER_TOKEN = 4
_STATUS = {State.READY: "connected", State.FAILED: "failed", State.NEEDS_LOGIN: "needs_login"}


class FindTools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `find_tools`."""

    query: Annotated[
        str,
        msgspec.Meta(
            description="Words that describe what the tool should do, or select:NAME,NAME."
        ),
    ]
    limit: Annotated[int, msgspec.Meta(ge=1, le=50, description="How many tools at most.")] = 5


class SessionServers:
    """The servers of a session, joined to its registry."""

    def __init__(
        self,
        servers: Servers,
        registry: Registry,
        notices: list[str],
        *,
        defer: Defer,
        exclude: Sequence[str],
        joined: Callable[[Registry], None],
    ) -> None:
        self.servers = servers
        self.window = 0
        """Tokens that the model reads; 0 if unknown."""
        self._registry = registry
        self._notices = notices
        self._defer = defer
        self._exclude = tuple(exclude)
        self._joined = joined
        self._declared: dict[str, None] = {}
        self._offered: dict[str, str] | None = None
        """Names of servers' tools and the server of each; None before the first time."""
        self._find = self._find_tool()
        self.refresh()

    def refresh(self) -> None:
        """Takes what servers offer now into the registry; new tools come last."""
        own = [each for each in self._registry if not each.server and each.name not in _OURS]
        names = [each.name for each in own]
        served = Registry(self.servers.tools((*RESERVED, *names))).permitted((), self._exclude)
        deferred = self._deferred(tuple(served)) - self._declared.keys()
        added = (*resource_tools(self.servers), *([self._find] if deferred else []))
        known = {each.name: each for each in (*added, *served)}
        shown = [name for name in self._declared if name in known]
        self._declared = dict.fromkeys((*shown, *(name for name in known if name not in deferred)))
        self._report(served)
        ordered = [known[name] for name in self._declared]
        rest = [each for each in served if each.name not in self._declared]
        self._registry.take((*own, *ordered, *rest))
        self._joined(self._registry)

    def _report(self, served: Registry) -> None:
        """Notes which server changed its tools, since that changes the beginning of requests."""
        before, after = self._offered, {each.name: each.server for each in served}
        self._offered = after
        if before is None:
            return
        for server in dict.fromkeys((*after.values(), *before.values())):
            added = [name for name, one in after.items() if one == server and name not in before]
            gone = [name for name, one in before.items() if one == server and name not in after]
            words = [f"{len(added)} new" if added else "", f"{len(gone)} gone" if gone else ""]
            if added or gone:
                changes = ", ".join(filter(None, words))
                self._notices.append(f"MCP server {server} changed its tools: {changes}")

    def _deferred(self, served: tuple[Tool, ...]) -> set[str]:
        """The tools that the model has to find first."""
        many = self._defer == "always" or (self._defer == "auto" and self._are_many(served))
        found: set[str] = set()
        for each in served:
            own = self.servers.servers[each.server].entry.defer
            if own == "always" or (own == "auto" and many):
                found.add(each.name)
        return found

    def _are_many(self, served: tuple[Tool, ...]) -> bool:
        if len(served) > MOST_DECLARED:
            return True
        return bool(self.window) and sum(map(tokens, served)) > self.window // _SHARE

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the next request declares them."""
        if self.servers.changed:
            self.refresh()
        own = (
            each for each in self._registry if not each.server and each.name not in self._declared
        )
        found = (each for each in map(self._registry.get, self._declared) if each is not None)
        return tuple(each.spec for each in (*own, *found))

    def notices(self) -> tuple[str, ...]:
        """What happened to servers since the last call."""
        found = tuple(self._notices)
        self._notices.clear()
        return found

    def states(self) -> tuple[tuple[str, str, int], ...]:
        """Name, status and number of tools of every server."""
        counts = Counter(each.server for each in self._registry)
        known = (
            (name, status_of(server), counts[name]) for name, server in self.servers.servers.items()
        )
        return (*known, *((name, "failed", 0) for name in self.servers.lost))

    def fit(self, window: int) -> None:
        """Decides anew which tools are declared, for a model that reads this many tokens."""
        self.window = window
        self.refresh()

    def prompt(self) -> str:
        """What the system prompt says of servers: their instructions, and tools to be found."""
        hidden: dict[str, list[str]] = {}
        for each in self._registry:
            if each.server and each.name not in self._declared:
                hidden.setdefault(each.server, []).append(each.name)
        lines = [_line(name, names) for name, names in hidden.items()]
        head = (
            f"Tools of these servers are available after `{FIND}` has returned them; call it "
            "with what you need:"
        )
        parts = (self.servers.instructions(), "\n".join((head, *lines)) if lines else "")
        return "\n\n".join(filter(None, parts))

    async def close(self) -> None:
        """Ends all servers."""
        await self.servers.close()

    def _find_tool(self) -> Tool:
        @tool(FIND, Effect.READ, _FIND_TEXT)
        async def find_tools(args: FindTools, context: ToolContext) -> ToolOutput:
            del context
            hidden = [
                each for each in self._registry if each.server and each.name not in self._declared
            ]
            found = search.find(args.query, hidden, args.limit)
            if not found:
                return ToolOutput(text="No tool fits; try other words.")
            self._declared |= dict.fromkeys(each.name for each in found)
            declared = [
                {"name": each.name, "description": each.description, "parameters": each.parameters}
                for each in found
            ]
            return ToolOutput(text=dump(declared), display=", ".join(each.name for each in found))

        return find_tools


_FIND_TEXT = (
    "Find tools of connected servers that are not declared yet. Returns their declarations; they "
    "can be called from the next step on."
)
_OURS = frozenset((FIND, "list_mcp_resources", "read_mcp_resource"))


def tokens(one: Tool) -> int:
    """The tokens that the declaration of a tool takes, estimated."""
    return (len(one.name) + len(one.description) + len(dump(one.parameters))) // _LETTERS_PER_TOKEN


def status_of(server: Server) -> str:
    """`connected`, `failed`, `needs_login`, or `not_tried`."""
    return _STATUS.get(server.connection.state, "not_tried")


def _line(name: str, names: list[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"- {name}: {len(names)} tools"
    return f"- {name}: {', '.join(names)}"
