"""The console's server side: pages, logins, and the table of its API."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.errors import ToolwireError
from toolwire.gateway.console import (
    conformance,
    keys,
    login,
    models,
    playground,
    questions,
    requests,
    sessions,
    settings,
    status,
    usage,
)
from toolwire.gateway.console.auth import CSRF, ConsoleLogins, cookie_of, is_csrf
from toolwire.gateway.console.calls import ApiError, ApiRoute, Call, Visitor
from toolwire.gateway.console.conformance import Conformance
from toolwire.gateway.console.hosted_sessions import HostedSessions
from toolwire.gateway.console.journals import SessionRow
from toolwire.gateway.console.openapi import described
from toolwire.gateway.console.questions import ShownQuestion
from toolwire.gateway.console.static import SECURITY, StaticFile, find_file, load_files, send_file
from toolwire.gateway.guard import Failures, is_json
from toolwire.gateway.parts import Caller, GatewayRefusal
from toolwire.gateway.server import credentials_of
from toolwire.http_server.exchange import ClientGone
from toolwire.ids import new_id
from toolwire.request import JsonObject

if TYPE_CHECKING:
    from toolwire.config import Settings
    from toolwire.gateway.accounts import Accounts
    from toolwire.gateway.host import ServeOptions
    from toolwire.gateway.lifecycle import Lifecycle
    from toolwire.gateway.reload import Reloader
    from toolwire.gateway.server import Gateway
    from toolwire.http_server.exchange import Answering, Asked

READ_SCOPE = "console:read"
_LOOK_SECONDS = 1.0
"""How often journals of other processes are looked at."""
_PREFIX = "/api"
_log = logging.getLogger(__name__)


class ConsoleHost(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway as its console sees it."""

    gateway: Gateway
    accounts: Accounts
    life: Lifecycle
    reloader: Reloader
    options: ServeOptions
    environ: Mapping[str, str]
    settings: Callable[[], Settings]
    """The settings in use."""
    logins: ConsoleLogins
    state: Path
    """Folder of the gateway's state."""
    folder: Path
    """The working folder of the gateway, in which its sessions run."""
    origin: str
    started: float
    tls: bool = False


class Console:
    """Answers requests for pages and for the API."""

    def __init__(self, host: ConsoleHost) -> None:
        self.host = host
        self.boot = new_id("srv_")
        """Differs after each start of the gateway."""
        self.failures = Failures()
        self.closing = False
        self.sessions = HostedSessions(self)
        self.conformance = Conformance(self)
        self._files: dict[str, StaticFile] | None = None

    async def answer(self, asked: Asked, out: Answering) -> None:
        """Answers a request below `/api/` or `/console/`, or of a browser for `/`."""
        path = asked.path
        if path == _PREFIX or path.startswith(f"{_PREFIX}/"):
            await self._api(asked, out)
        elif path == "/":
            before = self.host.gateway.parts.settings.prefix
            await out.whole(302, (("location", f"{before or '.'}/console/"), *SECURITY))
        elif path == "/console":
            before = self.host.gateway.parts.settings.prefix
            place = f"{before}/console/" if before else "console/"
            await out.whole(308, (("location", place), *SECURITY))
        else:
            await self._page(path.removeprefix("/console/"), asked, out)

    async def _page(self, name: str, asked: Asked, out: Answering) -> None:
        if asked.method not in ("GET", "HEAD"):
            fields = (("allow", "GET, HEAD"), *SECURITY)
            await out.whole(405, fields, b"pages are read with GET\n")
            return
        if self._files is None:
            self._files = load_files()
        file = find_file(self._files, name)
        if file is None:
            fields = (("content-type", "text/plain; charset=utf-8"), *SECURITY)
            await out.whole(404, fields, b"no such file of the console\n")
            return
        await send_file(file, asked, out)

    async def _api(self, asked: Asked, out: Answering) -> None:
        cookie = cookie_of(asked.field("cookie"))
        call = Call(asked, out, Visitor.NONE, cookie, {})
        try:
            endpoint, call.parts = find_route(asked.method, asked.path.removeprefix(_PREFIX))
            call.access = await self.access(asked, cookie)
            self._check(endpoint, call)
            await endpoint.does(self, call)
        except ApiError as error:
            await call.fail(error)
        except GatewayRefusal as error:
            await call.fail(ApiError(error.status or 400, str(error)))
        except ToolwireError as error:
            await call.fail(ApiError(400, str(error)))
        except (ClientGone, OSError):
            raise
        except Exception:
            _log.exception("the console failed on %s", asked.path)
            if out.begun:
                raise
            await call.fail(ApiError(500, "the console failed; see the log of the gateway"))

    async def access(self, asked: Asked, cookie: str) -> Visitor:
        """Who sends the request."""
        if cookie and self.host.logins.expires(cookie) is not None:
            return Visitor.SESSION
        given = credentials_of(asked)
        if not given:
            return Visitor.NONE
        gateway = self.host.gateway
        address = gateway.proxies.client(asked.head, asked.address)
        caller = await gateway.parts.admission.identify(given, address)
        if caller.admin or self.host.options.token is None:
            return Visitor.ADMIN
        return Visitor.READER if READ_SCOPE in caller.scopes else Visitor.NONE

    def _check(self, endpoint: ApiRoute, call: Call) -> None:
        """ApiError unless the caller may use the endpoint."""
        changes = endpoint.method not in ("GET", "HEAD")
        if changes and not is_json(call.asked.field("content-type")):
            raise ApiError(415, "send the body as application/json")
        if endpoint.open:
            return
        if call.access is Visitor.NONE:
            hint = "open the link that toolwire serve prints, or log in with its token"
            raise ApiError(401, "not logged in", hint)
        if call.access is Visitor.READER and changes:
            raise ApiError(403, f"a key with the scope {READ_SCOPE} may only read")
        if call.access is Visitor.SESSION:
            if changes and not is_csrf(call.asked.field(CSRF), call.cookie):
                raise ApiError(403, f"the header {CSRF} is missing or wrong", "reload the page")
        elif endpoint.session:
            raise ApiError(403, "only a browser that has logged in may do this, not a key")

    def caller(self, asked: Asked) -> Caller | None:
        """The caller of a model who is a logged-in page of this console; None for others."""
        cookie = cookie_of(asked.field("cookie"))
        if not cookie or not is_csrf(asked.field(CSRF), cookie):
            return None
        if self.host.logins.expires(cookie) is None:
            return None
        return Caller(key="console", id="console", tenant="console", admin=True)

    def openapi(self) -> JsonObject:
        """The description of the API."""
        return described(table())

    def followed(self, topics: set[str]) -> Followed:
        """What a stream sends besides requests."""
        return Followed(self, topics)

    def stop(self) -> None:
        """Ends the open streams: the gateway is shutting down."""
        self.closing = True

    async def aclose(self) -> None:
        """Ends what the console runs."""
        self.stop()
        await self.sessions.aclose()
        await self.conformance.aclose()


