"""Members in camelCase or snake_case: read in either spelling, written back in the one they had."""

from typing import Any

from toolwire.dialects.gemini.shapes import NAME, listed, snake_case
from toolwire.messages import Kept
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, parse_object

_SNAKE = "snake"


class Notes:
    """What a value of ours does not carry, gathered while its wire object is read.

    Members of an inner object are noted flat, as `functionCall.willContinue`.
    """

    def __init__(self) -> None:
        self.fields: JsonObject = {}
        self.form: JsonObject = {}

    def mark_snake(self, path: str) -> None:
        """The member was spelled in snake_case."""
        self.form.setdefault(_SNAKE, []).append(path)

    def mark_absent(self, name: str) -> None:
        """The member was not there though our value has one."""
        self.form.setdefault("absent", []).append(name)

    def kept(self) -> Kept | None:
        """The notes to hang on the value, or None if there is nothing to note."""
        if not self.fields and not self.form:
            return None
        form = dump(self.form) if self.form else ""
        return Kept(dialect=NAME, fields=dump(self.fields), form=form)


class Members:
    """One wire object whose members are taken one by one; `close` notes those left over."""

    def __init__(self, source: JsonObject, notes: Notes, path: str = "") -> None:
        self._rest = dict(source)
        self._notes = notes
        self._path = path

    def take(self, name: str, *kinds: type) -> Any:
        """The member if it is of one of these kinds; null and anything else stays with the rest."""
        for key in (name, snake_case(name)):
            value = self._rest.get(key)
            if value is None or (kinds and type(value) not in kinds):
                continue
            if key != name:
                self._notes.mark_snake(self._path + name)
            del self._rest[key]
            return value
        return None

    def take_word(self, name: str) -> str:
        """The member if it is a string that is not empty; an empty one stays with the rest."""
        if self._rest.get(name, self._rest.get(snake_case(name))) == "":
            return ""
        return self.take(name, str) or ""

    def take_words(self, name: str) -> tuple[str, ...]:
        """The member if it is a list of strings that is not empty; any other stays."""
        found = listed(self._rest.get(name, self._rest.get(snake_case(name))))
        if not found or not all(isinstance(word, str) for word in found):
            return ()
        return tuple(self.take(name, list) or ())

    def close(self) -> None:
        """Note what nobody took."""
        for key, value in self._rest.items():
            self._notes.fields[self._path + key] = value


_NOTHING = frozenset[str]()


class Spelled:
    """The notes of a value on the way out. `exact` also brings the old spelling back."""

    def __init__(self, kept: Kept | None, *, exact: bool) -> None:
        own = kept if kept is not None and kept.dialect == NAME else None
        self.own = own is not None
        self.exact = exact
        self.fields = parse_object(own.fields, "kept members") if own is not None else {}
        self.form = parse_object(own.form, "kept form") if own is not None and own.form else {}
        snake = self.form.get(_SNAKE) if exact else None
        self._snake = _NOTHING if snake is None else frozenset[str](listed(snake))

    def shape(self, name: str) -> Any:
        """A noted spelling of the value's own outline; None where it need not be exact."""
        return self.form.get(name) if self.exact else None

    def absent(self, name: str) -> bool:
        """Whether the member was not there."""
        return name in listed(self.form.get("absent"))

    def noted(self, path: str) -> bool:
        """Whether members of this inner object were kept."""
        return any(key.startswith(path) for key in self.fields)

    def write(self, path: str, target: JsonObject) -> JsonObject:
        """`target` as it was spelled, with its kept members; inner objects go first."""
        written: JsonObject = {}
        for key in [key for key in self.fields if key.startswith(path)]:
            written[key[len(path) :]] = self.fields.pop(key)
        for name, value in target.items():
            written[snake_case(name) if path + name in self._snake else name] = value
        return written
