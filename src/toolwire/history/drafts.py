"""Messages while they are being repaired, and the list of what was done to them."""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec

from toolwire.history.rules import Change
from toolwire.messages import Kept, Message, Part, Role, ToolCall, ToolResult

P = TypeVar("P", bound=Part)


class Place(NamedTuple):
    """Where something stood in the input."""

    message: int
    part: int | None = None

    def __str__(self) -> str:
        """The path a person is shown."""
        message = f"messages[{self.message}]"
        return message if self.part is None else f"{message}.parts[{self.part}]"


class Placed(NamedTuple):
    """A part and where it stood."""

    place: Place
    part: Part


class Slot:
    """A call and the result it waits for."""

    __slots__ = ("call", "found_behind", "found_in", "place", "raw_id", "result", "result_place")

    def __init__(self, call: ToolCall, raw_id: str, place: Place) -> None:
        self.call = call
        self.raw_id = raw_id
        """The id the call came with, by which its result knows it."""
        self.place = place
        self.result: ToolResult | None = None
        self.result_place = place
        self.found_in: Draft | None = None
        self.found_behind = False
        """Whether something else stood before the result in its message."""


class Draft:
    """A message in the making. Results are lifted out of `parts` while calls are paired."""

    __slots__ = ("kept", "parts", "place", "role", "slots", "takes")

    def __init__(self, role: Role, place: Place, parts: Iterable[Placed] = ()) -> None:
        self.role: Role = role
        self.place = place
        self.parts = list(parts)
        self.kept: Kept | None = None
        self.slots: list[Slot] = []
        """The calls in `parts`, in order."""
        self.takes: list[Slot] = []
        """The calls whose results stood here, in that order."""

    def message(self) -> Message:
        """The finished message."""
        return Message(
            role=self.role, parts=tuple(placed.part for placed in self.parts), kept=self.kept
        )


class Report:
    """Collects what was done, to be told in the order of the conversation."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, Change]] = []

    def add(self, place: Place, what: str, why: str) -> None:
        """One thing that was changed."""
        self._changes.append((place.message, Change(str(place), what, why)))

    def done(self) -> tuple[Change, ...]:
        """All of them, by message."""
        return tuple(change for _, change in sorted(self._changes, key=lambda entry: entry[0]))


def without_seal(part: P) -> P:
    """The part without its seal."""
    return msgspec.structs.replace(part, seal=None)


def has_members(kept: Kept | None) -> bool:
    """Whether wire members would be lost with it; a mere form of writing is no loss."""
    return kept is not None and kept.fields != "{}"
