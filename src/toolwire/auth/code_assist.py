"""Gemini Code Assist: the user's own token, and the project of their requests."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolwire.auth import google
from toolwire.auth.credentials import Credential
from toolwire.auth.http import EARLY, JUST_NOW, Reply, get_json, post_json, refused
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.storage.private_files import locked, read_private, write_private
from toolwire.wire.json_access import JsonObject, is_object, objects_in, parse_object

_MILLI = 1000.0


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The OAuth client of a login: configured by the user, never shipped."""

    id: str
    secret: Secret


class LoginFile:
    """The access token in the file, refreshed before it expires."""

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
        """What to configure when a refresh is due and no client is set."""
        self._one_at_a_time = asyncio.Lock()
        self._given = ""
        self._refreshed_at = float("-inf")

    async def token(self, refresh: bool = False) -> Secret:
        """The token; with `refresh`, a different one than last returned."""
        refused = self._given if refresh else ""
        async with self._one_at_a_time:
            held = self._read()
            if not self._is_usable(held, refused):
                async with locked(self.path, self._sleep):
                    # Another process may have refreshed it while this one waited for the lock.
                    held = self._read()
                    if not self._is_usable(held, refused):
                        held = await self._renew(held)
            self._given = str(held["access_token"])
            return Secret(self._given)

    def _is_usable(self, held: JsonObject, refused: str) -> bool:
        token, ends = held.get("access_token"), held.get("expiry_date")
        if not isinstance(token, str) or not token:
            return False
        # A token without an expiry date is valid until the server refuses it.
        if isinstance(ends, int | float) and self._now() >= ends / _MILLI - EARLY:
            return False
        # Requests refused at the same time share one refresh.
        return token != refused or self._now() - self._refreshed_at < JUST_NOW

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


ENDPOINT = "https://cloudcode-pa.googleapis.com"
CLIENT_ID = "TOOLWIRE_CODE_ASSIST_CLIENT_ID"
CLIENT_SECRET = "TOOLWIRE_CODE_ASSIST_CLIENT_SECRET"  # noqa: S105 - a variable's name
CREDENTIALS = "TOOLWIRE_CODE_ASSIST_CREDENTIALS"
PROJECT = "TOOLWIRE_CODE_ASSIST_PROJECT"
FREE, LEGACY, STANDARD = "free-tier", "legacy-tier", "standard-tier"
_POLL = 5.0
_PATIENCE = 300.0
_CORE: JsonObject = {
    "ideType": "IDE_UNSPECIFIED",
    "platform": "PLATFORM_UNSPECIFIED",
    "pluginType": "GEMINI",
}


class CodeAssistSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The user's configuration; nothing is enabled by default."""

    token: Secret | None = None
    """The user's own access token."""
    file: Path | None = None
    client: Client | None = None
    project: str = ""
    endpoint: str = ENDPOINT
    version: str = "v1internal"
    token_url: str = google.TOKEN_URL

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "CodeAssistSettings":
        """The settings of this environment; raises if the project is a number."""
        ready = environ.get("GOOGLE_CLOUD_ACCESS_TOKEN", "")
        allowed = environ.get("GOOGLE_GENAI_USE_GCA", "").lower() in ("true", "1")
        client_id, client_secret = environ.get(CLIENT_ID, ""), environ.get(CLIENT_SECRET, "")
        named = environ.get(CREDENTIALS, "")
        client, file = None, Path(named).expanduser() if named else None
        if client_id and client_secret:
            client = Client(id=client_id, secret=Secret(client_secret))
            home = environ.get("HOME") or environ.get("USERPROFILE")
            file = file or (Path(home) / ".gemini" / "oauth_creds.json" if home else None)
        return cls(
            token=Secret(ready) if ready and allowed else None,
            file=file,
            client=client,
            project=_configured_project(environ, file),
            endpoint=environ.get("CODE_ASSIST_ENDPOINT") or ENDPOINT,
            version=environ.get("CODE_ASSIST_API_VERSION") or "v1internal",
            token_url=environ.get(google.TOKEN_URL_VARIABLE) or google.TOKEN_URL,
        )

    @property
    def is_configured(self) -> bool:
        """Whether the user configured a token, a file or a client."""
        return self.token is not None or self.file is not None


