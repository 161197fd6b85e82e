"""From a ModelRequest to a request body."""

from typing import cast

from toolwire.dialects import Encoded
from toolwire.dialects.anthropic.decode_request import NO_MODEL, SYSTEM_STRING
from toolwire.dialects.anthropic.encode_blocks import BlockWriter, message_content
from toolwire.dialects.anthropic.encode_settings import SettingsWriter
from toolwire.dialects.anthropic.wire import NAME
from toolwire.dialects.kept import form, restore
from toolwire.dialects.losses import Losses
from toolwire.dialects.quirks import Quirks
from toolwire.messages import Message, Part, ToolResult
from toolwire.request import AnyTool, HttpRequest, JsonObject, ModelRequest
from toolwire.wire.json_access import encode
from toolwire.wire.names import NameRule, ToolNames

VERSION = "2023-06-01"
_RULE = NameRule(limit=64)
_HEADERS = (("content-type", "application/json"), ("anthropic-version", VERSION))
_MOST_MARKS = 4
_NOTHING_SAID = "(The conversation begins here.)"


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The request as it goes over the wire, and what it could not carry."""
    own = request.kept is not None and request.kept.dialect == NAME
    losses = Losses()
    losses.foreign(request, NAME)
    rule = quirks.name_rule or _RULE
    names = ToolNames(() if own else request.tools, rule, wrap_freeform=True)
    spare = frozenset[str]() if own else _spare_marks(request)
    files = own or request.kept is None
    writer = BlockWriter(names, losses, own=own, files=files, spare_marks=spare)
    body = _body(request, quirks, writer, losses) if not own else _own_body(request, writer)
    settings = SettingsWriter(request, quirks, writer, losses, own)
    settings.write(body, not own and _thinking_broken(body["messages"]))
    if own:
        body = restore(body, request.kept, NAME)
    else:
        # What stays the same comes first, for caches of requests as they are sent.
        body["messages"] = body.pop("messages")
    http = HttpRequest(path="/v1/messages", body=encode(body), headers=_HEADERS)
    return Encoded(http=http, losses=losses.done(), names=names)


def _own_body(request: ModelRequest, writer: BlockWriter) -> JsonObject:
    """A request that was read from this format: nothing is added or repaired."""
    forms = form(request.kept, NAME).split()
    body: JsonObject = {} if NO_MODEL in forms else {"model": request.model}
    if request.system:
        blocks = writer.texts(request.system, "system")
        plain = SYSTEM_STRING in forms and len(request.system) == 1
        body["system"] = request.system[0].text if plain else blocks
    body["messages"] = [
        message_content(message, writer.content(message, f"messages[{at}]"))
        for at, message in enumerate(request.messages)
    ]
    return body


def _body(request: ModelRequest, quirks: Quirks, writer: BlockWriter, losses: Losses) -> JsonObject:
    body: JsonObject = {"model": request.model}
    system = writer.texts(request.system, "system")
    messages = list(enumerate(request.messages))
    while messages and messages[0][1].role == "system":
        at, message = messages.pop(0)
        system += _only_text(writer.content(message, f"messages[{at}]"), at, losses)
    if system:
        body["system"] = system
    turns: list[JsonObject] = []
    for at, message in messages:
        _add_turn(turns, message, writer.content(message, f"messages[{at}]"), at, quirks, losses)
    _order(turns, losses)
    body["messages"] = turns
    return body


def _only_text(blocks: list[JsonObject], at: int, losses: Losses) -> list[JsonObject]:
    texts = [block for block in blocks if block["type"] == "text"]
    if len(texts) < len(blocks):
        losses.add(f"messages[{at}]", "media", "system instructions are text")
    return texts


def _add_turn(
    turns: list[JsonObject],
    message: Message,
    blocks: list[JsonObject],
    at: int,
    quirks: Quirks,
    losses: Losses,
) -> None:
    if not blocks:
        return
    role: str = message.role
    if role == "system" and not quirks.system_in_messages:
        losses.add(f"messages[{at}]", "system turn", "sent as the user's words")
        role = "user"
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append(restore({"role": role, "content": blocks}, message.kept, NAME))


def _order(turns: list[JsonObject], losses: Losses) -> None:
    """Results first in a turn, the user first of all, no white space where an answer goes on."""
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=_is_no_result)
    if not turns or turns[0]["role"] != "user":
        if turns:
            losses.add("messages[0]", "first turn", "a user's turn was put before it")
        else:
            losses.add("messages", "no turn", "a user's turn was put in")
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _NOTHING_SAID}]})
    last = turns[-1]["content"][-1]
    if turns[-1]["role"] == "assistant" and last["type"] == "text":
        trimmed = last["text"].rstrip()
        if trimmed != last["text"]:
            losses.add("messages", "white space", "the last assistant text may not end with it")
            last["text"] = trimmed


def _is_no_result(block: JsonObject) -> bool:
    return block["type"] != "tool_result"


def _thinking_broken(messages: list[JsonObject]) -> bool:
    """Whether the last assistant turn made calls without thinking before them."""
    for message in reversed(messages):
        if message["role"] == "assistant":
            content = cast(list[JsonObject], message["content"])
            kinds = [block["type"] for block in content]
            return "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking")
    return False


def _spare_marks(request: ModelRequest) -> frozenset[str]:
    """Where cache marks stand beyond those that the vendor accepts."""
    marked = [f"tools[{at}]" for at, tool in enumerate(request.tools) if _is_marked(tool)]
    marked += [f"system[{at}]" for at, part in enumerate(request.system) if _is_marked(part)]
    for at, message in enumerate(request.messages):
        marked += _marked_parts(f"messages[{at}]", message.parts)
    # The first two mostly stand on tools and system, the last two on the newest turns.
    return frozenset(marked[2 : len(marked) - 2] if len(marked) > _MOST_MARKS else ())


def _marked_parts(path: str, parts: tuple[Part, ...]) -> list[str]:
    marked: list[str] = []
    for at, part in enumerate(parts):
        where = f"{path}.parts[{at}]"
        if isinstance(part, ToolResult):
            marked += _marked_parts(where, part.parts)
        if _is_marked(part):
            marked.append(where)
    return marked


def _is_marked(value: Part | AnyTool) -> bool:
    return getattr(value, "cache", None) is not None
