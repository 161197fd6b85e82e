"""Which proxy the environment names for an address."""

from urllib.parse import urlsplit

from toolwire.client.secret import learn_url
from toolwire.errors import BadInput


class Proxies:
    """The environment's proxies, looked up once per host."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str | None] = {}

    def of(self, url: str) -> str | None:
        """The proxy to go through; None for straight."""
        parts = urlsplit(url)
        key = (parts.scheme, parts.netloc)
        if key not in self._known:
            self._known[key] = _find(parts.scheme, parts.hostname or "")
        return self._known[key]


def _find(scheme: str, host: str) -> str | None:
    # A model on this machine is never behind the proxy, whatever NO_PROXY forgets.
    if host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost"):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - start-up time

    named = getproxies()
    proxy = named.get(scheme) or named.get("all")
    if not proxy or proxy_bypass(host):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    learn_url(proxy)
    kind = proxy.partition("://")[0].lower()
    if kind not in ("http", "https"):
        raise BadInput(
            f"the environment names a {kind} proxy for {host}; only http and https proxies work, "
            "set another or add the host to NO_PROXY"
        )
    return proxy
