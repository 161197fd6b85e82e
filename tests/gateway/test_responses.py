import asyncio
import json
from pathlib import Path

import pytest

from toolwire.errors import BadInput
from toolwire.gateway.memory_store import MemoryStore, ProcessStore, SqliteMemoryStore
from toolwire.gateway.parts import StoredAnswer
from toolwire.gateway.responses import NoAnswers, StoredAnswers, deleted_body, input_items_body
from toolwire.messages import Message, Text

MIB = 1024 * 1024


def message(role: str, text: str) -> Message:
    return Message(role="user" if role == "user" else "assistant", parts=(Text(text),))


def saved(number: int) -> StoredAnswer:
    return StoredAnswer(
        id=f"resp_{number}",
        parent=f"resp_{number - 1}" if number else "",
        sent=(message("user", f"q{number}"),),
        reply=message("assistant", f"a{number}"),
        body=b'{"id":"resp_%d"}' % number,
        input_items=b'[{"role":"user","content":"q"}]',
    )


@pytest.fixture(params=["process", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    found: MemoryStore = ProcessStore(MIB)
    if request.param == "disk":
        path = tmp_path / "memory.sqlite"
        found = SqliteMemoryStore(path, limit=MIB, days=30, clock=lambda: 1_800_000_000.0)
    yield found
    found.close()


def test_an_answer_is_its_tenants_until_it_is_deleted(store: MemoryStore):
    async def check() -> None:
        answers = StoredAnswers(store)
        assert await answers.save("ada", saved(0)) is None
        assert await answers.get("ada", "resp_0") == saved(0)
        assert await answers.get("bob", "resp_0") is None
        assert not await answers.delete("bob", "resp_0")
        assert await answers.delete("ada", "resp_0")
        assert await answers.get("ada", "resp_0") is None

    asyncio.run(check())


def test_a_chain_is_the_whole_conversation(store: MemoryStore):
    async def check() -> None:
        answers = StoredAnswers(store)
        for number in range(3):
            await answers.save("ada", saved(number))
        chain = await answers.chain("ada", "resp_2")
        assert chain is not None
        assert [one.text for one in chain] == ["q0", "a0", "q1", "a1", "q2", "a2"]
        assert await answers.chain("ada", "resp_9") is None
        assert await answers.chain("bob", "resp_2") is None
        await answers.delete("ada", "resp_0")
        assert await answers.chain("ada", "resp_2") is None

    asyncio.run(check())


def test_a_chain_that_leads_to_itself_is_unknown(store: MemoryStore):
    async def check() -> None:
        answers = StoredAnswers(store)
        await answers.save("ada", StoredAnswer(id="resp_a", parent="resp_a"))
        assert await answers.chain("ada", "resp_a") is None

    asyncio.run(check())


def test_without_a_memory_nothing_is_stored():
    async def check() -> None:
        answers = NoAnswers()
        assert await answers.save("ada", saved(0)) is None
        assert await answers.get("ada", "resp_0") is None
        assert await answers.chain("ada", "resp_0") is None
        assert not await answers.delete("ada", "resp_0")

    asyncio.run(check())


def test_input_items_come_in_pages():
    items = [{"type": "message", "id": f"msg_{n}", "role": "user"} for n in range(3)]
    answer = StoredAnswer(id="resp_x", input_items=json.dumps(items).encode())
    first = json.loads(input_items_body(answer, {"limit": "2"}))
    assert [item["id"] for item in first["data"]] == ["msg_2", "msg_1"]
    assert (first["first_id"], first["last_id"], first["has_more"]) == ("msg_2", "msg_1", True)
    rest = json.loads(input_items_body(answer, {"after": "msg_1"}))
    assert [item["id"] for item in rest["data"]] == ["msg_0"]
    assert not rest["has_more"]
    ordered = json.loads(input_items_body(answer, {"order": "asc"}))
    assert ordered["data"] == items


def test_every_input_item_has_an_id_and_a_type():
    answer = StoredAnswer(id="resp_x", input_items=b'"hi"')
    (item,) = json.loads(input_items_body(answer, {}))["data"]
    assert item == {
        "id": "msg_x_0",
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "hi"}],
    }


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "x"}, {"after": "msg_9"}])
def test_a_bad_page_is_refused_by_name(query: dict[str, str]):
    with pytest.raises(BadInput, match=next(iter(query))):
        input_items_body(StoredAnswer(id="resp_x"), query)


def test_a_deletion_is_confirmed():
    assert json.loads(deleted_body("resp_x")) == {
        "id": "resp_x",
        "object": "response",
        "deleted": True,
    }
