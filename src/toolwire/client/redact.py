"""Keeping secrets out of errors, notices, reprs and recordings."""

import re
from collections.abc import Iterable
from json import dumps
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit, urlunsplit

from toolwire.errors import MalformedStream, ProviderError, ToolwireError

HIDDEN = "[hidden]"
SHORTEST = 8
"""A shorter value is a placeholder such as `none`; hiding it would garble ordinary words."""

_NAMES = re.compile(
    r"(^|[-_])(authorization|auth|api[-_]?key|key|token|secret|password|cookie|session|credential"
    r"|signature|sig|organization)($|[-_])"
)


def is_secret_name(name: str) -> bool:
    """Whether a header or query member of that name holds a secret."""
    return _NAMES.search(name.lower()) is not None


def hide_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers without the values nobody may see."""
    return tuple((name, HIDDEN if is_secret_name(name) else value) for name, value in headers)


def hide_in_url(url: str) -> str:
    """The address without user, password and secret query members."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(map(_hide_member, parts.query.split("&"))) if parts.query else ""
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def secrets_of(url: str, headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The secret values a request carries in its address and its headers."""
    found = [value for name, value in headers if is_secret_name(name)]
    try:
        parts = urlsplit(url)
    except ValueError:
        return tuple(found)
    found += (parts.username or "", parts.password or "")
    found += [value for name, value in parse_qsl(parts.query) if is_secret_name(name)]
    return tuple(value for value in found if value)


class Redactor:
    """Takes known secrets out of whatever a server may have echoed."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
        # Longest first: one secret may be a part of another.
        ordered = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        pattern = "|".join(map(re.escape, ordered))
        self._text = re.compile(pattern) if ordered else None
        self._bytes = re.compile(pattern.encode()) if ordered else None

    def text(self, text: str) -> str:
        """The text with every secret replaced by a word."""
        return text if self._text is None else self._text.sub(HIDDEN, text)

    def body(self, data: bytes) -> bytes:
        """The bytes with every secret starred out; the length stays, and with it every offset."""
        if self._bytes is None:
            return data
        return self._bytes.sub(lambda found: b"*" * len(found[0]), data)

    def clean(self, error: ToolwireError) -> ToolwireError:
        """The same error, fit to be shown."""
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


def _spellings(secret: str) -> Iterable[str]:
    """A secret as it stands and as JSON or an address would write it; `Bearer x` also as `x`."""
    for value in {secret.strip(), secret.strip().rpartition(" ")[2]}:
        if len(value) >= SHORTEST:
            yield value
            yield dumps(value)[1:-1]
            yield dumps(value, ensure_ascii=False)[1:-1]
            yield quote(value, safe="")
            yield quote_plus(value)
