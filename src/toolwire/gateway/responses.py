"""Stored answers of the Responses format: chains, and the bodies of the routes that read them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from toolwire.errors import BadInput, ErrorKind
from toolwire.gateway.memory import Keys, tenant_key
from toolwire.gateway.memory_store import MemoryStore, StoreFailed
from toolwire.gateway.parts import GatewayRefusal, Stored, StoredAnswer
from toolwire.messages import Loss, Message
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode, is_list, is_object, parse

_LARGEST = 32 * 1024 * 1024
"""Bytes of an answer with its request beyond which it is not stored."""
_LONGEST_CHAIN = 2_000
_SHOWN = 200
"""Characters of a client's id that an error repeats."""
_USUAL_PAGE, _LARGEST_PAGE = 20, 100
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredAnswer).decode


class StoredAnswers:
    """Answers by id, per tenant."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def save(self, tenant: str, answer: StoredAnswer) -> Loss | None:
        """Stores an answer; returns what could not be stored."""
        try:
            body = _encode(answer)
        except UnicodeEncodeError:
            return Loss("store", "answer", "not stored: its text is not Unicode")
        if len(body) > _LARGEST:
            return Loss("store", "answer", f"not stored: larger than {_LARGEST >> 20} MiB")
        try:
            await self._store.put((_key(tenant, answer.id),), body)
        except StoreFailed as error:
            return Loss("store", "answer", f"not stored: {error}")
        return None

    async def get(self, tenant: str, response_id: str) -> StoredAnswer | None:
        """The answer; None if it is unknown."""
        key = _key(tenant, response_id)
        try:
            body = (await self._store.get((key,))).get(key)
            return None if body is None else _decode(body)
        except (StoreFailed, msgspec.MsgspecError):
            # Unreadable, or written by another version: the answer is as good as expired.
            return None

    async def delete(self, tenant: str, response_id: str) -> bool:
        """Removes an answer; whether there was one."""
        return await self._store.delete(_key(tenant, response_id))

    async def chain(self, tenant: str, response_id: str) -> tuple[Message, ...] | None:
        """The conversation up to and with this answer; None if a link is unknown."""
        links: list[StoredAnswer] = []
        while response_id:
            answer = await self.get(tenant, response_id)
            if answer is None or len(links) == _LONGEST_CHAIN:
                return None
            links.append(answer)
            response_id = answer.parent
        messages: list[Message] = []
        for answer in reversed(links):
            messages += answer.sent
            if answer.reply is not None:
                messages.append(answer.reply)
        return tuple(messages)


class NoAnswers:
    """Stores nothing: every id is unknown."""

    async def save(self, tenant: str, answer: StoredAnswer) -> Loss | None:
        """Does not store the answer."""
        del tenant, answer

    async def get(self, tenant: str, response_id: str) -> StoredAnswer | None:
        """No answer is known."""
        del tenant, response_id

    async def delete(self, tenant: str, response_id: str) -> bool:
        """No answer is known."""
        del tenant, response_id
        return False

    async def chain(self, tenant: str, response_id: str) -> tuple[Message, ...] | None:
        """No answer is known."""
        del tenant, response_id


def _key(tenant: str, response_id: str) -> bytes:
    return Keys(tenant_key(tenant)).answer(response_id)


def not_found(response_id: str) -> GatewayRefusal:
    """The refusal of a route that names an unknown answer."""
    return GatewayRefusal(
        ErrorKind.NOT_FOUND,
        f"Response with id '{response_id[:_SHOWN]}' not found.",
        status=404,
        code="not_found",
        param="id",
        should_retry=False,
    )


def previous_not_found(response_id: str) -> GatewayRefusal:
    """The refusal of a request that continues an unknown answer; codex then sends all of it."""
    return GatewayRefusal(
        ErrorKind.BAD_REQUEST,
        f"Previous response with id '{response_id[:_SHOWN]}' not found.",
        status=400,
        code="previous_response_not_found",
        param="previous_response_id",
        should_retry=False,
    )


def not_cancelled(response_id: str) -> GatewayRefusal:
    """The refusal to cancel an answer: all are complete, since none runs in the background."""
    return GatewayRefusal(
        ErrorKind.BAD_REQUEST,
        f"Cannot cancel response '{response_id[:_SHOWN]}': it is complete. Only background "
        "responses can be cancelled, and this gateway runs none.",
        status=400,
        should_retry=False,
    )


async def stored_body(
    stored: Stored, tenant: str, does: str, response_id: str, query: str
) -> bytes:
    """What `GET`, `DELETE`, `…/input_items` and `…/cancel` of an answer return."""
    answer = await stored.get(tenant, response_id)
    if answer is None:
        raise not_found(response_id)
    match does:
        case "retrieve":
            return answer.body
        case "input_items":
            return input_items_body(answer, dict(parse_qsl(query)))
        case "delete":
            await stored.delete(tenant, response_id)
            return deleted_body(response_id)
        case _:
            raise not_cancelled(response_id)


def deleted_body(response_id: str) -> bytes:
    """The answer to a deletion."""
    return encode({"id": response_id, "object": "response", "deleted": True})


def input_items_body(answer: StoredAnswer, query: Mapping[str, str]) -> bytes:
    """One page of the items that an answer was requested with, the newest first by default."""
    items = _items(answer)
    if query.get("order", "desc") != "asc":
        items.reverse()
    names = [item["id"] for item in items]
    start = 0
    after = query.get("after", "")
    if after:
        if after not in names:
            raise BadInput(f'after: no item "{after}"')
        start = names.index(after) + 1
    page = items[start : start + _limit(query.get("limit", ""))]
    return encode(
        {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": start + len(page) < len(items),
        }
    )


def _limit(text: str) -> int:
    if not text:
        return _USUAL_PAGE
    if not text.isdecimal() or not 1 <= int(text) <= _LARGEST_PAGE:
        raise BadInput(f"limit: expected a number from 1 to {_LARGEST_PAGE}")
    return int(text)


def _items(answer: StoredAnswer) -> list[JsonObject]:
    """The items, each with an id and a type; a plain text is a message."""
    value: Any = parse(answer.input_items, "input")
    if isinstance(value, str):
        value = [{"role": "user", "content": [{"type": "input_text", "text": value}]}]
    tail = answer.id.partition("_")[2]
    items: list[JsonObject] = []
    for number, item in enumerate(value if is_list(value) else []):
        if is_object(item):
            kind = item.get("type") or "message"
            prefix = "msg" if kind == "message" else "item"
            items.append({"id": f"{prefix}_{tail}_{number}", "type": kind, **item})
    return items
