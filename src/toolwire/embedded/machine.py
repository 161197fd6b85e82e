"""What this machine offers: cores, memory, and the model servers that run on it."""

import asyncio
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from toolwire import providers
from toolwire.client.http.transport import Outgoing, Transport
from toolwire.embedded.catalogue import DEFAULT, LARGER, SMALL, Weights
from toolwire.embedded.partial import readable
from toolwire.errors import BadInput, ToolwireError
from toolwire.providers import catalogue
from toolwire.providers._spec import Provider
from toolwire.providers.addresses import address

_GROUP = Path("/sys/fs/cgroup")
_WORKING = 400_000_000
"""Bytes besides weights and context: buffers of the engine, and the program itself."""
_LEAST_CONTEXT = 2048
_MOST_CONTEXT = 8192
"""A longer context would take minutes to read."""
_GPU_SHARE = 1.25
"""Free memory of a GPU for weights of size 1: it holds the context too."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Usable cores, and free memory in bytes; None if unknown."""

    cores: int
    free: int | None = None
    gpu: int = 0
    """Free memory of the largest GPU that llama.cpp finds, in bytes."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Start parameters of the engine."""

    threads: int
    context: int


def machine(group: Path = _GROUP, meminfo: Path = Path("/proc/meminfo"), gpu: int = 0) -> Machine:
    """This machine, as far as the process may use it."""
    known = {value for value in (_available(meminfo), _group_memory(group)) if value is not None}
    return Machine(cores=_cores(group), free=min(known, default=None), gpu=gpu)


def fitting(machine: Machine, stored: Collection[str] = ()) -> Weights:
    """The model that suits the machine; one of the suitable that is stored before any other."""
    suitable = [it for it in LARGER if _suits(it, machine)]
    if machine.free is None or machine.free >= DEFAULT.memory:
        suitable.append(DEFAULT)
    return next((it for it in suitable if it.file in stored), next(iter(suitable), SMALL))


def _suits(weights: Weights, machine: Machine) -> bool:
    """Whether a larger model has room and is fast enough."""
    on_gpu = machine.gpu >= weights.size * _GPU_SHARE
    fast = on_gpu or machine.cores >= weights.cores
    return fast and machine.free is not None and machine.free >= weights.memory


def sizes(weights: Weights, machine: Machine) -> Sizes:
    """Threads and context; raises if the model does not fit."""
    # Beyond four, half of the counted cores are mostly hyper-threads or slow cores, which make
    # generation slower.
    threads = machine.cores if machine.cores <= 4 else min(machine.cores // 2, 8)
    context = min(_MOST_CONTEXT, weights.context)
    if machine.free is not None:
        room = machine.free - weights.size - _WORKING
        context = min(context, max(room, 0) // weights.cache_per_token)
        if context < _LEAST_CONTEXT:
            needed = weights.size + _WORKING + _LEAST_CONTEXT * weights.cache_per_token
            smaller = "" if weights == SMALL else f"; local/{SMALL.model} needs less"
            raise BadInput(
                f"{weights.title} needs {readable(needed)} of memory, but only "
                f"{readable(machine.free)} is free{smaller}"
            )
    return Sizes(threads=max(threads, 1), context=context // 256 * 256)


def _cores(group: Path) -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    words = _words(group / "cpu.max")
    if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
        count = min(count, max(round(int(words[0]) / int(words[1])), 1))
    return count


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return _half_of_all()
    found = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((int(kilobytes) * 1024 for kilobytes in found), None)


def _half_of_all() -> int | None:
    """Half of the physical memory, where free memory is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return None


def _group_memory(group: Path) -> int | None:
    most, used = _words(group / "memory.max"), _words(group / "memory.current")
    if most and used and most[0].isdigit() and used[0].isdigit():
        return max(int(most[0]) - int(used[0]), 0)
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


SERVERS = ("ollama", "lmstudio", "llamacpp")
"""In order of preference."""
PATIENCE = 0.3
"""Seconds for all of them together; a server of this machine needs a few milliseconds."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST = 1024 * 1024


class FoundServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server and one of its models."""

    provider: str
    title: str
    model: str
    url: str

    @property
    def name(self) -> str:
        """The full model name."""
        return f"{self.provider}/{self.model}"


class _Model(msgspec.Struct):
    id: str = ""


class _Models(msgspec.Struct):
    data: list[_Model] = []


_read = msgspec.json.Decoder(_Models).decode


async def find_server(
    transport: Transport, environ: Mapping[str, str], patience: float = PATIENCE
) -> FoundServer | None:
    """The first known server that runs and has a model; None if there is none."""
    async with asyncio.TaskGroup() as group:
        probes = [
            group.create_task(_ask(providers.get(name), transport, environ, patience))
            for name in SERVERS
        ]
    return next((found for task in probes if (found := task.result()) is not None), None)


async def _ask(
    provider: Provider, transport: Transport, environ: Mapping[str, str], patience: float
) -> FoundServer | None:
    body = bytearray()
    try:
        url = address(provider, environ)
        if urlsplit(url).hostname not in _LOOPBACK:
            return None
        async with (
            asyncio.timeout(patience),
            transport.open(Outgoing(method="GET", url=f"{url}/models")) as answer,
        ):
            async for chunk in answer.chunks:
                body += chunk
                if len(body) > _MOST:
                    return None
            models = _read(body).data if answer.status == 200 else []
    except (ToolwireError, TimeoutError, msgspec.MsgspecError):
        return None
    model = _choice(provider, [it.id for it in models])
    if not model:
        return None
    return FoundServer(provider=provider.name, title=provider.title, model=model, url=url)


def _choice(provider: Provider, models: list[str]) -> str:
    """A model known to call tools, else the first chat model."""
    talking = [model for model in models if model and "embed" not in model.lower()]
    infos = ((model, catalogue.find(provider.name, model)) for model in talking)
    able = (model for model, info in infos if info is not None and info.tools)
    return next(able, talking[0] if talking else "")
