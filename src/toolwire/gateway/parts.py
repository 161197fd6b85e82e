"""The parts that one request passes through, as protocols, and the error of the gateway itself."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from toolwire.app.model_stack import Opened
from toolwire.config.gateway import GatewaySettings
from toolwire.errors import ErrorKind, ProviderError, ToolwireError
from toolwire.events import ModelEvent
from toolwire.gateway.counting import Calibration
from toolwire.gateway.deadlines import Deadlines
from toolwire.gateway.listing import ListedModel
from toolwire.gateway.memory import Maker
from toolwire.gateway.record import RecordReader, RequestRecord
from toolwire.messages import Message, Origin
from toolwire.model import Model
from toolwire.request import Loss, ModelRequest


class GatewayRefusal(ProviderError):
    """The gateway itself refuses a request: its status and message are for the client.

    Errors of an upstream are plain `ProviderError`s; one of kind `auth` is then not the client's.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        param: str = "",
        retry_after: float | None = None,
        should_retry: bool | None = None,
    ) -> None:
        super().__init__(
            kind, message, status=status, code=code, param=param, retry_after=retry_after
        )
        self.should_retry = should_retry
        """Sent as `x-should-retry`, if set."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends a request."""

    key: str
    """The key's name, for records; never the key itself."""
    id: str = ""
    """The key's id, under which its requests are booked."""
    tenant: str
    """Digest of the key: what one caller stores, another never sees."""
    scopes: frozenset[str] = frozenset()
    admin: bool = False


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a request may use, before it is sent."""

    input: int
    """Tokens."""
    max_output: int | None = None
    """The client's own limit."""


class Admittance(Protocol):
    """A request that may run: it has its place and its reserved budget."""

    def allows(self, deployment: "Deployment") -> bool:
        """Whether the caller may use a deployment of the route."""
        ...

    async def move(self, deployments: "Sequence[Deployment]") -> "Deployment":
        """Takes the first deployment with room for a request; waits for one if none has."""
        ...

    async def book(self, record: RequestRecord) -> None:
        """Books the request; awaited before the end mark of its answer goes out."""
        ...

    def settle(self, record: RequestRecord) -> None:
        """Releases turn and budget; called at the end of the request, when its usage is known."""
        ...


class Admission(Protocol):
    """Who may send requests, and how many."""

    async def identify(self, credentials: Sequence[str], address: str) -> Caller:
        """The caller; one valid credential is enough. GatewayRefusal without one."""
        ...

    async def admit(
        self, caller: Caller, record: RequestRecord, estimate: Estimate, route: "Route"
    ) -> Admittance:
        """Waits for a place; GatewayRefusal if the route, rate, queue or budget forbids it.

        `record.waited` is set.
        """
        ...

    async def admit_raw(self, caller: Caller, record: RequestRecord, tokens: int) -> Admittance:
        """Waits for a place for a request that is not metered; GatewayRefusal if the key has a
        budget, or for its rate or the queue.
        """
        ...


class Slot(msgspec.Struct, frozen=True):
    """A deployment, and how many requests it takes at once; 0 for any number."""

    name: str
    most: int = 0


class Deployment(Protocol):
    """One model of one provider with one credential."""

    @property
    def name(self) -> str:
        """Unique among all deployments."""
        ...

    @property
    def opened(self) -> Opened:
        """The model, ready for use."""
        ...

    @property
    def ask(self) -> Model:
        """The model in its tool style."""
        ...

    @property
    def slot(self) -> Slot:
        """How many requests it takes at once."""
        ...


class Route(Protocol):
    """What a model name stands for."""

    @property
    def name(self) -> str:
        """As configured."""
        ...

    @property
    def all(self) -> Sequence[Deployment]:
        """Every deployment that a request may reach."""
        ...

    def adapted(self, request: ModelRequest) -> ModelRequest:
        """The request with what the route fixes, such as the effort."""
        ...

    def order(
        self,
        conversation: str,
        seal_origin: Origin | None,
        allowed: Callable[[Deployment], bool] | None = None,
    ) -> Sequence[Deployment]:
        """The deployments in the order to try them; never empty.

        `seal_origin` is who made the newest seal of the conversation.
        """
        ...

    def choices(self, rest: Sequence[Deployment], *, sealed: bool) -> Sequence[Deployment]:
        """Those of the rest that may be asked next, whichever has room first.

        `sealed`: the first of them made the newest seal of the conversation.
        """
        ...

    def after(
        self, error: ToolwireError, tried: Sequence[Deployment], rest: Sequence[Deployment]
    ) -> Sequence[Deployment]:
        """What to ask after an error before the first event; empty to give up."""
        ...


