"""Reading a whole recorded answer in one go: what was said, how it ended, and what went wrong."""

from collections.abc import Callable, Iterable

import msgspec

from toolwire import dialects
from toolwire.collect import Collector
from toolwire.errors import ToolwireError
from toolwire.events import Finished, Notice
from toolwire.ids import new_id
from toolwire.messages import Message, Origin


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All that could be read. `error` says where it broke; `finished` is then None."""

    message: Message
    finished: Finished | None = None
    notices: tuple[Notice, ...] = ()
    error: ToolwireError | None = None


def read_answer(
    dialect: str,
    body: bytes | Iterable[bytes],
    *,
    whole: bool = False,
    make_id: Callable[[], str] = new_id,
) -> Answer:
    """What a response body says, streamed or `whole`; a bad body ends in `error`, not a raise."""
    codec = dialects.get(dialect)
    reading = dialects.Reading(new_id=make_id, origin=Origin(codec.family))
    chunks = (body,) if isinstance(body, bytes) else body
    collector = Collector()
    error: ToolwireError | None = None
    try:
        if whole:
            collector.add_all(codec.decode_whole(b"".join(chunks), reading))
        else:
            collector.add_all(dialects.decode_stream(codec, chunks, reading))
    except ToolwireError as broken:
        error = broken
    return Answer(
        message=collector.message(),
        finished=collector.finished,
        notices=tuple(collector.notices),
        error=error,
    )
