"""Containers of docker: commands in them, how these are ended, and why they failed."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

import msgspec

from toolwire.errors import ToolwireError
from toolwire.tools.shell.environment import MARK

QUICK = 60.0
"""Seconds within which a daemon answers whatever is not a build, a copy or a download."""
_END_WITHIN = 15.0
_ADVICE = ("Run 'docker", "See 'docker")
_NO_IMAGE = "Unable to find image"
_CLIENT = (
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH"),
    *("DOCKER_TLS_VERIFY", "DOCKER_API_VERSION", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"),
)
"""Variables that tell the client where its daemon is."""
_SHARED = """
    LANG LANGUAGE TZ TERM COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE
    PAGER GEMINI_CLI DEBIAN_FRONTEND CI CONTINUOUS_INTEGRATION SOURCE_DATE_EPOCH
    HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
    http_proxy https_proxy ftp_proxy all_proxy no_proxy
    UV_INDEX_URL UV_DEFAULT_INDEX PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST
    NPM_CONFIG_REGISTRY npm_config_registry GOPROXY
    PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
    GIT_COMMITTER_DATE GIT_TERMINAL_PROMPT GIT_CEILING_DIRECTORIES
"""
_PASSED = frozenset(_SHARED.split())
"""Variables that mean the same in a container: no folder, user or tool of this machine."""
_ADDED = (MARK, "TERM", "PAGER", "GEMINI_CLI")
"""Set for each command, once its client is started."""
# The user of the commands runs it, without further rights: bash itself may be the agent's.
_KILL = """
for round in {1..50}; do
  found=
  for file in /proc/[0-9]*/environ; do
    while IFS= read -rd '' entry; do
      if [ "$entry" = "$1" ]; then
        process=${file%/environ}
        kill -9 "${process#/proc/}" && found=1
        break
      fi
    done <"$file"
  done 2>/dev/null
  [ -n "$found" ] || exit 0
  sleep 0.02
done
exit 1
"""


class DockerFailed(ToolwireError):
    """A docker command that failed, with what it printed."""

    kind = "docker"


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a container can run commands."""

    running: bool
    memory: int = 0
    """Bytes that it may use; 0 without a limit."""


async def docker(*words: str, seconds: float = 0.0, out: int | None = None) -> str:
    """Runs docker, for so long at most; returns what it printed, unless that goes to `out`."""
    program = shutil.which("docker")
    if program is None:
        raise DockerFailed("docker is not installed here")
    process = await asyncio.create_subprocess_exec(
        program,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE if out is None else out,
        stderr=asyncio.subprocess.PIPE,
        # Ctrl-C in a terminal is not meant for it.
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds or None):
            printed, err = await process.communicate()
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if isinstance(error, TimeoutError):
            why = f"docker {words[0]}: no answer within {seconds:g} seconds"
            raise DockerFailed(why) from error
        raise
    if process.returncode:
        raise DockerFailed(f"docker {words[0]}: {_complaint(err.decode(errors='replace'))}")
    return (printed or b"").decode(errors="replace").strip()


def _complaint(printed: str) -> str:
    """The last line of an error, without docker's advice on where its help is."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(_ADVICE)] or ["no message"]
    last = said[-1].removeprefix("docker: ")
    missing = next((line for line in said[:-1] if line.startswith(_NO_IMAGE)), "")
    return f"{missing}: {last}"[:400] if missing else last[:400]


def client_environment() -> tuple[tuple[str, str], ...]:
    """The variables by which docker finds its daemon."""
    return tuple((name, os.environ[name]) for name in _CLIENT if name in os.environ)


def exec_words(environ: Iterable[str], named: Sequence[str]) -> tuple[str, ...]:
    """Arguments before the folder and the name of a container that a command runs in.

    Variables are passed by name, since arguments can be read by every user of the machine; those
    that the user `named` are passed too.
    """
    names = [*_ADDED, *(name for name in environ if _is_passed(name, named))]
    passed = (word for name in dict.fromkeys(names) for word in ("-e", name))
    return ("docker", "exec", *passed)


def _is_passed(name: str, named: Sequence[str]) -> bool:
    return (
        name in _PASSED
        or name.startswith("LC_")
        or any(fnmatchcase(name, entry.strip()) for entry in named)
    )


async def condition_of(container: str) -> Condition:
    """The condition of a container; DockerFailed if it does not exist or no daemon answers."""
    form = "{{.State.Running}} {{.HostConfig.Memory}}"
    running, memory = (await docker("inspect", "-f", form, container, seconds=QUICK)).split()
    return Condition(running=running == "true", memory=int(memory))


async def why_dead(container: str) -> str:
    """Why a container cannot run commands; empty if it can."""
    try:
        condition = await condition_of(container)
    except DockerFailed as error:
        return str(error)
    return "" if condition.running else f"the container {container} was stopped"


async def memory_reached(container: str, since: float) -> int:
    """The megabytes that a container may use if something in it needed more since then; else 0."""
    filters = ("--filter", f"container={container}", "--filter", "event=oom")
    with suppress(DockerFailed):
        found = await docker(
            *(
                "events",
                "--since",
                f"{since - 0.01:.3f}",
                "--until",
                f"{time.time():.3f}",
                *filters,
            ),
            *("--format", "{{.Action}}"),
            seconds=QUICK,
        )
        if found:
            return (await condition_of(container)).memory >> 20
    return 0


async def end_marked(container: str, mark: str) -> None:
    """Ends what a command left in a container, of which only the client could be killed."""
    words = ("exec", container, "bash", "-c", _KILL, "bash", f"{MARK}={mark}")
    with suppress(DockerFailed):
        try:
            await docker(*words, seconds=_END_WITHIN)
        except DockerFailed:
            # Nothing can be started in it any more, as when it has too many processes.
            if (await condition_of(container)).running:
                await restart(container)


async def restart(container: str) -> None:
    """Ends everything in a container, and starts it again: its files stay."""
    await docker("restart", "-t", "0", container, seconds=QUICK)


async def quiet(container: str) -> None:
    """Ends what was left running in a container; DockerFailed if the container does not run."""
    # Its own two are those of `--init` and what keeps it open; the first line is a heading.
    if len((await docker("top", container, seconds=QUICK)).splitlines()) > 3:
        await restart(container)
