import asyncio
import json
from pathlib import Path

import pytest

from toolwire.events import (
    Finished,
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.gateway.database import SqliteDatabase
from toolwire.gateway.memory import Maker, handle_of
from toolwire.gateway.memory_store import ProcessStore, SqliteMemoryStore
from toolwire.gateway.turn_memory import LARGEST, GatewayMemory
from toolwire.messages import Loss, Message, Origin, Seal, Text, Thinking, ToolCall, ToolResult
from toolwire.request import ModelRequest

MIB = 1024 * 1024
CLAUDE = Origin("anthropic-messages", "anthropic", "claude")
SEAL = Seal(origin=CLAUDE, data='{"signature":"c2lnbmVk"}')
CALL_ID = "toolu_01ABCDEFGHJKMNPQ"


def asked(*messages: Message) -> ModelRequest:
    return ModelRequest(model="m", messages=messages or (GO,))


GO = Message(role="user", parts=(Text("go"),))
DONE = Message(role="user", parts=(ToolResult(call_id=CALL_ID, parts=(Text("done"),)),))


def answer(text: str = "so", arguments: str = "{}", thought: str = "hm") -> list[ModelEvent]:
    return [
        ThinkingDelta(thought),
        ThinkingEnded(SEAL),
        TextDelta(text),
        ToolCallStarted(CALL_ID, "read"),
        ToolCallDelta(CALL_ID, arguments),
        ToolCallEnded(CALL_ID),
        Finished(reason=StopReason.TOOL_CALLS),
    ]


def echo(text: str = "so", arguments: str = "{}") -> Message:
    call = ToolCall(id=CALL_ID, name="read", arguments=arguments)
    return Message(role="assistant", parts=(Text(text), call))


async def keep(memory: GatewayMemory, events: list[ModelEvent], tenant: str = "ada") -> Loss | None:
    turn = (await memory.find(tenant, asked())).capture("openai-chat", Maker(CLAUDE, "first"))
    for event in events:
        assert [handle_of(getattr(one, "seal", None)) for one in turn.outgoing(event)] == [""]
    return await turn.finish()


async def thinking_of(memory: GatewayMemory, sent: Message, tenant: str = "ada") -> Thinking | None:
    turns = await memory.find(tenant, asked(GO, sent, DONE))
    recalled = turns.attach(Maker(CLAUDE, "first"))
    parts = recalled.request.messages[1].parts
    return next((part for part in parts if isinstance(part, Thinking)), None)


def disk(path: Path) -> SqliteMemoryStore:
    return SqliteMemoryStore(
        path / "memory.sqlite", limit=64 * MIB, days=30, clock=lambda: 1_800_000_000.0
    )


def contents(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


@pytest.mark.parametrize("restart", [False, True])
def test_a_turn_outlives_the_process(tmp_path: Path, restart: bool):
    async def check() -> None:
        store = disk(tmp_path)
        memory = GatewayMemory(MIB, store)
        assert await keep(memory, answer()) is None
        if restart:
            store.close()
            store = disk(tmp_path)
            memory = GatewayMemory(MIB, store)
        assert await thinking_of(memory, echo()) == Thinking("hm", SEAL)
        assert await thinking_of(memory, echo(), tenant="bob") is None
        store.close()

    asyncio.run(check())


def test_a_turn_that_the_cache_dropped_is_read_from_the_store(tmp_path: Path):
    async def check() -> None:
        store = disk(tmp_path)
        memory = GatewayMemory(1, store)
        await keep(memory, answer())
        assert await thinking_of(memory, echo()) == Thinking("hm", SEAL)
        store.close()

    asyncio.run(check())


def test_the_cache_has_a_limit():
    async def check() -> None:
        memory = GatewayMemory(100_000)
        await keep(memory, answer())
        assert await thinking_of(memory, echo()) == Thinking("hm", SEAL)
        for number in range(20):
            await keep(memory, answer("x" * 20_000), tenant=str(number))
        assert await thinking_of(memory, echo()) is None

    asyncio.run(check())


def test_a_secret_is_not_stored_and_the_words_of_the_client_take_its_place(tmp_path: Path):
    secret = "sk-live-0123456789abcdef"
    arguments = json.dumps({"key": secret, "n": 1})

    def redact(body: bytes) -> bytes:
        return body.replace(secret.encode(), b"*" * len(secret))

    async def check() -> None:
        store = disk(tmp_path)
        await keep(GatewayMemory(MIB, store, redact=redact), answer(f"so {secret}", arguments))
        store.close()
        assert not any(secret.encode() in data for data in contents(tmp_path))
        store = disk(tmp_path)
        memory = GatewayMemory(MIB, store, redact=redact)
        sent = echo(f"so {secret}", arguments)
        turns = await memory.find("ada", asked(GO, sent, DONE))
        recalled = turns.attach(Maker(CLAUDE, "first"))
        message = recalled.request.messages[1]
        assert message.parts == (Thinking("hm", SEAL), *sent.parts)
        store.close()

    asyncio.run(check())


def test_a_seal_on_thinking_with_a_secret_is_not_put_back(tmp_path: Path):
    async def check() -> None:
        store = disk(tmp_path)
        memory = GatewayMemory(MIB, store, redact=lambda body: body.replace(b"hush", b"****"))
        await keep(memory, answer(thought="hush"))
        again = GatewayMemory(MIB, store)
        assert await thinking_of(again, echo()) == Thinking("****", None)
        store.close()

    asyncio.run(check())


def test_a_turn_that_is_too_large_is_reported():
    async def check() -> None:
        loss = await keep(GatewayMemory(64 * MIB), answer("x" * (LARGEST + 1)))
        assert loss is not None
        assert loss.why == "not stored: larger than 4 MiB"

    asyncio.run(check())


def test_a_store_that_fails_is_reported_and_the_turn_lasts_as_long_as_the_process(tmp_path: Path):
    async def check() -> None:
        store = disk(tmp_path)
        database = store._database
        assert isinstance(database, SqliteDatabase)
        database._writing.execute("PRAGMA query_only = ON")
        memory = GatewayMemory(MIB, store)
        loss = await keep(memory, answer())
        assert loss is not None
        assert "memory.sqlite" in loss.why
        assert await thinking_of(memory, echo()) == Thinking("hm", SEAL)
        store.close()

    asyncio.run(check())


def test_an_entry_of_another_version_is_ignored():
    async def check() -> None:
        store = ProcessStore(MIB)
        memory = GatewayMemory(1, store)
        await keep(memory, answer())
        store._entries = type(store._entries)(
            (number, (keys, b"\x81\xa4type\xa5other"))
            for number, (keys, _) in store._entries.items()
        )
        assert await thinking_of(memory, echo()) is None

    asyncio.run(check())
