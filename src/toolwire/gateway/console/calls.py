"""What an endpoint of the console's API is: its request, its errors, and its entry in the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl

import msgspec

from toolwire.client.redact import redaction
from toolwire.gateway.console.static import SECURITY
from toolwire.wire.json_access import encode

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console
    from toolwire.http_server.exchange import Answering, Asked

T = TypeVar("T")
MOST = 1000
_USUAL = 100
_JSON = ("content-type", "application/json")
_FRESH = ("cache-control", "no-store")


_redact = redaction()


def without_secrets(value: object) -> bytes:
    """The value as JSON, with stars in place of every secret that this process knows."""
    try:
        return _redact(_encoder.encode(value))
    except UnicodeEncodeError:
        # Lone surrogates, which JSON text of a model may contain.
        return _redact(encode(msgspec.to_builtins(value, enc_hook=_plain)))


def _plain(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    raise NotImplementedError(f"cannot send a {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


class Visitor(StrEnum):
    """Who sends a request to the API."""

    NONE = "none"
    READER = "reader"
    """A key with the scope `console:read`."""
    ADMIN = "admin"
    """The gateway's token."""
    SESSION = "session"
    """A browser that has logged in."""


class ApiError(Exception):
    """An answer with an error: `{"error": {"message", "hint"}}`."""

    def __init__(
        self, status: int, message: str, hint: str = "", more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint
        self.more = more or {}

    @property
    def body(self) -> bytes:
        """The JSON of the answer."""
        return encode({"error": {"message": str(self), "hint": self.hint}, **self.more})


class Call:
    """One request to the API, and its answer."""

    def __init__(
        self, asked: Asked, out: Answering, access: Visitor, cookie: str, parts: Mapping[str, str]
    ) -> None:
        self.asked = asked
        self.out = out
        self.access = access
        self.cookie = cookie
        self.parts = parts
        """Named parts of the path."""
        self.query = dict(parse_qsl(asked.query, keep_blank_values=True))

    def limit(self, usual: int = _USUAL, most: int = MOST) -> int:
        """The number of entries that a page has."""
        return max(1, min(self.number("limit", usual), most))

    def number(self, name: str, default: int) -> int:
        """A whole number of the query."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 17):
            raise ApiError(400, f'{name}: "{text[:100]}" is not a whole number')
        return int(text)

    def body(self, kind: type[T]) -> T:
        """The body, checked against its type."""
        try:
            return msgspec.json.decode(self.asked.body or b"{}", type=kind)
        except msgspec.ValidationError as error:
            raise ApiError(400, f"the body does not fit: {error}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ApiError(400, f"the body is not JSON: {error}") from error

    async def answer(self, value: object, status: int = 200) -> None:
        """Answers with JSON, known secrets starred out."""
        await self.out.whole(status, (_JSON, _FRESH, *SECURITY), without_secrets(value))

    async def file(self, name: str, kind: str, data: bytes) -> None:
        """Answers with a file to store."""
        safe = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name)
        fields = (
            ("content-type", kind),
            ("content-disposition", f'attachment; filename="{safe}"'),
        )
        await self.out.whole(200, (*fields, _FRESH, *SECURITY), data)

    async def fail(self, error: ApiError) -> None:
        """Answers with an error."""
        await self.out.whole(error.status, (_JSON, _FRESH, *SECURITY), error.body)


Does: TypeAlias = "Callable[[Console, Call], Awaitable[None]]"


class Query(msgspec.Struct, frozen=True):
    """A parameter of an endpoint."""

    name: str
    about: str
    type: str = "string"


PAGE = (
    Query("limit", "Most entries of the page, up to 1000.", "integer"),
    Query("before", "The `next` of the page before."),
)


class ApiRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the table, which the OpenAPI file is made of too."""

    method: str
    path: str
    """Below `/api`, such as `/requests/{id}`."""
    does: Does
    about: str
    query: tuple[Query, ...] = ()
    takes: type[msgspec.Struct] | None = None
    """Type of the body."""
    returns: Any = None
    """Type of the answer; None if it is not JSON or has no fixed members."""
    status: int = 200
    media: str = "application/json"
    session: bool = False
    """Whether only a browser that has logged in may use it."""
    open: bool = False
    """Whether it needs no login."""
