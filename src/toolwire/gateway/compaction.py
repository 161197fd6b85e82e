"""Compaction for codex: a long conversation as one item that only this gateway reads.

The item contains the summary itself: it needs no store, and is read after a restart and on other
machines too.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from pkgutil import get_data

import msgspec

from toolwire.collect import Collector
from toolwire.compaction.plan import snapshot
from toolwire.dialects.openai_responses.ends import usage_body
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.events import Finished, ModelEvent, ServerBlockAdded, StopReason
from toolwire.gateway.outlet import AnswerWriter, OneBody
from toolwire.http_server.exchange import Answering
from toolwire.messages import Message, Origin, Part, ServerBlock, Text
from toolwire.request import JsonObject, ModelRequest, ToolChoice
from toolwire.wire.json_access import dump, encode, is_object, parse, parse_object

_RESPONSES = "openai-responses"
_TRIGGER = "compaction_trigger"
_OURS = "twc1."
_LARGEST = 4 * 1024 * 1024
"""Characters of a summary; a longer one was not made here."""
_QUESTION = "First, reason in your scratchpad. Then, generate the <state_snapshot>."
_INTRODUCTION = "The conversation before this point was summarized:"


def is_triggered(request: ModelRequest) -> bool:
    """Whether the request is for a compaction instead of an answer."""
    last = request.messages[-1].parts[-1:] if request.messages else ()
    return bool(last) and isinstance(last[0], ServerBlock) and last[0].kind == _TRIGGER


def has_own_items(body: bytes) -> bool:
    """Whether a body has compactions that were made here."""
    return f'"{_OURS}'.encode() in body


def summary_request(request: ModelRequest) -> ModelRequest:
    """The request that has the model summarize the conversation."""
    prompt = (get_data("toolwire.compaction", "compression.md") or b"").decode()
    messages = [_without_trigger(message) for message in request.messages]
    question = Message(role="user", parts=(Text(_QUESTION),))
    return msgspec.structs.replace(
        request,
        system=(Text(prompt),),
        messages=(*(message for message in messages if message.parts), question),
        # Some vendors require the tools of calls in the conversation.
        tool_choice=ToolChoice(mode="none") if request.tools else None,
        output=None,
        max_output_tokens=None,
    )


def _without_trigger(message: Message) -> Message:
    parts = tuple(
        part
        for part in message.parts
        if not (isinstance(part, ServerBlock) and part.kind == _TRIGGER)
    )
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def compaction_item(summary: str, item_id: str) -> JsonObject:
    """The item that stands for a conversation."""
    packed = urlsafe_b64encode(zlib.compress(summary.encode("utf-8", "surrogatepass")))
    return {"type": "compaction", "id": item_id, "encrypted_content": _OURS + packed.decode()}


def with_summaries(request: ModelRequest) -> ModelRequest:
    """The request with the text of every compaction that was made here."""
    if not any(
        isinstance(part, ServerBlock) and part.kind == "compaction"
        for message in request.messages
        for part in message.parts
    ):
        return request
    messages: list[Message] = []
    for message in request.messages:
        messages += _expanded(message)
    return msgspec.structs.replace(request, messages=tuple(messages))


def _expanded(message: Message) -> list[Message]:
    found: list[Message] = []
    rest: list[Part] = []
    for part in message.parts:
        summary = _summary_of(part)
        if summary is None:
            rest.append(part)
            continue
        if rest:
            found.append(msgspec.structs.replace(message, parts=tuple(rest)))
            rest = []
        found.append(Message(role="user", parts=(Text(f"{_INTRODUCTION}\n\n{summary}"),)))
    if not found:
        return [message]
    return [*found, msgspec.structs.replace(message, parts=tuple(rest))] if rest else found


def _summary_of(part: Part) -> str | None:
    if not isinstance(part, ServerBlock) or part.kind != "compaction":
        return None
    content = parse_object(part.data, "compaction").get("encrypted_content")
    if not isinstance(content, str) or not content.startswith(_OURS):
        return None
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(urlsafe_b64decode(content.removeprefix(_OURS)), _LARGEST)
        whole = data.decode("utf-8", "surrogatepass")
    except (ValueError, zlib.error) as error:
        raise BadInput("the compaction item was changed; it cannot be read") from error
    if not inflater.eof:
        raise BadInput("the compaction item was changed; it cannot be read")
    return whole


class CompactionAnswer:
    """Collects the summary, and gives it to the client as one item of its answer."""

    def __init__(self, inner: AnswerWriter, new_id: Callable[[str], str]) -> None:
        self._inner = inner
        self._new_id = new_id
        self._collector = Collector()

    @property
    def begun(self) -> bool:
        """Whether the head has gone out."""
        return self._inner.begun

    @property
    def response_id(self) -> str:
        """The id of the answer."""
        return self._inner.response_id

    def begin(self) -> None:
        """Begins the answer, so that it beats while the summary is written."""
        self._inner.begin()

    def feed(self, events: Sequence[ModelEvent], *, last: bool = False) -> None:
        """Collects."""
        self._collector.add_all(events)

    def body(self) -> bytes:
        """The complete answer."""
        return self._inner.body()

    def message(self) -> Message:
        """The answer as a message."""
        return self._inner.message()

    def end(self, finished: Finished) -> None:
        """Writes the item."""
        item = compaction_item(_summary(self._collector, finished), self._new_id("cmp_"))
        block = ServerBlock(origin=Origin(_RESPONSES), kind="compaction", data=dump(item))
        self._inner.feed((ServerBlockAdded(block),))
        self._inner.end(msgspec.structs.replace(finished, reason=StopReason.END))

    async def send(self) -> None:
        """Sends the end."""
        await self._inner.send()

    def fail(self, error: ProviderError) -> None:
        """Reports an error after the beginning."""
        self._inner.fail(error)

    def close(self) -> None:
        """Stops what still runs."""
        self._inner.close()


def _summary(collector: Collector, finished: Finished) -> str:
    text = collector.message().text
    found = snapshot(text) or text.strip()
    if not found or finished.reason not in (StopReason.END, StopReason.LENGTH):
        raise ProviderError(ErrorKind.SERVER, "the model wrote no summary", status=502)
    return found


class CompactedAnswer(OneBody):
    """The answer to `POST /v1/responses/compact`: the user's messages, then the item."""

    def __init__(
        self,
        out: Answering,
        items: bytes,
        created: int,
        *,
        headers: Callable[[], Sequence[tuple[str, str]]],
        new_id: Callable[[str], str],
    ) -> None:
        super().__init__(out, new_id("resp_"), headers=headers)
        self._items = items
        self._created = created
        self._new_id = new_id

    def _encoded(self, finished: Finished) -> bytes:
        item = compaction_item(_summary(self._collector, finished), self._new_id("cmp_"))
        given = parse(self._items, "input")
        users = [one for one in given if is_object(one) and one.get("role") == "user"]
        body: JsonObject = {
            "id": self.response_id,
            "object": "response.compaction",
            "created_at": self._created,
            "output": [*users, item],
            "usage": usage_body(finished.usage),
        }
        return encode(body)
