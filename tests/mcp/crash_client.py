"""A client that calls a crashing server, to be killed by it: `crash_client.py FOLDER SETTINGS`."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.mcp.servers import connected
from toolwire.errors import ToolwireError
from toolwire.mcp.connection import ServerConnection

SERVER = Path(__file__).with_name("crashing_server.py")
CALLS = 3


async def at_once(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)


async def calls(server: ServerConnection) -> list[str]:
    """What each call was answered with: its number, or an error."""
    answers: list[str] = []
    for number in range(CALLS):
        try:
            result = await server.call("do", {"number": number}, lambda text: None)
            answers.append(result["content"][0]["text"])
        except ToolwireError as error:
            answers.append(str(error))
    return answers


async def run(folder: Path, settings: dict[str, Any]) -> list[str]:
    words = [str(SERVER), json.dumps(settings)]
    table = {"command": sys.executable, "args": words, "timeout": 2, "startup_timeout": 5}
    async with connected(folder, table, sleep=at_once) as server:
        return await calls(server)


def main() -> None:
    settings = {**json.loads(sys.argv[2]), "client": os.getpid()}
    print(asyncio.run(run(Path(sys.argv[1]), settings)))


if __name__ == "__main__":
    main()
