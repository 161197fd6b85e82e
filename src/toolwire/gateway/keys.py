"""Virtual keys: made, rotated, and checked in constant time."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase

import msgspec

from toolwire.config.gateway import duration
from toolwire.errors import BadInput, UnknownName
from toolwire.gateway.store import Budget, KeyRules, VirtualKey, Window

PREFIX = "tw-"
_ID = "0123456789abcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"tw-([0-9a-z]{8})-([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_RESERVED = frozenset({"admin", "anonymous"})
_WINDOWS: tuple[Window, ...] = ("hour", "day", "month", "total")
_DUMMY = hashlib.sha256(b"no key has this digest").digest()
ROTATION_SECONDS = 24 * 3600
SCOPES = ("raw", "metrics", "console:read", "console:write")


def digest_of(secret: str) -> bytes:
    """Returns what is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_key(
    name: str, rules: KeyRules, *, now: float, expires: float | None = None
) -> tuple[VirtualKey, str]:
    """Returns a new key, and its text, which is not stored."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise BadInput(
            f'"{name}" cannot be the name of a key; use up to 64 letters, digits and . _ @ -'
        )
    if expires is not None and expires <= now:
        raise BadInput("the key would have expired already; name a later time")
    key_id = "".join(secrets.choice(_ID) for _ in range(8))
    secret = secrets.token_urlsafe(32)
    key = VirtualKey(
        id=key_id, name=name, digest=digest_of(secret), rules=rules, created=now, expires=expires
    )
    return key, f"{PREFIX}{key_id}-{secret}"


def rotated(key: VirtualKey, now: float) -> tuple[VirtualKey, str]:
    """Returns the key with a new secret, and its text; the old one is valid for another day."""
    secret = secrets.token_urlsafe(32)
    changed = msgspec.structs.replace(
        key, digest=digest_of(secret), old_digest=key.digest, old_until=now + ROTATION_SECONDS
    )
    return changed, f"{PREFIX}{key.id}-{secret}"


def split_key(text: str) -> tuple[str, str] | None:
    """Returns the id and the secret of a key's text; None if it is not one."""
    found = _FORM.fullmatch(text)
    return (found[1], found[2]) if found else None


def opens(key: VirtualKey | None, secret: str, now: float) -> bool:
    """Whether a secret is that of a valid key; takes equally long for an unknown key."""
    digest = digest_of(secret)
    current = hmac.compare_digest(digest, key.digest if key is not None else _DUMMY)
    old = hmac.compare_digest(digest, (key.old_digest if key is not None else b"") or _DUMMY)
    if key is None or not is_valid(key, now):
        return False
    return current or (old and now < key.old_until)


def is_valid(key: VirtualKey, now: float) -> bool:
    """Whether a key is neither revoked nor expired."""
    return key.revoked is None and (key.expires is None or now < key.expires)


def may_use(rules: KeyRules, route: str, model: str) -> bool:
    """Whether a key may use a model, `provider/model`, by a route."""
    return _allowed(route, rules.routes) and _allowed(model, rules.models)


def _allowed(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def read_budget(text: str) -> Budget:
    """Returns the budget of `20/month`, or `20` in total."""
    amount, _, window = text.strip().removeprefix("$").partition("/")
    try:
        dollars = float(amount)
    except ValueError:
        dollars = -1.0
    if not 0 < dollars < 1e9:
        raise BadInput(f'"{text}" is not a budget; write dollars and a window: 20/month')
    window = window or "total"
    for known in _WINDOWS:
        if known == window:
            return Budget(dollars, known)
    raise UnknownName("window of a budget", window, _WINDOWS)


def read_expiry(text: str, now: float) -> float:
    """Returns the time of a date (its end, in UTC), a date with a time, or a duration (`30d`)."""
    if re.fullmatch(r"\d+[smhd]", text):
        return now + duration(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            f'"{text}" is not a date; write 2027-01-31, 2027-01-31T12:00 or a duration: 30d'
        ) from error
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return at.timestamp() + (86_400 if len(text) == 10 else 0)


def read_scopes(text: str) -> tuple[str, ...]:
    """Returns the scopes of a list: `raw,console:read`."""
    scopes = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for scope in scopes:
        if scope not in SCOPES and not re.fullmatch(r"raw:[^\s:,/]+", scope):
            raise UnknownName("scope", scope, (*SCOPES, "raw:<provider>"))
    return scopes
