"""An event loop in a thread of its own, for callers without one."""

import asyncio
import atexit
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from toolwire.errors import BadInput

_Value = TypeVar("_Value")
_LONGEST = 5.0
"""Seconds that the exit of the program waits for one."""
_running: set["LoopThread"] = set()
_log = logging.getLogger(__name__)


class LoopThread:
    """Runs until it is stopped; `last` is awaited before it ends."""

    def __init__(self, last: Callable[[], Awaitable[None]]) -> None:
        self._last = last
        self._ready = threading.Event()
        self._left = asyncio.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="toolwire-agent", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    def do(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        """Waits for the work; Ctrl-C cancels it cleanly, a second one exits at once."""
        if threading.current_thread() is self._thread:
            work.close()
            raise BadInput("run_sync would deadlock here; await run instead")
        done = threading.Event()
        tasks: list[asyncio.Task[_Value]] = []
        context = contextvars.copy_context()

        def start() -> None:
            task = self._loop.create_task(work, context=context)
            task.add_done_callback(lambda _: done.set())
            tasks.append(task)

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()
            else:
                # Interrupted before the loop was given the work.
                work.close()
                done.set()

        try:
            # Inside: a Ctrl-C may arrive before the next line runs, but after the work began.
            self._loop.call_soon_threadsafe(start)
            done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(cancel)
            done.wait()
            raise
        return tasks[0].result()

    def leave(self) -> None:
        """Stops the loop without waiting; safe from finalizers."""
        if self in _running:
            self._loop.call_soon_threadsafe(self._left.set)

    def join(self, seconds: float | None = None) -> None:
        """Waits for its end."""
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        _running.add(self)
        self._ready.set()
        try:
            await self._left.wait()
            await self._last()
        except Exception:
            # The outermost edge: no caller is left to report to.
            _log.debug("an agent failed to close", exc_info=True)
        finally:
            _running.discard(self)


@atexit.register
def _end_all() -> None:
    for one in tuple(_running):
        one.leave()
        one.join(_LONGEST)
