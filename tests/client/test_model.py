import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.client.scripted import (
    HELLO,
    KEY,
    REQUEST,
    Reply,
    Sleeper,
    chat_end,
    chat_text,
    failing,
    key,
    listen,
    model_of,
    provider,
    run,
    saying,
    serving,
    sse,
)
from toolwire import dialects, providers
from toolwire.client.http.transport import HttpTransport
from toolwire.client.model import connect
from toolwire.client.retry import RetryPolicy
from toolwire.dialects.quirks import Quirks
from toolwire.errors import (
    BadInput,
    ConnectionFailed,
    ErrorKind,
    MalformedStream,
    ProviderError,
)
from toolwire.events import Finished, Notice, StopReason, TextDelta, Usage
from toolwire.messages import Message, Text, ToolCall
from toolwire.model import reading
from toolwire.request import Effort, ModelRequest, Reasoning

SAID = [
    TextDelta("hel"),
    TextDelta("lo"),
    Finished(reason=StopReason.END, usage=Usage(input=10, output=2), response_id="c"),
]


def spoken(events: list) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_a_request_goes_out_with_address_headers_and_credentials() -> None:
    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,))) as server:
            entry = provider(headers=(("X-Title", "toolwire"),))
            async with model_of(server, entry) as model:
                events, error = await listen(model)
            assert error is None
            assert spoken(events) == "hello"
            asked = server.asked[0]
            assert (asked.method, asked.path) == ("POST", "/chat/completions")
            assert asked.headers["authorization"] == f"Bearer {KEY}"
            assert asked.headers["x-title"] == "toolwire"
            assert asked.headers["content-type"] == "application/json"
            assert asked.headers["accept-encoding"] == "identity"
            assert asked.headers["user-agent"].startswith("toolwire/")
            assert asked.json == {
                "model": "m-1",
                "messages": [{"role": "user", "content": "hi"}],
                "stream": True,
                "stream_options": {"include_usage": True},
            }

    run(work)


def test_settings_that_a_model_rejects_are_not_sent() -> None:
    asked = msgspec.structs.replace(
        REQUEST, reasoning=Reasoning(effort=Effort.LOW), max_output_tokens=99_999, stop=("x",)
    )

    async def work() -> None:
        async with serving(*(Reply(status=404) for _ in range(3))) as server:
            transport = HttpTransport()
            for name, model in (("openai", "gpt-4o"), ("azure", "prod"), ("openai", "gpt-5.6")):
                entry = providers.get(name).with_dialect("openai-chat")
                ask = connect(
                    entry, model, transport=transport, credential=key, base_url=server.url
                )
                await listen(ask, asked)
            await transport.aclose()
            names = ("reasoning_effort", "max_completion_tokens", "stop")
            sent = [[body.json.get(name) for name in names] for body in server.asked]
        assert sent == [[None, 16384, ["x"]], ["low", 99_999, ["x"]], ["low", 99_999, None]]

    run(work)


@pytest.mark.parametrize("name", ["openai", "azure"])
def test_encrypted_reasoning_is_requested_only_of_models_that_reason(name: str) -> None:
    models = ("gpt-4o", "gpt-4.1", "gpt-5-chat", "gpt-5.6", "o3")

    async def work() -> None:
        async with serving(*(Reply(status=404) for _ in models)) as server:
            transport = HttpTransport()
            for model in models:
                entry = providers.get(name)
                ask = connect(
                    entry, model, transport=transport, credential=key, base_url=server.url
                )
                await listen(ask)
            await transport.aclose()
            sent = {asked.json["model"]: asked.json.get("include") for asked in server.asked}
        reasoning = ["reasoning.encrypted_content"]
        assert sent == {
            "gpt-4o": None,
            "gpt-4.1": None,
            "gpt-5-chat": None,
            "gpt-5.6": reasoning,
            "o3": reasoning,
        }

    run(work)


