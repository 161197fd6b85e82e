import asyncio
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.client.stand_in import Asked, StandIn, stand_in
from toolwire.client.http.transport import HttpTransport, Outgoing
from toolwire.embedded.engine import Prefixes

SYSTEM = "You are careful. " * 40
CHAT = "/v1/chat/completions"
SLOT = "/slots/0"
STATE = b"state of the engine"


@pytest.fixture
def engine(tmp_path: Path) -> Generator[StandIn]:
    with stand_in() as found:
        found.decide(CHAT, answer)
        found.decide(SLOT, lambda asked: save_or_restore(asked, tmp_path))
        yield found


def save_or_restore(asked: Asked, folder: Path, status: int = 200) -> tuple[int, Any]:
    file = folder / asked.json["filename"]
    if not file.exists():
        file.write_bytes(STATE)
    return status, {}


def answer(asked: Asked) -> tuple[int, bytes]:
    """Progress for every prompt; words only for one that has a question."""
    frames = [{"choices": [], "prompt_progress": {"total": 9, "processed": 9}}]
    if len(asked.json["messages"]) > 1:
        frames.append({"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]})
    else:
        frames.append({"choices": [{"delta": {"content": "noise"}, "finish_reason": "length"}]})
    return 200, b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)


def body(system: str = SYSTEM, *, stream: bool = True) -> bytes:
    said = [{"role": "system", "content": system}, {"role": "user", "content": "well?"}]
    return json.dumps({"messages": said, "stream": stream}).encode()


async def asked(prefixes: Prefixes, content: bytes) -> tuple[int, list[Any]]:
    request = Outgoing(method="POST", url=f"http://127.0.0.1:0{CHAT}", body=content)
    async with prefixes.open(request) as incoming:
        got = b"".join([chunk async for chunk in incoming.chunks])
    return incoming.status, [json.loads(part[6:]) for part in got.split(b"\n\n") if part]


def run(engine: StandIn, folder: Path, *bodies: bytes) -> list[tuple[int, list[Any]]]:
    async def go() -> list[tuple[int, list[Any]]]:
        transport = HttpTransport()
        prefixes = Prefixes(
            transport, address=engine.url, key="k", folder=folder, identity="model 1"
        )
        try:
            return [await asked(prefixes, content) for content in bodies]
        finally:
            await transport.aclose()

    return asyncio.run(go())


def kept(folder: Path) -> Path:
    (file,) = folder.iterdir()
    assert file.suffix == ".state"
    return file


def test_a_new_beginning_is_read_kept_and_then_asked_on(engine: StandIn, tmp_path: Path):
    ((status, frames),) = run(engine, tmp_path, body())
    assert status == 200
    assert [frame.get("prompt_progress") for frame in frames] == [
        {"total": 9, "processed": 9},
        {"total": 9, "processed": 9},
        None,
    ]
    assert frames[-1]["choices"][0]["delta"] == {"content": "yes"}
    first, second = engine.to(CHAT)
    assert first.json["messages"] == [{"role": "system", "content": SYSTEM}]
    assert second.body == body()
    assert {one.headers["authorization"] for one in engine.asked} == {"Bearer k"}


def test_within_a_process_a_beginning_is_read_once(engine: StandIn, tmp_path: Path):
    run(engine, tmp_path, body(), body())
    assert len(engine.to(CHAT)) == 3
    assert len(engine.to(SLOT)) == 1


def test_a_later_process_gives_the_engine_the_kept_state(engine: StandIn, tmp_path: Path):
    run(engine, tmp_path, body())
    file = kept(tmp_path)
    engine.asked.clear()
    run(engine, tmp_path, body())
    assert [one.path for one in engine.asked] == [SLOT, CHAT]
    assert engine.to(SLOT)[0].json == {"filename": file.name}


def test_a_state_the_engine_refuses_is_removed_and_made_again(engine: StandIn, tmp_path: Path):
    run(engine, tmp_path, body())
    file = kept(tmp_path)
    engine.asked.clear()
    engine.on(SLOT, (400, {"error": "no"}), (200, {}))
    ((_, frames),) = run(engine, tmp_path, body())
    assert not file.exists()
    assert [one.path for one in engine.asked] == [SLOT, CHAT, SLOT, CHAT]
    assert frames[-1]["choices"][0]["delta"] == {"content": "yes"}


@pytest.mark.parametrize(
    "damage",
    [lambda state: state[:-1], lambda state: b"", lambda state: b"S" + state[1:]],
    ids=["cut", "empty", "changed"],
)
def test_a_damaged_state_is_never_given_to_the_engine(
    engine: StandIn, tmp_path: Path, damage: Callable[[bytes], bytes]
):
    run(engine, tmp_path, body())
    file = kept(tmp_path)
    file.write_bytes(damage(STATE))
    engine.asked.clear()
    run(engine, tmp_path, body())
    assert [one.path for one in engine.asked] == [CHAT, SLOT, CHAT]
    assert engine.to(SLOT)[0].json["filename"].endswith(".part")
    assert (kept(tmp_path), file.read_bytes()) == (file, STATE)


def test_a_state_that_could_not_be_written_whole_leaves_nothing(engine: StandIn, tmp_path: Path):
    engine.decide(SLOT, lambda asked: save_or_restore(asked, tmp_path, 500))
    ((_, frames),) = run(engine, tmp_path, body())
    assert list(tmp_path.iterdir()) == []
    assert frames[-1]["choices"][0]["delta"] == {"content": "yes"}


def test_an_engine_that_keeps_no_states_still_answers(engine: StandIn, tmp_path: Path):
    engine.on(SLOT, (501, {"error": "no"}))
    ((_, frames),) = run(engine, tmp_path, body())
    assert frames[-1]["choices"][0]["delta"] == {"content": "yes"}


@pytest.mark.parametrize("content", [body("Short."), body(stream=False)])
def test_short_beginnings_and_whole_answers_go_straight(
    engine: StandIn, tmp_path: Path, content: bytes
):
    run(engine, tmp_path, content)
    assert [one.path for one in engine.asked] == [CHAT]


def test_a_refusal_after_the_reading_is_reported_as_an_error_in_the_stream(
    engine: StandIn, tmp_path: Path
):
    refusal = {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}
    engine.decide(CHAT, lambda it: (400, refusal) if len(it.json["messages"]) > 1 else answer(it))
    ((_, frames),) = run(engine, tmp_path, body())
    assert frames[-1] == refusal


def test_only_the_states_used_last_are_kept(engine: StandIn, tmp_path: Path):
    for number in range(6):
        (tmp_path / f"{number}.{'part' if number % 2 else 'state'}").write_bytes(b"")
    run(engine, tmp_path, body())
    assert len(list(tmp_path.iterdir())) == 4
    assert [file.read_bytes() for file in tmp_path.glob("*-*.state")] == [STATE]
