"""Settings of the gateway and its routes."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec

from toolwire.errors import BadInput, UnknownName
from toolwire.prompted import ToolStyle
from toolwire.request import Effort
from toolwire.setting import Amount, Count, ModelName, StoreUrl, setting

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
_MIB = 1024 * 1024
_DURATION = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class RouteTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One deployment of a route: a model with the credential it is asked with."""

    model: ModelName
    weight: Positive = 1
    """Its share of the requests, beside the weights of the others."""
    concurrent: Count = 0
    """Most requests at once; 0 sets no limit."""
    key: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    """Environment variable that contains the key; empty for the provider's own."""


class RouteTimeout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds; 0 leaves the default of the client."""

    first: Amount = 0.0
    """Until the first event of the answer."""
    silence: Amount = 0.0
    """Between two bytes of it."""


class RouteTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[gateway.routes.<name>]`: the models behind one name."""

    to: Annotated[tuple[ModelName | RouteTarget, ...], msgspec.Meta(min_length=1)]
    balance: Literal["in_order", "in_turn", "weighted", "least_busy"] = "in_order"
    """`in_order`: each one when those before it fail."""
    fallback: tuple[ModelName, ...] = ()
    """Asked in order when all of `to` fail."""
    long_context: ModelName | Literal[""] = ""
    """Asked when the context is too long for the first."""
    tool_style: ToolStyle = ToolStyle.AUTO
    effort: Effort | None = None
    """Reasoning effort, whatever the client requests."""
    system_prefix: str = ""
    """Instructions before those of the client."""
    extra: dict[str, Any] = {}
    """Members added to each request body."""
    timeout: RouteTimeout = RouteTimeout()
    cache: Annotated[str, msgspec.Meta(pattern=r"^(\d+[smhd])?$")] = ""
    """How long equal requests get the same answer: `30m`, `1h`; empty for no cache."""
    cache_tools: bool = False
    """Whether requests with tools are cached too."""

    @property
    def targets(self) -> tuple[RouteTarget, ...]:
        """Returns the deployments of `to`."""
        return tuple(
            one if isinstance(one, RouteTarget) else RouteTarget(model=one) for one in self.to
        )

    @property
    def cache_seconds(self) -> int:
        """Returns the lifetime of a cached answer; 0 without a cache."""
        return duration(self.cache) if self.cache else 0


