"""Wire members beyond our values, of an object and of the one object nested in it.

Chat wraps functions, images and calls twice; both layers are kept in one flat set of members, so
that a loss names the member itself, and the form remembers which layer each came from.
"""

from collections.abc import Iterable
from urllib.parse import quote, unquote

import msgspec

from toolwire.dialects.openai_chat.wire import NAME
from toolwire.messages import CacheMark, Kept
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, parse_object

_INNER = "in:"
# Set apart an inner member from an outer one of the same name.
_PRIME = "'"


class Leftovers(msgspec.Struct, frozen=True):
    """What was kept of one object."""

    outer: JsonObject = {}
    inner: JsonObject = {}
    words: frozenset[str] = frozenset()
    """How it was written, where the format has several ways."""


NOTHING = Leftovers()


def gather(
    outer: JsonObject, inner: JsonObject | None = None, words: Iterable[str] = ()
) -> Kept | None:
    """Everything that is left over; None if nothing is."""
    fields = dict(outer)
    form = list(words)
    for key, value in (inner or {}).items():
        name = key
        while name in fields:
            name += _PRIME
        fields[name] = value
        form.append(_INNER + quote(name, safe=_PRIME))
    if not fields and not form:
        return None
    return Kept(dialect=NAME, fields=dump(fields), form=" ".join(form))


def scatter(kept: Kept | None) -> Leftovers:
    """What `gather` gathered; nothing for another dialect's."""
    if kept is None or kept.dialect != NAME:
        return NOTHING
    outer = parse_object(kept.fields, "kept members")
    inner: JsonObject = {}
    words: set[str] = set()
    for word in kept.form.split():
        if word.startswith(_INNER):
            name = unquote(word.removeprefix(_INNER))
            if name in outer:
                inner[name.rstrip(_PRIME)] = outer.pop(name)
        else:
            words.add(word)
    return Leftovers(outer, inner, frozenset(words))


def take_cache(rest: JsonObject) -> CacheMark | None:
    """Takes `cache_control` out where it says no more than a mark does."""
    match rest.get("cache_control"):
        case {"type": "ephemeral", "ttl": str(ttl), **others} if ttl and not others:
            del rest["cache_control"]
            return CacheMark(ttl)
        case {"type": "ephemeral", **others} if not others:
            del rest["cache_control"]
            return CacheMark()
        case _:
            return None


def cache_control(mark: CacheMark) -> JsonObject:
    """The mark as OpenRouter and LiteLLM read it."""
    return {"type": "ephemeral", "ttl": mark.ttl} if mark.ttl else {"type": "ephemeral"}
