"""Prompts of servers as slash commands: `/NAME args` and `/SERVER:NAME args`."""

import re

from toolwire.errors import BadInput, ToolwireError
from toolwire.mcp.lists import ServerPrompt
from toolwire.mcp.names import cleaned
from toolwire.mcp.servers import Server, Servers

EMPTY = "Received an empty or invalid prompt response from the server."
_NAMED = re.compile(r'--([^=\s]+)=(?:"((?:\\.|[^"\\])*)"|(\S*))')
_WORD = re.compile(r'"((?:\\.|[^"\\])*)"|(\S+)')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class SlashCommand:
    """A prompt of a server with the text after its name."""

    def __init__(self, server: Server, prompt: ServerPrompt, rest: str) -> None:
        self.server = server
        self.prompt = prompt
        self.rest = rest

    @property
    def wants_help(self) -> bool:
        """Whether only its arguments are asked for."""
        return self.rest.strip() == "help"

    def help(self) -> str:
        """Its description and arguments, one a line."""
        head = f"/{self.prompt.name}: {self.prompt.description or self.prompt.title}".rstrip(": ")
        lines = [
            f'  --{each.name}="…" {"(required) " if each.required else ""}{each.description}'
            for each in self.prompt.arguments
        ]
        return "\n".join((head, *(lines or ["  it has no arguments"])))

    async def text(self) -> str:
        """The text that the server makes of it; BadInput if an argument is missing."""
        arguments = read_arguments(self.prompt, self.rest)
        text = await (await self.server.client()).prompt(self.prompt.name, arguments)
        if not text.strip():
            raise ToolwireError(EMPTY)
        return text


def find(servers: Servers, text: str) -> SlashCommand | None:
    """The prompt that the first word of a text names, if there is one."""
    word, _, rest = text.lstrip().partition(" ")
    word, line, more = word.partition("\n")
    if not word.startswith("/"):
        return None
    for server, prompt in servers.prompts():
        names = {prompt.name, cleaned(prompt.name)}
        if word[1:] in names | {f"{server.name}:{name}" for name in names}:
            return SlashCommand(server, prompt, f"{more}{line and ' '}{rest}")
    return None


def read_arguments(prompt: ServerPrompt, text: str) -> dict[str, str]:
    """Arguments by name (`--key="v"`, `--key=v`), the others by position.

    One open required argument takes all words.
    """
    found = {name: _plain(quoted) or bare for name, quoted, bare in _NAMED.findall(text)}
    words = [_plain(quoted) or bare for quoted, bare in _WORD.findall(_NAMED.sub(" ", text))]
    known = {each.name for each in prompt.arguments}
    unknown = [f"--{name}" for name in found if name not in known]
    if unknown:
        raise BadInput(f"Unknown argument(s): {', '.join(unknown)}")
    needed = [each.name for each in prompt.arguments if each.required and not found.get(each.name)]
    if len(needed) == 1 and words:
        return {**found, needed[0]: " ".join(words)}
    missing = [f"--{name}" for name in needed[len(words) :]]
    if missing:
        raise BadInput(f"Missing required argument(s): {', '.join(missing)}")
    optional = [
        each.name for each in prompt.arguments if not each.required and each.name not in found
    ]
    return {**found, **dict(zip((*needed, *optional), words, strict=False))}


def _plain(quoted: str) -> str:
    return _ESCAPED.sub(r"\1", quoted)
