"""Items of an answer ⇄ parts of an assistant message; only messages may have several parts."""

from collections.abc import Iterable, Iterator
from typing import cast

from toolwire.dialects.kept import own_seal
from toolwire.dialects.openai_responses.media import annotation, citation
from toolwire.dialects.openai_responses.remembering import joined, remember, replay, words
from toolwire.dialects.openai_responses.shapes import CALLS, NAME, OWN_ID, TEXT_TYPES
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


def decode_item(item: JsonObject, raw: str, origin: Origin) -> tuple[Part, ...]:
    """The parts of an item the model made. What is no word, thought, call or image stays whole."""
    kind = item.get("type")
    match kind:
        case "message" | None if item.get("role") == "assistant":
            parts = _message_parts(item, origin)
            if parts:
                return parts
        case "reasoning":
            return (thought(item, origin),)
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
    seal = _seal(item, ("id", "phase"), origin)
    outer = remember(around, _around(own_seal(seal, NAME)), prefix="item.")
    if isinstance(content, str):
        return (Text(content, seal=seal, kept=joined(_word("end item.string"), outer)),)
    if not isinstance(content, list):
        return ()
    if not content:
        return (Text("", seal=seal, kept=joined(_word("end item.empty"), outer)),)
    parts: list[Part] = []
    for source in cast(list[object], content):
        part = message_part(source)
        if part is None:
            return ()
        parts.append(part)
    last = cast(Text | Refusal, parts[-1])
    parts[-1] = ended(last, seal, outer)
    return tuple(parts)


def message_part(source: object) -> Text | Refusal | None:
    """A part in the middle of a message item; None if it is of no known type."""
    match source:
        case {"type": str(kind), "text": str(text)} if kind in TEXT_TYPES:
            body = cast(JsonObject, source)
            part = Text(text, _citations(body.get("annotations")))
        case {"type": "refusal", "refusal": str(text)}:
            body = cast(JsonObject, source)
            part = Refusal(text)
        case _:
            return None
    kept = joined(_word("more"), remember(body, _part_body(part)))
    if isinstance(part, Refusal):
        return Refusal(part.text, kept=kept)
    return Text(part.text, part.citations, kept=kept)


def ended(part: Text | Refusal, seal: Seal | None, outer: Kept | None) -> Text | Refusal:
    """The part as the last of its item: it carries what the item said."""
    inner = part.kept
    if inner is not None:
        inner = Kept(
            dialect=NAME, fields=inner.fields, form=f"end{inner.form.removeprefix('more')}"
        )
    kept = joined(inner, outer)
    if isinstance(part, Refusal):
        return Refusal(part.text, seal, kept)
    return Text(part.text, part.citations, seal=seal, kept=kept)


def is_more(kept: Kept | None) -> bool:
    """Whether the item goes on after the part that has this."""
    return kept is not None and kept.dialect == NAME and kept.form[:4] == "more"


def _word(word: str) -> Kept:
    return Kept(dialect=NAME, form=word)


def _around(seal: JsonObject) -> JsonObject:
    return {"type": "message", "role": "assistant", **seal}


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
    """A part of a message item, complete as a server sends it if it comes from elsewhere."""
    body = _part_body(part)
    if part.kept is not None and part.kept.dialect == NAME:
        return replay(body, part.kept)
    return {"annotations": [], "logprobs": [], **body} if isinstance(part, Text) else body


def message_item(parts: list[Text | Refusal], item_id: str = "") -> JsonObject:
    """A message item of these parts; the last one carries what the item said.

    `item_id` names an item of ours that has no name yet.
    """
    last = parts[-1]
    form = words(last.kept)
    content: object = [content_part(part) for part in parts]
    if "item.string" in form:
        content = last.text
    elif "item.empty" in form:
        content = []
    item = {**_around(own_seal(last.seal, NAME)), "content": content}
    if form:
        item = replay(item, last.kept, "item.")
    else:
        item["status"] = "completed"
    return {**item, "id": item_id} if item_id else item


def message_groups(parts: Iterable[Part]) -> Iterator[Part | list[Text | Refusal]]:
    """Words gathered into the items they came in; all other parts one by one."""
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


