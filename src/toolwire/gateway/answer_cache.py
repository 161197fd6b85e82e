"""Answers of routes with a cache: equal requests without randomness get the same events again."""

import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable

import msgspec

from toolwire import dialects
from toolwire.app.model_stack import Opened
from toolwire.events import Finished, ModelEvent, Notice
from toolwire.model import Model, reading
from toolwire.providers import catalogue
from toolwire.request import ModelRequest

_LARGEST_SHARE = 8
"""One answer may take this part of the cache."""


class AnswerCache:
    """Whole answers by a digest of their request; the longest unused make room."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.most = most
        """Bytes of all answers."""
        self._clock = clock
        self._answers: OrderedDict[bytes, tuple[float, int, tuple[ModelEvent, ...]]] = OrderedDict()
        self.size = 0

    def get(self, digest: bytes) -> tuple[ModelEvent, ...] | None:
        """Returns the events of an answer; None if there is none, or it is too old."""
        found = self._answers.get(digest)
        if found is None:
            return None
        if self._clock() >= found[0]:
            self._remove(digest)
            return None
        self._answers.move_to_end(digest)
        return found[2]

    def put(self, digest: bytes, events: tuple[ModelEvent, ...], seconds: float) -> None:
        """Stores an answer for a time."""
        size = len(msgspec.msgpack.encode(events))
        if size * _LARGEST_SHARE > self.most:
            return
        self._remove(digest)
        self._answers[digest] = (self._clock() + seconds, size, events)
        self.size += size
        while self.size > self.most:
            self._remove(next(iter(self._answers)))

    def _remove(self, digest: bytes) -> None:
        found = self._answers.pop(digest, None)
        if found is not None:
            self.size -= found[1]


def cached(opened: Opened, cache: AnswerCache, seconds: float, *, tools: bool) -> Model:
    """Returns the client of a model, which answers equal requests from the cache.

    `tools`: whether requests with tools are cached too.
    """
    quirks = catalogue.quirks_of(opened.provider, opened.model)
    dialect = dialects.get(opened.provider.dialect)

    def digest_of(request: ModelRequest) -> bytes:
        whole = msgspec.structs.replace(request, model=opened.model, stream=False)
        body = dialect.encode_request(whole, quirks).http.body
        return hashlib.sha256(opened.name.encode() + b"\0" + body).digest()

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if request.temperature or (request.tools and not tools):
            async with reading(opened.client(request)) as events:
                async for event in events:
                    yield event
            return
        digest = digest_of(request)
        for event in cache.get(digest) or ():
            yield event
            if isinstance(event, Finished):
                return
        seen: list[ModelEvent] = []
        async with reading(opened.client(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    # Nothing is paid for it again.
                    free = msgspec.structs.replace(event.usage, cost=0.0)
                    again = msgspec.structs.replace(event, usage=free)
                    cache.put(digest, (*seen, again), seconds)
                elif not isinstance(event, Notice):
                    seen.append(event)
                yield event

    return ask
