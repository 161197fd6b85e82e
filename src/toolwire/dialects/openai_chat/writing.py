"""What every writer of a chat request needs to know."""

import msgspec

from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_chat.leftovers import cache_control
from toolwire.dialects.quirks import Quirks
from toolwire.messages import CacheMark
from toolwire.request import JsonObject
from toolwire.wire.names import ToolNames


class Writing(msgspec.Struct, frozen=True):
    """One request on its way out."""

    quirks: Quirks
    names: ToolNames
    losses: Losses
    verbatim: bool
    """The request came in this format: it goes out as it came, nothing fitted or added."""

    def name(self, name: str, namespace: str = "") -> str:
        """The tool name to send."""
        return name if self.verbatim else self.names.wire_name(name, namespace)

    def mark(self, target: JsonObject, cache: CacheMark | None, path: str) -> None:
        """Writes a cache mark where the server reads one."""
        if cache is None:
            return
        if self.verbatim or self.quirks.cache_marks:
            target["cache_control"] = cache_control(cache)
        else:
            self.losses.add(f"{path}.cache", "cache mark", "the server caches by itself")
