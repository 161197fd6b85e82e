"""Output for people and pipes: the answer on standard output, progress on standard error."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager

from toolwire.agent.events import (
    AgentEvent,
    HistoryReplaced,
    MessageAdded,
    ModelAsked,
    Noticed,
    Retrying,
    Streaming,
    ToolFinished,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    notice_text,
)
from toolwire.cli.output import (
    PLAINLY,
    Denials,
    OutputOptions,
    Writable,
    error_of,
    hint,
)
from toolwire.cli.terminal import error_line, write_control
from toolwire.events import Notice, RefusalDelta, TextDelta
from toolwire.terminal_text import one_line

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_EVERY = 0.1
_WIDTH = 78
_CLEAR = "\r\x1b[2K"


class Spinner:
    """Drawn by its own task; `stop` clears the line."""

    def __init__(self, err: Writable) -> None:
        self._err = err
        self._words = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def words(self) -> str:
        """The text shown; empty if it is not drawn."""
        return self._words if self._task is not None else ""

    def start(self, words: str) -> None:
        """Shows this text from now on."""
        self._words = one_line(words[:_WIDTH])[:_WIDTH]
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._draw())

    def stop(self) -> None:
        """Clears the line, if there is one."""
        if self._task is None:
            return
        self._task.cancel()
        self._task = None
        write_control(self._err, _CLEAR)
        self._err.flush()

    async def _draw(self) -> None:
        began, count = time.monotonic(), 0
        while True:
            seconds = time.monotonic() - began
            frame = _FRAMES[count % len(_FRAMES)]
            write_control(self._err, _CLEAR)
            self._err.write(f"{frame} {self._words} ({seconds:.0f} s)")
            self._err.flush()
            count += 1
            await asyncio.sleep(_EVERY)


_LONGEST = 60


class TextOutput:
    """Streams text as it arrives; prints a line for each finished call."""

    def __init__(self, out: Writable, err: Writable, shown: OutputOptions = PLAINLY) -> None:
        self._out = out
        self._err = err
        self._shown = shown
        self._quiet = shown.quiet
        still = shown.quiet or shown.still or not err.isatty()
        self._spinner = None if still else Spinner(err)
        self._mixed = out.isatty() and err.isatty()
        self._open_line = False
        self._denials = Denials()
        self._held: list[AgentEvent] | None = None
        """Output held back while paused; None while not paused."""

    async def receive(self, event: AgentEvent) -> None:
        """Prints the event."""
        self._denials.add(event)
        if self._held is None:
            self._show(event)
        else:
            self._held.append(event)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Pauses output inside the block, then prints it all and restarts the spinner."""
        if self._held is not None:
            yield
            return
        words = self._spinner.words if self._spinner is not None else ""
        self._stop()
        self._end_line()
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            if words:
                self._spin(words)
            for event in held:
                self._show(event)

    def _show(self, event: AgentEvent) -> None:
        match event:
            case Streaming():
                if isinstance(event.event, TextDelta | RefusalDelta) and event.event.text:
                    if not self._shown.structured:
                        self._say(event.event.text)
                elif isinstance(event.event, Notice):
                    self._spin(f"reading: {event.event.message}")
            case ModelAsked():
                self._spin("thinking")
            case MessageAdded():
                if event.message.calls:
                    self._end_line()
            case ToolStarted():
                self._spin(f"{event.name} {hint(event.arguments)}")
            case ToolFinished():
                self._line(_outcome(event))
            case Noticed():
                words = notice_text(event, verbose=self._shown.verbose)
                if words:
                    self._line(f"… {one_line(words)}")
            case Retrying():
                self._line(f"… {one_line(event.message)}")
            case HistoryReplaced():
                self._line(
                    f"… the conversation was shortened: about {event.before} tokens, "
                    f"now {event.after} ({event.method})"
                )
            case _:
                pass

    def end(self, session: str, ended: TurnEnded) -> None:
        """Ends the last line, and reports why the turn stopped if it failed."""
        self._stop()
        if ended.output:
            self._say(ended.output)
        self._end_line()
        if self._shown.headless and self._denials.message:
            self._err.write(f"… {self._denials.message}\n")
            self._err.flush()
        error = error_of(ended)
        if error is None:
            return
        words = error["message"]
        self._err.write(f"{words}\n" if ended.reason is TurnEnd.CANCELLED else error_line(words))
        if session:
            self._err.write(f"continue with: toolwire run --session {session} …\n")
        self._err.flush()

    def _say(self, text: str) -> None:
        self._stop()
        self._out.write(text)
        self._out.flush()
        self._open_line = not text.endswith("\n")

    def _line(self, text: str) -> None:
        self._stop()
        if self._quiet:
            return
        if self._mixed:
            self._end_line()
        self._err.write(f"{text}\n")
        self._err.flush()

    def _end_line(self) -> None:
        if self._open_line:
            self._out.write("\n")
            self._open_line = False
        self._out.flush()

    def _spin(self, words: str) -> None:
        if self._spinner is not None and not (self._mixed and self._open_line):
            self._spinner.start(words)

    def _stop(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()


def _outcome(event: ToolFinished) -> str:
    about = hint(event.arguments)
    name = one_line(f"{event.name[:_LONGEST]} {about}")
    if event.success:
        return f"✓ {name} ({_duration(event.duration)})"
    words = next(iter(event.display.strip().splitlines()), "") or event.error_type
    return f"✗ {name}: {words}"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
