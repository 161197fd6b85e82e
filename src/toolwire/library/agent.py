"""The agent as an object, with the program's tools, approver and model."""

import asyncio
import os
import weakref
from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, overload

import msgspec

from toolwire.agent.events import AgentEvent
from toolwire.agent.hooks import Hooks
from toolwire.agent.usage import Limits
from toolwire.app.options import HostOverrides, SessionOptions, opened
from toolwire.app.servers import HostServers, host_choice
from toolwire.config import Settings, load
from toolwire.config.telemetry import TelemetrySettings
from toolwire.errors import BadInput, UnknownName
from toolwire.library.child import as_tool
from toolwire.library.conversation import (
    Approve,
    Conversation,
    Listener,
    Plan,
    Prompt,
    RunOptions,
    output_stream,
    streamed,
    user_message,
)
from toolwire.library.loop_thread import LoopThread
from toolwire.library.result import Output, Result, TypeForm, output_of
from toolwire.messages import Message
from toolwire.model import Model
from toolwire.policy import Mode
from toolwire.providers.custom import Upstream, read_upstream
from toolwire.request import ModelSettings
from toolwire.tools.registry import Registry, builtin, builtins
from toolwire.tools.spec import Tool
from toolwire.tools.typed import tool

Other = TypeVar("Other")
AnyTool: TypeAlias = Tool | Callable[..., object]
ModeName: TypeAlias = Literal["default", "auto_edit", "yolo", "plan"]
HostHooks: TypeAlias = Hooks | Mapping[str, Sequence[Mapping[str, Any]]] | Sequence[Hooks]
"""Hooks of a host program: objects, or tables by event as `[[hooks.EVENT]]` has them."""
Traced: TypeAlias = str | Path | TelemetrySettings
"""Where telemetry goes: an address, a file, or settings."""


def _traced(settings: Settings, telemetry: Traced | None) -> Settings:
    match telemetry:
        case None:
            return settings
        case TelemetrySettings():
            chosen = telemetry
        case str() if telemetry.startswith(("http://", "https://")):
            chosen = TelemetrySettings(enabled=True, endpoint=telemetry)
        case _:
            chosen = TelemetrySettings(outfile=str(telemetry))
    return msgspec.structs.replace(settings, telemetry=chosen)


def _classes(hooks: HostHooks) -> tuple[Hooks, ...]:
    if isinstance(hooks, Hooks):
        return (hooks,)
    return () if isinstance(hooks, Mapping) else tuple(hooks)


def _with_tables(settings: Settings, hooks: HostHooks) -> Settings:
    """The settings with hooks that are given as tables; BadInput if one cannot be used."""
    if not isinstance(hooks, Mapping):
        return settings
    from toolwire.app.extensions import with_hook_tables  # noqa: PLC0415 - start-up time

    return with_hook_tables(settings, hooks)


