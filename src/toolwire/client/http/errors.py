"""Connection errors for users, without URLs that may contain a key."""

from toolwire.client.http.exchange import HttpLimits
from toolwire.errors import BadInput, ConnectionFailed, ToolwireError


def no_connection(host: str, limits: HttpLimits) -> ConnectionFailed:
    """Connecting took too long."""
    return ConnectionFailed(f"no connection to {host} within {limits.connect:g} s", timed_out=True)


def silent(host: str, limits: HttpLimits) -> ConnectionFailed:
    """No data arrived for too long."""
    return ConnectionFailed(f"nothing came from {host} for {limits.read:g} s", timed_out=True)


def not_done(host: str, limits: HttpLimits) -> ConnectionFailed:
    """The complete answer took too long."""
    if limits.total is None:
        return ConnectionFailed(f"the connection to {host} timed out", timed_out=True)
    return ConnectionFailed(f"{host} was not done within {limits.total:g} s", timed_out=True)


def untrusted(host: str, refused: object) -> ConnectionFailed:
    """Unknown issuer, or the certificate is for another host."""
    why = getattr(refused, "verify_message", "") or "not trusted"
    return ConnectionFailed(
        f"the certificate of {host} is refused: {why}; if it is your own, name its "
        "authority in the settings",
        lasting=True,
    )


def insecure(host: str, error: OSError) -> ConnectionFailed:
    """TLS failed for another reason."""
    return ConnectionFailed(f"no secure connection to {host}: {_reason(error)}")


def unreachable(host: str, error: OSError) -> ConnectionFailed:
    """No connection at all."""
    return ConnectionFailed(f"cannot reach {host}: {_reason(error)}")


def not_http(host: str, why: str) -> ConnectionFailed:
    """The server did not answer with HTTP."""
    return ConnectionFailed(f"{host} does not speak HTTP: {why[:200]}")


def broken(host: str, *, begun: bool) -> ConnectionFailed:
    """The connection closed too early; `begun` once the head was received."""
    verb = "broke in the middle of the answer" if begun else "closed before an answer came"
    return ConnectionFailed(f"the connection to {host} {verb}")


def showable(error: BaseException) -> BaseException | None:
    """An aiohttp error as a printable cause; None if it would show a secret."""
    from aiohttp import ClientResponseError, ConnectionTimeoutError, InvalidURL  # noqa: PLC0415 - start-up time

    # These print the URL, including a key in its query.
    telling = (ClientResponseError, ConnectionTimeoutError, InvalidURL)
    return None if isinstance(error, telling) else error


def failure(
    error: BaseException, host: str, limits: HttpLimits, *, begun: bool = False
) -> ToolwireError:
    """Our error for an aiohttp error; `begun` once the head was received."""
    import aiohttp  # noqa: PLC0415 - start-up time

    match error:
        case aiohttp.InvalidURL():
            return BadInput(f"{host}: the address cannot be read")
        case aiohttp.ConnectionTimeoutError():
            return no_connection(host, limits)
        case aiohttp.SocketTimeoutError():
            return silent(host, limits)
        case TimeoutError():
            return not_done(host, limits)
        case aiohttp.ClientConnectorCertificateError():
            return untrusted(host, error.certificate_error)
        case aiohttp.ClientSSLError():
            return insecure(host, error.os_error)
        case aiohttp.ClientHttpProxyError():
            return ConnectionFailed(
                f"the proxy answered {error.status} {error.message} for {host}", lasting=True
            )
        case aiohttp.ClientProxyConnectionError():
            reason = _reason(error.os_error)
            return ConnectionFailed(f"cannot reach the proxy for {host}: {reason}")
        case aiohttp.ClientConnectorError():
            return unreachable(host, error.os_error)
        case aiohttp.ClientResponseError():
            return not_http(host, error.message)
        case _:
            return broken(host, begun=begun)


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