def test_query_and_path_of_a_base_address_are_kept() -> None:
    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,)), Reply(status=404)) as server:
            transport = HttpTransport()
            for dialect in ("openai-chat", "gemini"):
                model = connect(
                    provider(dialect),
                    "m-1",
                    transport=transport,
                    credential=_nothing,
                    base_url=f"{server.url}/deep/?api-version=7",
                )
                await listen(model)
            await transport.aclose()
            chat, gemini = server.asked
            assert chat.path == "/deep/chat/completions?api-version=7"
            assert gemini.path == ("/deep/models/m-1:streamGenerateContent?api-version=7&alt=sse")

    run(work)


async def _nothing(refresh: bool) -> tuple[tuple[str, str], ...]:
    return ()


def test_an_address_with_a_gap_is_refused_before_anything_is_sent() -> None:
    entry = msgspec.structs.replace(provider(), base_url="https://{resource}.example")
    with pytest.raises(BadInput, match="acme is not complete"):
        connect(entry, "m", transport=HttpTransport(), credential=_nothing)


def test_a_provider_s_own_preparation_runs_last() -> None:
    def sign(http):
        return msgspec.structs.replace(http, headers=(*http.headers, ("x-signed", "yes")))

    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,))) as server:
            async with model_of(server, provider(prepare=sign)) as model:
                await listen(model)
            assert server.asked[0].headers["x-signed"] == "yes"

    run(work)


@pytest.mark.parametrize("faithful", [True, False])
def test_a_note_for_the_maker_reaches_only_its_servers(faithful: bool) -> None:
    sent = {"model": "x", "input": "hi", "client_metadata": {"id": "1"}, "store": False}
    request = dialects.get("openai-responses").decode_request(msgspec.json.encode(sent))

    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,))) as server:
            entry = provider("openai-responses", faithful=faithful)
            async with model_of(server, entry) as model:
                events, _ = await listen(model, request)
            assert ("client_metadata" in server.asked[0].json) == faithful
            assert server.asked[0].json["store"] is False
            losses = [event.loss for event in events if isinstance(event, Notice) and event.loss]
            notes = [loss.path for loss in losses if loss.what == "client_note"]
            assert notes == ([] if faithful else ["client_metadata"])

    run(work)


def test_a_request_of_the_same_format_still_follows_the_servers_quirks() -> None:
    sent = {"model": "x", "messages": [{"role": "user", "content": "hi"}], "temperature": 1}
    request = dialects.get("openai-chat").decode_request(msgspec.json.encode(sent))

    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,))) as server:
            entry = provider(quirks=Quirks(sampling=False))
            async with model_of(server, entry) as model:
                await listen(model, request)
            assert "temperature" not in server.asked[0].json

    run(work)


def test_history_is_repaired_and_losses_are_reported_first() -> None:
    async def work() -> None:
        orphan = Message(role="assistant", parts=(ToolCall(id="a", name="look"),))
        request = ModelRequest(model="", messages=(*REQUEST.messages, orphan), top_k=3)
        async with serving(Reply(chunks=(HELLO,))) as server:
            async with model_of(server) as model:
                events, error = await listen(model, request)
            assert error is None
            losses = [event for event in events if isinstance(event, Notice)]
            assert {loss.kind for loss in losses} == {"loss"}
            assert events[: len(losses)] == losses
            assert "interrupted" in losses[0].message
            assert any(loss.message.startswith("top_k: ") for loss in losses)
            roles = [message["role"] for message in server.asked[0].json["messages"]]
            assert roles == ["user", "assistant", "tool"]

    run(work)


def test_json_in_answer_to_a_streaming_request_is_read() -> None:
    body = {
        "id": "c",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
        ],
    }

    async def work() -> None:
        raw = b"\n " + msgspec.json.encode(body)
        replies = (Reply(chunks=(raw[:1], raw[1:9], raw[9:])), Reply(chunks=(raw,)))
        async with serving(*replies) as server, model_of(server) as model:
            events, error = await listen(model)
            assert error is None
            assert spoken(events) == "hi"
            whole = msgspec.structs.replace(REQUEST, stream=False)
            events, error = await listen(model, whole)
            assert error is None
            assert spoken(events) == "hi"
            assert server.asked[1].json["stream"] is False

    run(work)