class Agent(Generic[Output]):
    """A conversation with a model that may call tools; each prompt continues it.

    The user's configuration applies only if `settings` are given, nothing is written to disk
    unless `kept`, and calls that need approval are denied unless `approve` allows them.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        # What it is for
        output: TypeForm[Output] = str,
        system: str = "",
        tools: Iterable[AnyTool] = (),
        builtin_tools: bool | Sequence[str] = (),
        mcp: HostServers = (),
        deps: object = None,
        model_settings: ModelSettings | None = None,
        messages: Sequence[Message] = (),
        # What it may do
        approve: Approve | None = None,
        mode: Mode | ModeName | None = None,
        allowed: Sequence[str] = (),
        hooks: HostHooks = (),
        limits: Limits | None = None,
        on_event: Listener | None = None,
        telemetry: Traced | None = None,
        # Where it works
        cwd: str | Path | None = None,
        kept: bool = False,
        session: str = "",
        settings: Settings | None = None,
        key: str = "",
        base_url: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`model` is `provider/model`, `DIALECT=URL[,key=K][,model=M]`, or any `Model`.

        - `output`: type of `result.output`; the answer is validated, and requested again
        - `system`: the system prompt
        - `tools`: functions or `Tool`s; `builtin_tools`: names of built-in ones, or True for all
        - `mcp`: MCP servers whose tools it has: addresses and commands, or tables by name
        - `deps`: any object for the tools, as `ToolContext.deps`
        - `model_settings`: temperature, effort, tool choice and more
        - `messages`: a conversation to start from
        - `approve`: decides on calls that need approval
        - `mode`: which calls need none; `allowed`: tools that need none, such as
          `run_shell_command(git)` for one command
        - `hooks`: see and change calls and the events of the session: `Hooks`, or tables by event
          as in the settings; `on_event`: receives every event
        - `telemetry`: where traces and metrics go: an OTLP address, a file, or the settings of both
        - `limits`: requests, tokens, dollars and seconds of one run
        - `cwd`: the folder of the built-in tools and of relative paths
        - `kept`: store the session; `session`: continue a stored one
        - `settings`: the user's configuration, from `load_settings()`
        - `key`, `base_url`: of the provider; `environ`: in place of the environment
        """
        named, upstream = _model_name(model)
        given = _traced(_with_tables(settings or Settings(), hooks), telemetry)
        registry = _registry(tools, builtin_tools, given)
        agents = tuple(one.name for one in registry if one.delegates)
        plan = Plan(
            options=SessionOptions(
                model=named,
                upstream=upstream,
                key=key,
                base_url=base_url,
                mode=_mode(mode),
                allowed=(*allowed, *agents),
                session=session,
                kept=kept,
                limits=limits,
                servers=host_choice(mcp, users=settings is not None),
            ),
            settings=given,
            own=HostOverrides(
                tools=registry,
                system=system,
                model=None if isinstance(model, str) else opened(model),
                messages=_conversation(messages, session),
                rules=settings is not None,
            ),
            environ=dict(os.environ if environ is None else environ),
            cwd=Path.cwd() if cwd is None else Path(cwd),
            run=RunOptions(
                deps=deps,
                model_settings=model_settings,
                limits=limits,
                approve=approve,
                output=output_of(output),
            ),
            hooks=_classes(hooks),
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

    @overload
    async def run(
        self,
        prompt: Prompt,
        *,
        deps: object = None,
        model_settings: ModelSettings | None = None,
        limits: Limits | None = None,
        approve: Approve | None = None,
    ) -> Result[Output]: ...
    @overload
    async def run(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[Other],
        deps: object = None,
        model_settings: ModelSettings | None = None,
        limits: Limits | None = None,
        approve: Approve | None = None,
    ) -> Result[Other]: ...
    async def run(self, prompt: Prompt, *, output: Any = None, **options: Any) -> Result[Any]:
        """Runs a prompt until the model is done; continues the conversation.

        A prompt is text, a `Path`, `Media`, a list of these, or a user `Message`. What is set here
        replaces the agent's own for this run. Raises `TurnFailed` if the vendor, the connection or
        the session fails, or no valid output was given; a limit, a refusal or a cut answer is a
        result whose `ok` is false.
        """
        return await self._conversation.run(self._message(prompt), _options(output, options))

    @overload
    def run_sync(
        self,
        prompt: Prompt,
        *,
        deps: object = None,
        model_settings: ModelSettings | None = None,
        limits: Limits | None = None,
        approve: Approve | None = None,
    ) -> Result[Output]: ...
    @overload
    def run_sync(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[Other],
        deps: object = None,
        model_settings: ModelSettings | None = None,
        limits: Limits | None = None,
        approve: Approve | None = None,
    ) -> Result[Other]: ...
    def run_sync(self, prompt: Prompt, *, output: Any = None, **options: Any) -> Result[Any]:
        """Runs a prompt, for code without an event loop; as `run` otherwise."""
        self._conversation.check_open()
        message, chosen = self._message(prompt), _options(output, options)
        if self._thread is None:
            self._thread = LoopThread(self._conversation.close)
            weakref.finalize(self, self._thread.leave).atexit = False
        return self._thread.do(self._conversation.run(message, chosen))

    def stream(
        self,
        prompt: Prompt,
        *,
        deps: object = None,
        model_settings: ModelSettings | None = None,
        limits: Limits | None = None,
        approve: Approve | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Runs a prompt and yields its events; leaving the loop cancels it."""
        options = RunOptions(
            deps=deps, model_settings=model_settings, limits=limits, approve=approve
        )
        return streamed(self._conversation, self._message(prompt), options)

    @overload
    def stream_output(
        self,
        prompt: Prompt,
        *,
        deps: object = None,
        model_settings: ModelSettings | None = None,
        limits: Limits | None = None,
        approve: Approve | None = None,
    ) -> AsyncGenerator[Output, None]: ...
    @overload
    def stream_output(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[Other],
        deps: object = None,
        model_settings: ModelSettings | None = None,
        limits: Limits | None = None,
        approve: Approve | None = None,
    ) -> AsyncGenerator[Other, None]: ...
    def stream_output(
        self, prompt: Prompt, *, output: Any = None, **options: Any
    ) -> AsyncGenerator[Any, None]:
        """Runs a prompt and yields its output as it grows: valid objects, the whole one last.

        Texts, lists and dicts begin empty; an object appears when its other required members have
        arrived. Raises `NoOutput` if the run ends early.
        """
        chosen = _options(output, options)
        return output_stream(self._conversation, self._message(prompt), chosen)

    def as_tool(self, name: str, description: str) -> Tool:
        """Returns a tool for other agents: each call is a new session of this agent.

        Its calls need what the calling agent's policy, hooks and user require, besides its own;
        what it uses counts there too, and its events arrive there as `ChildEvent`.
        """
        return as_tool(self._conversation.plan, name, description)

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _message(self, prompt: Prompt) -> Message:
        return user_message(prompt, self._conversation.plan.cwd)


def _options(output: Any, options: Mapping[str, Any]) -> RunOptions:
    return RunOptions(output=output_of(output), **options)


def _model_name(model: str | Model) -> tuple[str, Upstream | None]:
    if not isinstance(model, str):
        return "", None
    if "=" in model.partition("/")[0]:
        return "", read_upstream(model)
    if not model:
        raise BadInput("no model is named; use provider/model, such as anthropic/claude-sonnet-5")
    return model, None


def _mode(mode: str | None) -> Mode | None:
    if mode is not None and mode not in tuple(Mode):
        raise UnknownName("mode", mode, tuple(Mode))
    return None if mode is None else Mode(mode)


def _conversation(messages: Sequence[Message], session: str) -> tuple[Message, ...]:
    """Returns messages to start from; they are balanced when the session is opened."""
    if messages and session:
        raise BadInput("a stored session has its own messages; pass messages or session, not both")
    for number, one in enumerate(messages):
        if not isinstance(one, Message):  # pyright: ignore[reportUnnecessaryIsInstance] - unchecked callers
            raise BadInput(
                f"messages[{number}] is of type {type(one).__name__}; "
                'build it: Message(role="user", parts=(Text("…"),))'
            )
    return tuple(messages)


def load_settings(
    cwd: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Returns the user's settings in a folder, as the commands read them."""
    folder = Path.cwd() if cwd is None else Path(cwd)
    return load(os.environ if environ is None else environ, folder)


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
