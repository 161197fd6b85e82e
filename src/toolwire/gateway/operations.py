"""What operators ask of a gateway: whether it lives, whether it is ready, its metrics."""

from collections.abc import Awaitable, Callable

from toolwire.errors import ErrorKind
from toolwire.gateway.lifecycle import Lifecycle
from toolwire.gateway.metrics import CONTENT_TYPE, Metrics
from toolwire.gateway.parts import Caller, GatewayParts, GatewayRefusal
from toolwire.http_server.exchange import Answering, Asked

LOOPBACK = ("127.0.0.1", "localhost", "::1")
METRICS = "/metrics"
_PATHS = frozenset({"/healthz", "/readyz"})
_TEXT = (("content-type", "text/plain; charset=utf-8"), ("cache-control", "no-store"))
_METRICS_SCOPE = "metrics"


class Operations:
    """Answers requests that are not for a model."""

    def __init__(
        self, life: Lifecycle, metrics: Metrics, refresh: Callable[[], Awaitable[None]]
    ) -> None:
        """`refresh` is awaited before the metrics are read."""
        self._life = life
        self.metrics = metrics
        self._refresh = refresh

    async def answer(self, asked: Asked, out: Answering) -> bool:
        """Whether the request was one for these, which need no key."""
        if asked.path not in _PATHS or asked.method not in ("GET", "HEAD"):
            return False
        why = self._life.not_ready() if asked.path == "/readyz" else ""
        words = why or (self._life.notes() if asked.path == "/readyz" else "")
        await out.whole(503 if why else 200, _TEXT, f"{words}\n".encode() if words else b"")
        return True

    async def report(self, out: Answering) -> None:
        """Sends the metrics."""
        await self._refresh()
        fields = (("content-type", CONTENT_TYPE), ("cache-control", "no-store"))
        await out.whole(200, fields, self.metrics.render())


def is_open(parts: GatewayParts) -> bool:
    """Whether the metrics need no key."""
    return parts.settings.metrics_open and parts.settings.host in LOOPBACK


def check_scope(caller: Caller) -> None:
    """GatewayRefusal unless the caller may read the metrics."""
    if not caller.admin and _METRICS_SCOPE not in caller.scopes:
        raise GatewayRefusal(
            ErrorKind.PERMISSION,
            f"this key may not read the metrics; it needs the scope {_METRICS_SCOPE}",
            status=403,
        )
