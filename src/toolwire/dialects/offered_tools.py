"""Cache of encoded tool lists: a conversation converts its schemas once."""

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from toolwire.dialects.losses import Losses
from toolwire.request import AnyTool, JsonObject, Loss, ToolSpec
from toolwire.wire.json_access import encode

Write: TypeAlias = Callable[[Losses], JsonObject]
"""Returns the members of a body that carry the tools, and reports what they lose."""

_MOST_LISTS = 16
_LARGEST = 256 * 1024
"""Bytes of schemas beyond which a list is not cached."""

_encode = msgspec.json.Encoder().encode


class _Written(msgspec.Struct, frozen=True):
    schemas: bytes
    """A copy: what `tools` refers to may have changed since."""
    tools: tuple[AnyTool, ...]
    members: dict[str, Raw]
    losses: tuple[Loss, ...]


class OfferedTools:
    """The last 16 tool lists that one dialect encoded."""

    def __init__(self) -> None:
        self._lists: dict[tuple[Any, ...], _Written] = {}
        self._storing = Lock()

    def members(
        self, tools: tuple[AnyTool, ...], terms: tuple[Any, ...], losses: Losses, write: Write
    ) -> JsonObject:
        """What `write` returns for these tools, from the cache if possible.

        `terms` is everything else that `write` depends on.
        """
        schemas = _schemas(tools)
        if schemas is None:
            return write(losses)
        # A length is quicker than a hash of the text; the whole text is compared below.
        key = (len(schemas), *terms)
        known = self._lists.get(key)
        # The text distinguishes 1 from 1.0 and orders of members, the values a list from a tuple.
        if known is None or known.schemas != schemas or known.tools != tools:
            known = self._store(key, schemas, tools, write)
        losses.extend(known.losses)
        return dict(known.members)

    def _store(
        self, key: tuple[Any, ...], schemas: bytes, tools: tuple[AnyTool, ...], write: Write
    ) -> _Written:
        found = Losses()
        members = {name: Raw(encode(value)) for name, value in write(found).items()}
        known = _Written(schemas, tools, members, found.done())
        with self._storing:
            self._lists.pop(key, None)
            while len(self._lists) >= _MOST_LISTS:
                del self._lists[next(iter(self._lists))]
            self._lists[key] = known
        return known


def _schemas(tools: tuple[AnyTool, ...]) -> bytes | None:
    """The schemas as text, which shows a change in place; None for a list not to cache."""
    try:
        text = _encode([tool.parameters for tool in tools if isinstance(tool, ToolSpec)])
    except (TypeError, ValueError, RecursionError):
        return None
    return text if len(text) <= _LARGEST else None
