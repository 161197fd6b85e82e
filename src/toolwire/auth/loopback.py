"""A browser login on this machine: a proof key and a loopback server for the answer."""

import asyncio
import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from toolwire.client.redact import Secret
from toolwire.errors import ErrorKind, ProviderError

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
PATH = "/callback"
_THANKS = "Done. You can close this page and go back to the terminal.\n"


class Pkce(msgspec.Struct, frozen=True, kw_only=True):
    """A secret verifier and its public challenge."""

    verifier: Secret
    challenge: str


def new_pkce() -> Pkce:
    """A fresh pair."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
    return Pkce(verifier=Secret(verifier), challenge=challenge)


class Callback:
    """The callback of one login."""

    def __init__(self) -> None:
        self.state = secrets.token_urlsafe(32)
        self.port = 0
        self.issuer = ""
        """The server that the browser says it comes from, if it does (RFC 9207)."""
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def address(self) -> str:
        """The callback address."""
        return f"http://{HOST}:{self.port}{PATH}"

    @property
    def url(self) -> str:
        """The callback address for the browser, including the state."""
        return f"{self.address}?state={self.state}"

    async def code(self, seconds: float) -> Secret:
        """The code from the browser."""
        try:
            async with asyncio.timeout(seconds):
                return Secret(await self._answer)
        except TimeoutError:
            raise ProviderError(
                ErrorKind.AUTH, f"the login was not finished in {seconds:g} s; log in again"
            ) from None

    def take(self, query: "web.BaseRequest") -> "web.Response":
        """Answer the browser; only a request with our state counts."""
        from aiohttp import web  # noqa: PLC0415 - heavy, and most runs need no login

        given = query.query.get("state", "")
        # Another page on this machine can guess the port, not the state; it must not end the login.
        if not hmac.compare_digest(given.encode(), self.state.encode()):
            return web.Response(status=400, text="This is not the login that was started.\n")
        code = query.query.get("code", "")
        if not code and "error" not in query.query:
            return web.Response(status=400, text="The code is missing.\n")
        if not self._answer.done():
            self.issuer = query.query.get("iss", "")
            if code:
                self._answer.set_result(code)
            else:
                refusal = ProviderError(ErrorKind.AUTH, "the login was refused in the browser")
                self._answer.set_exception(refusal)
        return web.Response(text=_THANKS, headers={"referrer-policy": "no-referrer"})


@asynccontextmanager
async def callback_server(port: int = 0, preferred: int = 0) -> AsyncGenerator[Callback]:
    """A loopback server for one login; closed when the block ends.

    It listens on `port`; without one on the preferred port if that is free, else on any.
    """
    from aiohttp import web  # noqa: PLC0415 - heavy, and most runs need no login

    callback = Callback()

    async def handle(request: web.Request) -> web.Response:
        return callback.take(request)

    application = web.Application()
    application.router.add_get(PATH, handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        if port or not preferred or not await _listens(runner, preferred):
            try:
                await web.TCPSite(runner, HOST, port).start()
            except OSError as error:
                raise ProviderError(
                    ErrorKind.AUTH, f"cannot listen on {HOST}:{port}: {error.strerror}"
                ) from error
        callback.port = runner.addresses[0][1]
        yield callback
    finally:
        await runner.cleanup()


async def _listens(runner: "web.AppRunner", port: int) -> bool:
    from aiohttp import web  # noqa: PLC0415 - heavy, and most runs need no login

    try:
        await web.TCPSite(runner, HOST, port).start()
    except OSError:
        return False
    return True
