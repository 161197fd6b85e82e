"""Sessions in this process before a scripted model, with files of settings as users have them."""

import asyncio
import json
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.scripted import Scripted
from tests.fakes.simulated import Done, Place
from toolwire import config
from toolwire.agent.events import AgentEvent, HookRan, Noticed, TurnEnded, reader_of
from toolwire.agent.questions import Approver
from toolwire.app.builder import open_session
from toolwire.app.options import HostOverrides, SessionOptions, opened
from toolwire.app.session import AgentSession
from toolwire.events import ModelEvent
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.storage.private_files import approval_store
from toolwire.tools.registry import builtins


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a session was asked and what it reported."""

    model: Scripted
    events: list[AgentEvent]
    ended: list[TurnEnded]

    @property
    def texts(self) -> list[str]:
        """The texts of the messages of the last request, results included."""
        return [shown(message) for message in self.model.asked[-1].messages]

    @property
    def results(self) -> list[tuple[str, bool]]:
        """Every result of the last request, and whether it is an error."""
        messages = self.model.asked[-1].messages
        return [(one.text, one.is_error) for message in messages for one in message.results]

    @property
    def ran(self) -> list[tuple[str, str]]:
        return [(one.event, one.decision) for one in self.events if isinstance(one, HookRan)]

    @property
    def notices(self) -> list[str]:
        return [one.message for one in self.events if isinstance(one, Noticed)]


def shown(message: Message) -> str:
    return message.text or "".join(one.text for one in message.results)


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def claude_settings(place: Place, **events: Any) -> Path:
    """`.claude/settings.json` of the project, with one matcher group for each event."""
    file = place.work / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"hooks": events}))
    return file


def group(*commands: str, matcher: str = "", **more: Any) -> list[dict[str, Any]]:
    hooks = [{"type": "command", "command": one, **more} for one in commands]
    return [{"matcher": matcher, "hooks": hooks}]


def held(
    place: Place,
    *scripts: Iterable[ModelEvent | BaseException],
    prompts: Iterable[str] = ("do it",),
    text: str = "",
    trusted: bool = True,
    approve: bool = True,
    mode: Mode = Mode.YOLO,
    approver: Approver | None = None,
    variables: Mapping[str, str] | None = None,
    then: Callable[[AgentSession], Awaitable[object]] | None = None,
    **more: Any,
) -> Held:
    """Runs prompts in a session with these settings; all that the project brings is approved."""
    from toolwire.cli.hooks import brought

    environ = place.environ(**(variables or {}))
    (place.home / "config.toml").write_text(text)
    settings = config.load(environ, place.work, trusted=trusted, notice=lambda words: None)
    if approve:
        store = approval_store(place.home)
        for one in brought(settings, environ, place.work):
            store.keep(place.work, one.key, one.digest, allowed=True)
    model = Scripted(*scripts)
    events: list[AgentEvent] = []
    ended: list[TurnEnded] = []

    async def receive(event: AgentEvent) -> None:
        events.append(event)

    async def work() -> None:
        own = HostOverrides(
            tools=builtins(settings.tools),
            model=opened(model),
            rules=True,
            temp=place.root / "temp",
        )
        async with open_session(
            SessionOptions(mode=mode, kept=False),
            settings=settings,
            environ=environ,
            cwd=place.work,
            readers=(reader_of(receive),),
            approver=approver,
            own=own,
            **more,
        ) as session:
            for prompt in prompts:
                ended.append(await sent(session, prompt))
            if then is not None:
                await then(session)

    asyncio.run(work())
    return Held(model=model, events=events, ended=ended)


def commanded(place: Place, *args: str) -> Done:
    """A command of the command line, in this process."""
    from click.testing import CliRunner

    from toolwire.cli.commands import toolwire

    before = Path.cwd()
    os.chdir(place.work)
    try:
        unset = dict.fromkeys(os.environ)
        ended = CliRunner().invoke(toolwire, args, env={**unset, **place.environ()})
    finally:
        os.chdir(before)
    return Done(ended.exit_code, ended.stdout, ended.stderr)


async def sent(session: AgentSession, prompt: str) -> TurnEnded:
    return await session.send(Message(role="user", parts=(Text(prompt),)))
