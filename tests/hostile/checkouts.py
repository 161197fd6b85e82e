"""A folder that somebody else filled, a home beside it, and calls of tools in it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.app import open_toolbox
from toolwire.config import Settings
from toolwire.ids import new_id
from toolwire.messages import Message, ToolCall
from toolwire.policy import Mode
from toolwire.tools.spec import ToolSettings

SECRET = "canary-5b1f"
"""Text that no result, prompt or message may contain."""


class Checkout:
    """Calls run as in a session of its own; without `choice` no user can be asked."""

    def __init__(self, folder: Path, *, root: str = "home/code/project") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.root = folder / root
        self.own = folder / "own"
        for each in (self.home, self.root, self.own):
            each.mkdir(parents=True, exist_ok=True)
        self.environ = {
            "TOOLWIRE_HOME": str(self.own),
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
        }
        self.asked: list[Confirmation] = []

    def put(self, name: str, text: str | bytes = SECRET) -> Path:
        """Write a file of the checkout."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def rule(self, **members: str) -> None:
        """Add a rule to the user's file."""
        lines = [f"{name} = {json.dumps(value)}" for name, value in members.items()]
        with (self.own / "policy.toml").open("a", encoding="utf-8") as file:
            file.write("[[rule]]\n" + "\n".join(lines) + "\n")

    def call(
        self,
        tool: str,
        mode: Mode = Mode.DEFAULT,
        choice: Choice | None = None,
        settings: Mapping[str, object] = {},
        **arguments: Any,
    ) -> str:
        """All that the model is sent in answer to one call."""

        async def approve(question: Confirmation) -> UserAnswer:
            self.asked.append(question)
            assert choice is not None
            return UserAnswer(choice=choice)

        async def work() -> Message:
            async with open_toolbox(
                Settings(tools=msgspec.convert(settings, ToolSettings)),
                environ=self.environ,
                cwd=self.root,
                mode=mode,
                headless=choice is None,
            ) as shop:
                scheduler = shop.scheduler(approve if choice is not None else None)
                call = ToolCall(id=new_id(), name=tool, arguments=json.dumps(arguments))
                return await scheduler.run([call])

        message = asyncio.run(work())
        return "\n".join((*(result.text for result in message.results), message.text))
