"""A secret that does not show itself, and the means to take known secrets out of a text."""

from typing import NoReturn

from toolwire.client.redact import HIDDEN, Redactor, secrets_of

# One set for the whole process: whoever writes a record must know the secrets of everybody.
_known: set[str] = set()


class Secret:
    """A text that is shown only when asked for by `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        if value:
            _known.add(value)

    def reveal(self) -> str:
        """The text itself, for the header or file that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __str__(self) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def learn_url(url: str) -> None:
    """Know the login and the secret query members of an address, in every spelling."""
    _known.update(secrets_of(url, ()))


def known_secrets() -> tuple[str, ...]:
    """Every secret this process has seen, for those who write records and logs."""
    return tuple(_known)


def without_secrets(text: str) -> str:
    """The text with every known secret hidden."""
    return Redactor(_known).text(text)
