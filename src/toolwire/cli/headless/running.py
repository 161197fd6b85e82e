"""One headless run from the options to the exit code."""

import asyncio
import os
import signal
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from toolwire import config
from toolwire.agent.events import TurnEnd, TurnEnded
from toolwire.agent.mentions import user_message
from toolwire.agent.rules import Mode
from toolwire.app.session import open_session
from toolwire.app.wanted import Wanted
from toolwire.cli.config import asker
from toolwire.cli.headless import exits
from toolwire.cli.headless.output import Output
from toolwire.cli.headless.prompt import read_prompt
from toolwire.client.record import RecordingTransport, ReplayTransport
from toolwire.client.secret import known_secrets
from toolwire.client.transport import HttpTransport, Transport
from toolwire.config import current_folder
from toolwire.errors import BadInput
from toolwire.providers.upstream import read_upstream


class Run:
    """What the options ask for; `run` does it."""

    def __init__(self, options: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._options = options
        self._environ = environ
        self._cwd = options["folder"].resolve() if options["folder"] else current_folder()
        self._prompt = read_prompt(options["prompt"], options["more"])
        mode = "yolo" if options["yolo"] else options["approval_mode"]
        flags = {
            "approval_mode": mode,
            "tool_style": options["tool_style"],
            "limits.turns": options["max_turns"],
        }
        self._settings = config.load(environ, self._cwd, flags=flags, ask=asker())
        upstream = options["upstream"]
        self._wanted = Wanted(
            model=options["model"],
            provider=options["provider"],
            base_url=options["base_url"],
            upstream=read_upstream(upstream) if upstream else None,
            mode=Mode(self._settings.approval_mode),
            allowed=_listed(options["allowed_tools"]),
            session=options["session"],
            latest=options["latest"],
            system=options["system"],
        )

    async def run(self, output: Output) -> int:
        """The exit code."""
        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            session = await stack.enter_async_context(
                open_session(
                    self._wanted,
                    settings=self._settings,
                    environ=self._environ,
                    cwd=self._cwd,
                    readers=(output.hear,),
                    transport=transport,
                )
            )
            said = user_message(
                self._prompt.typed,
                session.workshop.context,
                piped=self._prompt.piped,
                respect_git_ignore=self._settings.context.respect_git_ignore,
            )
            for words in said.notices:
                await session.note("mention", words)
            try:
                with _interruptible():
                    ended = await session.send(said.message)
            except asyncio.CancelledError:
                _uncancel()
                ended = TurnEnded(reason=TurnEnd.CANCELLED)
            output.end(session.id, ended)
            return exits.code_of(ended)

    async def _transport(self, stack: AsyncExitStack) -> Transport:
        replay, record = self._options["replay"], self._options["record"]
        if replay:
            try:
                lines = replay.read_text("utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise BadInput(f"--replay: {replay} cannot be read: {error}") from error
            return ReplayTransport(lines, secrets=known_secrets())
        http = HttpTransport()
        stack.push_async_callback(http.aclose)
        if not record:
            return http
        try:
            file = stack.enter_context(record.open("w", encoding="utf-8"))
        except OSError as error:
            raise BadInput(f"--record: {record} cannot be written: {error.strerror}") from error

        def write(line: str) -> None:
            file.write(f"{line}\n")
            file.flush()

        return RecordingTransport(http, write, secrets=known_secrets())


def _listed(values: tuple[str, ...]) -> tuple[str, ...]:
    """Entries of comma lists; a comma inside brackets belongs to the command."""
    entries: list[str] = []
    for value in values:
        depth, entry = 0, ""
        for letter in value:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth <= 0:
                entries.append(entry)
                entry = ""
            else:
                entry += letter
        entries.append(entry)
    return tuple(entry.strip() for entry in entries if entry.strip())


@contextmanager
def _interruptible() -> Generator[None]:
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
            # Commands that still run are ended by the keepers beside them.
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
