"""The agent as an object, with the program's tools, approver and model."""

import asyncio
import atexit
import contextvars
import logging
import os
import threading
import weakref
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from toolwire.agent.events import AgentEvent
from toolwire.agent.usage import Limits
from toolwire.app.options import HostOverrides, SessionOptions, opened
from toolwire.config import Settings, load
from toolwire.errors import BadInput
from toolwire.library.conversation import Approve, Conversation, Listener, Plan, streamed
from toolwire.library.result import Result
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.policy import Mode
from toolwire.providers.custom import read_upstream
from toolwire.tools.registry import Registry, builtin, builtins
from toolwire.tools.spec import Tool
from toolwire.tools.typed import tool

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


AnyTool: TypeAlias = Tool | Callable[..., object]
Prompt: TypeAlias = str | Message


class Agent:
    """A conversation with a model that may call tools; each prompt continues it.

    The user's configuration applies only if `settings` are given, nothing is written to disk
    unless `kept`, and calls that need approval are denied unless `approve` allows them.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        tools: Iterable[AnyTool] = (),
        builtin_tools: bool | Sequence[str] = (),
        approve: Approve | None = None,
        mode: Mode | None = None,
        allowed: Sequence[str] = (),
        system: str = "",
        cwd: str | Path | None = None,
        limits: Limits | None = None,
        kept: bool = False,
        session: str = "",
        settings: Settings | None = None,
        on_event: Listener | None = None,
        key: str = "",
        base_url: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`model` is `provider/model`, `DIALECT=URL[,key=K][,model=M]`, or any `Model`.

        `allowed` names tools that need no approval (`run_shell_command(git)` for one command),
        `session` is one to continue, `key` and `base_url` are for the provider.
        """
        named, upstream = (model, None) if isinstance(model, str) else ("", None)
        if "=" in named.partition("/")[0]:
            named, upstream = "", read_upstream(named)
        elif isinstance(model, str) and not model:
            raise BadInput(
                "no model is named; use provider/model, such as anthropic/claude-sonnet-5"
            )
        given = settings or Settings()
        plan = Plan(
            options=SessionOptions(
                model=named,
                upstream=upstream,
                key=key,
                base_url=base_url,
                mode=mode,
                allowed=tuple(allowed),
                session=session,
                kept=kept,
                limits=limits,
            ),
            settings=given,
            own=HostOverrides(
                tools=_registry(tools, builtin_tools, given),
                system=system,
                model=None if isinstance(model, str) else opened(model),
                rules=settings is not None,
            ),
            environ=dict(os.environ if environ is None else environ),
            cwd=Path.cwd() if cwd is None else Path(cwd),
            approve=approve,
            listener=on_event,
        )
        self._conversation = Conversation(plan)
        self._thread: LoopThread | None = None

    @property
    def session(self) -> str:
        """The session's id, to continue it later if it is stored; empty before the first prompt."""
        return self._conversation.session

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self._conversation.messages

    async def run(self, prompt: Prompt) -> Result:
        """Runs a prompt until the model is done; continues the conversation.

        Raises `TurnFailed` if the vendor, the connection or the session fails; a limit, a refusal
        or a cut answer is a result whose `ok` is false.
        """
        return await self._conversation.run(_message(prompt))

    def stream(self, prompt: Prompt) -> AsyncGenerator[AgentEvent, None]:
        """Runs a prompt and yields its events; leaving the loop cancels it."""
        return streamed(self._conversation, _message(prompt))

    def run_sync(self, prompt: Prompt) -> Result:
        """Runs a prompt, for code without an event loop."""
        self._conversation.check_open()
        if self._thread is None:
            self._thread = LoopThread(self._conversation.close)
            weakref.finalize(self, self._thread.leave).atexit = False
        return self._thread.do(self._conversation.run(_message(prompt)))

    async def aclose(self) -> None:
        """Closes connections and ends commands that still run."""
        if self._thread is not None:
            await asyncio.to_thread(self.close)
        else:
            await self._conversation.close()

    def close(self) -> None:
        """Closes it, for code without an event loop; finalizers do it too."""
        if self._thread is not None:
            self._thread.leave()
            self._thread.join()
        elif self._conversation.used:
            raise BadInput("the agent is used in an event loop; close it there: await aclose()")

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_settings(
    cwd: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Returns the user's settings in a folder, as the commands read them."""
    folder = Path.cwd() if cwd is None else Path(cwd)
    return load(os.environ if environ is None else environ, folder)


def _message(prompt: Prompt) -> Message:
    if isinstance(prompt, Message):
        if prompt.role != "user":
            raise BadInput(f"a prompt must be a user message, not one of the role {prompt.role}")
        return prompt
    if not prompt.strip():
        raise BadInput("the prompt is empty")
    return Message(role="user", parts=(Text(prompt),))


def _registry(
    tools: Iterable[AnyTool], chosen: bool | Sequence[str], settings: Settings
) -> Registry:
    """Returns the program's tools and the requested built-in ones that it does not replace."""
    own = Registry(one if isinstance(one, Tool) else tool(one) for one in tools)
    if isinstance(chosen, str):
        raise BadInput(f'builtin_tools is a list of names; write ["{chosen}"]')
    if chosen is True:
        found = builtins(settings.tools)
    else:
        found = Registry(builtin(name, settings.tools) for name in chosen or ())
    return Registry((*found.without(own.names), *own))
