"""Items of an answer ⇄ parts of an assistant message; only messages may have several parts."""

from collections.abc import Iterable, Iterator
from typing import cast

import msgspec
from msgspec.structs import replace

from toolwire.dialects.losses import own_seal, restore
from toolwire.dialects.openai_responses.media import annotation, citation
from toolwire.dialects.openai_responses.shapes import (
    CALLS,
    ITEM,
    NAME,
    OWN_ID,
    TEXT_TYPES,
    extra_members,
    joined,
    with_extra,
)
from toolwire.messages import (
    CallKind,
    Citation,
    Kept,
    Media,
    MediaKind,
    Origin,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
)
from toolwire.wire.json_access import JsonObject, dump

_MORE = f"{ITEM}more"
"""On a part that is not the last of its item. Null, so that no other format reports a loss."""
_IDS = ("id", "encrypted_content")
_PIECES = {"summary": "summary_text", "content": "reasoning_text"}


def decode_item(item: JsonObject, raw: str, origin: Origin) -> tuple[Part, ...]:
    """The parts of an item of the model; an item of another type is one server block."""
    kind = item.get("type")
    match kind:
        case "message" | None if item.get("role") == "assistant":
            parts = _message_parts(item, origin)
            if parts:
                return parts
        case "reasoning":
            return (reasoning_part(item, origin),)
        case "function_call" | "custom_tool_call" if isinstance(item.get("name"), str):
            return (call(item, origin),)
        case "image_generation_call" if item.get("result") and isinstance(item["result"], str):
            return (_image(item, origin),)
        case _:
            pass
    word = kind if isinstance(kind, str) else "item_reference" if "role" not in item else "message"
    return (ServerBlock(origin=origin, kind=word, data=raw),)


def _seal(item: JsonObject, keys: Iterable[str], origin: Origin) -> Seal | None:
    found = {key: item[key] for key in keys if isinstance(item.get(key), str)}
    return Seal(origin=origin, data=dump(found)) if found else None


def _message_parts(item: JsonObject, origin: Origin) -> tuple[Part, ...]:
    content = item.get("content")
    around = {key: value for key, value in item.items() if key != "content"}
    cut = item.get("status") == "incomplete" and isinstance(item.get("id"), str)
    seal = _seal(item, ("id", "phase", "status") if cut else ("id", "phase"), origin)
    outer = extra_members(around, _around(own_seal(seal, NAME)), ITEM)
    if isinstance(content, str):
        return (Text(content, seal=seal, kept=outer),)
    if not isinstance(content, list):
        return ()
    if not content:
        return (Text("", seal=seal, kept=outer),)
    parts: list[Text | Refusal] = []
    for source in cast(list[object], content):
        part = message_part(source)
        if part is None:
            return ()
        parts.append(part)
    *before, last = parts
    last = replace(last, seal=seal, kept=joined(last.kept, outer))
    return (*map(continued, before), last)


def message_part(source: object) -> Text | Refusal | None:
    """A part of a message item; None for an unknown type."""
    match source:
        case {"type": str(kind), "text": str(text)} if kind in TEXT_TYPES:
            body = cast(JsonObject, source)
            part = Text(text, _citations(body.get("annotations")))
        case {"type": "refusal", "refusal": str(text)}:
            body = cast(JsonObject, source)
            part = Refusal(text)
        case _:
            return None
    return replace(part, kept=extra_members(body, _part_body(part)))


def continued(part: Text | Refusal) -> Text | Refusal:
    """The part as one that is not the last of its item."""
    more = Kept(dialect=NAME, fields=dump({_MORE: None}))
    return replace(part, kept=joined(part.kept, more))


def is_more(kept: Kept | None) -> bool:
    """Whether the item continues after the part with these members."""
    return kept is not None and _MORE in restore({}, kept, NAME)


def _around(seal: JsonObject) -> JsonObject:
    return {"type": "message", "role": "assistant", "status": "completed", **seal}


def _citations(annotations: object) -> tuple[Citation, ...]:
    if not isinstance(annotations, list):
        return ()
    found = [citation(value) for value in cast(list[object], annotations)]
    return tuple(value for value in found if value is not None) if all(found) else ()


def _part_body(part: Text | Refusal) -> JsonObject:
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    body: JsonObject = {"type": "output_text", "text": part.text}
    found = [value for value in map(annotation, part.citations) if value is not None]
    if found:
        body["annotations"] = found
    return body


def content_part(part: Text | Refusal) -> JsonObject:
    """A part of a message item, with the members that the format requires."""
    body = with_extra(_part_body(part), part.kept)
    return {"annotations": [], **body} if isinstance(part, Text) else body


def message_item(parts: list[Text | Refusal], content: list[JsonObject]) -> JsonObject:
    """A message item of these parts; the last one carries the members of the item."""
    last = parts[-1]
    item = {**_around(own_seal(last.seal, NAME)), "content": content}
    return with_extra(item, last.kept, ITEM)


def message_groups(parts: Iterable[Part]) -> Iterator[Part | list[Text | Refusal]]:
    """Texts and refusals grouped into the items they came in; all other parts one by one."""
    group: list[Text | Refusal] = []
    for part in parts:
        if isinstance(part, Text | Refusal):
            group.append(part)
            if is_more(part.kept):
                continue
        if group:
            yield group
            group = []
        if not isinstance(part, Text | Refusal):
            yield part
    if group:
        yield group


