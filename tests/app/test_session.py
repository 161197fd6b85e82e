import asyncio

from toolwire.agent.events import AgentEvent, Noticed, SessionEvent, Streaming, reader_of
from toolwire.app.event_sink import EventSink
from toolwire.events import TextDelta


def test_a_reader_of_two_sessions_knows_which_one_an_event_belongs_to() -> None:
    received: list[SessionEvent] = []

    async def reader(event: SessionEvent) -> None:
        received.append(event)

    async def work() -> None:
        parent, child = EventSink("parent", None, [reader]), EventSink("child", None, [reader])
        await parent(Streaming(TextDelta("a")))
        await child(Noticed(kind="setup", message="b"))
        await parent.show(Noticed(kind="setup", message="c"))

    asyncio.run(work())
    assert received == [
        SessionEvent("parent", Streaming(TextDelta("a"))),
        SessionEvent("child", Noticed(kind="setup", message="b")),
        SessionEvent("parent", Noticed(kind="setup", message="c")),
    ]


def test_a_reader_of_one_session_receives_its_events_alone() -> None:
    received: list[AgentEvent] = []

    async def receive(event: AgentEvent) -> None:
        received.append(event)

    event = Noticed(kind="setup", message="b")
    asyncio.run(EventSink("s", None, [reader_of(receive)])(event))
    assert received == [event]
