"""Gateways on several machines, as far as they share a server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.fakes.postgres import kill_and_restart, postgres_url
from tests.gateway.test_answering import REQUESTS, post
from toolwire.errors import BadInput
from toolwire.gateway.keys import new_key
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import Budget, Entry, KeyRules, VirtualKey
from toolwire.simulator import Call, Reply, Say, Think

AT = 1_794_839_400.0


@pytest.fixture
def url() -> str:
    return postgres_url()


def test_a_turn_of_one_gateway_is_completed_by_another(url: str, tmp_path: Path):
    call = Reply(pieces=(Think("hm"), Call(name="look", arguments='{"n":9007199254740993}')))
    path, body = REQUESTS["openai-chat"]
    with ServedGateway("anthropic-messages", [call], home=tmp_path / "a", store=url) as one:
        made = json.loads(post(one, path, body)[2])["choices"][0]["message"]
        seals = one.simulator.seals
    result = {"role": "tool", "tool_call_id": made["tool_calls"][0]["id"], "content": "x"}
    bare = {"role": "assistant", "content": None, "tool_calls": made["tool_calls"]}
    messages = [*body["messages"], bare, result]
    with ServedGateway(
        "anthropic-messages", [Reply(pieces=(Say("hi"),))], home=tmp_path / "b", store=url
    ) as other:
        other.simulator.seals = seals
        status, fields, _ = post(other, path, {**body, "messages": messages})
        assert (status, fields["toolwire-reattached"]) == (200, "1")
        [received] = other.received
        assert any(seal.encode() in received.body for seal in seals.issued)


def test_keys_and_budgets_are_those_of_all_gateways(url: str, tmp_path: Path):
    from toolwire.gateway.postgres import PostgresLedger

    store = PostgresLedger(url)
    key, text = new_key("ci", KeyRules(budgets=(Budget(1.0, "total"),)), now=AT)
    asyncio.run(store.add_key(key))
    path, body = REQUESTS["openai-chat"]
    hello = Reply(pieces=(Say("hi"),))
    for folder in ("a", "b"):
        with ServedGateway("openai-chat", [hello], home=tmp_path / folder, store=url) as served:
            headers = {"authorization": f"Bearer {text}"}
            assert post(served, path, body, headers)[0] == 200
            assert post(served, path, body, {"authorization": f"Bearer {TOKEN}x"})[0] == 401
    assert len(asyncio.run(store.requests())) == 2
    store.close()


OTHER = """
import asyncio, sys
from toolwire.gateway.postgres import PostgresLedger
from toolwire.gateway.store import Budget, Claim

async def main():
    store = PostgresLedger(sys.argv[1])
    for number in range(20):
        claim = Claim(id=f"r{number}", key="k1", route="fast", at=1794839400.0, hard=True,
            budgets=(Budget(1.0),), input_cost=100, output_price=1.0, max_output=900)
        assert await store.reserve(claim) is None
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_reservations_end_with_the_process_that_made_them(url: str):
    from toolwire.gateway.postgres import PostgresLedger

    other = subprocess.Popen([sys.executable, "-c", OTHER, url], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    store = PostgresLedger(url, clock=lambda: AT)
    key = VirtualKey(id="k1", name="ci", digest=b"", rules=KeyRules(budgets=(Budget(1.0),)))

    async def figures() -> tuple[int, int]:
        (found,) = await store.spending(key, AT)
        return found.spent, found.reserved

    async def work() -> None:
        assert await store.sweep() == 0
        assert await figures() == (0, 20_000)
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        dropped = 0
        for _ in range(100):
            # The server notices the end of a connection a moment later.
            dropped += await store.sweep()
            if dropped:
                break
            await asyncio.sleep(0.05)
        assert dropped == 20
        assert await figures() == (20_000, 0)

    asyncio.run(work())
    store.close()


def test_a_server_that_was_killed_is_used_again(url: str):
    from toolwire.gateway.database import DatabaseFailed
    from toolwire.gateway.postgres import PostgresLedger
    from toolwire.gateway.store import LedgerFailed

    store = PostgresLedger(url, clock=lambda: AT)

    async def book(number: int) -> None:
        record = RequestRecord(id=f"r{number}", time=AT, key="ci\0", cost=1e-6)
        for _ in range(40):
            try:
                await store.book(Entry(record, "k1"))
                return
            except LedgerFailed:
                await asyncio.sleep(0.1)
        raise AssertionError("the ledger stays broken")

    async def work() -> int:
        await book(1)
        await asyncio.to_thread(kill_and_restart)
        await book(2)
        for _ in range(40):
            try:
                return len(await store.requests())
            except DatabaseFailed:
                await asyncio.sleep(0.1)
        return 0

    assert asyncio.run(work()) == 2
    store.close()


def test_a_server_that_is_not_there_is_named_without_its_password():
    pytest.importorskip("psycopg")
    from toolwire.gateway.postgres import PostgresLedger

    with pytest.raises(BadInput, match=r"127\.0\.0\.1/base") as failed:
        PostgresLedger("postgresql://user:sesame@127.0.0.1:1/base")
    assert "sesame" not in str(failed.value)
