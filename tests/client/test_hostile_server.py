"""Model servers that try to exhaust or hang the client, over real loopback HTTP."""

import asyncio
import re
import time

import pytest

from tests.client.hostile import (
    CHAT_END,
    MEGABYTE,
    Attack,
    bomb,
    endless,
    fragment,
    frame,
    head,
    hostile,
    once,
    raw,
)
from toolwire.client.http.transport import HttpTransport
from toolwire.client.model import Headers, connect
from toolwire.client.retry import RetryPolicy
from toolwire.errors import ToolwireError
from toolwire.events import ModelEvent
from toolwire.messages import Message, Text
from toolwire.providers._spec import NoAuth, Provider
from toolwire.request import ModelRequest

LONGEST = 60.0
"""Seconds for the worst of them on a busy machine; without the limits none of them ends."""
DIALECTS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
REQUEST = ModelRequest(model="m", messages=(Message(role="user", parts=(Text("hi"),)),))


async def _nothing(fresh: bool) -> Headers:
    return ()


async def ask(origin: str, dialect: str = "openai-chat") -> list[ModelEvent]:
    transport = HttpTransport()
    entry = Provider(
        name="hostile", title="", dialect=dialect, base_url=f"{origin}/v1", auth=NoAuth()
    )
    model = connect(
        entry,
        "m",
        transport=transport,
        credential=_nothing,
        policy=RetryPolicy(attempts=1),
    )
    try:
        return [event async for event in model(REQUEST)]
    finally:
        await transport.aclose()


def failure(attack: Attack, dialect: str = "openai-chat") -> str:
    """The error that ends the attack, in bounded time."""
    began = time.monotonic()
    with hostile(attack) as origin, pytest.raises(ToolwireError) as caught:
        asyncio.run(ask(origin, dialect))
    assert time.monotonic() - began < LONGEST
    message = str(caught.value)
    assert len(message) < 5000
    return message


QUIET = "the stream has no event in 8388608 bytes"
FRAME = "a frame is longer than 67108864 bytes"
ANSWER = "the answer is longer than 67108864 bytes"
FLOODS = {
    "comments": (endless(b": keep-alive\n\n"), QUIET),
    "short comments": (endless(b":\n\n"), QUIET),
    "comments in a bomb": (bomb(b": keep-alive\n\n"), QUIET),
    "one comment in a bomb": (bomb(b": aaaa"), FRAME),
    "a comment block": (endless(b": a\n"), FRAME),
    "a comment block that ends": (
        once(b": a\n" * (60 * MEGABYTE // 4) + b"\n", "x: y"),
        "a frame has more than 1000000 lines",
    ),
    "blank lines": (endless(b"\n"), "more than 1048576 blank bytes"),
    "blank lines in a bomb": (bomb(b"\n"), "more than 1048576 blank bytes"),
    "blank lines after an event": (
        endless(b"\r\n", first=frame({"choices": [{"delta": {"content": "a"}}]})),
        QUIET,
    ),
    "spaces": (endless(b" "), "more than 1048576 blank bytes"),
    "empty data": (endless(b"data:\n\n"), QUIET),
    "one line": (endless(b"a", first=b"data: "), FRAME),
    "data lines": (endless(b"data: a\n"), FRAME),
    "unknown fields": (endless(b"id: 1\nretry: 5\n\n"), QUIET),
    "event names": (endless(b"event: a\n\n"), QUIET),
    "a json string": (endless(b"a", first=b'{"a":"'), ANSWER),
    "a json string in a bomb": (bomb(b'{"a":"aaaaaaaa'), ANSWER),
    "an array": (endless(b"[", first=b"["), ""),
    "empty choices": (endless(frame({"choices": []})), QUIET),
}


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "words"), FLOODS.values(), ids=FLOODS.keys())
def test_a_flood_without_an_event_ends_at_a_named_limit(attack: Attack, words: str) -> None:
    assert words in failure(attack)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_bomb_of_comments_ends_in_every_dialect(dialect: str) -> None:
    assert QUIET in failure(bomb(b": keep-alive\n\n"), dialect)


def test_pings_without_end() -> None:
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    assert QUIET in failure(endless(ping), "anthropic-messages")


def counted(count: int, piece: bytes, end: bytes = CHAT_END) -> Attack:
    return once(piece * count + end, "x: y")


