"""What is known of one request at its end: for the ledger, metrics, the log and the console."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from toolwire.events import Usage

CostSource: TypeAlias = Literal["vendor", "table", "estimate", "none"]
Phase: TypeAlias = Literal["", "admitted", "held", "streaming", "whole"]


class RequestRecord(msgspec.Struct, kw_only=True):
    """One per request; filled while it is answered, complete when the readers see it."""

    id: str
    """Also in the headers `x-request-id` and `request-id` of the answer."""
    time: float = 0.0
    """Unix time of the request's arrival."""
    method: str = "POST"
    path: str = ""
    """Without its query, which may contain a credential."""
    key: str = ""
    """Name of the key that was used, never the key itself; `admin` for the gateway's token."""
    key_id: str = ""
    """Id of the key, which stays when its name is used again."""
    client: str = ""
    """Family of the client: `claude-code`, `codex`, …; empty if unknown."""
    conversation: str = ""
    """What the client calls the conversation, else a digest of its beginning."""
    client_format: str = ""
    upstream_format: str = ""
    requested_model: str = ""
    """As the client named it."""
    route: str = ""
    provider: str = ""
    model: str = ""
    """As the provider names it."""
    deployment: str = ""
    status: int = 0
    """Of the answer to the client; 0 if it left before one began."""
    stop_reason: str = ""
    usage: Usage = Usage()
    usage_estimated: bool = False
    """Whether the usage is not the vendor's own count: the client left, or the stream broke."""
    cost: float | None = None
    """US dollars; None if no price is known."""
    cost_source: CostSource = "none"
    first_event: float | None = None
    """Seconds from the arrival to the first event of the answer."""
    duration: float = 0.0
    overhead: float = 0.0
    """Seconds of the duration in which the gateway itself worked: neither the upstream nor the
    client was waited for.
    """
    waited: float = 0.0
    """Seconds in the queue."""
    retries: int = 0
    fallback: bool = False
    """Whether another deployment than the first answered."""
    losses: int = 0
    reattached: int = 0
    """How many parts the memory put back that the client had dropped."""
    bytes_in: int = 0
    bytes_out: int = 0
    streamed: bool = False
    error: str = ""
    """Kind of the error that ended it; empty for an answer."""
    error_message: str = ""
    """Without secrets."""
    disconnected: Phase = ""
    """When the client left; empty if it stayed."""
    upstream_id: str = ""
    """The upstream's id of the answer."""
    upstream_model: str = ""
    """The model that the upstream names in its answer."""
    events: int = 0
    """Events of the answer."""
    trace: str = ""
    """The request to the upstream in a trace, as in `traceparent`; empty without telemetry."""
    caller_trace: str = ""
    """The `traceparent` of the client."""


RecordReader: TypeAlias = Callable[[RequestRecord], None]
"""Sees each record once, at the end of its request; must not raise or wait."""


_GATHERED = 0.05
"""Seconds from a record to the moment when the readers of several see it."""
_MOST_GATHERED = 64


class RecordBatches:
    """A reader for others that need not see each record at once: several together cost less."""

    def __init__(self, *readers: Callable[[Sequence[RequestRecord]], None]) -> None:
        self._readers = readers
        self._records: list[RequestRecord] = []
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, record: RequestRecord) -> None:
        """Takes a record."""
        self._records.append(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHERED, self._late)
        elif len(self._records) >= _MOST_GATHERED:
            self.flush()

    def _late(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Shows what was taken so far."""
        records, self._records = self._records, []
        if records:
            for reader in self._readers:
                reader(records)


def answer_headers(record: RequestRecord) -> list[tuple[str, str]]:
    """The headers of an answer that say what became of the request."""
    found = [("x-request-id", record.id), ("request-id", record.id)]
    if record.provider:
        found += (
            ("toolwire-route", f"{record.provider}/{record.model}"),
            ("toolwire-losses", str(record.losses)),
            ("toolwire-reattached", str(record.reattached)),
        )
    if record.upstream_id:
        found.append(("toolwire-upstream-id", record.upstream_id))
    return found