def test_a_stream_in_answer_to_a_plain_request_is_read() -> None:
    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,))) as server, model_of(server) as model:
            events, error = await listen(model, msgspec.structs.replace(REQUEST, stream=False))
            assert (spoken(events), error) == ("hello", None)

    run(work)


def test_connections_are_used_again() -> None:
    async def work() -> None:
        async with serving(saying(), saying(), saying()) as server, model_of(server) as model:
            for _ in range(3):
                await listen(model)
            assert [asked.connection for asked in server.asked] == [0, 0, 0]

    run(work)


def test_events_before_an_error_in_the_same_chunk_are_not_lost() -> None:
    async def work() -> None:
        body = sse(chat_text("hel"), {"error": {"message": "boom", "code": 500}})
        async with serving(Reply(chunks=(body,))) as server, model_of(server) as model:
            events, error = await listen(model)
            assert (spoken(events), str(error)) == ("hel", "boom")

    run(work)


def test_a_break_after_the_answer_s_own_end_is_only_noted() -> None:
    async def work() -> None:
        # Without the mark that says nothing more comes.
        body = sse(chat_text("hello"), chat_end())
        async with serving(Reply(chunks=(body,), stall=True)) as server:
            transport = _Breaking(HttpTransport(), after=len(body))
            model = connect(
                provider(), "m", transport=transport, credential=_nothing, base_url=server.url
            )
            events, error = await listen(model)
            await transport.inner.aclose()
        assert error is None
        assert spoken(events) == "hello"
        assert isinstance(events[-1], Finished)
        assert [event.kind for event in events if isinstance(event, Notice)] == ["broken_end"]

    run(work)


def test_a_server_that_never_closes_after_the_end_is_not_waited_for() -> None:
    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,), stall=True)) as server:
            async with model_of(server) as model:
                events, error = await listen(model)
            assert (events, error) == (SAID, None)
            await server.dropped.wait()

    run(work)


class _Breaking:
    """A transport whose connection breaks once so many bytes have come."""

    def __init__(self, inner: HttpTransport, after: int) -> None:
        self.inner = inner
        self._after = after

    def open(self, request):
        @asynccontextmanager
        async def opened():
            async with self.inner.open(request) as incoming:
                yield msgspec.structs.replace(incoming, chunks=self._chunks(incoming.chunks))

        return opened()

    async def _chunks(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        seen = 0
        while seen < self._after:
            chunk = await anext(chunks)
            seen += len(chunk)
            yield chunk
        raise ConnectionFailed("the connection broke")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (failing(401, "bad key"), ErrorKind.AUTH),
        (failing(403, "no"), ErrorKind.PERMISSION),
        (failing(429, "exceeded", code="insufficient_quota"), ErrorKind.QUOTA),
        (failing(404, "no such model"), ErrorKind.NOT_FOUND),
        (failing(400, "long", code="context_length_exceeded"), ErrorKind.CONTEXT_TOO_LONG),
        (failing(400, "no", code="content_filter"), ErrorKind.CONTENT_FILTER),
        (failing(400, "what?"), ErrorKind.BAD_REQUEST),
        (failing(529, "busy", (("x-should-retry", "false"),)), ErrorKind.OVERLOADED),
        (failing(500, "oops", (("x-should-retry", "false"),)), ErrorKind.SERVER),
    ],
)
def test_errors_are_typed_and_keep_the_vendor_s_words(reply: Reply, kind: ErrorKind) -> None:
    async def work() -> None:
        async with serving(reply, saying()) as server, model_of(server) as model:
            events, error = await listen(model)
            assert len(server.asked) == 1
        assert events == []
        assert isinstance(error, ProviderError)
        assert (error.kind, error.status) == (kind, reply.status)
        assert msgspec.json.decode(error.body)["error"]["message"] == str(error)

    run(work)


