"""Program that prints how many processes and threads N calls with a hook that does nothing start.

It is run in a namespace of process ids of its own, in which ids are given out one after another:
what others start on the machine does not count.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from toolwire.agent.hooks import HookedCall
from toolwire.extensions.hooks.definitions import Definition
from toolwire.extensions.hooks.session import HookSession, SessionHooks
from toolwire.tools.spec import Effect

NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


def bound(folder: Path, hooks: list[Definition]) -> SessionHooks:
    async def emit(event: object) -> None:
        del event

    (folder / "temp").mkdir(exist_ok=True)
    session = HookSession(
        id="s",
        cwd=folder,
        temp=folder / "temp",
        environ={"PATH": os.environ["PATH"]},
        seen={},
        emit=emit,
        mode=lambda: "default",
        messages=lambda: (),
    )
    return SessionHooks(hooks, session)


def newest() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


async def main(times: int, folder: Path) -> None:
    hooks = bound(folder, [Definition(event="PreToolUse", written="PreToolUse", command="true")])
    call = HookedCall(id="c", name="x", arguments={}, effect=Effect.READ)
    await hooks.before_call(call)
    before = newest()
    for _ in range(times):
        await hooks.before_call(call)
    print(newest() - before - 1)


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        asyncio.run(main(int(sys.argv[1]), Path(temporary)))
