"""The project's own small recorded streams, and those of the corpus where it is there."""

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

from tests import corpus_harness
from toolwire import dialects
from toolwire.dialects import DecodeOptions
from toolwire.events import ModelEvent
from toolwire.messages import Origin

HERE = Path(__file__).parent / "wire"
FOLDERS = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
}


def own(dialect: str) -> list[bytes]:
    """Streams that the project carries."""
    return [path.read_bytes() for path in sorted((HERE / FOLDERS[dialect]).glob("*.sse"))]


def recorded(dialect: str, most: int) -> list[bytes]:
    """Streams of the corpus, evenly chosen; none where it is absent."""
    if not corpus_harness.CORPUS.is_dir():
        return []
    streams = [
        corpus_harness.body(row)[0]
        for row in corpus_harness.rows(dialect)
        if row["stream"] and row.get("response_text")
    ]
    return streams[:: max(1, len(streams) // most)][:most]


def counted_ids() -> Callable[[], str]:
    """Ids that are the same in every run."""
    numbers = count(1)
    return lambda: f"made_{next(numbers)}"


def events(dialect: str, chunks: Iterable[bytes]) -> Iterator[ModelEvent]:
    """The events of a stream, with predictable ids."""
    reading = DecodeOptions(new_id=counted_ids(), origin=Origin(dialect))
    return dialects.decode_stream(dialects.get(dialect), chunks, reading)


def cut(body: bytes, chance: random.Random, most: int = 40) -> list[bytes]:
    """The body in random pieces."""
    places = sorted(chance.randrange(len(body) + 1) for _ in range(chance.randrange(most)))
    return [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
