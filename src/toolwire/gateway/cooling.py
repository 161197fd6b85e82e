"""When a failing deployment is left alone, and for how long. Pure: the time is an argument."""

from enum import StrEnum

import msgspec

from toolwire.errors import (
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    ProviderError,
    ToolwireError,
)

FAULTS = 3
"""So many faults within `WITHIN` seconds start a cool-down."""
WITHIN = 60.0
FIRST = 30.0
LONGEST = 600.0
LOCKED_OUT = 600.0
NO_DELAY_NAMED = 10.0
LONGEST_DELAY = 86_400.0
PROBE_SECONDS = 60.0
"""How long a probe may take before another request is the probe."""


class Cause(StrEnum):
    """Why a deployment cools down."""

    RATE_LIMIT = "rate limit"
    FAULT = "fault"
    REFUSED_KEY = "refused key"


_CAUSES = {
    ErrorKind.RATE_LIMIT: Cause.RATE_LIMIT,
    ErrorKind.QUOTA: Cause.RATE_LIMIT,
    ErrorKind.OVERLOADED: Cause.FAULT,
    ErrorKind.SERVER: Cause.FAULT,
    ErrorKind.TIMEOUT: Cause.FAULT,
    ErrorKind.AUTH: Cause.REFUSED_KEY,
    ErrorKind.PERMISSION: Cause.REFUSED_KEY,
}


def cause_of(error: ToolwireError) -> Cause | None:
    """Returns what an error says of the deployment; None if the request itself is at fault."""
    if isinstance(error, ProviderError):
        if error.kind is ErrorKind.QUOTA and error.status == 402:
            return Cause.REFUSED_KEY
        return _CAUSES.get(ErrorKind(error.kind))
    return Cause.FAULT if isinstance(error, ConnectionFailed | IncompleteStream) else None


class Cooling(msgspec.Struct, frozen=True, kw_only=True):
    """State of one deployment."""

    faults: tuple[float, ...] = ()
    """Times of the last faults."""
    until: float = 0.0
    """End of the cool-down."""
    streak: int = 0
    """Cool-downs for faults since it last worked."""
    probed: float | None = None
    """When the probe after a cool-down was sent; None if none is out."""
    cause: Cause | None = None
    """Of the last cool-down."""

    def ready(self, now: float) -> bool:
        """Whether requests may be sent; after a cool-down for faults only one, the probe."""
        if now < self.until:
            return False
        return not self.streak or self.probed is None or now >= self.probed + PROBE_SECONDS

    def sent(self, now: float) -> "Cooling":
        """Returns the state after a request was sent."""
        if self.streak and now >= self.until:
            return msgspec.structs.replace(self, probed=now)
        return self

    def worked(self, now: float) -> "Cooling":
        """Returns the state after an answer began."""
        if now < self.until:
            # The request was sent before the cool-down began.
            return msgspec.structs.replace(self, faults=())
        return Cooling()

    def failed(self, cause: Cause | None, retry_after: float | None, now: float) -> "Cooling":
        """Returns the state after an error; `cause` is None if the request is at fault."""
        match cause:
            case None:
                return msgspec.structs.replace(self, probed=None)
            case Cause.RATE_LIMIT:
                delay = NO_DELAY_NAMED if retry_after is None else max(retry_after, 0.0)
                return self._until(now + min(delay, LONGEST_DELAY), cause)
            case Cause.REFUSED_KEY:
                return self._until(now + LOCKED_OUT, cause)
            case Cause.FAULT:
                return self._faulted(now)

    def _until(self, end: float, cause: Cause) -> "Cooling":
        if end <= self.until:
            return self
        return msgspec.structs.replace(self, until=end, cause=cause, probed=None)

    def _faulted(self, now: float) -> "Cooling":
        if now < self.until:
            # Requests that were under way when it began to cool say nothing new.
            return self
        faults = (*(at for at in self.faults if at > now - WITHIN), now)
        if len(faults) < FAULTS and not self.streak:
            return msgspec.structs.replace(self, faults=faults)
        length = min(FIRST * 2.0 ** min(self.streak, 30), LONGEST)
        return Cooling(until=now + length, streak=self.streak + 1, cause=Cause.FAULT)
