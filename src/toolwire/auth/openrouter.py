"""OpenRouter's login: the user agrees in the browser and gets a key."""

from collections.abc import Callable
from urllib.parse import urlencode

from toolwire.auth.http import post_json, refused
from toolwire.auth.loopback import callback_server, new_pkce
from toolwire.client.redact import Secret
from toolwire.errors import ErrorKind

SITE = "https://openrouter.ai"
_METHOD = "S256"
_PATIENCE = 300.0


async def login(
    show: Callable[[str], None], *, site: str = SITE, seconds: float = _PATIENCE, port: int = 0
) -> Secret:
    """Show an address, wait for the browser, and exchange its code for a key."""
    pkce = new_pkce()
    async with callback_server(port) as callback:
        query = {
            "callback_url": callback.url,
            "code_challenge": pkce.challenge,
            "code_challenge_method": _METHOD,
        }
        show(f"{site}/auth?{urlencode(query)}")
        code = await callback.code(seconds)
    reply = await post_json(
        f"{site}/api/v1/auth/keys",
        {
            "code": code.reveal(),
            "code_verifier": pkce.verifier.reveal(),
            "code_challenge_method": _METHOD,
        },
    )
    key = reply.word("key")
    if not (reply.ok and key):
        raise refused(reply, "OpenRouter gave no key", "log in again", ErrorKind.AUTH)
    return Secret(key)