def test_a_page_instead_of_an_answer_is_a_malformed_stream() -> None:
    async def work() -> None:
        page = Reply(chunks=(b"data: <html>login</html>\n\n",))
        async with serving(page) as server, model_of(server) as model:
            _, error = await listen(model)
            assert isinstance(error, MalformedStream)

    run(work)


def test_a_redirect_is_reported_and_not_followed() -> None:
    async def work() -> None:
        async with serving(saying()) as elsewhere:
            there = f"{elsewhere.url}/v1?key=sk-secret-in-redirect"
            moved = Reply(status=307, headers=(("location", there),))
            async with serving(moved) as server, model_of(server) as model:
                _, error = await listen(model)
            assert elsewhere.asked == []
            assert isinstance(error, ProviderError)
            assert f"points to {elsewhere.url}/v1?key=[hidden]" in str(error)

    run(work)


def test_a_huge_error_body_is_read_in_part() -> None:
    async def work() -> None:
        huge = Reply(status=400, chunks=(b"x" * 100_000,) * 30)
        async with serving(huge) as server, model_of(server) as model:
            _, error = await listen(model)
        assert isinstance(error, ProviderError)
        assert len(error.body) == 1024 * 1024
        assert len(str(error)) < 5000

    run(work)


def test_a_server_that_is_not_there_is_named() -> None:
    async def work() -> None:
        async with serving() as server:
            gone = server.url
        transport, sleeper = HttpTransport(), Sleeper()
        model = connect(
            provider(),
            "m",
            transport=transport,
            credential=_nothing,
            base_url=gone,
            sleep=sleeper,
            policy=RetryPolicy(attempts=2),
        )
        _, error = await listen(model)
        await transport.aclose()
        assert isinstance(error, ConnectionFailed)
        assert str(error).startswith(f"cannot reach {gone.removeprefix('http://')}: ")
        assert len(sleeper.waits) == 1

    run(work)


def test_a_reader_that_stops_early_drops_the_connection() -> None:
    async def work() -> None:
        slow = Reply(chunks=(sse(chat_text("one")),), stall=True)
        async with serving(slow) as server, model_of(server) as model:
            async with reading(model(REQUEST)) as events:
                async for event in events:
                    assert event == TextDelta("one")
                    break
            await server.dropped.wait()

    run(work)


@pytest.mark.parametrize("chunks", [(), (sse(chat_text("one")),)])
def test_cancelling_drops_the_connection(chunks: tuple[bytes, ...]) -> None:
    async def work() -> None:
        slow = Reply(chunks=chunks, stall=True)
        async with serving(slow) as server, model_of(server) as model:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(listen(model))
                await server.stalled.wait()
                task.cancel()
            assert task.cancelled()
            await server.dropped.wait()

    run(work)


def test_one_model_answers_many_at_once() -> None:
    async def work() -> None:
        async with serving(*[saying(f"n{number}") for number in range(20)]) as server:
            async with model_of(server) as model:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(listen(model)) for _ in range(20)]
                words = sorted(spoken(task.result()[0]) for task in tasks)
            assert words == sorted(f"n{number}" for number in range(20))

    run(work)


def test_the_golden_answer_is_whole() -> None:
    async def work() -> None:
        async with serving(Reply(chunks=(HELLO,))) as server, model_of(server) as model:
            events, error = await listen(model)
        assert (events, error) == (SAID, None)

    run(work)


def test_system_texts_travel() -> None:
    async def work() -> None:
        request = msgspec.structs.replace(REQUEST, system=(Text("be brief"),))
        async with serving(saying()) as server, model_of(server) as found:
            await listen(found, request)
            assert server.asked[0].json["messages"][0] == {"role": "system", "content": "be brief"}

    run(work)