def duration(text: str) -> int:
    """Returns the seconds of `30m`, `12h` or `7d`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise BadInput(f'"{text}" is not a duration; write a number and s, m, h or d: 12h')
    return int(found[1]) * _SECONDS[found[2]]


def read_route(name: str, table: Mapping[str, object]) -> RouteTable:
    """Returns the route of a table; the error names the setting."""
    where = f'gateway.routes."{name}"'
    if not name:
        raise BadInput("gateway.routes: a route needs a name")
    _check_names(where, table, RouteTable.__struct_fields__)
    if "to" not in table:
        raise BadInput(f'{where}: "to" is missing; name the models: to = ["provider/model"]')
    to = table["to"]
    for number, target in enumerate(cast(list[object], to) if isinstance(to, list) else ()):
        if isinstance(target, dict):
            inside = cast(dict[str, object], target)
            _check_names(f"{where}.to[{number}]", inside, RouteTarget.__struct_fields__)
    try:
        route = msgspec.convert(dict(table), RouteTable)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {_plain(error)}") from error
    if route.balance in ("in_order", "in_turn") and any(one.weight != 1 for one in route.targets):
        raise BadInput(
            f'{where}: a weight has no effect with balance = "{route.balance}"; '
            'write balance = "weighted" or "least_busy"'
        )
    return route


def _check_names(where: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            raise UnknownName(f"setting of {where}", name, known)


def _plain(error: msgspec.ValidationError) -> str:
    """Returns the error without the notation of its path, which starts at `$`."""
    what, _, at = str(error).partition(" - at ")
    at = at.strip("`").removeprefix("$").removeprefix(".")
    return f"{at}: {what[:1].lower()}{what[1:]}" if at else what


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """`toolwire serve`."""

    host: Annotated[str, setting("Address the gateway listens on.")] = "127.0.0.1"
    port: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=65535)],
        setting("Port the gateway listens on; 0 takes a free one."),
    ] = 8787
    workers: Annotated[Positive, setting("Processes that answer requests.")] = 1
    tls_cert: Annotated[str, setting("File with the TLS certificate chain.", file=True)] = ""
    tls_key: Annotated[str, setting("File with the TLS private key.", file=True)] = ""
    hosts: Annotated[
        tuple[str, ...], setting("Names clients may use in the Host header, besides loopback.")
    ] = ()
    cors: Annotated[tuple[str, ...], setting("Origins of web pages that may send requests.")] = ()
    trusted_proxies: Annotated[
        tuple[str, ...], setting("Addresses of proxies whose X-Forwarded-For is used.")
    ] = ()
    hold_seconds: Annotated[
        Amount,
        setting("How long the head of a streamed answer waits for the first event."),
    ] = 10.0
    heartbeat_seconds: Annotated[
        Amount, setting("Silence after which a streamed answer gets a heartbeat.")
    ] = 15.0
    write_seconds: Annotated[
        Amount, setting("How long a client may stop reading before it is disconnected.")
    ] = 60.0
    drain_seconds: Annotated[Amount, setting("How long open answers may go on after SIGTERM.")] = (
        120.0
    )
    body_limit: Annotated[Positive, setting("Bytes of a request body, decompressed.")] = 64 * _MIB
    max_requests: Annotated[Positive, setting("Requests at once; others wait.")] = 512
    queue: Annotated[Count, setting("Requests that may wait; others are refused.")] = 1000
    queue_seconds: Annotated[Amount, setting("How long a request may wait for its turn.")] = 30.0
    count: Annotated[
        Literal["estimate", "exact"],
        setting("Token counts: an estimate, or the vendor's own where it offers one."),
    ] = "estimate"
    store: Annotated[
        StoreUrl,
        setting(
            "Where memory, keys and the ledger are stored: empty for files, or a PostgreSQL server "
            "for gateways on several machines (`postgresql://user@host/database`; its password is "
            "read from `PGPASSFILE` or `PGPASSWORD`)."
        ),
    ] = ""
    memory: Annotated[
        Literal["disk", "process", "off"],
        setting("Where the gateway stores what clients cannot carry, such as signatures."),
    ] = "disk"
    memory_ram: Annotated[Positive, setting("Bytes of that memory in this process.")] = 16 * _MIB
    memory_disk: Annotated[Positive, setting("Bytes of that memory on disk.")] = 256 * _MIB
    memory_days: Annotated[Positive, setting("Days that memory is stored.")] = 30
    prefix: Annotated[
        Annotated[str, msgspec.Meta(pattern=r"^(/[A-Za-z0-9._~-]+)*$")],
        setting("Path before all addresses, where a proxy does not remove it: `/toolwire`."),
    ] = ""
    record: Annotated[
        Literal["off", "meta", "full"], setting("What the console may show of past requests.")
    ] = "meta"
    raw: Annotated[
        tuple[str, ...], setting("Providers reachable below /raw/, for keys with that scope.")
    ] = ()
    traceparent: Annotated[
        bool, setting("Send the position in a trace to upstream servers, with telemetry.")
    ] = False
    metrics_open: Annotated[bool, setting("Serve /metrics on loopback without a token.")] = False
    log: Annotated[
        Literal["auto", "json", "text", "off"],
        setting("Access log: JSON lines, or text for people, which `auto` uses at a terminal."),
    ] = "auto"
    log_file: Annotated[
        str, setting("File of the access log, instead of standard error.", file=True)
    ] = ""
    ledger_days: Annotated[
        Positive, setting("Days each request stays in the ledger; daily sums are stored forever.")
    ] = 90
    cache_size: Annotated[Positive, setting("Bytes of cached answers of routes.")] = 64 * _MIB
    routes: Annotated[
        Mapping[str, RouteTable],
        setting("Models by the name clients use, which may be a pattern.", tables=True),
    ] = {}
