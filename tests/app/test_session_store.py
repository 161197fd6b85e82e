import asyncio
from pathlib import Path

from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted import Scripted, says
from toolwire.agent.events import TurnEnd
from toolwire.app.builder import open_session
from toolwire.app.options import HostOverrides, SessionOptions, opened
from toolwire.config import Settings
from toolwire.messages import Message, Text
from toolwire.sessions.replay import replay
from toolwire.tools.registry import Registry


def test_a_session_runs_and_continues_in_another_store(tmp_path: Path) -> None:
    store, model = MemoryStore(), Scripted(says("one"), says("two"))
    own = HostOverrides(tools=Registry(()), model=opened(model), temp=tmp_path)

    async def turn(prompt: str, options: SessionOptions) -> str:
        async with open_session(
            options,
            settings=Settings(),
            environ={"HOME": str(tmp_path), "TOOLWIRE_HOME": str(tmp_path / "home")},
            cwd=tmp_path,
            own=own,
            store=store,
        ) as session:
            ended = await session.send(Message(role="user", parts=(Text(prompt),)))
            assert ended.reason is TurnEnd.DONE
            return session.id

    first = asyncio.run(turn("first", SessionOptions()))
    assert asyncio.run(turn("second", SessionOptions(latest=True))) == first
    texts = ["first", "one", "second", "two"]
    assert [message.text for message in model.asked[1].messages] == texts[:3]
    assert [message.text for message in replay(store.read(first).events).messages] == texts
    assert not list(tmp_path.rglob("*.sqlite"))