class Followed:
    """Questions and sessions for one stream, each time they change."""

    def __init__(self, console: Console, topics: set[str]) -> None:
        self._console = console
        self._topics = topics
        self._questions: list[ShownQuestion] | None = None
        self._rows: dict[str, SessionRow] | None = None
        self._problem: str | None = None
        self._looked = 0.0
        self._versions = (-1, -1)

    async def changes(self) -> list[tuple[str, object]]:
        """Events whose data is not what was sent last."""
        sessions = self._console.sessions
        versions, now = (sessions.version, sessions.questions.version), time.monotonic()
        if versions == self._versions and now - self._looked < _LOOK_SECONDS:
            return []
        self._versions, self._looked = versions, now
        found: list[tuple[str, object]] = []
        if "questions" in self._topics:
            questions = await sessions.questions_everywhere()
            if questions != self._questions:
                self._questions = questions
                found.append(("questions", {"questions": questions}))
        if "sessions" in self._topics:
            rows = await asyncio.to_thread(sessions.journals.rows)
            known = {row.id: sessions.with_state(row) for row in rows}
            before = self._rows
            if before is not None:
                new = [row for name, row in known.items() if before.get(name) != row]
                if new:
                    found.append(("sessions", {"sessions": new}))
            self._rows = known
        problem = self._console.host.reloader.problem
        if problem != self._problem:
            if self._problem is not None:
                found.append(("settings", {"problem": problem}))
            self._problem = problem
        return found


@cache
def table() -> tuple[ApiRoute, ...]:
    """Every endpoint."""
    return (
        *login.ENDPOINTS,
        *requests.ENDPOINTS,
        *sessions.ENDPOINTS,
        *questions.ENDPOINTS,
        *playground.ENDPOINTS,
        *models.ENDPOINTS,
        *keys.ENDPOINTS,
        *usage.ENDPOINTS,
        *conformance.ENDPOINTS,
        *settings.ENDPOINTS,
        *status.ENDPOINTS,
    )


def find_route(method: str, path: str) -> tuple[ApiRoute, dict[str, str]]:
    """The endpoint of a request, and the named parts of its path; ApiError if there is none."""
    allowed: list[str] = []
    for endpoint in table():
        parts = _match(endpoint.path, path)
        if parts is None:
            continue
        if endpoint.method == method or (method == "HEAD" and endpoint.method == "GET"):
            return endpoint, parts
        allowed.append(endpoint.method)
    if allowed:
        raise ApiError(405, f"{method} is not possible here; use {' or '.join(allowed)}")
    hint = "GET /api/openapi.json describes the API"
    raise ApiError(404, f"no such address: /api{path[:200]}", hint)


def _match(pattern: str, path: str) -> dict[str, str] | None:
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    parts: dict[str, str] = {}
    for one, other in zip(wanted, given, strict=True):
        if one.startswith("{"):
            if not other:
                return None
            parts[one[1:-1]] = other
        elif one != other:
            return None
    return parts