NAME = "x" * 300_000
CALLS = {
    "long name": (once(fragment(0, id="a", name=NAME, arguments="{}") + CHAT_END), "1024"),
    "name in pieces": (counted(2_000, fragment(0, name="x") + fragment(0, name="y")), "1024"),
    "long id": (once(fragment(0, id="i" * MEGABYTE, name="x") + CHAT_END), "262144"),
    "calls without end": (
        raw(head(), *(fragment(at, id=f"c{at}", name="x") for at in range(5000)), CHAT_END),
        "more than 1000 calls",
    ),
    "calls glued": (
        once(fragment(0, id="a", name="x", arguments="{}" * 100_000) + CHAT_END),
        "more than 1000 calls",
    ),
}


@pytest.mark.parametrize(("attack", "words"), CALLS.values(), ids=CALLS.keys())
def test_calls_are_bounded_in_name_id_and_number(attack: Attack, words: str) -> None:
    assert words in failure(attack)


def test_a_long_name_is_refused_in_every_dialect() -> None:
    anthropic = {"type": "tool_use", "id": "a", "name": NAME, "input": {}}
    bodies = {
        "anthropic-messages": frame(
            {"type": "content_block_start", "index": 0, "content_block": anthropic}
        ),
        "gemini": frame(
            {"candidates": [{"content": {"parts": [{"functionCall": {"name": NAME}}]}}]}
        ),
        "openai-responses": frame(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "function_call", "id": "f", "call_id": "c", "name": NAME},
            }
        ),
    }
    for dialect, body in bodies.items():
        assert "1024" in failure(once(body), dialect), dialect


def test_repeated_ids_with_text_that_never_closes_cost_no_square() -> None:
    first = fragment(0, id="a", name="x", arguments='{"a":"}')
    body = first + fragment(0, id="a", name="x", arguments="{}") * 100_000 + CHAT_END
    began = time.monotonic()
    with hostile(once(body)) as origin:
        asyncio.run(ask(origin))
    assert time.monotonic() - began < LONGEST


HEADS = {
    "long head": raw(b"HTTP/1.1 200 X\r\na: ", last=b"b"),
    "many headers": raw(b"HTTP/1.1 200 X\r\n", last=b"a: b\r\n"),
    "continue without end": raw(last=b"HTTP/1.1 100 Continue\r\n\r\n"),
    "blank lines first": raw(last=b"\r\n"),
    "long chunk size": raw(head("transfer-encoding: chunked"), last=b"0"),
    "long extension": raw(head("transfer-encoding: chunked"), b"1;", last=b"a"),
    "trailers without end": raw(head("transfer-encoding: chunked"), b"0\r\n", last=b"a: b\r\n"),
}


@pytest.mark.parametrize("attack", HEADS.values(), ids=HEADS.keys())
def test_what_is_around_a_body_is_bounded(attack: Attack) -> None:
    failure(attack)


def drip() -> Attack:
    def attack():
        yield head(status=400)
        while True:
            yield b"x"
            time.sleep(0.2)

    return attack


ERRORS = {
    "endless": endless(b"x", status=400),
    "bomb": bomb(b"x", status=400),
    "a message of a megabyte": once(
        b'{"error":{"message":"' + b"m" * (900 * 1024) + b'"}}', status=400
    ),
    "nested": once(b'{"error":' * 100_000, status=400),
    "drip": drip(),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ERRORS.values(), ids=ERRORS.keys())
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_body_of_an_error_is_bounded(attack: Attack, dialect: str) -> None:
    if dialect != "openai-chat" and attack is ERRORS["drip"]:
        return
    failure(attack, dialect)


ENDLESS = {
    "text": endless(frame({"choices": [{"delta": {"content": "word "}}]})),
    "text in a bomb": bomb(frame({"choices": [{"delta": {"content": "word "}}]})),
    "comments": endless(b":\n\n"),
    "comments in a bomb": bomb(b": aa\n\n"),
    "arguments": endless(
        fragment(0, arguments="a"), first=fragment(0, id="a", name="x", arguments='{"')
    ),
}


@pytest.mark.parametrize("attack", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_cancel_gets_through_any_flood_within_a_second(attack: Attack) -> None:
    async def work(origin: str) -> float:
        asking = asyncio.ensure_future(ask(origin))
        await asyncio.sleep(0.3)
        # Of this thread: neither the server's part nor that of other processes counts.
        began = time.thread_time()
        asking.cancel()
        done, _ = await asyncio.wait((asking,), timeout=LONGEST)
        assert done
        return time.thread_time() - began

    with hostile(attack) as origin:
        assert asyncio.run(work(origin)) < 1.0


def test_the_limits_are_named_in_numbers() -> None:
    assert all(re.search(r"\d{7}", words) for _, words in FLOODS.values() if words)
