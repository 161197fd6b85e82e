"""The simplest parts: one token, one model for every name."""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from toolwire.app.model_stack import Opened
from toolwire.client.redact import Secret
from toolwire.errors import ErrorKind, ProviderError
from toolwire.gateway.parts import (
    Caller,
    Deployment,
    Estimate,
    GatewayRefusal,
    Route,
)
from toolwire.gateway.record import RequestRecord
from toolwire.messages import Origin

_MOST_STORED = 1000
_MOST_NAMES = 500
"""Names that are remembered; clients may send any."""
_ANYONE = Caller(key="admin", tenant="local", admin=True)


class _Admitted:
    def settle(self, record: RequestRecord) -> None:
        """Nothing was reserved."""


class TokenAdmission:
    """Lets in whoever has the token; without a token every caller."""

    def __init__(self, token: Secret | None) -> None:
        self._digest = None if token is None else _digest(token.reveal())
        self._caller = _ANYONE
        if self._digest is not None:
            self._caller = Caller(key="admin", tenant=self._digest.hex()[:32], admin=True)

    def identify(self, credentials: Sequence[str], address: str) -> Caller:
        """The caller; all credentials are compared in constant time."""
        digest = self._digest
        if digest is None or any(hmac.compare_digest(_digest(one), digest) for one in credentials):
            return self._caller
        what = "the key is not valid" if credentials else "a key is missing"
        raise GatewayRefusal(
            ErrorKind.AUTH, f"{what}; send the gateway's token as the API key", status=401
        )

    async def admit(self, caller: Caller, record: RequestRecord, estimate: Estimate) -> _Admitted:
        """Never waits."""
        return _Admitted()


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()


class OneDeployment(msgspec.Struct, frozen=True, kw_only=True):
    """One model."""

    name: str
    opened: Opened


class OneRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Every request to one model."""

    name: str
    deployment: OneDeployment

    def order(self, conversation: str, seal_origin: Origin | None) -> Sequence[Deployment]:
        """The model."""
        return (self.deployment,)


class EveryName:
    """One provider, whatever model a client names; its model is fixed, or the one named."""

    def __init__(self, open_named: Callable[[str], Awaitable[Opened]], fixed: str = "") -> None:
        self._open_named = open_named
        self._fixed = fixed
        self._routes: OrderedDict[str, OneRoute] = OrderedDict()

    async def find(self, name: str) -> Route:
        """The route."""
        model = self._fixed or name
        route = self._routes.get(model)
        if route is None:
            opened = await self._open_named(model)
            deployment = OneDeployment(name=opened.name, opened=opened)
            route = self._routes[model] = OneRoute(name=opened.name, deployment=deployment)
            if len(self._routes) > _MOST_NAMES:
                self._routes.popitem(last=False)
        return route

    def failed(self, deployment: Deployment, error: ProviderError) -> None:
        """There is no other deployment."""

    def worked(self, deployment: Deployment) -> None:
        """There is no other deployment."""
