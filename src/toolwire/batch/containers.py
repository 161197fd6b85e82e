"""Containers of attempts: one each, labelled, removed with its workspace."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from toolwire.batch.tasks import TaskWorkspace
from toolwire.tools.shell.docker import QUICK, DockerFailed, docker

LABEL = "toolwire.batch"
TASK = "toolwire.task"
FOLDER = "toolwire.folder"
_PIDS = "2048"
_OPEN = "exec sleep infinity"


async def image_of(spec: TaskWorkspace, default: str) -> str:
    """The image of a workspace, built if it has a Dockerfile; empty for none."""
    if spec.build and not spec.image:
        return await docker("build", "-q", spec.build)
    return spec.image or default


async def copied_out(image: str, folder: str, root: Path) -> str:
    """Copies a folder of an image (its working folder if none is named); returns the folder."""
    # Also fetches the image.
    made = await docker("create", "--network", "none", image, "true")
    try:
        form = "{{.Config.WorkingDir}}"
        inside = folder or await docker("inspect", "-f", form, made, seconds=QUICK)
        if inside in ("", "/"):
            raise DockerFailed(f"{image} has no working folder; name one with workspace.folder")
        await _unpacked(f"{made}:{inside.rstrip('/')}/.", root)
    finally:
        await docker("rm", "-f", "-v", made, seconds=QUICK)
    return inside


async def _unpacked(source: str, root: Path) -> None:
    """Copies files of a container with their owners, which `docker cp` to a folder forgets."""
    reading, writing = os.pipe()
    try:
        tar = await asyncio.create_subprocess_exec(
            *("tar", "-x", "-p", "--numeric-owner", "-f", "-", "-C", str(root)),
            stdin=reading,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        os.close(reading)
        reading = -1
        copied = False
        try:
            await docker("cp", source, "-", out=writing)
            copied = True
        finally:
            os.close(writing)
            writing = -1
            if not copied:
                with suppress(ProcessLookupError):
                    tar.kill()
            _, err = await tar.communicate()
    finally:
        for descriptor in (reading, writing):
            if descriptor >= 0:
                os.close(descriptor)
    if tar.returncode:
        words = err.decode(errors="replace").strip().splitlines() or ["no message"]
        raise DockerFailed(f"cannot copy {source}: {words[-1][:300]}")


async def started(
    image: str,
    spec: TaskWorkspace,
    root: Path,
    inside: str,
    *,
    token: str,
    batch: str,
    objects: str = "",
) -> str:
    """Starts the container of an attempt, with the workspace at its own path; returns its name.

    It is not removed when it stops: what it is stopped for may go on later.
    """
    name = name_of(token)
    await removed(name)
    limits = ["--pids-limit", _PIDS, *(() if spec.network else ("--network", "none"))]
    if spec.memory:
        limits += ["--memory", f"{spec.memory}m", "--memory-swap", f"{spec.memory}m"]
    limits += ["--cpus", f"{spec.cpus:g}"] if spec.cpus else []
    mounts = [_mount(root, str(root)), *([_mount(root, inside)] if inside else [])]
    # Objects of a checkout that the repository in the workspace refers to.
    mounts += [f"{_mount(Path(objects), objects)},readonly"] if objects else []
    mounted = [word for mount in mounts for word in ("--mount", mount)]
    labels = ["--label", f"{LABEL}={batch}", "--label", f"{TASK}={token}", "--name", name]
    labels += ["--label", f"{FOLDER}={root}"]
    # As root, whatever user the image names: our tools write to the same files from outside.
    options = ("-d", "--init", "--user", "0", *limits, *labels, *mounted, "-w", str(root))
    await docker("run", *options, "--entrypoint", "bash", image, "-c", _OPEN)
    return name


def name_of(token: str) -> str:
    """The name of the container of an attempt."""
    return f"toolwire-{token}"


def _mount(source: Path, target: str) -> str:
    # Its fields are those of a line of CSV.
    named = (f"source={source}", f"target={target}")
    return ",".join(["type=bind", *('"' + word.replace('"', '""') + '"' for word in named)])


async def opened(name: str, root: Path) -> None:
    """Lets our user read and remove what root made in a container; only root need not ask."""
    if os.getuid():
        await docker("exec", name, "chmod", "-R", "a+rwX", str(root))


async def removed(name: str) -> None:
    """Removes a container, if it is there."""
    with suppress(DockerFailed):
        await docker("rm", "-f", "-v", name, seconds=QUICK)
