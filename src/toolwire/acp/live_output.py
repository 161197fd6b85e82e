"""Output of running commands, shown to the editor at most four times a second."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

INTERVAL = 0.25
"""Seconds between two texts of a running command."""


class LiveOutput:
    """What commands have printed and the editor was not shown yet, by call."""

    def __init__(
        self,
        show: Callable[[str, str], Awaitable[None]],
        soon: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._show = show
        self._soon = soon
        self._waiting: dict[str, str] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def add(self, call_id: str, text: str) -> None:
        """Shows the text at once, or with what follows it in this interval."""
        self._waiting[call_id] = self._waiting.get(call_id, "") + text
        if call_id not in self._timers:
            await self._tick(call_id)

    async def flush(self, call_id: str) -> None:
        """Shows the rest of what a command has printed."""
        timer = self._timers.pop(call_id, None)
        if timer is not None:
            timer.cancel()
        await self._show(call_id, self._waiting.pop(call_id, ""))

    async def flush_all(self) -> None:
        """Shows the rest of every command."""
        for call_id in tuple(self._waiting):
            await self.flush(call_id)

    def stop(self) -> None:
        """Shows nothing more by itself."""
        for timer in self._timers.values():
            timer.cancel()

    async def _tick(self, call_id: str) -> None:
        """Shows what a command has printed, and again after an interval if there is more."""
        if not self._waiting.get(call_id):
            self._timers.pop(call_id, None)
            return
        loop = asyncio.get_running_loop()
        self._timers[call_id] = loop.call_later(INTERVAL, partial(self._again, call_id))
        await self._show(call_id, self._waiting.pop(call_id, ""))

    def _again(self, call_id: str) -> None:
        self._soon(self._tick(call_id))
