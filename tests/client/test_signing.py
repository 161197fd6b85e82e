"""Requests signed over their bytes, checked by the server that receives them."""

import hashlib
import hmac
from itertools import count
from urllib.parse import urlsplit

from tests.client.scripted import (
    HELLO,
    Asked,
    Reply,
    Server,
    key,
    listen,
    model_of,
    provider,
    run,
    serving,
)
from toolwire.auth.credentials import FixedCredential, SigningCredential
from toolwire.client.http.exchange import Outgoing
from toolwire.client.model import Headers
from toolwire.events import TextDelta
from toolwire.messages import Message, Text
from toolwire.request import ModelRequest

SECRET = b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
SIGNED = ("content-type", "x-acme-date")


def signature(method: str, target: str, headers: dict[str, str], body: bytes) -> str:
    """In the manner of AWS: a digest of the body inside a digest of the request."""
    lines = [method, target, *(f"{name}:{headers[name]}" for name in SIGNED)]
    canonical = "\n".join([*lines, hashlib.sha256(body).hexdigest()])
    day = hmac.new(SECRET, headers["x-acme-date"].encode(), hashlib.sha256).digest()
    return hmac.new(day, canonical.encode(), hashlib.sha256).hexdigest()


class Signing(FixedCredential):
    """Has no headers of its own but those that it computes."""

    def __init__(self) -> None:
        super().__init__("a test key")
        self.seen: list[Outgoing] = []

    async def sign(self, request: Outgoing, at: float, /) -> Headers:
        self.seen.append(request)
        parts = urlsplit(request.url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        dated = {**dict(request.headers), "x-acme-date": f"{at:.0f}"}
        word = signature(request.method, target, dated, request.body)
        return (
            ("X-Acme-Date", dated["x-acme-date"]),
            ("Authorization", f"ACME-HMAC-SHA256 Signature={word}"),
        )


def is_signed(asked: Asked) -> bool:
    word = signature(asked.method, asked.path, asked.headers, asked.body)
    return asked.headers["authorization"] == f"ACME-HMAC-SHA256 Signature={word}"


def test_a_server_that_checks_a_signature_of_the_body_accepts_every_attempt() -> None:
    async def work() -> None:
        credential, clock = Signing(), count(1_700_000_000)
        assert isinstance(credential, SigningCredential)
        request = ModelRequest(
            model="", messages=(Message(role="user", parts=(Text("käse & \u2028"),)),)
        )
        busy = Reply(status=503, chunks=(b"{}",))
        async with (
            serving(busy, Reply(chunks=(HELLO,))) as server,
            model_of(
                server,
                provider("openai-chat"),
                credential=credential,
                sign=credential.sign,
                now=lambda: next(clock),
            ) as model,
        ):
            events, error = await listen(model, request)
        assert error is None
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["hel", "lo"]
        assert [asked.headers["x-acme-date"] for asked in server.asked] == [
            "1700000000",
            "1700000001",
        ]
        assert all(map(is_signed, server.asked))
        sent = [(one.method, one.url, one.body) for one in credential.seen]
        assert sent == [("POST", f"{server.url}{one.path}", one.body) for one in server.asked]

    run(work)


def test_a_changed_byte_breaks_the_signature() -> None:
    async def work() -> None:
        credential = Signing()
        async with (
            serving(Reply(chunks=(HELLO,))) as server,
            model_of(server, credential=credential, sign=credential.sign) as model,
        ):
            await listen(model)
        (asked,) = server.asked
        changed = asked.body.replace(b"hi", b"ho")
        word = signature(asked.method, asked.path, asked.headers, changed)
        assert word not in asked.headers["authorization"]

    run(work)


def test_a_signature_replaces_a_header_and_is_never_shown() -> None:
    async def sign(request: Outgoing, at: float) -> Headers:
        assert ("authorization", (await key(False))[0][1]) in request.headers
        return (("Authorization", "signed-0123456789abcdef"),)

    async def echoing(server: Server) -> str:
        async with model_of(server, sign=sign) as model:
            _, error = await listen(model)
        return str(error)

    async def work() -> None:
        echo = b'{"error":{"message":"bad signature signed-0123456789abcdef"}}'
        async with serving(Reply(status=400, chunks=(echo,))) as server:
            assert await echoing(server) == "bad signature [hidden]"
        assert server.asked[0].headers["authorization"] == "signed-0123456789abcdef"

    run(work)
