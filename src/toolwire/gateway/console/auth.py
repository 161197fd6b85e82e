"""Logins of the console: single-use codes, session cookies, and the CSRF text of each."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from toolwire.storage.private_files import locked_briefly, read_private, write_private

COOKIE = "tw_session"
CSRF = "x-toolwire-csrf"
CODE_SECONDS = 60.0
IDLE_SECONDS = 12 * 3600.0
_TOUCH_SECONDS = 300.0
_MOST = 200
"""Sessions and codes that are stored; the oldest are dropped."""


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """One logged-in browser."""

    used: float
    generation: str
    """Digest of the token at the time of the login: a new token ends all sessions."""


class _File(msgspec.Struct, kw_only=True):
    codes: dict[str, float] = {}
    """Digest of each code that was not used, and its end."""
    sessions: dict[str, StoredSession] = {}
    """By the digest of the cookie."""


class ConsoleLogins:
    """Codes and sessions in a private file, which the processes of one gateway share."""

    def __init__(self, path: Path, token: str, clock: Callable[[], float]) -> None:
        self._path = path
        self._generation = _digest(f"generation:{token}")
        self._clock = clock
        self._read: _File | None = None
        self._seen: tuple[int, ...] | None = None

    def new_code(self) -> str:
        """Returns a code for one login within a minute."""
        code = secrets.token_urlsafe(32)
        until = self._clock() + CODE_SECONDS
        self._change(lambda found: found.codes.__setitem__(_digest(code), until))
        return code

    def redeem(self, code: str) -> str | None:
        """Returns the cookie of a new session; None if the code is wrong, used or too old."""
        digest = _digest(code)
        taken: list[float] = []

        def take(found: _File) -> None:
            until = found.codes.pop(digest, None)
            if until is not None:
                taken.append(until)

        if not code or digest not in self._stored().codes:
            return None
        self._change(take)
        return self.start() if taken and taken[0] > self._clock() else None

    def start(self) -> str:
        """Returns the cookie of a new session."""
        cookie = secrets.token_urlsafe(32)
        session = StoredSession(used=self._clock(), generation=self._generation)
        self._change(lambda found: found.sessions.__setitem__(_digest(cookie), session))
        return cookie

    def expires(self, cookie: str) -> float | None:
        """When the session of a cookie ends without use; None if it is not valid."""
        found = self._stored().sessions.get(_digest(cookie)) if cookie else None
        now = self._clock()
        if found is None or found.generation != self._generation or _is_old(found, now):
            return None
        if now - found.used > _TOUCH_SECONDS:
            used = msgspec.structs.replace(found, used=now)
            self._change(lambda stored: _touch(stored, _digest(cookie), used))
            found = used
        return found.used + IDLE_SECONDS

    def end(self, cookie: str) -> None:
        """Ends the session of a cookie."""
        self._change(lambda found: found.sessions.pop(_digest(cookie), None))

    def _stored(self) -> _File:
        try:
            state = self._path.stat()
        except OSError:
            self._read, self._seen = _File(), None
            return self._read
        seen = (state.st_mtime_ns, state.st_size, state.st_ino)
        if self._read is None or seen != self._seen:
            self._read, self._seen = self._load(), seen
        return self._read

    def _load(self) -> _File:
        data = read_private(self._path, _no_notice)
        try:
            return msgspec.json.decode(data, type=_File) if data else _File()
        except msgspec.MsgspecError:
            # Written by something else: everybody logs in again.
            return _File()

    def _change(self, change: Callable[[_File], object]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked_briefly(self._path):
            found = self._load()
            change(found)
            now = self._clock()
            codes = [(code, until) for code, until in found.codes.items() if until > now]
            live = [item for item in found.sessions.items() if not _is_old(item[1], now)]
            live.sort(key=lambda item: item[1].used)
            found.codes, found.sessions = dict(codes[-_MOST:]), dict(live[-_MOST:])
            write_private(self._path, msgspec.json.encode(found))
            self._read = None


def csrf_of(cookie: str) -> str:
    """The text that changing requests of a session repeat in a header."""
    return _digest(f"csrf:{cookie}")


def is_csrf(given: str, cookie: str) -> bool:
    """Whether a header has the text of the session."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), csrf_of(cookie).encode())


def set_cookie(cookie: str, *, secure: bool) -> tuple[str, str]:
    """The header that stores the cookie in the browser; an empty one removes it."""
    age = int(IDLE_SECONDS) if cookie else 0
    text = f"{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}"
    return "set-cookie", f"{text}; Secure" if secure else text


def cookie_of(header: str) -> str:
    """The session's cookie in a `Cookie` header; empty without one."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _is_old(session: StoredSession, now: float) -> bool:
    return now - session.used > IDLE_SECONDS


def _touch(found: _File, digest: str, used: StoredSession) -> None:
    # Not after a log-out meanwhile.
    if digest in found.sessions:
        found.sessions[digest] = used


def _no_notice(text: str) -> None:
    del text
