"""An MCP server behind OAuth, and its authorization server, on one loopback address."""

import asyncio
import base64
import hashlib
import itertools
import json
import threading
import time
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from aiohttp import web

from tests.mcp.scripted_http import ScriptedHttp, serving
from tests.mcp.servers import connected
from toolwire.auth.store import Store
from toolwire.mcp.connection import ServerConnection
from toolwire.mcp.entry import read_entry
from toolwire.mcp.login import LoginStore, ServerLogin


class AuthServer:
    """Registers clients, gives codes and tokens, and lets requests with a good token through."""

    def __init__(self) -> None:
        self.address = ""
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Every request to an endpoint, and its parameters."""
        self.clients: dict[str, dict[str, Any]] = {}
        self.secret = ""
        """The secret of the configured client `mine`."""
        self.codes: dict[str, dict[str, str]] = {}
        self.refreshes: set[str] = set()
        self.access: dict[str, tuple[float, set[str]]] = {}
        self.lifetime: float = 3600
        self.broken: dict[str, tuple[int, dict[str, Any]]] = {}
        """Endpoint → what it answers in place of its work."""
        self.metadata: dict[str, Any] = {}
        self.protected: dict[str, Any] = {}
        self.challenge = ""
        self.needs: set[str] = {"read"}
        self.callback: dict[str, str] = {}
        """Parameters that the browser brings back in place of the right ones."""
        self.refresh_seconds = 0.0
        self._numbers = itertools.count(1)
        self._mcp = ScriptedHttp({}, "json")

    def application(self) -> web.Application:
        known = "/.well-known"
        application = web.Application()
        application.router.add_get(f"{known}/oauth-protected-resource/mcp", self._resource)
        application.router.add_get(f"{known}/oauth-authorization-server", self._about)
        application.router.add_post("/register", self._register)
        application.router.add_get("/authorize", self._authorize)
        application.router.add_post("/token", self._token)
        application.router.add_post("/mcp", self._call)
        application.router.add_get("/mcp", self._mcp.get)
        return application

    def times(self, endpoint: str) -> int:
        return sum(name == endpoint for name, _ in self.asked)

    async def _resource(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "resource": f"{self.address}/mcp",
                "authorization_servers": [self.address],
                "scopes_supported": ["read"],
                **self.protected,
            }
        )

    async def _about(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.address,
                "authorization_endpoint": f"{self.address}/authorize",
                "token_endpoint": f"{self.address}/token",
                "registration_endpoint": f"{self.address}/register",
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                **self.metadata,
            }
        )

    def _broken(self, endpoint: str, fields: Mapping[str, str]) -> web.Response | None:
        self.asked.append((endpoint, dict(fields)))
        if endpoint not in self.broken:
            return None
        status, body = self.broken[endpoint]
        moved = {"location": str(body["location"])} if "location" in body else {}
        return web.json_response(body, status=status, headers=moved)

    async def _register(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        if broken := self._broken("register", {"redirect": body["redirect_uris"][0]}):
            return broken
        name = f"client-{next(self._numbers)}"
        self.clients[name] = body
        return web.json_response({"client_id": name}, status=201)

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        if broken := self._broken("authorize", asked):
            return broken
        # A strict server: the redirect address is the registered one, its port included.
        client = self.clients.get(asked["client_id"])
        if client is None or asked["redirect_uri"] not in client["redirect_uris"]:
            return web.Response(status=400, text="unknown client or redirect address")
        code = f"code-{next(self._numbers)}"
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.address, **self.callback}
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(back)}")

    async def _token(self, request: web.Request) -> web.Response:
        fields = {name: values[0] for name, values in parse_qs(await request.text()).items()}
        if broken := self._broken(f"token {fields['grant_type']}", fields):
            return broken
        if fields["client_id"] not in self.clients:
            return web.json_response({"error": "invalid_client"}, status=401)
        if self.secret and fields.get("client_secret") != self.secret:
            return web.json_response({"error": "invalid_client"}, status=401)
        scopes = set(fields.get("scope", "").split())
        if fields["grant_type"] == "refresh_token":
            await asyncio.sleep(self.refresh_seconds)
            if fields["refresh_token"] not in self.refreshes:
                return web.json_response({"error": "invalid_grant"}, status=400)
            # Each refresh token counts once: two processes that use one lose the login.
            self.refreshes.discard(fields["refresh_token"])
        else:
            asked = self.codes.pop(fields["code"], None)
            digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if asked is None or asked["code_challenge"] != challenge:
                return web.json_response({"error": "invalid_grant"}, status=400)
            scopes = set(asked.get("scope", "").split())
        if fields.get("resource") != f"{self.address}/mcp":
            return web.json_response({"error": "invalid_target"}, status=400)
        number = next(self._numbers)
        access, refresh = f"access-token-{number}", f"refresh-token-{number}"
        self.access[access] = (time.time() + self.lifetime, scopes)
        self.refreshes.add(refresh)
        return web.json_response(
            {
                "access_token": access,
                "refresh_token": refresh,
                "expires_in": self.lifetime,
                "scope": " ".join(sorted(scopes)),
            }
        )

    async def _call(self, request: web.Request) -> web.StreamResponse:
        word, _, token = request.headers.get("authorization", "").partition(" ")
        end, scopes = self.access.get(token, (0.0, set[str]()))
        if word != "Bearer" or time.time() > end:
            known = f"{self.address}/.well-known/oauth-protected-resource/mcp"
            bearer = self.challenge or f'Bearer resource_metadata="{known}"'
            # A careless server repeats what it was sent.
            text = f"bad token: {request.headers.get('authorization', '')}"
            return web.Response(status=401, headers={"www-authenticate": bearer}, text=text)
        missing = self.needs - scopes
        if missing:
            bearer = f'Bearer error="insufficient_scope", scope="{" ".join(sorted(missing))}"'
            return web.Response(status=403, headers={"www-authenticate": bearer})
        return await self._mcp.post(request)


@asynccontextmanager
async def auth_server() -> AsyncGenerator[AuthServer]:
    server = AuthServer()
    async with serving(server.application()) as address:
        server.address = address
        yield server


def browse(url: str) -> None:
    """A browser that agrees to everything."""

    def visit() -> None:
        try:
            with urllib.request.urlopen(url, timeout=10) as page:
                page.read()
        except OSError:
            return

    threading.Thread(target=visit, daemon=True).start()


class Agent:
    """This program with a credential store of its own, in runs that follow each other."""

    def __init__(self, folder: Path, server: AuthServer) -> None:
        self._folder = folder
        self._server = server
        self.shown: list[str] = []
        self.environ: dict[str, str] = {}

    def store(self) -> LoginStore:
        return LoginStore(Store(self._folder / "credentials.json"))

    def login(self, *, headless: bool = False, **oauth: Any) -> ServerLogin:
        def show(url: str) -> None:
            self.shown.append(url)
            browse(url)

        table = {"url": f"{self._server.address}/mcp", "oauth": oauth}
        entry = read_entry("test", table, "the test")
        shown = None if headless else show
        return ServerLogin("test", entry, self.environ, self.store(), show=shown)

    @asynccontextmanager
    async def run(
        self, *, headless: bool = False, **oauth: Any
    ) -> AsyncGenerator[ServerConnection]:
        table = {"url": f"{self._server.address}/mcp", "startup_timeout": 20}
        login = self.login(headless=headless, **oauth)
        async with connected(self._folder, table, login=login) as server:
            yield server

    async def call(self, *, headless: bool = False, **oauth: Any) -> str:
        """The text of a call in a run of its own."""
        async with self.run(headless=headless, **oauth) as server:
            result = await server.call("echo", {}, None)
            return result["content"][0]["text"]


def parameters(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
