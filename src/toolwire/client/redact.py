"""Redaction of secrets in errors, notices, reprs and recordings."""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from functools import lru_cache
from json import dumps
from typing import NoReturn
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

from toolwire.errors import MalformedStream, ProviderError, ToolwireError

HIDDEN = "[hidden]"
SHORTEST = 8
"""A shorter value is a placeholder such as `none`; redacting it would garble ordinary words."""
SHORTEST_PASSWORD = 5
"""A shorter value with letters and other characters is redacted only as a separate word."""
_upper_hex = re.compile("%[0-9A-F]{2}")

_NAMES = re.compile(
    r"(^|[-_])(authorization|auth|api[-_]?key|key|token|secret|password|cookie|session|credential"
    r"|signature|sig|organization)($|[-_])"
)


def is_secret_name(name: str) -> bool:
    """Whether a header or query member of that name contains a secret."""
    return _NAMES.search(name.lower()) is not None


def hide_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers with secret values redacted."""
    return tuple((name, HIDDEN if is_secret_name(name) else value) for name, value in headers)


def hide_in_url(url: str) -> str:
    """The URL without user, password and secret query members."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(map(_hide_member, parts.query.split("&"))) if parts.query else ""
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def secrets_of(url: str, headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The secret values in a request's URL and headers."""
    found = [value for name, value in headers if is_secret_name(name)]
    try:
        parts = urlsplit(url)
    except ValueError:
        return tuple(found)
    if "@" in parts.netloc:
        found += _login(parts.username or "", parts.password or "")
    if parts.query:
        members = (member.partition("=") for member in parts.query.split("&"))
        found += [value for name, _, value in members if is_secret_name(name)]
        found += [value for name, value in parse_qsl(parts.query) if is_secret_name(name)]
    return tuple(value for value in found if value)


def _login(user: str, password: str) -> Iterable[str]:
    """The spellings of a URL's login: encoded, decoded, as a pair, as a header."""
    for name, word in {(user, password), (unquote(user), unquote(password))}:
        pair = f"{name}:{word}"
        # With a password the user name is not a secret, and may be an ordinary word.
        yield from (word or name, pair)
        data = pair.encode("utf-8", "surrogatepass")
        for encoded in (b64encode(data).decode(), urlsafe_b64encode(data).decode()):
            yield from (encoded, encoded.rstrip("="))


class Redactor:
    """Redacts known secrets from text that a server may have echoed."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
        # Longest first: one secret may be a part of another.
        ordered = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        pattern = "|".join(map(_pattern, ordered))
        self._text = re.compile(pattern) if ordered else None
        self._bytes = re.compile(pattern.encode("utf-8", "surrogatepass")) if ordered else None

    def text(self, text: str) -> str:
        """The text with every secret replaced by a placeholder."""
        return text if self._text is None else self._text.sub(HIDDEN, text)

    def body(self, data: bytes) -> bytes:
        """The bytes with every secret replaced by stars of the same length."""
        if self._bytes is None:
            return data
        return self._bytes.sub(lambda found: b"*" * len(found[0]), data)

    def clean(self, error: ToolwireError) -> ToolwireError:
        """The same error without secrets."""
        error.args = tuple(
            self.text(word) if isinstance(word, str) else word for word in error.args
        )
        if isinstance(error, ProviderError):
            error.code, error.param = self.text(error.code), self.text(error.param)
        if isinstance(error, ProviderError | MalformedStream):
            error.body = self.text(error.body)
        return error


def _hide_member(member: str) -> str:
    name, equals, _ = member.partition("=")
    return f"{name}={HIDDEN}" if equals and is_secret_name(name) else member


def _pattern(spelling: str) -> str:
    escaped = re.escape(spelling)
    return escaped if len(spelling) >= SHORTEST else rf"(?<![0-9A-Za-z_]){escaped}(?![0-9A-Za-z_])"


def _spellings(secret: str) -> Iterable[str]:
    """A secret as it is, JSON-escaped and URL-encoded; `Bearer x` also as `x`."""
    for value in {secret.strip(), secret.strip().rpartition(" ")[2]}:
        if len(value) >= SHORTEST or _is_short_password(value):
            yield value
            yield dumps(value)[1:-1]
            yield dumps(value, ensure_ascii=False)[1:-1]
            for safe in ("", "/"):
                quoted = quote(value.encode("utf-8", "surrogatepass"), safe=safe)
                yield quoted
                yield _upper_hex.sub(lambda found: found[0].lower(), quoted)
            yield quote_plus(value.encode("utf-8", "surrogatepass"))


def _is_short_password(value: str) -> bool:
    """Whether it is not an ordinary word or number, but too short to redact inside of one."""
    return (
        SHORTEST_PASSWORD <= len(value) < SHORTEST
        and any(map(str.isalpha, value))
        and not value.isalpha()
    )


# Process-wide: every log must redact every secret.
_known: set[str] = set()


class Secret:
    """A text that only `reveal` shows."""

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
    """Register the login and the secret query members of a URL, in every spelling."""
    _known.update(secrets_of(url, ()))


def known_secrets() -> tuple[str, ...]:
    """Every secret of this process, for recordings and logs."""
    return tuple(_known)


def without_secrets(text: str) -> str:
    """The text with every known secret redacted."""
    return _redactor(known_secrets()).text(text)


@lru_cache(maxsize=1)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)


def redaction() -> Callable[[bytes], bytes]:
    """Redacts every secret that this process knows; the pattern is built once for each set."""
    known: tuple[str, ...] = ()
    redactor = Redactor()

    def redact(body: bytes) -> bytes:
        nonlocal known, redactor
        secrets = known_secrets()
        if len(secrets) != len(known):
            known, redactor = secrets, Redactor(secrets)
        return redactor.body(body)

    return redact
