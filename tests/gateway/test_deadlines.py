import asyncio

from toolwire.gateway.deadlines import Deadlines


def test_each_deadline_is_called_once_in_the_order_of_time():
    called: list[str] = []

    async def work() -> None:
        deadlines, last = Deadlines(), asyncio.Event()
        deadlines.set("late", 0.03, last.set)
        deadlines.set("second", 0.02, lambda: called.append("second"))
        deadlines.set("first", 0.0, lambda: called.append("first"))
        await last.wait()

    asyncio.run(work())
    assert called == ["first", "second"]


def test_a_deadline_that_is_moved_or_removed_is_not_called():
    called: list[str] = []

    async def work() -> None:
        deadlines, last = Deadlines(), asyncio.Event()
        deadlines.set("moved", 0.0, lambda: called.append("too early"))
        deadlines.set("removed", 0.0, lambda: called.append("removed"))
        deadlines.set("moved", 0.02, last.set)
        deadlines.remove("removed")
        await last.wait()

    asyncio.run(work())
    assert called == []


def test_a_deadline_may_be_set_again_and_others_removed_while_one_is_called():
    called: list[str] = []

    async def work() -> None:
        deadlines, last = Deadlines(), asyncio.Event()

        def first() -> None:
            called.append("first")
            deadlines.remove("other")
            deadlines.set("first", 0.01, last.set)

        deadlines.set("first", 0.0, first)
        deadlines.set("other", 0.0, lambda: called.append("other"))
        await last.wait()

    asyncio.run(work())
    assert called == ["first"]
