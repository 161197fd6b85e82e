"""Writes of a journal in the order they were made, which outlive a cancelled caller."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec

from toolwire.errors import SessionError

_P = ParamSpec("_P")


class OrderedWrites:
    """The writes of one session in its writer's thread.

    A write whose caller is cancelled goes on; if it fails then, the next one raises its error.
    """

    def __init__(self, writer: ThreadPoolExecutor) -> None:
        self._writer = writer
        self._unreported: SessionError | None = None

    async def run(self, write: Callable[_P, int], *given: _P.args, **options: _P.kwargs) -> int:
        """The result of a write."""
        if self._unreported is not None:
            failure, self._unreported = self._unreported, None
            raise failure
        writing = asyncio.wrap_future(self._writer.submit(write, *given, **options))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(self._note_failure)
            raise

    def _note_failure(self, writing: "asyncio.Future[int]") -> None:
        failure = None if writing.cancelled() else writing.exception()
        if isinstance(failure, SessionError):
            self._unreported = failure
