"""What a reader demands of a conversation, and what is told about a repair."""

import msgspec

from toolwire.messages import Message


class HistoryRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader demands of a conversation."""

    id_characters: str = ""
    """Characters a call id may hold, as inside a regular expression's brackets; empty for any."""
    id_limit: int = 0
    """Longest id; 0 for any."""
    id_length: int = 0
    """Exact length of an id; 0 for any."""
    alternate: bool = False
    """User and assistant must take turns: neighbours of one role are merged."""
    user_first: bool = False
    """The first message that is not a system message must be the user's."""
    results_first: bool = True
    """All results of a message stand before anything else in it. Gemini's may be followed each by
    what belongs to it, such as the contents of the files a call read; Anthropic answers 400 then.
    """
    thinking_leads: bool = False
    """What sealed thinking led to must follow it: at the end of a turn it loses its seal. Anthropic
    and Responses answer 400 otherwise.
    """


class Change(msgspec.Struct, frozen=True):
    """One thing a repair did, in words for a person; the path is that of the input."""

    path: str
    what: str
    why: str


class Repaired(msgspec.Struct, frozen=True):
    """A conversation its reader takes; without changes it is the one that came in."""

    messages: tuple[Message, ...]
    changes: tuple[Change, ...] = ()
