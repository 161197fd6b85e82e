"""A login another program keeps in a file: read, refreshed before it ends, written back whole."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from toolwire.client.oauth import google
from toolwire.client.secret import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.storage.private_files import locked, read_private, write_private
from toolwire.wire.json_access import JsonObject, parse_object

_MILLI = 1000.0


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The OAuth client a login belongs to: configured by the person, never shipped."""

    id: str
    secret: Secret


class LoginFile:
    """The access token in the file, always one that has some time left."""

    def __init__(
        self,
        path: Path,
        client: Client | None,
        *,
        url: str,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        notice: Callable[[str], None],
        without_client: str,
    ) -> None:
        self.path = path
        self._client = client
        self._url = url
        self._now = now
        self._sleep = sleep
        self._notice = notice
        self._without_client = without_client
        """What to configure when a refresh is due and no client is known."""
        self._one_at_a_time = asyncio.Lock()
        self._given = ""
        self._refreshed_at = float("-inf")

    async def token(self, refresh: bool = False) -> Secret:
        """The token; with `refresh` another one than was given before."""
        refused = self._given if refresh else ""
        async with self._one_at_a_time:
            held = self._read()
            if not self._is_usable(held, refused):
                async with locked(self.path, self._sleep):
                    # Another process may have been at it while this one waited for the lock.
                    held = self._read()
                    if not self._is_usable(held, refused):
                        held = await self._renew(held)
            self._given = str(held["access_token"])
            return Secret(self._given)

    def _is_usable(self, held: JsonObject, refused: str) -> bool:
        token, ends = held.get("access_token"), held.get("expiry_date")
        if not isinstance(token, str) or not token:
            return False
        # A file without a date says nothing against its token until the server does.
        if isinstance(ends, int | float) and self._now() >= ends / _MILLI - google.EARLY:
            return False
        # Several requests refused together ask one after another: one refresh serves them all.
        return token != refused or self._now() - self._refreshed_at < google.JUST_NOW

    async def _renew(self, held: JsonObject) -> JsonObject:
        token = held.get("refresh_token")
        if not isinstance(token, str) or not token:
            raise ProviderError(
                ErrorKind.AUTH, f"the login in {self.path} has ended and cannot be renewed"
            )
        if self._client is None:
            raise ProviderError(
                ErrorKind.AUTH, f"the login in {self.path} has ended; {self._without_client}"
            )
        fresh = await google.refresh(
            Secret(token),
            self._client.id,
            self._client.secret,
            url=self._url,
            now=self._now,
            way_out=f"log in again with the program that made {self.path}",
        )
        held = {
            **held,
            **fresh.others,
            "access_token": fresh.access_token.reveal(),
            "refresh_token": (fresh.refresh_token or Secret(token)).reveal(),
            "expiry_date": int(fresh.expires_at * _MILLI),
        }
        write_private(self.path, msgspec.json.encode(held))
        self._refreshed_at = self._now()
        return held

    def _read(self) -> JsonObject:
        content = read_private(self.path, self._notice)
        if content is None:
            raise ProviderError(ErrorKind.AUTH, f"there is no login file {self.path}")
        try:
            held = parse_object(content, str(self.path))
        except BadInput:
            raise BadInput(f"{self.path} is not JSON; log in again to replace it") from None
        for key in ("access_token", "refresh_token", "id_token"):
            if isinstance(held.get(key), str):
                Secret(held[key])
        return held
