import asyncio
import hashlib
import traceback
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from tests.client.stand_in import StandIn, stand_in
from toolwire.auth.loopback import callback_server
from toolwire.auth.openrouter import login
from toolwire.errors import ErrorKind, ProviderError

KEYS = "/api/v1/auth/keys"
Browser = Callable[[str], Awaitable[None]]


def visit(url: str) -> int:
    try:
        with urlopen(url) as page:
            assert b"planted" not in page.read()
            return page.status
    except HTTPError as error:
        with error:
            return error.code


async def log_in(vendor: StandIn, browser: Browser) -> str:
    """The login, with somebody at the browser."""
    shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        key = group.create_task(login(shown.set_result, site=vendor.url, seconds=30))
        group.create_task(_at_the_browser(shown, browser))
    return key.result().reveal()


async def _at_the_browser(shown: asyncio.Future[str], browser: Browser) -> None:
    await browser(await shown)


def asked_in(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def test_the_browser_brings_a_code_and_a_key_comes_back() -> None:
    seen: list[str] = []

    async def agree(url: str) -> None:
        seen.append(url)
        callback = asked_in(url)["callback_url"]
        assert await asyncio.to_thread(visit, f"{callback}&code=planted-code") == 200

    with stand_in() as vendor:
        vendor.on(KEYS, (200, {"key": "sk-or-planted"}))
        assert asyncio.run(log_in(vendor, agree)) == "sk-or-planted"
    (url,) = seen
    assert urlsplit(url).path == "/auth"
    asked = asked_in(url)
    assert asked["code_challenge_method"] == "S256"
    assert urlsplit(asked["callback_url"]).hostname == "127.0.0.1"
    (sent,) = vendor.to(KEYS)
    assert sent.json["code"] == "planted-code"
    digest = hashlib.sha256(sent.json["code_verifier"].encode()).digest()
    assert asked["code_challenge"] == urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert sent.json["code_verifier"] not in url


def test_a_request_with_another_state_neither_succeeds_nor_ends_the_login() -> None:
    async def attack_first(url: str) -> None:
        callback = asked_in(url)["callback_url"]
        origin = callback.partition("?")[0]
        for other in (f"{origin}?code=evil", f"{origin}?state=guess&code=evil", callback):
            assert await asyncio.to_thread(visit, other) == 400
        assert await asyncio.to_thread(visit, f"{origin}?state=%C3%A9&error=x") == 400
        assert await asyncio.to_thread(visit, f"{callback}&code=planted-code") == 200

    with stand_in() as vendor:
        vendor.on(KEYS, (200, {"key": "sk-or-planted"}))
        asyncio.run(log_in(vendor, attack_first))
    assert [asked.json["code"] for asked in vendor.to(KEYS)] == ["planted-code"]


def test_a_refusal_in_the_browser_ends_the_login() -> None:
    async def refuse(url: str) -> None:
        await asyncio.to_thread(visit, asked_in(url)["callback_url"] + "&error=access_denied")

    with stand_in() as vendor, pytest.raises(ExceptionGroup) as caught:
        asyncio.run(log_in(vendor, refuse))
    (error,) = caught.value.exceptions
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.AUTH
    assert "refused in the browser" in str(error)


def test_a_code_the_vendor_does_not_take_is_bad_credentials() -> None:
    async def agree(url: str) -> None:
        await asyncio.to_thread(visit, asked_in(url)["callback_url"] + "&code=planted-code")

    with stand_in() as vendor:
        vendor.on(KEYS, (403, {"error": {"message": "Invalid code planted-code"}}))
        with pytest.raises(ExceptionGroup) as caught:
            asyncio.run(log_in(vendor, agree))
    (error,) = caught.value.exceptions
    assert str(error) == "OpenRouter gave no key: Invalid code [hidden]; log in again"
    assert "planted" not in "".join(traceback.format_exception(error))


def test_the_login_times_out_and_the_port_is_free_again() -> None:
    with stand_in() as vendor:
        shown: list[str] = []
        with pytest.raises(ProviderError, match="the login was not finished"):
            asyncio.run(login(shown.append, site=vendor.url, seconds=0.01))
        port = urlsplit(asked_in(shown[0])["callback_url"]).port
        with pytest.raises(OSError, match="refused"):
            visit(f"http://127.0.0.1:{port}/callback")
    assert vendor.asked == []


def test_a_port_in_use_is_reported() -> None:
    async def twice() -> None:
        async with callback_server() as first, callback_server(first.port):
            pass

    with pytest.raises(ProviderError, match="cannot listen on 127"):
        asyncio.run(twice())