def reasoning_part(item: JsonObject, origin: Origin, text: str | None = None) -> Thinking:
    """The thinking of a reasoning item; `text` is how it was streamed, if it was.

    The seal holds the lengths of the pieces where they are not one summary: the vendor expects
    them back as they were.
    """
    pieces = {key: _texts(item, key) or [] for key in _PIECES}
    if text is not None and text != _joined(pieces):
        pieces = dict(reversed(pieces.items()))
        if text != _joined(pieces):
            pieces = {}
    lengths = {key: [len(piece) for piece in found] for key, found in pieces.items() if found}
    spelled = _joined(pieces) if text is None else text
    members = {key: item[key] for key in _IDS if isinstance(item.get(key), str)}
    written = _reasoning(spelled, members, lengths)
    if members and lengths != _plain(spelled):
        members |= lengths or {"summary": []}
    seal = Seal(origin=origin, data=dump(members)) if members else None
    return Thinking(spelled, seal, extra_members(item, written))


def reasoning_item(part: Thinking) -> JsonObject:
    """The reasoning item; thinking of another format has its text as the summary."""
    sealed = own_seal(part.seal, NAME)
    lengths = {key: found for key, found in sealed.items() if key in _PIECES}
    members = {key: found for key, found in sealed.items() if key in _IDS}
    item = _reasoning(part.text, members, lengths or _plain(part.text))
    return {**item, **restore({}, part.kept, NAME)}


def _joined(pieces: dict[str, list[str]]) -> str:
    return "".join(piece for found in pieces.values() for piece in found)


def _plain(text: str) -> dict[str, list[int]]:
    return {"summary": [len(text)]} if text else {}


def _reasoning(text: str, members: JsonObject, lengths: dict[str, list[int]]) -> JsonObject:
    item: JsonObject = {"type": "reasoning", **members, "summary": []}
    start = 0
    for key, found in lengths.items():
        item[key] = []
        for length in found:
            item[key].append({"type": _PIECES[key], "text": text[start : start + length]})
            start += length
    return item


def _texts(item: JsonObject, key: str) -> list[str] | None:
    """The plain texts of a list, or None if it holds anything else."""
    found = item.get(key)
    if not isinstance(found, list):
        return None
    texts: list[str] = []
    for value in cast(list[object], found):
        match value:
            case {"type": str(word), "text": str(text)} if (
                word == _PIECES[key] and len(cast(JsonObject, value)) == 2
            ):
                texts.append(text)
            case _:
                return None
    return texts


def call(item: JsonObject, origin: Origin) -> ToolCall:
    """A call item with a name."""
    kind = CALLS[item["type"]]
    source = item.get("arguments" if kind is CallKind.JSON else "input")
    text = source if isinstance(source, str) else "" if source is None else dump(source)
    call_id, namespace = item.get("call_id"), item.get("namespace")
    part = ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=item["name"],
        arguments=text,
        kind=kind,
        namespace=namespace if isinstance(namespace, str) else "",
        complete=item.get("status") != "incomplete",
        made_id=not isinstance(call_id, str) or not call_id,
        seal=_seal(item, ("id",), origin),
    )
    return replace(part, kept=extra_members(item, call_item(part, part.name, text)))


def call_item(part: ToolCall, name: str, arguments: str) -> JsonObject:
    """The call as an item."""
    freeform = part.kind is CallKind.FREEFORM
    item: JsonObject = {
        "type": "custom_tool_call" if freeform else "function_call",
        **own_seal(part.seal, NAME),
        "call_id": part.id,
        "name": name,
        "input" if freeform else "arguments": arguments,
    }
    if part.namespace:
        item["namespace"] = part.namespace
    return with_extra(item, part.kept)


def _image(item: JsonObject, origin: Origin) -> Media:
    word = item.get("output_format")
    part = Media(
        kind=MediaKind.IMAGE,
        mime=f"image/{word if isinstance(word, str) and word else 'png'}",
        base64=item["result"],
        seal=_seal(item, ("id",), origin),
    )
    return replace(part, kept=extra_members(item, image_item(part)))


def image_item(part: Media) -> JsonObject:
    """An image the model made, as the item of the tool that makes images."""
    item: JsonObject = {
        "type": "image_generation_call",
        **own_seal(part.seal, NAME),
        "result": part.base64,
        "status": "completed",
    }
    return with_extra(item, part.kept)


def answered_part(part: Text | Refusal) -> JsonObject:
    """A part of a message as a server answers with it."""
    body = content_part(part)
    return {"logprobs": [], **body} if isinstance(part, Text) else body


def answered_message(parts: list[Text | Refusal]) -> JsonObject:
    """A message as a server answers with it."""
    return message_item(parts, [answered_part(part) for part in parts])


def answered_call(part: ToolCall) -> JsonObject:
    """A call as a server answers with it."""
    item = call_item(part, part.name, part.arguments)
    return {**item, "status": "completed" if part.complete else "incomplete"}


def answered_item(part: Part, tail: str) -> object | None:
    """Any other part as a server answers with it; `tail` ends its id."""
    match part:
        case Thinking():
            return {"id": f"rs_{tail}", **reasoning_item(part)}
        case ToolCall():
            return {"id": f"fc_{tail}", **answered_call(part)}
        case Media() if part.kind is MediaKind.IMAGE and part.base64:
            return {"id": f"ig_{tail}", **image_item(part)}
        case ServerBlock() if part.origin.dialect == NAME:
            return msgspec.Raw(part.data.encode())
        case _:
            return None


def has_our_id(item: JsonObject) -> bool:
    """Whether we made up the id of the item: the vendor does not know it."""
    item_id = item.get("id")
    return isinstance(item_id, str) and item_id.partition("_")[2].startswith(OWN_ID)


def without_our_id(item: JsonObject) -> JsonObject:
    """The item without an id that we made up."""
    return {key: value for key, value in item.items() if key != "id"} if has_our_id(item) else item
