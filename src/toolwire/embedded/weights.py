"""Weights of the embedded model: present, or fetched once with consent."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.client.http.transport import Transport
from toolwire.embedded import download
from toolwire.embedded.catalogue import Weights
from toolwire.embedded.partial import (
    Meter,
    NoSpace,
    Partial,
    Report,
    check_space,
    readable,
    remember,
    remembered,
    sha256_of,
)
from toolwire.errors import BadInput, ModelMissing, ToolwireError
from toolwire.storage.paths import Places
from toolwire.storage.private_files import locked

NAMED = "TOOLWIRE_LOCAL_WEIGHTS"
FETCH = "TOOLWIRE_LOCAL_FETCH"

Ask: TypeAlias = Callable[[str], Awaitable[bool]]
"""A yes-or-no question to the user."""

WAYS_ON = (
    "three ways on: set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY; start a local server "
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
        where: Places,
        environ: Mapping[str, str],
        transport: Transport,
        consent: DownloadConsent,
        notice: Callable[[str], None] = lambda words: None,
    ) -> "WeightStore":
        """From flags and environment; a flag takes precedence."""
        said = environ.get(NAMED, "")
        return cls(
            folder=where.cache / "models",
            transport=transport,
            environ=environ,
            named=consent.weights or (Path(said).expanduser() if said else None),
            consents=consent.yes or environ.get(FETCH, "") == "1",
            ask=consent.ask,
            report=consent.report,
            notice=notice,
        )


def question(weights: Weights) -> str:
    """The question to the user before a download."""
    return (
        f"No model is configured. A small one can run on this machine: {weights.title} "
        f"({weights.licence}, a download of {readable(weights.size)}, once). It handles simple "
        "requests; for real work add an API key. Download it now?"
    )


async def present(weights: Weights, store: WeightStore) -> Path | None:
    """The file, if it is present and verified; nothing is fetched."""
    if store.named is not None:
        return await _named(weights, store, store.named)
    path = store.folder / weights.file
    if not path.is_file():
        return None
    if await _hash(path, _record(weights, store)) == weights.sha256:
        return path
    store.notice(f"{path} is not the file it should be; it is removed")
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
                f"{weights.licence}) is fetched only on consent: give --yes or set {FETCH}=1; "
                f"{WAYS_ON}"
            )
        if not await store.ask(question(weights)):
            raise ModelMissing(f"{weights.title} was not fetched; {WAYS_ON}")
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
    meter = Meter(weights.size, store.report, store.clock)
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
    raise ModelMissing(f"{weights.title} cannot be fetched: {'; '.join(failures)}; {WAYS_ON}")


def _sources(
    weights: Weights, store: WeightStore, partial: Partial, meter: Meter
) -> list[Callable[[], Awaitable[None]]]:
    """The sources in order; all have the same bytes, so each resumes where the last stopped."""
    found: list[Callable[[], Awaitable[None]]] = [
        lambda: download.fetch_over_http(weights.url, partial, meter, store.transport, store.sleep)
    ]
    parts = weights.parts
    if parts is not None:
        found.append(lambda: download.fetch_pieces(parts, partial, meter, store.environ))
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