def thought(item: JsonObject, origin: Origin, text: str | None = None) -> Thinking:
    """A reasoning item; `text` is how its words were streamed, if they were."""
    summary, content = _texts(item, "summary"), _texts(item, "content")
    spelled = "".join(summary or []) + "".join(content or [])
    order = [("summary", summary), ("content", content)]
    if text is not None and text != spelled:
        order.reverse()
        if text != "".join(content or []) + "".join(summary or []):
            order = []
        spelled = text
    shape = [f"{key}:{','.join(str(len(piece)) for piece in p)}" for key, p in order if p]
    seal = _seal(item, ("id", "encrypted_content"), origin)
    plain = Thinking(spelled, seal, _word(" ".join(["item", *shape])))
    kept = remember(item, reasoning_item(plain), ["item", *shape])
    return Thinking(spelled, seal, kept)


def reasoning_item(part: Thinking, item_id: str = "") -> JsonObject:
    """The reasoning item; one from elsewhere has its text as the summary."""
    item: JsonObject = {"type": "reasoning", **own_seal(part.seal, NAME)}
    form = words(part.kept)
    at = 0
    for word in form:
        key, colon, lengths = word.partition(":")
        if colon and key in ("summary", "content") and "=" not in word:
            pieces: list[str] = []
            for length in map(int, lengths.split(",")):
                pieces.append(part.text[at : at + length])
                at += length
            kind = "summary_text" if key == "summary" else "reasoning_text"
            item[key] = [{"type": kind, "text": piece} for piece in pieces]
    item = replay(item, part.kept)
    if not form:
        item["summary"] = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {**item, "id": item_id} if item_id else item


def _texts(item: JsonObject, key: str) -> list[str] | None:
    """The plain texts of a list, or None if it holds anything else."""
    kind = "summary_text" if key == "summary" else "reasoning_text"
    found = item.get(key)
    if not isinstance(found, list):
        return None
    texts: list[str] = []
    for value in cast(list[object], found):
        match value:
            case {"type": str(word), "text": str(text)} if (
                word == kind and len(cast(JsonObject, value)) == 2
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
    written = call_item(part, part.name, text)
    return ToolCall(
        id=part.id,
        name=part.name,
        arguments=text,
        kind=kind,
        namespace=part.namespace,
        complete=part.complete,
        made_id=part.made_id,
        seal=part.seal,
        kept=remember(item, written, ["item"]),
    )


def call_item(part: ToolCall, name: str, arguments: str, item_id: str = "") -> JsonObject:
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
    item = replay(item, part.kept)
    return {**item, "id": item_id} if item_id else item


def answered_call(part: ToolCall, item_id: str = "") -> JsonObject:
    """A call in an answer: one from elsewhere gets a status."""
    item = call_item(part, part.name, part.arguments, item_id)
    if part.kept is None or part.kept.dialect != NAME:
        item["status"] = "completed" if part.complete else "incomplete"
    return item


def _image(item: JsonObject, origin: Origin) -> Media:
    word = item.get("output_format")
    plain = Media(
        kind=MediaKind.IMAGE,
        mime=f"image/{word if isinstance(word, str) and word else 'png'}",
        base64=item["result"],
        seal=_seal(item, ("id",), origin),
        kept=_word("item"),
    )
    return Media(
        kind=plain.kind,
        mime=plain.mime,
        base64=plain.base64,
        seal=plain.seal,
        kept=remember(item, image_item(plain), ["item"]),
    )


def image_item(part: Media, item_id: str = "") -> JsonObject:
    """An image the model made, as the item of the tool that makes images."""
    item: JsonObject = {
        "type": "image_generation_call",
        **own_seal(part.seal, NAME),
        "result": part.base64,
    }
    if part.kept is None or part.kept.dialect != NAME:
        item["status"] = "completed"
    item = replay(item, part.kept)
    return {**item, "id": item_id} if item_id else item


def without_our_id(item: JsonObject) -> JsonObject:
    """The item without an id that we made up: the vendor would look for it in vain."""
    item_id = item.get("id")
    if isinstance(item_id, str) and item_id.partition("_")[2].startswith(OWN_ID):
        return {key: value for key, value in item.items() if key != "id"}
    return item