class Routes(Protocol):
    """All routes."""

    async def find(self, name: str, style: str = "") -> Route:
        """The route of a model name; GatewayRefusal (404) with the nearest name if none fits.

        `style` is a tool style in place of the one of the settings.
        """
        ...

    def sent(self, deployment: Deployment) -> None:
        """Takes note that a request is sent."""
        ...

    def failed(self, deployment: Deployment, error: ToolwireError) -> None:
        """Takes note of an error of a deployment."""
        ...

    def worked(self, deployment: Deployment) -> None:
        """Takes note of a deployment's first event."""
        ...


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """A request with what the client had dropped put back."""

    request: ModelRequest
    reattached: int = 0
    losses: tuple[Loss, ...] = ()


class TurnMemory(Protocol):
    """One answer on its way to the client."""

    def outgoing(self, event: ModelEvent) -> tuple[ModelEvent, ...]:
        """The event as the client gets it: foreign seals as handles, thinking with its end."""
        ...

    async def finish(self) -> Loss | None:
        """Stores the turn; awaited before the end mark of the answer goes out.

        Returns what could not be stored.
        """
        ...


class FoundTurns(Protocol):
    """What the memory has of one conversation."""

    @property
    def newest(self) -> Maker | None:
        """Who made the newest seal of the conversation."""
        ...

    def attach(self, target: Maker) -> Recalled:
        """The request for `target`, with everything put back that the memory has."""
        ...

    def capture(self, client_family: str, target: Maker, *, renames: bool = True) -> TurnMemory:
        """The memory of one answer; `client_family` is the family of the client's format
        (`Dialect.family`). Without `renames` the client receives the upstream's ids as they are.
        """
        ...


class Memory(Protocol):
    """What clients cannot carry, by conversation."""

    async def find(self, tenant: str, request: ModelRequest) -> FoundTurns:
        """The turns of the request's conversation."""
        ...


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the Responses format."""

    id: str
    parent: str = ""
    """The `previous_response_id` of its request."""
    sent: tuple[Message, ...] = ()
    """The new messages of its request."""
    reply: Message | None = None
    body: bytes = b""
    """The response object as the client got it."""
    input_items: bytes = b"[]"
    """JSON array of the request's input items."""


class Stored(Protocol):
    """Answers of the Responses format by id, per tenant."""

    async def save(self, tenant: str, answer: StoredAnswer) -> Loss | None:
        """Stores an answer; awaited before its end mark goes out.

        Returns what could not be stored.
        """
        ...

    async def get(self, tenant: str, response_id: str) -> StoredAnswer | None:
        """The answer; None if it is unknown."""
        ...

    async def delete(self, tenant: str, response_id: str) -> bool:
        """Removes an answer; whether there was one."""
        ...

    async def chain(self, tenant: str, response_id: str) -> tuple[Message, ...] | None:
        """The conversation up to and with this answer; None if a link is unknown."""
        ...


class GatewayParts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one request needs; replaced as a whole when settings change."""

    routes: Routes
    admission: Admission
    memory: Memory
    stored: Stored
    clock: Callable[[], float]
    """Unix time."""
    readers: tuple[RecordReader, ...] = ()
    settings: GatewaySettings = GatewaySettings()
    listed: tuple[ListedModel, ...] = ()
    """Names that clients may use, for lists of models."""
    traces: Callable[[str], str] | None = None
    """The trace of a request, for the `traceparent` of its client; None without telemetry."""
    calibration: Calibration = msgspec.field(default_factory=Calibration)
    """What vendors counted for requests before; the same one after a reload."""
    deadlines: Deadlines = msgspec.field(default_factory=Deadlines)
    """Of streams that wait or are silent."""
