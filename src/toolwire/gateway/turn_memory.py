"""The memory of the gateway: turns in this process, and in a store that outlives it."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from toolwire.client.redact import redaction
from toolwire.events import ModelEvent
from toolwire.gateway.memory import (
    Capture,
    Keys,
    Maker,
    StoredTurn,
    TurnContext,
    tenant_key,
)
from toolwire.gateway.memory_store import MemoryStore, StoreFailed
from toolwire.gateway.parts import Recalled
from toolwire.gateway.recall import Search
from toolwire.gateway.visible import runs_of
from toolwire.ids import new_id
from toolwire.messages import Loss, Origin, Part, Thinking
from toolwire.request import ModelRequest

LARGEST = 4 * 1024 * 1024
"""Bytes of a turn beyond which it is not stored."""
_OVERHEAD = 1024
"""Bytes that a turn takes in this process besides its encoded parts."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredTurn).decode


class TurnCache:
    """The turns used last, decoded."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._keys: dict[bytes, str] = {}
        self._turns: OrderedDict[str, tuple[StoredTurn, list[bytes], int]] = OrderedDict()

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
        self._make_id = make_id

    async def find(self, tenant: str, request: ModelRequest) -> Search:
        """The turns of a conversation."""
        search = Search(Keys(tenant_key(tenant)), request)
        for keys in (search.first_keys, search.second_keys):
            search.add(await self._get(keys()))
        search.settle()
        return search

    async def recall(
        self, tenant: str, request: ModelRequest, target: Origin, deployment: str = ""
    ) -> Recalled:
        """The request for `target`, with everything put back that the memory has."""
        search = await self.find(tenant, request)
        return search.attach(Maker(target, deployment))

    def begin(
        self, tenant: str, request: ModelRequest, client_family: str, upstream: str = ""
    ) -> "TurnWriter":
        """The memory of one answer."""
        context = TurnContext.of(runs_of(request.messages))
        return self.capture(tenant, context, client_family, upstream)

    def capture(
        self, tenant: str, context: TurnContext, family: str, upstream: str
    ) -> "TurnWriter":
        """The memory of one answer to a conversation that was looked up."""
        captured = Capture(context, family, upstream, self._make_id)
        return TurnWriter(captured, Keys(tenant_key(tenant)), family, self._save)

    async def _get(self, keys: Sequence[bytes]) -> dict[bytes, StoredTurn]:
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

    async def _save(self, turn: StoredTurn, keys: tuple[bytes, ...]) -> Loss | None:
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


class TurnWriter:
    """One answer on its way to the client, stored before its end."""

    def __init__(
        self,
        capture: Capture,
        keys: Keys,
        family: str,
        save: "Callable[[StoredTurn, tuple[bytes, ...]], Awaitable[Loss | None]]",
    ) -> None:
        self._capture = capture
        self._keys = keys
        self._family = family
        self._save = save
        self.outgoing: Callable[[ModelEvent], ModelEvent] = capture.outgoing

    async def finish(self, origin: Origin, deployment: str = "") -> Loss | None:
        """Stores the turn; returns what could not be stored."""
        turn = self._capture.turn(Maker(origin, deployment))
        if turn is None:
            return None
        return await self._save(turn, self._keys.of(turn, self._family))
