"""Rules of a reader for a conversation, and the result of a repair."""

import msgspec

from toolwire.messages import Message


class HistoryRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of a reader for a conversation."""

    id_characters: str = ""
    """Characters allowed in a call id, as inside a regular expression's brackets; empty for any."""
    id_limit: int = 0
    """Longest id; 0 for any."""
    id_length: int = 0
    """Exact length of an id; 0 for any."""
    alternate: bool = False
    """User and assistant must alternate: neighbours of one role are merged."""
    user_first: bool = False
    """The first message that is not a system message must be the user's."""
    results_first: bool = True
    """All results of a message precede its other parts. Gemini's may be followed each by
    what belongs to it, such as the contents of the files a call read; Anthropic answers 400 then.
    """
    thinking_leads: bool = False
    """What sealed thinking led to must follow it: at the end of a turn it loses its seal. Anthropic
    and Responses answer 400 otherwise.
    """


class Change(msgspec.Struct, frozen=True):
    """One change of a repair, for the user; the path is that of the input."""

    path: str
    what: str
    why: str


class Repaired(msgspec.Struct, frozen=True):
    """The repaired conversation; without changes it is the original."""

    messages: tuple[Message, ...]
    changes: tuple[Change, ...] = ()
