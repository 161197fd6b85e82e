"""The memory of the gateway: turns in this process, and in a store that outlives it."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from toolwire.client.redact import redaction
from toolwire.config.gateway import GatewaySettings
from toolwire.events import ModelEvent
from toolwire.gateway.memory import (
    Capture,
    Keys,
    Maker,
    StoredTurn,
    TurnContext,
    tenant_key,
)
from toolwire.gateway.memory_store import (
    MemoryStore,
    ProcessStore,
    SharedMemoryStore,
    SqliteMemoryStore,
    StoreFailed,
)
from toolwire.gateway.parts import Recalled
from toolwire.gateway.recall import Search
from toolwire.gateway.responses import NoAnswers, StoredAnswers
from toolwire.ids import new_id
from toolwire.messages import Loss, Part, Thinking
from toolwire.request import ModelRequest

LARGEST = 4 * 1024 * 1024
"""Bytes of a turn beyond which it is not stored."""
_OVERHEAD = 1024
"""Bytes that a turn takes in this process besides its encoded parts."""
FILE = "memory.sqlite"
_COUNTED = ("hits_total", "misses_total", "edited_total")
"""Answers in requests: known, unknown, and changed by the client."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredTurn).decode


class TurnCache:
    """The turns used last, decoded."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._keys: dict[bytes, str] = {}
        self._turns: OrderedDict[str, tuple[StoredTurn, list[bytes], int]] = OrderedDict()

    @property
    def entries(self) -> int:
        """How many turns it has."""
        return len(self._turns)

    @property
    def size(self) -> int:
        """The bytes that they take."""
        return self._bytes

    def get(self, key: bytes) -> StoredTurn | None:
        """The turn of a key."""
        turn_id = self._keys.get(key)
        if turn_id is None:
            return None
        self._turns.move_to_end(turn_id)
        return self._turns[turn_id][0]

    def add(self, turn: StoredTurn, keys: Iterable[bytes], size: int) -> None:
        """Adds a turn, or more keys of a turn that is here."""
        known = self._turns.get(turn.id)
        if known is None:
            size += _OVERHEAD
            if size > self._limit:
                return
            known = self._turns[turn.id] = (turn, list[bytes](), size)
            self._bytes += size
        for key in keys:
            if self._keys.get(key) != turn.id:
                self._keys[key] = turn.id
                known[1].append(key)
        while self._bytes > self._limit:
            self._remove(next(iter(self._turns)))

    def _remove(self, turn_id: str) -> None:
        _, keys, size = self._turns.pop(turn_id)
        self._bytes -= size
        for key in keys:
            if self._keys.get(key) == turn_id:
                del self._keys[key]


class GatewayMemory:
    """What clients cannot carry, by tenant. Without a store it lasts as long as the process."""

    def __init__(
        self,
        cache: int,
        store: MemoryStore | None = None,
        *,
        redact: Callable[[bytes], bytes] | None = None,
        make_id: Callable[[str], str] = new_id,
    ) -> None:
        self._cache = TurnCache(cache)
        self._store = store
        self._redact = redact or redaction()
        self.new_id = make_id
        self._counts = dict.fromkeys(_COUNTED, 0)

    async def find(self, tenant: str, request: ModelRequest) -> "Turns":
        """The turns of a conversation."""
        keys = Keys(tenant_key(tenant))
        search = Search(keys, request)
        if not search.has_answers:
            return Turns(search, keys, self)
        for lookup in (search.first_keys, search.second_keys):
            search.add(await self.get(lookup()))
        search.settle()
        for name, amount in zip(_COUNTED, search.outcome(), strict=True):
            self._counts[name] += amount
        return Turns(search, keys, self)

    def figures(self) -> dict[str, float]:
        """Figures for metrics."""
        cache = self._cache
        return {"entries": cache.entries, "bytes": cache.size, **self._counts}

    async def get(self, keys: Sequence[bytes]) -> dict[bytes, StoredTurn]:
        """The turns of these keys that are known."""
        found: dict[bytes, StoredTurn] = {}
        missing: list[bytes] = []
        for key in keys:
            turn = self._cache.get(key)
            if turn is None:
                missing.append(key)
            else:
                found[key] = turn
        if not missing or self._store is None:
            return found
        decoded: dict[bytes, StoredTurn] = {}
        try:
            bodies = await self._store.get(missing)
        except StoreFailed:
            return found
        for key, body in bodies.items():
            turn = decoded.get(body)
            if turn is None:
                try:
                    turn = decoded[body] = _decode(body)
                except msgspec.MsgspecError:
                    # Written by another version: the turn is as good as expired.
                    continue
            self._cache.add(turn, (key,), len(body))
            found[key] = turn
        return found

    async def save(self, turn: StoredTurn, keys: tuple[bytes, ...]) -> Loss | None:
        """Stores a turn; returns what could not be stored."""
        try:
            body = _encode(turn)
        except UnicodeEncodeError:
            return Loss("memory", "turn", "not stored: its text is not Unicode")
        if len(body) > LARGEST:
            return Loss("memory", "turn", f"not stored: larger than {LARGEST >> 20} MiB")
        self._cache.add(turn, keys, len(body))
        if self._store is None:
            return None
        clean = self._redact(body)
        if clean != body:
            clean = _encode(_redacted(turn, _decode(clean)))
        try:
            await self._store.put(keys, clean)
        except StoreFailed as error:
            return Loss("memory", "turn", f"not stored: {error}")
        return None


def _redacted(turn: StoredTurn, clean: StoredTurn) -> StoredTurn:
    """The turn without secrets; keys and digests are the original's."""

    def part(own: Part, cleaned: Part) -> Part:
        if own == cleaned or not isinstance(cleaned, Thinking):
            return cleaned
        # A seal on thinking that was changed is refused.
        return msgspec.structs.replace(cleaned, seal=None)

    parts = tuple(map(part, turn.parts, clean.parts))
    return msgspec.structs.replace(turn, parts=parts, redacted=True)


