"""What servers were found to refuse, and how a request then goes without it. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

from toolwire.dialects.quirks import Quirks

_WITHOUT: dict[str, dict[str, Any]] = {
    "tool_choice": {"tool_choices": frozenset({"auto"})},
    "parallel_tool_calls": {"parallel_flag": False},
    "stream_options": {"stream_usage": False},
    "max_completion_tokens": {"max_tokens_field": "max_tokens"},
    "max_tokens": {"max_tokens_field": "max_completion_tokens"},
    "temperature": {"sampling": False},
    "top_p": {"sampling": False},
    "strict": {"strict_tools": False},
}


class Learned:
    """Refused members per provider and model. Whoever owns it keeps it between runs."""

    def __init__(self, entries: Iterable[tuple[str, str, str]] = ()) -> None:
        self._refused: dict[tuple[str, str], tuple[str, ...]] = {}
        for provider, model, member in entries:
            self.add(provider, model, member)

    def add(self, provider: str, model: str, member: str) -> None:
        """Remember that a server refuses a member for a model."""
        known = self.refused(provider, model)
        if member in _WITHOUT and member not in known:
            self._refused[provider, model] = (*known, member)

    def refused(self, provider: str, model: str) -> tuple[str, ...]:
        """What is known to be refused, in the order it was learned."""
        return self._refused.get((provider, model), ())

    def entries(self) -> tuple[tuple[str, str, str], ...]:
        """Everything, to be written down: (provider, model, member)."""
        return tuple(
            (provider, model, member)
            for (provider, model), members in self._refused.items()
            for member in members
        )


def without(quirks: Quirks, refused: Iterable[str]) -> Quirks:
    """The quirks of a server that also refuses these members."""
    for member in refused:
        quirks = msgspec.structs.replace(quirks, **_WITHOUT[member])
    return quirks
