"""One headless run from the options to the exit code."""

import asyncio
import os
import signal
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from toolwire.agent.events import TurnEnd, TurnEnded
from toolwire.agent.mentions import user_message
from toolwire.app.session import AgentSession, open_session
from toolwire.cli.asked import open_transport, read_asked
from toolwire.cli.embedded import consent
from toolwire.cli.headless import exits
from toolwire.cli.headless.output import Output
from toolwire.cli.headless.prompt import read_prompt
from toolwire.cli.leaving import end_soon


class Run:
    """What the options ask for; `run` does it."""

    def __init__(self, options: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._options = options
        self._environ = environ
        self._prompt = read_prompt(options["prompt"], options["more"])
        self._asked = read_asked(options, environ, interactive=False)

    async def run(self, output: Output) -> int:
        """The exit code."""
        asked = self._asked
        async with AsyncExitStack() as stack:
            transport = open_transport(self._options, stack)
            session = await stack.enter_async_context(
                open_session(
                    asked.wanted,
                    settings=asked.settings,
                    environ=self._environ,
                    cwd=asked.cwd,
                    readers=(output.hear,),
                    transport=transport,
                    consent=consent(self._options),
                )
            )
            try:
                with interruptible():
                    ended = await self._sent(session)
            except asyncio.CancelledError:
                _uncancel()
                ended = TurnEnded(reason=TurnEnd.CANCELLED)
            output.end(session.id, ended)
            code = exits.code_of(ended)
            if code == exits.CANCELLED:
                end_soon(code)
            return code

    async def _sent(self, session: AgentSession) -> TurnEnded:
        said = await asyncio.to_thread(
            user_message,
            self._prompt.typed,
            session.workshop.context,
            piped=self._prompt.piped,
            respect_git_ignore=self._asked.settings.context.respect_git_ignore,
        )
        for words in said.notices:
            await session.note("mention", words)
        return await session.send(said.message)


@contextmanager
def interruptible() -> Generator[None]:
    """The first Ctrl-C (or SIGTERM) ends the turn, the second leaves at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - we are in one
    pressed = 0

    def stop() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            task.cancel()
        else:
            # Commands that still run are ended by the watchdogs beside them.
            os._exit(exits.CANCELLED)

    signals = (signal.SIGINT, signal.SIGTERM)
    for one in signals:
        loop.add_signal_handler(one, stop)
    try:
        yield
    finally:
        for one in signals:
            loop.remove_signal_handler(one)


def _uncancel() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