class Turns:
    """The turns of one conversation, and its next one."""

    def __init__(self, search: Search, keys: Keys, memory: GatewayMemory) -> None:
        self._search = search
        self._keys = keys
        self._memory = memory

    @property
    def has_answers(self) -> bool:
        """Whether the model has answered before."""
        return self._search.has_answers

    @property
    def newest(self) -> Maker | None:
        """Who made the newest seal of the conversation."""
        return self._search.newest

    def attach(self, target: Maker) -> Recalled:
        """The request for `target`, with everything put back."""
        return self._search.attach(target)

    def capture(self, client_family: str, target: Maker, *, renames: bool = True) -> "TurnWriter":
        """The memory of one answer."""
        writer = TurnWriter(lambda: self._search.asked, client_family, target, self)
        writer.renames = renames
        return writer

    def new_id(self, prefix: str) -> str:
        """A new id."""
        return self._memory.new_id(prefix)

    async def repeats(self, turn: StoredTurn) -> bool:
        """Whether a stored turn looks like this one."""
        return bool(await self._memory.get([self._keys.said(turn.visible)]))

    async def save(self, turn: StoredTurn, family: str) -> Loss | None:
        """Stores the next turn; returns what could not be stored."""
        return await self._memory.save(turn, self._keys.of(turn, family))


class TurnWriter(Capture):
    """One answer on its way to the client, stored before its end."""

    def __init__(
        self, asked: Callable[[], TurnContext], family: str, target: Maker, turns: Turns
    ) -> None:
        super().__init__(asked, family, target.origin.dialect, turns.new_id)
        self._target = target
        self._turns = turns

    async def finish(self) -> Loss | None:
        """Stores the turn; returns what could not be stored."""
        turn = self.turn(self._target)
        if turn is None and self._turns.has_answers:
            # Words that were an answer with thinking before would be taken for that one.
            plain = self.turn(self._target, plain=True)
            turn = plain if plain is not None and await self._turns.repeats(plain) else None
        return None if turn is None else await self._turns.save(turn, self._family)


class NoMemory:
    """Stores nothing; handles that an earlier gateway gave out still reach no upstream."""

    def figures(self) -> dict[str, float]:
        """There is nothing to measure."""
        return {}

    async def find(self, tenant: str, request: ModelRequest) -> "NoTurns":
        """No turn is known."""
        search = Search(Keys(tenant_key(tenant)), request)
        if search.has_answers:
            search.settle()
        return NoTurns(search)


class NoTurns(NamedTuple):
    """A conversation of which nothing is stored."""

    search: Search

    @property
    def newest(self) -> Maker | None:
        """No maker is known."""
        return None

    def attach(self, target: Maker) -> Recalled:
        """The request without handles."""
        return self.search.attach(target)

    def capture(self, client_family: str, target: Maker, *, renames: bool = True) -> "Unchanged":
        """Changes and stores nothing."""
        del client_family, target, renames
        return Unchanged()


class Unchanged:
    """An answer that is passed on and not stored."""

    def outgoing(self, event: ModelEvent) -> tuple[ModelEvent, ...]:
        """The event as it is."""
        return (event,)

    async def finish(self) -> Loss | None:
        """Stores nothing."""
        return None


class OpenMemory(NamedTuple):
    """The memory and the stored answers of a gateway."""

    memory: GatewayMemory | NoMemory
    stored: StoredAnswers | NoAnswers
    close: Callable[[], None]


def open_memory(settings: GatewaySettings, folder: Path, clock: Callable[[], float]) -> OpenMemory:
    """The memory of these settings; on disk it is in `folder`."""
    if settings.memory == "off":
        return OpenMemory(NoMemory(), NoAnswers(), lambda: None)
    if settings.memory == "process":
        answers = ProcessStore(settings.memory_ram)
        return OpenMemory(GatewayMemory(settings.memory_ram), StoredAnswers(answers), answers.close)
    store = _open_store(settings, folder, clock)
    return OpenMemory(GatewayMemory(settings.memory_ram, store), StoredAnswers(store), store.close)


def _open_store(
    settings: GatewaySettings, folder: Path, clock: Callable[[], float]
) -> SharedMemoryStore:
    limit, days = settings.memory_disk, settings.memory_days
    if not settings.store:
        return SqliteMemoryStore(folder / FILE, limit=limit, days=days, clock=clock)
    from toolwire.gateway.postgres import PostgresMemoryStore  # noqa: PLC0415 - optional

    return PostgresMemoryStore(settings.store, limit=limit, days=days, clock=clock)
