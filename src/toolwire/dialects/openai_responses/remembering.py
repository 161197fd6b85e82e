"""What this format said beyond our values, remembered as a difference and put back exactly.

A `Kept.form` is a list of words: `-key` for a member that was absent where we would write it,
`key=value` for a member that says nothing to others (null, empty, a status), any other word for a
spelling. Members that do say something are in `Kept.fields`. A prefix (`item.`) marks what belongs
to the item around a part.
"""

from collections.abc import Iterable

from toolwire.dialects.openai_responses.shapes import NAME
from toolwire.messages import Kept
from toolwire.wire.json_access import JsonObject, dump, parse, parse_object

_QUIET = frozenset({"type", "status", "role"})


def remember(
    source: JsonObject, written: JsonObject, words: Iterable[str] = (), prefix: str = ""
) -> Kept | None:
    """The difference between what came and what we would write; None if there is none."""
    fields: JsonObject = {}
    form = list(words)
    for key, value in source.items():
        if key in written and written[key] == value and _same_kind(written[key], value):
            continue
        if _is_quiet(key, value):
            form.append(f"{prefix}{key}={dump(value)}")
        else:
            fields[prefix + key] = value
    form += [f"{prefix}-{key}" for key in written if key not in source]
    if not fields and not form:
        return None
    return Kept(dialect=NAME, fields=dump(fields) if fields else "{}", form=" ".join(form))


def joined(first: Kept | None, second: Kept | None) -> Kept | None:
    """Both differences as one."""
    if first is None or second is None:
        return first or second
    fields = parse_object(first.fields, "kept members") | parse_object(
        second.fields, "kept members"
    )
    return Kept(dialect=NAME, fields=dump(fields), form=f"{first.form} {second.form}".strip())


def replay(written: JsonObject, kept: Kept | None, prefix: str = "") -> JsonObject:
    """`written` as it once came."""
    if kept is None or kept.dialect != NAME:
        return written
    result = dict(written)
    if kept.fields != "{}":
        for key, value in parse_object(kept.fields, "kept members").items():
            if key.startswith("item.") == bool(prefix):
                result[key.removeprefix(prefix)] = value
    for word in words(kept):
        if word.startswith("item.") != bool(prefix):
            continue
        word = word.removeprefix(prefix)
        key, equals, value = word.partition("=")
        if equals:
            result[key] = parse(value, "kept form")
        elif word.startswith("-"):
            result.pop(word[1:], None)
    return result


def words(kept: Kept | None) -> list[str]:
    """The words of a form of this dialect."""
    return kept.form.split(" ") if kept is not None and kept.dialect == NAME and kept.form else []


def _is_quiet(key: str, value: object) -> bool:
    if not key.isidentifier():
        return False
    if key in _QUIET:
        return isinstance(value, str) and value.isidentifier()
    return value in (None, "", [], {}) and not isinstance(value, bool)


def _same_kind(one: object, other: object) -> bool:
    # 1 == True and 1 == 1.0 in Python, but not on the wire.
    return isinstance(one, bool) == isinstance(other, bool)
