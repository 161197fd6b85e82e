"""Slash commands of a session: those of the chat, those from files, prompts of MCP servers."""

from collections.abc import Mapping

import msgspec

from toolwire.agent.usage import Stats
from toolwire.app.servers import server_command
from toolwire.app.session import AgentSession
from toolwire.app.user_input import skill_command
from toolwire.config import Settings
from toolwire.errors import BadInput
from toolwire.extensions.commands import CustomCommand, read_commands, sources
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

OWN = {
    "help": "Lists the commands.",
    "compress": "Shortens the conversation.",
    "tools": "Lists the tools.",
    "stats": "Prints usage so far.",
    "mcp": "Lists the MCP servers; restart, enable, disable or approve NAME.",
}


class SlashCommands:
    """The commands of one session."""

    def __init__(
        self, session: AgentSession, settings: Settings, environ: Mapping[str, str]
    ) -> None:
        self._session = session
        self._settings = settings
        self._environ = environ
        folder = session.toolbox.context.workspace.roots[0]
        listed = sources(environ, folder, trusted=bool(settings.trusted))
        self.custom, self.problems = read_commands(listed, taken=OWN)

    def listed(self) -> list[JsonObject]:
        """Every command as the protocol announces it."""
        found = [_command(name, about) for name, about in OWN.items() if name != "mcp"]
        found.append(_command("mcp", OWN["mcp"], "restart NAME"))
        for name, command in self.custom.items():
            found.append(_command(name, command.description or name, "arguments"))
        skills = self._session.toolbox.skills
        for skill in () if skills is None else skills.skills.values():
            found.append(_command(skill.name, skill.description, "task"))
        servers = self._session.toolbox.servers
        for server, prompt in () if servers is None else servers.servers.prompts():
            about = prompt.description or prompt.title or f"A prompt of {server.name}."
            hint = " ".join(f'--{each.name}="…"' for each in prompt.arguments)
            found.append(_command(prompt.name, about, hint))
        return list({one["name"]: one for one in reversed(found)}.values())[::-1]

    def find(self, text: str) -> tuple[str, str]:
        """The command of a prompt and what follows it; empty if it is none of ours."""
        word, _, rest = text.strip().partition(" ")
        name = word.removeprefix("/")
        known = name in OWN or self.command(name) is not None
        return (name, rest.strip()) if word.startswith("/") and known else ("", "")

    async def answer(self, name: str, rest: str, stats: Stats) -> str:
        """What a command of ours prints."""
        session = self._session
        match name:
            case "help":
                lines = (f"- `/{one['name']}` {one['description']}" for one in self.listed())
                return "\n".join(lines)
            case "tools":
                return "\n".join(f"- {each}" for each in session.toolbox.registry.names)
            case "stats":
                shown = msgspec.json.format(dump(stats.body()), indent=2)
                return f"```json\n{shown}\n```"
            case "compress":
                replaced = await session.compress()
                if replaced is None:
                    return "nothing to shorten"
                return f"shortened: about {replaced.before:,} tokens are now {replaced.after:,}"
            case "mcp":
                return await self._servers(rest)
            case _:
                raise BadInput(f"/{name} is not a command")

    async def _servers(self, rest: str) -> str:
        def show(url: str) -> None:
            raise BadInput(f"log in from a terminal: toolwire mcp login NAME ({url})")

        return await server_command(
            self._session.toolbox, rest, self._settings, self._environ, show
        )

    def command(self, name: str) -> CustomCommand | None:
        """The command from a file, or the skill, of that name."""
        return self.custom.get(name) or skill_command(name, self._session.toolbox)


def _command(name: str, about: str, hint: str = "") -> JsonObject:
    found: JsonObject = {"name": name, "description": about}
    return {**found, "input": {"hint": hint}} if hint else found
