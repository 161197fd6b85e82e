"""The weights of the embedded model: there already, or fetched once, on consent."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.client.http.transport import Transport
from toolwire.embedded import hub, pieces
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
"""A yes-or-no question to a person."""

WAYS_ON = (
    "three ways on: set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY; start a local server "
    f"such as Ollama or LM Studio; or set {NAMED} to the model's file"
)


class DownloadConsent(msgspec.Struct, frozen=True, kw_only=True):
    """What the person at the front end says about the weights, and how they are told of them."""

    weights: Path | None = None
    """A file that is there already."""
    yes: bool = False
    ask: Ask | None = None
    report: Report = lambda progress: None


class WeightStore(msgspec.Struct, frozen=True, kw_only=True):
    """Where weights are kept, and how they may be come by."""

    folder: Path
    transport: Transport
    environ: Mapping[str, str]
    named: Path | None = None
    """A file the user points to; it is checked and used where it lies."""
    consents: bool = False
    """The user said yes already."""
    ask: Ask | None = None
    """How to ask a person; None where there is none."""
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
        """As the flags and the environment say; a flag wins."""
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
    """What a person is asked before anything is fetched."""
    return (
        f"No model is configured. A small one can run on this machine: {weights.title} "
        f"({weights.licence}, a download of {readable(weights.size)}, once). It handles simple "
        "requests; for real work add an API key. Download it now?"
    )


async def present(weights: Weights, shelf: WeightStore) -> Path | None:
    """The file, if it is there and right; nothing is fetched."""
    if shelf.named is not None:
        return await _named(weights, shelf, shelf.named)
    path = shelf.folder / weights.file
    if not path.is_file():
        return None
    if await _hash(path, _record(weights, shelf)) == weights.sha256:
        return path
    shelf.notice(f"{path} is not the file it should be; it is removed")
    path.unlink(missing_ok=True)
    return None


async def obtain(weights: Weights, shelf: WeightStore) -> Path:
    """The file, fetched if the user agrees; of several processes one fetches, the others wait."""
    found = await present(weights, shelf)
    if found is not None:
        return found
    if not shelf.consents:
        if shelf.ask is None:
            raise ModelMissing(
                f"no model is configured, and {weights.title} ({readable(weights.size)}, "
                f"{weights.licence}) is fetched only on consent: give --yes or set {FETCH}=1; "
                f"{WAYS_ON}"
            )
        if not await shelf.ask(question(weights)):
            raise ModelMissing(f"{weights.title} was not fetched; {WAYS_ON}")
    target = shelf.folder / weights.file
    try:
        shelf.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make {shelf.folder}: {error.strerror}") from error
    async with locked(target, patience=None):
        # Another process may have fetched it while this one waited.
        return await present(weights, shelf) or await _fetch(weights, shelf, target)


async def _fetch(weights: Weights, shelf: WeightStore, target: Path) -> Path:
    partial = Partial(target, weights.size)
    if partial.done > weights.size:
        partial.remove()
    check_space(partial, *(() if shelf.free is None else (shelf.free,)))
    meter = Meter(weights.size, shelf.report, shelf.clock)
    failures: list[str] = []
    for source in _sources(weights, shelf, partial, meter):
        try:
            await source()
            await _accept(weights, shelf, partial, target)
        except NoSpace:
            raise
        except ToolwireError as error:
            failures.append(str(error))
            shelf.notice(f"{error}; trying the next source")
        else:
            return target
    raise ModelMissing(f"{weights.title} cannot be fetched: {'; '.join(failures)}; {WAYS_ON}")


def _sources(
    weights: Weights, shelf: WeightStore, partial: Partial, meter: Meter
) -> list[Callable[[], Awaitable[None]]]:
    """In the order they are tried. All give the same bytes: each goes on where the last stopped."""
    found: list[Callable[[], Awaitable[None]]] = [
        lambda: hub.fetch(weights.url, partial, meter, shelf.transport, shelf.sleep)
    ]
    parts = weights.parts
    if parts is not None:
        found.append(lambda: pieces.fetch(parts, partial, meter, shelf.environ))
    return found


async def _accept(weights: Weights, shelf: WeightStore, partial: Partial, target: Path) -> None:
    digest = await sha256_of(partial.path)
    if digest != weights.sha256:
        partial.remove()
        raise BadInput(
            f"what came is not {weights.file}: its SHA-256 is {digest}, not {weights.sha256}; "
            "it was refused and removed"
        )
    partial.place()
    remember(_record(weights, shelf), target, digest)


async def _named(weights: Weights, shelf: WeightStore, path: Path) -> Path:
    try:
        digest = await _hash(path, _record(weights, shelf))
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
        # A cache that cannot be written costs seconds at the next start, no more.
        pass
    return digest


def _record(weights: Weights, shelf: WeightStore) -> Path:
    return shelf.folder / f"{weights.file}.checked"
