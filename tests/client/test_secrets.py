"""Secrets planted everywhere a server or a proxy may echo them from."""

import traceback

import msgspec
import pytest

from tests.client.scripted import REQUEST, Reply, failing, listen, provider, run, serving, sse
from toolwire.client.http.transport import HttpTransport, Outgoing
from toolwire.client.model import connect
from toolwire.client.record import RecordingTransport
from toolwire.client.redact import Redactor, hide_in_url, is_secret_name
from toolwire.client.retry import RetryPolicy
from toolwire.errors import ErrorKind, ProviderError
from toolwire.messages import Message, Text

TOKEN = 'tok/en+with"quotes\\and-odd=signs'
QUERY = "AIza-query-secret-0123"
EXTRA = "x-account-secret-4567"
HANDED = "handed-in-secret-89ab"
SECRETS = (TOKEN, QUERY, EXTRA)


async def login(refresh: bool) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {TOKEN}"), ("x-odd-header", EXTRA))


def echoing(status: int, **headers: str) -> Reply:
    words = f"Incorrect key {TOKEN} from Bearer {TOKEN} ?key={QUERY} {EXTRA}"
    said = tuple(headers.items())
    return failing(status, words, said, code=TOKEN, param=EXTRA, type=QUERY)


REPLIES = [
    (echoing(401),),
    (echoing(400),),
    (echoing(429), echoing(500)),
    (Reply(status=500, chunks=(f"<html>{TOKEN} {QUERY}</html>".encode(),)),) * 2,
    (Reply(chunks=(sse({"error": {"message": f"bad {TOKEN}", "code": 400}}),)),),
    (Reply(chunks=(f"data: not json {TOKEN} {EXTRA}\n\n".encode(),)),),
    (Reply(status=302, headers=(("location", f"https://u:{TOKEN}@x.example/?key={QUERY}"),)),),
    (Reply(refuse=True),) * 2,
]


@pytest.mark.parametrize("replies", REPLIES)
def test_no_secret_is_in_errors_notices_or_recordings(replies: tuple[Reply, ...]) -> None:
    async def work() -> None:
        lines: list[str] = []
        transport = HttpTransport()
        async with serving(*replies) as server:
            model = connect(
                provider(),
                "m",
                transport=RecordingTransport(transport, lines.append, secrets=(EXTRA, HANDED)),
                credential=login,
                base_url=f"{server.url}/?key={QUERY}",
                policy=RetryPolicy(attempts=2, first_wait=0),
            )
            talk = Message(role="user", parts=(Text(f"my {HANDED} and {TOKEN} are in here"),))
            request = msgspec.structs.replace(REQUEST, messages=(talk,))
            events, error = await listen(model, request)
            assert server.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
            assert QUERY in server.asked[0].path
        await transport.aclose()
        assert error is not None
        shown = "".join(traceback.format_exception(error)) + repr(vars(error)) + repr(events)
        for secret in SECRETS:
            for text in (shown, *lines):
                assert secret not in text
                assert msgspec.json.encode(secret).decode()[1:-1] not in text
        assert all(HANDED not in line for line in lines)
        assert len(lines) == len(replies)

    run(work)


def test_a_request_prints_without_its_secrets() -> None:
    request = Outgoing(
        method="POST",
        url=f"https://user:{EXTRA}@h.example/p?key={QUERY}&alt=sse",
        headers=(("Authorization", f"Bearer {TOKEN}"), ("x-api-key", EXTRA), ("accept", "all")),
        body=TOKEN.encode(),
    )
    shown = repr(request) + str(request) + repr(request.__rich_repr__())
    assert all(secret not in shown for secret in (*SECRETS, "quotes"))
    assert "https://h.example/p?key=[hidden]&alt=sse" in shown
    assert "accept" in shown


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("Authorization", True),
        ("proxy-authorization", True),
        ("x-api-key", True),
        ("api-key", True),
        ("x-goog-api-key", True),
        ("set-cookie", True),
        ("key", True),
        ("access_token", True),
        ("x-amz-security-token", True),
        ("sig", True),
        ("content-type", False),
        ("x-ratelimit-remaining-tokens", False),
        ("request-id", False),
        ("alt", False),
        ("api-version", False),
        ("author", False),
    ],
)
def test_secret_names_are_known(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_placeholders_are_left_in_words() -> None:
    assert Redactor(("none", "Bearer noop")).text("none of noop") == "none of noop"


def test_starred_bodies_keep_their_length() -> None:
    body = f'{{"a": "{HANDED}", "b": 1}}'.encode()
    hidden = Redactor((HANDED,)).body(body)
    assert len(hidden) == len(body)
    assert hidden == body.replace(HANDED.encode(), b"*" * len(HANDED))


def test_an_address_no_one_can_read_is_hidden_whole() -> None:
    assert hide_in_url("http://[::1") == "[hidden]"


def test_an_error_is_cleaned_in_every_member() -> None:
    error = ProviderError(
        ErrorKind.AUTH, HANDED, code=HANDED, param=HANDED, body=HANDED, status=401
    )
    assert HANDED not in repr(vars(Redactor((HANDED,)).clean(error))) + str(error)
