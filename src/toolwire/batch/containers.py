"""Containers of attempts: one each, labelled, removed with its workspace."""

import asyncio
import shutil
from pathlib import Path

from toolwire.batch.tasks import TaskWorkspace
from toolwire.errors import ToolwireError

LABEL = "toolwire.batch"
_PIDS = "2048"
_ADVICE = ("Run 'docker", "See 'docker")


class DockerFailed(ToolwireError):
    """A docker command that failed, with what it printed."""

    kind = "docker"


async def docker(*words: str) -> str:
    """Runs docker; returns what it printed."""
    program = shutil.which("docker")
    if program is None:
        raise DockerFailed("docker is not installed here")
    process = await asyncio.create_subprocess_exec(
        program,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise DockerFailed(f"docker {words[0]}: {_complaint(err.decode(errors='replace'))}")
    return out.decode(errors="replace").strip()


def _complaint(printed: str) -> str:
    """The last line of an error, without docker's advice on where its help is."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(_ADVICE)] or ["no message"]
    return said[-1].removeprefix("docker: ")[:300]


async def image_of(spec: TaskWorkspace, default: str) -> str:
    """The image of a workspace, built if it has a Dockerfile; empty for none."""
    if spec.build and not spec.image:
        return await docker("build", "-q", spec.build)
    return spec.image or default


async def copied_out(image: str, folder: str, root: Path) -> str:
    """Copies a folder of an image (its working folder if none is named); returns the folder."""
    inside = folder or await docker("image", "inspect", "-f", "{{.Config.WorkingDir}}", image)
    if inside in ("", "/"):
        raise DockerFailed(f"{image} has no working folder; name one with workspace.folder")
    made = await docker("create", image, "true")
    try:
        await docker("cp", f"{made}:{inside}/.", str(root))
    finally:
        await docker("rm", "-f", made)
    return inside


async def started(
    image: str, spec: TaskWorkspace, root: Path, inside: str, *, token: str, batch: str
) -> str:
    """Starts the container of an attempt, with the workspace at its own path; returns its name."""
    name = f"toolwire-{token}"
    await removed(name)
    limits = ["--pids-limit", _PIDS, "--network", "bridge" if spec.network else "none"]
    limits += ["--memory", f"{spec.memory}m"] if spec.memory else []
    limits += ["--cpus", f"{spec.cpus:g}"] if spec.cpus else []
    mounts = ["-v", f"{root}:{root}", *(("-v", f"{root}:{inside}") if inside else ())]
    labels = ["--label", f"{LABEL}={batch}", "--label", f"toolwire.task={token}", "--name", name]
    options = ("-d", "--init", "--rm", *limits, *labels, *mounts, "-w", str(root))
    await docker("run", *options, "--entrypoint", "sleep", image, "infinity")
    return name


async def removed(name: str) -> None:
    """Removes a container, if it is there."""
    try:
        await docker("rm", "-f", name)
    except DockerFailed:
        return