class CodeAssistCredential(Credential):
    """Headers for Code Assist, and the project for its bodies."""

    def __init__(
        self,
        settings: CodeAssistSettings,
        *,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        notice: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._now = now
        self._sleep = sleep
        self._file: LoginFile | None = None
        if settings.token is not None:
            self.origin = "from GOOGLE_CLOUD_ACCESS_TOKEN"
        elif settings.file is not None:
            self.origin = f"from {settings.file}"
            self._file = LoginFile(
                settings.file,
                settings.client,
                url=settings.token_url,
                now=now,
                sleep=sleep,
                notice=notice,
                without_client=f"set {CLIENT_ID} and {CLIENT_SECRET} to have it renewed",
            )
        self._project: str | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, refresh: bool = False, /) -> tuple[tuple[str, str], ...]:
        """The headers to add."""
        return (("authorization", f"Bearer {(await self._token(refresh)).reveal()}"),)

    async def project(self) -> str:
        """The project of this account, looked up once; a new account is onboarded first."""
        async with self._one_at_a_time:
            if self._project is None:
                self._project = await self._discover()
            return self._project

    async def _token(self, refresh: bool) -> Secret:
        if self._settings.token is not None:
            return self._settings.token
        if self._file is None:
            raise ProviderError(ErrorKind.AUTH, "no login for Code Assist is configured")
        return await self._file.token(refresh)

    async def _discover(self) -> str:
        configured = self._settings.project
        body: JsonObject = {"metadata": _metadata(configured)}
        if configured:
            body["cloudaicompanionProject"] = configured
        reply = await self._call("loadCodeAssist", body)
        if not reply.ok and _reason(reply.body) != "SECURITY_POLICY_VIOLATED":
            raise refused(reply, "Code Assist did not say what this account may use")
        # Inside a service perimeter the request is refused, but the account has the standard tier.
        known: JsonObject = reply.body if reply.ok else {"currentTier": {"id": STANDARD}}
        if is_object(known.get("currentTier")):
            return _project_in(known) or configured or _fail_without_project(known)
        _fail_if_not_eligible(known)
        return await self._onboard(known, configured)

    async def _onboard(self, known: JsonObject, configured: str) -> str:
        tier = _default_tier(known)
        body: JsonObject = {"tierId": tier.get("id") or LEGACY, "metadata": _metadata("")}
        if body["tierId"] != FREE:
            # The free tier has its own project and answers 412 to any other.
            if not configured and tier.get("userDefinedCloudaicompanionProject"):
                _fail_without_project(known)
            body["metadata"] = _metadata(configured)
            if configured:
                body["cloudaicompanionProject"] = configured
        deadline = self._now() + _PATIENCE
        reply = await self._call("onboardUser", body)
        while True:
            if not reply.ok:
                raise refused(reply, "Code Assist did not set up this account")
            if reply.body.get("done"):
                break
            if self._now() >= deadline:
                raise ProviderError(ErrorKind.TIMEOUT, "Code Assist is still setting up; try later")
            await self._sleep(_POLL)
            name = reply.word("name")
            reply = await (self._operation(name) if name else self._call("onboardUser", body))
        _fail_if_broken(reply)
        made: Any = reply.body.get("response")
        found = _project_in(made) if is_object(made) else ""
        return found or configured or _fail_without_project(known)

    async def _call(self, method: str, body: JsonObject) -> Reply:
        url = f"{self._settings.endpoint}/{self._settings.version}:{method}"
        reply = await post_json(url, body, dict(await self(False)))
        if reply.status == 401:
            reply = await post_json(url, body, dict(await self(True)))
        return reply

    async def _operation(self, name: str) -> Reply:
        url = f"{self._settings.endpoint}/{self._settings.version}/{name}"
        return await get_json(url, dict(await self(False)))


def _configured_project(environ: Mapping[str, str], file: Path | None) -> str:
    beside = _dotenv(file.parent / ".env") if file is not None else {}
    project = (
        environ.get(PROJECT)
        or beside.get("GOOGLE_CLOUD_PROJECT")
        or environ.get("GOOGLE_CLOUD_PROJECT")
        or environ.get("GOOGLE_CLOUD_PROJECT_ID")
        or ""
    )
    if project.isdecimal():
        raise BadInput(
            f'"{project}" is a project\'s number; set GOOGLE_CLOUD_PROJECT to its id, '
            "which begins with a letter"
        )
    return project


def _dotenv(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines)
    return {name.strip(): value.strip().strip("\"'") for name, mark, value in pairs if mark}


def _metadata(project: str) -> JsonObject:
    return {**_CORE, "duetProject": project} if project else dict(_CORE)


def _project_in(body: JsonObject) -> str:
    found: Any = body.get("cloudaicompanionProject")
    if is_object(found):
        found = found.get("id")
    return found if isinstance(found, str) else ""


def _default_tier(known: JsonObject) -> JsonObject:
    tiers = objects_in(known.get("allowedTiers"))
    return next((tier for tier in tiers if tier.get("isDefault")), {"id": LEGACY})


def _reason(body: JsonObject) -> str:
    error: Any = body.get("error")
    details = objects_in(error.get("details")) if is_object(error) else []
    return next((str(detail["reason"]) for detail in details if detail.get("reason")), "")


def _fail_if_broken(reply: Reply) -> None:
    if is_object(reply.body.get("error")):
        raise refused(reply, "Code Assist did not set up this account", kind=ErrorKind.PERMISSION)


def _fail_if_not_eligible(known: JsonObject) -> None:
    barred = objects_in(known.get("ineligibleTiers"))
    for tier in barred:
        if tier.get("reasonCode") == "VALIDATION_REQUIRED" and tier.get("validationUrl"):
            reason = tier.get("reasonMessage") or "this account must be verified"
            raise ProviderError(
                ErrorKind.PERMISSION, f"{reason}; open {tier['validationUrl']} and try again"
            )
    if barred and not objects_in(known.get("allowedTiers")):
        raise ProviderError(ErrorKind.PERMISSION, _barred(barred))


def _fail_without_project(known: JsonObject) -> str:
    barred = objects_in(known.get("ineligibleTiers"))
    message = "this account needs a project of yours; set GOOGLE_CLOUD_PROJECT to its id"
    raise ProviderError(
        ErrorKind.PERMISSION, f"{message} ({_barred(barred)})" if barred else message
    )


def _barred(barred: list[JsonObject]) -> str:
    reasons = [str(tier.get("reasonMessage") or tier.get("reasonCode") or "") for tier in barred]
    return "; ".join(filter(None, reasons)) or "this account may not use Code Assist"
