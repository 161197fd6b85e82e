"""The item of an event: found by output index, by ids, or by both."""

from collections.abc import Hashable
from typing import cast

from toolwire.dialects.openai_responses.shapes import StreamEvent, member
from toolwire.wire.json_access import JsonObject, dump


class ItemIndex:
    """One per answer. Ids may change during a stream: an output index decides first."""

    def __init__(self) -> None:
        self._by_name: dict[str, Hashable] = {}
        self._named: dict[Hashable, set[Hashable]] = {}
        self.shared = False
        """Whether a server sent one index for two open items: then only their ids differ."""

    def of(self, event: StreamEvent) -> Hashable:
        """The key of the open item that an event belongs to."""
        key = event.output_index
        if key is None or self.shared:
            name = event.item_id
            if name in self._by_name:
                return self._by_name[name]
            return name or 0 if key is None else key
        return key

    def of_item(self, event: StreamEvent, item: JsonObject) -> Hashable:
        """The key of an item that begins or ends."""
        key = event.output_index
        if key is not None and not self.shared:
            return key
        names = (event.item_id, member(item, "id"), member(item, "call_id"))
        known = next((self._by_name[name] for name in names if name in self._by_name), None)
        if known is not None:
            return known
        return next(filter(None, names), 0) if key is None else key

    def listed(self, number: int, item: JsonObject) -> Hashable:
        """The key of an item in a list. Items may be missing there, so ids decide first."""
        names = (member(item, "id"), member(item, "call_id"))
        return next((self._by_name[name] for name in names if name in self._by_name), number)

    def added(self, event: StreamEvent, item: JsonObject, done: set[Hashable]) -> Hashable:
        """The key of an item that begins."""
        key = self.of_item(event, item)
        names = names_of(item)
        own, call = member(item, "id"), member(item, "call_id")
        before = self._named.get(key)
        if before and names and before.isdisjoint(names) and key not in done:
            self.shared = True
            key = (key, own or call)
        self._named[key] = names
        for name in (event.item_id, own, call):
            if name:
                self._by_name[name] = key
        return key

    def add_id(self, key: Hashable, name: str | None) -> None:
        """Records another id of an item."""
        if name:
            self._by_name[name] = key


def names_of(item: JsonObject) -> set[Hashable]:
    """The ids of an item, each with the type of the item."""
    kind, own, call = member(item, "type"), member(item, "id"), member(item, "call_id")
    names: set[Hashable] = {(kind, own)} if own else set()
    if call:
        names.add((kind, call))
    return names


def coerced(event: JsonObject) -> JsonObject:
    """The event with its members converted to the expected types: an object to text, and so on."""
    found: JsonObject = {}
    for key, value in event.items():
        if key in ("delta", "arguments", "input") and isinstance(value, dict | list):
            found[key] = dump(cast(object, value))
        elif key in _TEXTS and not isinstance(value, str | None):
            found[key] = None
        elif key in _NUMBERS and not isinstance(value, int | None):
            found[key] = int(value) if isinstance(value, str) and value.isdecimal() else None
        else:
            found[key] = value
    return found


_TEXTS = frozenset({"delta", "arguments", "input", "item_id", "object"})
_NUMBERS = frozenset({"output_index", "content_index"})
