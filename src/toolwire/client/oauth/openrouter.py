"""OpenRouter's login: the person agrees in the browser, and a key of their own comes back."""

from collections.abc import Callable
from urllib.parse import urlencode

from toolwire.client.oauth.http import post_json, refused
from toolwire.client.oauth.loopback import callback_server, new_pkce
from toolwire.client.secret import Secret
from toolwire.errors import ErrorKind

SITE = "https://openrouter.ai"
_METHOD = "S256"
_PATIENCE = 300.0


async def login(
    show: Callable[[str], None], *, site: str = SITE, seconds: float = _PATIENCE, port: int = 0
) -> Secret:
    """Show an address, wait for the browser, and trade its code for a key."""
    pkce = new_pkce()
    async with callback_server(port) as callback:
        asked = {
            "callback_url": callback.url,
            "code_challenge": pkce.challenge,
            "code_challenge_method": _METHOD,
        }
        show(f"{site}/auth?{urlencode(asked)}")
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
