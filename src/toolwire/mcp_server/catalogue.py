"""What a server offers: tools, prompts, resources; and who is notified when that changes."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolwire import __version__
from toolwire.mcp.lists import EMPTY, members
from toolwire.mcp.peer import RpcError
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import INVALID_PARAMS

if TYPE_CHECKING:
    from toolwire.mcp_server.exchange import ServedRequest

RunTool: TypeAlias = Callable[[JsonObject, "ServedRequest"], Awaitable[JsonObject]]
"""The result of a call: `content`, `structuredContent`, `isError`."""
GetPrompt: TypeAlias = Callable[[JsonObject, "ServedRequest"], Awaitable[JsonObject]]
ReadResource: TypeAlias = Callable[[str, Mapping[str, str], "ServedRequest"], Awaitable[JsonObject]]
"""The result of reading an address; the values are those of a template."""
Complete: TypeAlias = Callable[[JsonObject, str, str, JsonObject], Awaitable[Sequence[str]]]
"""Values for an argument: of which prompt or template, its name, what is typed, the others."""
Listener: TypeAlias = Callable[[str, str], None]
"""Called with `tools`, `prompts`, `resources`, or `resource` and its address."""
_MOST_VALUES = 100


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that clients may call."""

    name: str
    description: str
    run: RunTool
    parameters: JsonObject = msgspec.field(default_factory=lambda: dict(EMPTY))
    title: str = ""
    output: JsonObject | None = None
    """The schema of `structuredContent`."""
    hints: JsonObject = {}

    def listed(self) -> JsonObject:
        """As a list names it."""
        found: JsonObject = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.parameters,
        }
        more = {"title": self.title, "outputSchema": self.output, "annotations": self.hints}
        return found | {key: value for key, value in more.items() if value}


class OfferedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that clients may fetch."""

    name: str
    get: GetPrompt
    description: str = ""
    title: str = ""
    arguments: tuple[JsonObject, ...] = ()

    def listed(self) -> JsonObject:
        """As a list names it."""
        more = {"title": self.title, "arguments": list(self.arguments)}
        found = {"name": self.name, "description": self.description}
        return found | {key: value for key, value in more.items() if value}


class OfferedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that clients may read; `{name}` in its address makes it a template."""

    uri: str
    name: str
    read: ReadResource
    description: str = ""
    mime: str = ""

    @property
    def is_template(self) -> bool:
        """Whether the address has open places."""
        return "{" in self.uri

    def listed(self) -> JsonObject:
        """As a list names it."""
        key = "uriTemplate" if self.is_template else "uri"
        found: JsonObject = {key: self.uri, "name": self.name}
        more = {"description": self.description, "mimeType": self.mime}
        return found | {name: value for name, value in more.items() if value}

    def values(self, uri: str) -> dict[str, str] | None:
        """What the open places have in an address; None if it is another one."""
        pieces = re.split(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", self.uri)
        pattern = "".join(
            f"(?P<{piece}>[^/]+)" if number % 2 else re.escape(piece)
            for number, piece in enumerate(pieces)
        )
        found = re.fullmatch(pattern, uri)
        return None if found is None else found.groupdict()


class Catalogue:
    """Everything that a server offers; a change reaches every listener."""

    def __init__(
        self,
        name: str,
        *,
        title: str = "",
        version: str = __version__,
        instructions: str = "",
        logs: bool = False,
        changes: bool = False,
        complete: Complete | None = None,
        page: int = 100,
        fresh: float = 0.0,
    ) -> None:
        self.info: JsonObject = {"name": name, "version": version}
        if title:
            self.info["title"] = title
        self.instructions = instructions
        self.complete = complete
        self.tools: dict[str, OfferedTool] = {}
        self.prompts: dict[str, OfferedPrompt] = {}
        self.resources: dict[str, OfferedResource] = {}
        self._logs = logs
        self._changes = changes
        self._page = page
        self._fresh = fresh
        self._listeners: list[Listener] = []

    @property
    def capabilities(self) -> JsonObject:
        """As the protocol declares them."""
        changes = {"listChanged": True} if self._changes else {}
        found: JsonObject = {"tools": changes}
        if self.prompts:
            found["prompts"] = changes
        if self.resources:
            found["resources"] = {**changes, "subscribe": True}
        if self._logs:
            found["logging"] = {}
        if self.complete is not None:
            found["completions"] = {}
        return found

    @property
    def freshness(self) -> JsonObject:
        """How long an answer may be kept, and by whom."""
        return {"ttlMs": int(self._fresh * 1000), "cacheScope": "private"}

    def add(self, *offered: OfferedTool | OfferedPrompt | OfferedResource) -> None:
        """Offers more; of one name the last counts."""
        for one in offered:
            match one:
                case OfferedTool():
                    self.tools[one.name] = one
                    self.changed("tools")
                case OfferedPrompt():
                    self.prompts[one.name] = one
                    self.changed("prompts")
                case OfferedResource():
                    self.resources[one.uri] = one
                    self.changed("resources")

    def changed(self, what: str, uri: str = "") -> None:
        """Notifies the listeners."""
        for listener in tuple(self._listeners):
            listener(what, uri)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Adds a listener; returns what removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def listing(self, method: str, cursor: Any) -> JsonObject:
        """One page of a list."""
        key, entries = self._entries(method)
        start = _start(cursor, key)
        if start > len(entries):
            raise RpcError(INVALID_PARAMS, "the cursor is not one of this list")
        page: JsonObject = {key: entries[start : start + self._page]}
        if start + self._page < len(entries):
            page["nextCursor"] = urlsafe_b64encode(f"{key}:{start + self._page}".encode()).decode()
        return page

    def _entries(self, method: str) -> tuple[str, list[JsonObject]]:
        resources = self.resources.values()
        match method:
            case "tools/list":
                return "tools", [one.listed() for one in self.tools.values()]
            case "prompts/list":
                return "prompts", [one.listed() for one in self.prompts.values()]
            case "resources/templates/list":
                found = [one.listed() for one in resources if one.is_template]
                return "resourceTemplates", found
            case _:
                return "resources", [one.listed() for one in resources if not one.is_template]

    def resource(self, uri: str) -> tuple[OfferedResource, dict[str, str]] | None:
        """The resource at an address, and the values of its template."""
        for one in self.resources.values():
            values = one.values(uri)
            if values is not None:
                return one, values
        return None

    async def completed(self, params: JsonObject) -> JsonObject:
        """The values that an argument may have."""
        argument, reference = members(params.get("argument")), members(params.get("ref"))
        name, typed = argument.get("name"), argument.get("value")
        if not reference or not isinstance(name, str) or not isinstance(typed, str):
            raise RpcError(INVALID_PARAMS, "completion needs ref, argument.name and argument.value")
        others = members(members(params.get("context")).get("arguments"))
        complete = self.complete
        values = [] if complete is None else list(await complete(reference, name, typed, others))
        shown = values[:_MOST_VALUES]
        more = {"total": len(values), "hasMore": len(values) > len(shown)}
        return {"completion": {"values": shown, **more}}


def _start(cursor: Any, key: str) -> int:
    if cursor is None:
        return 0
    try:
        name, _, number = urlsafe_b64decode(str(cursor).encode()).decode().partition(":")
        if name == key and number.isdecimal():
            return int(number)
    except ValueError:
        pass
    raise RpcError(INVALID_PARAMS, "the cursor is not one of this list")
