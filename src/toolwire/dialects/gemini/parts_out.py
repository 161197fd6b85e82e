"""Our parts as Gemini's: for requests, and for answers on their way to a client."""

from collections.abc import Callable
from typing import Any

import msgspec

from toolwire.dialects import arguments
from toolwire.dialects.gemini.json_kinds import is_object
from toolwire.dialects.gemini.media import write_media
from toolwire.dialects.gemini.spelling import NAME, Spelled
from toolwire.dialects.kept import own_seal
from toolwire.dialects.losses import Losses
from toolwire.errors import BadInput
from toolwire.messages import (
    CallKind,
    Media,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import parse, parse_object
from toolwire.wire.surrogates import whole_characters

SIGNATURE = "thoughtSignature"


class PartWriter:
    """Writes parts one by one. What cannot be carried goes into the losses."""

    def __init__(
        self,
        losses: Losses,
        *,
        exact: bool = False,
        wire_name: Callable[[ToolCall], str] = lambda call: call.name,
        sends_id: Callable[[ToolCall], bool] = lambda call: not call.made_id,
        media_in_results: bool = False,
    ) -> None:
        self._losses = losses
        self._exact = exact
        self._wire_name = wire_name
        self._sends_id = sends_id
        self._media_in_results = media_in_results
        self._calls: dict[str, ToolCall] = {}

    def write(self, part: Part, path: str) -> list[Any]:
        """The wire parts of one of ours: none, one, or a result followed by its media."""
        match part:
            case Text():
                return self._text(part, path)
            case Thinking():
                return self._thinking(part)
            case Refusal():
                self._losses.add(path, "refusal", "sent as plain text")
                return self._signed({"text": part.text}, part.seal, Spelled(None, exact=False))
            case Media():
                return self._media(part, path)
            case ToolCall():
                return [self._call(part, path)]
            case ToolResult():
                return self._result(part, path)
            case ServerBlock():
                if part.origin.dialect != NAME:
                    return []
                parse_object(part.data, path)
                return [msgspec.Raw(part.data.encode())]

    def _signed(self, body: JsonObject, seal: Seal | None, spelled: Spelled) -> list[Any]:
        body.update(own_seal(seal, NAME))
        written = spelled.write("", body)
        empty = written in ({}, {"text": ""})
        return [] if empty and not self._exact else [written]

    def _text(self, part: Text, path: str) -> list[Any]:
        self._tell_cache(part, path)
        for number, citation in enumerate(part.citations):
            why = "Gemini takes no citations back"
            self._losses.add(f"{path}.citations[{number}]", citation.url or "citation", why)
        spelled = Spelled(part.kept, exact=self._exact)
        if spelled.shape("shape") == "string":
            return [part.text]
        body = {} if spelled.absent("text") and not part.text else {"text": part.text}
        return self._signed(body, part.seal, spelled)

    def _thinking(self, part: Thinking) -> list[Any]:
        spelled = Spelled(part.kept, exact=self._exact)
        body: JsonObject = {} if spelled.absent("text") and not part.text else {"text": part.text}
        if not self._exact and not part.text and not own_seal(part.seal, NAME):
            return []
        return self._signed({**body, "thought": True}, part.seal, spelled)

    def _media(self, part: Media, path: str) -> list[Any]:
        self._tell_cache(part, path)
        spelled = Spelled(part.kept, exact=self._exact)
        body = write_media(part, path, spelled, self._losses)
        if body is None:
            return []
        body.update(own_seal(part.seal, NAME))
        return [spelled.write("", body)]

    def _call(self, call: ToolCall, path: str) -> JsonObject:
        self._tell_cache(call, path)
        self._calls[call.id] = call
        spelled = Spelled(call.kept, exact=self._exact)
        body: JsonObject = {"id": call.id} if self._sends_id(call) else {}
        if call.name or not spelled.absent("name"):
            body["name"] = self._wire_name(call)
        if not spelled.absent("args") or call.arguments != "{}":
            body["args"] = self._arguments(call, path)
        part = {"functionCall": spelled.write("functionCall.", body), **own_seal(call.seal, NAME)}
        return spelled.write("", part)

    def _arguments(self, call: ToolCall, path: str) -> Any:
        found = arguments.parsed(call)
        if call.kind is CallKind.JSON and found and _is_utf8(call.arguments):
            return msgspec.Raw(whole_characters(call.arguments.encode()))
        if found is None and self._exact:
            return parse(call.arguments, f"{path}.arguments")
        return arguments.as_object(call, path, self._losses)

    def _result(self, result: ToolResult, path: str) -> list[Any]:
        self._tell_cache(result, path)
        spelled = Spelled(result.kept, exact=self._exact)
        call = self._calls.get(result.call_id)
        body: JsonObject = {}
        wire_id = self._result_id(result, call, spelled)
        if wire_id:
            body["id"] = wire_id
        if result.name or not (self._exact and spelled.absent("name")):
            body["name"] = self._result_name(result, call, spelled)
        if not spelled.absent("response") or result.text:
            body["response"] = _response(result, spelled)
        inside, beside = self._attached(result, path, spelled)
        if inside or spelled.shape("parts"):
            body["parts"] = inside
        part = {"functionResponse": spelled.write("functionResponse.", body)}
        return [spelled.write("", part), *beside]

    def _result_id(self, result: ToolResult, call: ToolCall | None, spelled: Spelled) -> str:
        if call is not None and not (self._exact and spelled.own):
            return call.id if self._sends_id(call) else ""
        return spelled.form.get("id") or ""

    def _result_name(self, result: ToolResult, call: ToolCall | None, spelled: Spelled) -> str:
        if call is None or (self._exact and spelled.own):
            return result.name or result.call_id
        return self._wire_name(call)

    def _attached(
        self, result: ToolResult, path: str, spelled: Spelled
    ) -> tuple[list[Any], list[Any]]:
        """Media inside the response where the model takes it, else beside it."""
        inside: list[Any] = []
        beside: list[Any] = []
        native = self._media_in_results or bool(spelled.form.get("parts"))
        for number, part in enumerate(result.parts):
            inner_path = f"{path}.parts[{number}]"
            if isinstance(part, Text):
                self._tell_cache(part, inner_path)
                continue
            written = self.write(part, inner_path)
            if native or isinstance(part, ServerBlock):
                inside += written
            else:
                beside += written
        return inside, beside

    def _tell_cache(self, part: Text | Media | ToolCall | ToolResult, path: str) -> None:
        if part.cache is not None:
            self._losses.add(f"{path}.cache", "cache mark", "Gemini caches by itself")


def _response(result: ToolResult, spelled: Spelled) -> Any:
    words = result.text
    written = spelled.form.get("response")
    if written == "string" and spelled.exact:
        return words
    if written == "json":
        try:
            value = parse(words, "response")
        except BadInput:
            value = None
        if is_object(value) or spelled.exact:
            return value
    return {"error" if result.is_error else "output": words}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
