"""The terminal's keys and who gets them: the composer, a page, or the page that opens next."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from toolwire.tui.terminal_input import parser_of

ESCAPE_AFTER = 0.05
"""Seconds without a byte after which a lone escape character is the Escape key."""
_FIRST = 1.0
"""Seconds that keys wait for the first page of a command."""


class KeyGate(Input):
    """The composer's share of the terminal's input.

    Both the composer and the pages read one terminal, each with timers of its own. What the
    composer's timers do while a page has the keys is nothing; keys that are pressed between a
    command and its page, or between two pages, wait for the page.
    """

    def __init__(self, terminal: Input) -> None:
        self._terminal = terminal
        self._held: asyncio.TimerHandle | None = None
        self.lent = False
        """Whether a page or another program has the keys."""

    @property
    def waiting(self) -> bool:
        """Whether keys wait for a page."""
        return self._held is not None

    def hold(self, application: Application[None], expired: Callable[[], None]) -> None:
        """Keeps the keys from here on, those that were read already too, until `free`."""
        self.free()
        self._held = asyncio.get_running_loop().call_later(_FIRST, expired)
        store_typeahead(self._terminal, application.key_processor.empty_queue())

    def free(self) -> None:
        """Lets keys through again; those that waited are still stored."""
        if self._held is not None:
            self._held.cancel()
            self._held = None

    def deliver(self, application: Application[None], *, without_escape: bool) -> None:
        """Gives the composer the keys that waited."""
        keys = get_typeahead(self._terminal)
        if without_escape:
            # Pressed to close a page that was closed already.
            keys = [key for key in keys if key.key is not Keys.Escape]
        application.key_processor.feed_multiple(keys)
        if application.is_running:
            application.key_processor.process_keys()
            flush_later(application, self)

    def read_keys(self) -> list[KeyPress]:
        """Reads what there is, unless others have the keys."""
        return [] if self.lent else self._passed(self._terminal.read_keys())

    def flush_keys(self) -> list[KeyPress]:
        """Takes a lone escape character as a key, unless others have the keys."""
        return [] if self.lent else self._passed(self._terminal.flush_keys())

    def _passed(self, keys: list[KeyPress]) -> list[KeyPress]:
        if self.waiting:
            store_typeahead(self._terminal, keys)
            return []
        return keys

    def fileno(self) -> int:
        return self._terminal.fileno()

    def typeahead_hash(self) -> str:
        return self._terminal.typeahead_hash()

    def flush(self) -> None:
        self._terminal.flush()

    @property
    def closed(self) -> bool:
        return self._terminal.closed

    def raw_mode(self) -> AbstractContextManager[None]:
        return self._terminal.raw_mode()

    def cooked_mode(self) -> AbstractContextManager[None]:
        return self._terminal.cooked_mode()

    def attach(self, input_ready_callback: Callable[[], None]) -> AbstractContextManager[None]:
        return self._terminal.attach(input_ready_callback)

    def detach(self) -> AbstractContextManager[None]:
        return self._terminal.detach()

    def close(self) -> None:
        self._terminal.close()

    @property
    def terminal(self) -> Input:
        """The input that pages read."""
        return self._terminal


def flush_later(application: Application[Any], source: Input) -> None:
    """Takes an escape character that the last reader left behind as a key, if nothing follows.

    The timer of that reader ended with it.
    """
    parser = parser_of(source.terminal if isinstance(source, KeyGate) else source)
    if parser is None:
        return
    seen = parser.fed

    async def flush() -> None:
        await asyncio.sleep(ESCAPE_AFTER)
        if parser.fed == seen and not application.is_done:
            application.key_processor.feed_multiple(source.flush_keys())
            application.key_processor.process_keys()

    application.create_background_task(flush())
