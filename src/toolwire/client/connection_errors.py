"""From what the HTTP library raises to our errors, without addresses that may hold a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwire.client.limits import Limits
from toolwire.errors import BadInput, ConnectionFailed, ToolwireError

if TYPE_CHECKING:
    import aiohttp


def showable(error: BaseException) -> BaseException | None:
    """The error as a cause that may be printed; None if it would show a secret."""
    from aiohttp import ClientResponseError, ConnectionTimeoutError, InvalidURL  # noqa: PLC0415 - start-up time

    # These print the address, and with it a key in its query.
    telling = (ClientResponseError, ConnectionTimeoutError, InvalidURL)
    return None if isinstance(error, telling) else error


def failure(
    error: BaseException, host: str, limits: Limits, *, begun: bool = False
) -> ToolwireError:
    """What went wrong, in words for a person; `begun` once the answer's head was there."""
    import aiohttp  # noqa: PLC0415 - start-up time

    match error:
        case aiohttp.InvalidURL():
            return BadInput(f"{host}: the address cannot be read")
        case aiohttp.ConnectionTimeoutError():
            return ConnectionFailed(
                f"no connection to {host} within {limits.connect:g} s", timed_out=True
            )
        case aiohttp.SocketTimeoutError():
            return ConnectionFailed(
                f"nothing came from {host} for {limits.read:g} s", timed_out=True
            )
        case TimeoutError():
            if limits.total is None:
                return ConnectionFailed(f"the connection to {host} timed out", timed_out=True)
            return ConnectionFailed(
                f"{host} was not done within {limits.total:g} s", timed_out=True
            )
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", "") or "not trusted"
            return ConnectionFailed(
                f"the certificate of {host} is refused: {why}; if it is your own, name its "
                "authority in the settings",
                lasting=True,
            )
        case aiohttp.ClientSSLError():
            return ConnectionFailed(f"no secure connection to {host}: {_reason(error)}")
        case aiohttp.ClientHttpProxyError():
            return ConnectionFailed(
                f"the proxy answered {error.status} {error.message} for {host}", lasting=True
            )
        case aiohttp.ClientProxyConnectionError():
            return ConnectionFailed(f"cannot reach the proxy for {host}: {_reason(error)}")
        case aiohttp.ClientConnectorError():
            return ConnectionFailed(f"cannot reach {host}: {_reason(error)}")
        case aiohttp.ClientResponseError():
            return ConnectionFailed(f"{host} does not speak HTTP: {error.message[:200]}")
        case _:
            verb = "broke in the middle of the answer" if begun else "closed before an answer came"
            return ConnectionFailed(f"the connection to {host} {verb}")


def _reason(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    return cause.strerror or str(cause) or type(cause).__name__
