"""Which item an event belongs to: by its index in the output, by its ids, or by both."""

from collections.abc import Hashable
from typing import cast

from toolwire.dialects.openai_responses.shapes import StreamEvent, member
from toolwire.wire.json_access import JsonObject, dump


class ItemIndex:
    """One per answer. Ids may change on the way, so the place counts wherever one is given."""

    def __init__(self) -> None:
        self._by_name: dict[str, Hashable] = {}
        self._named: dict[Hashable, set[Hashable]] = {}
        self.shared = False
        """Whether a server gave one place to two open items: then only ids tell them apart."""

    def of(self, event: StreamEvent) -> Hashable:
        """The place an event of an open item speaks of."""
        place = event.output_index
        if place is None or self.shared:
            name = event.item_id
            if name in self._by_name:
                return self._by_name[name]
            return name or 0 if place is None else place
        return place

    def of_item(self, event: StreamEvent, item: JsonObject) -> Hashable:
        """The place of an item that begins or ends."""
        place = event.output_index
        if place is not None and not self.shared:
            return place
        names = (event.item_id, member(item, "id"), member(item, "call_id"))
        known = next((self._by_name[name] for name in names if name in self._by_name), None)
        if known is not None:
            return known
        return next(filter(None, names), 0) if place is None else place

    def listed(self, number: int, item: JsonObject) -> Hashable:
        """The place of an item in a list: items may be missing there, so its ids tell more."""
        names = (member(item, "id"), member(item, "call_id"))
        return next((self._by_name[name] for name in names if name in self._by_name), number)

    def added(self, event: StreamEvent, item: JsonObject, done: set[Hashable]) -> Hashable:
        """The place of an item that begins."""
        place = self.of_item(event, item)
        names = names_of(item)
        own, call = member(item, "id"), member(item, "call_id")
        before = self._named.get(place)
        if before and names and before.isdisjoint(names) and place not in done:
            self.shared = True
            place = (place, own or call)
        self._named[place] = names
        for name in (event.item_id, own, call):
            if name:
                self._by_name[name] = place
        return place

    def note(self, place: Hashable, name: str | None) -> None:
        """An id by which a place is known."""
        if name:
            self._by_name[name] = place


def names_of(item: JsonObject) -> set[Hashable]:
    """The ids of an item, told apart from those of other kinds of items."""
    kind, own, call = member(item, "type"), member(item, "id"), member(item, "call_id")
    names: set[Hashable] = {(kind, own)} if own else set()
    if call:
        names.add((kind, call))
    return names


def tidied(event: JsonObject) -> JsonObject:
    """An event whose members have the types they should: text where an object stood, and so on."""
    tidy: JsonObject = {}
    for key, value in event.items():
        if key in ("delta", "arguments", "input") and isinstance(value, dict | list):
            tidy[key] = dump(cast(object, value))
        elif key in _TEXTS and not isinstance(value, str | None):
            tidy[key] = None
        elif key in _NUMBERS and not isinstance(value, int | None):
            tidy[key] = int(value) if isinstance(value, str) and value.isdecimal() else None
        else:
            tidy[key] = value
    return tidy


_TEXTS = frozenset({"delta", "arguments", "input", "item_id", "object"})


_NUMBERS = frozenset({"output_index", "content_index"})
