"""Rejects what a vendor would: its rules of acceptance, then the seals that this server issued."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping

import msgspec

from toolwire import acceptance
from toolwire.acceptance.anthropic import leading_results, merged
from toolwire.acceptance.gemini import camel_case, contents_of, parts_of
from toolwire.acceptance.limits import NO_DEMANDS, SIGNATURE_SKIPS, Demands
from toolwire.acceptance.violation import member, numbered
from toolwire.errors import ErrorKind, ProviderError
from toolwire.request import JsonObject
from toolwire.wire.json_access import objects_in

_KEY = b"toolwire simulator"
"""Not a secret: a seal must be recognised after a restart, not resist forgery."""
_SEPARATOR = b"\x00"


class Seals:
    """Issues seals, verifies them, and remembers beside which calls they were sent."""

    def __init__(self) -> None:
        self.issued: list[str] = []
        self._count = 0
        self._beside: dict[str, tuple[str, ...]] = {}
        self._thoughts: dict[str, str] = {}

    def issue(self, family: str, model: str, content: str) -> str:
        """Returns a seal on that content as base64 text."""
        self._count += 1
        head = _SEPARATOR.join(
            (family.encode(), model.encode(), str(self._count).encode(), _digest(content))
        )
        token = b64encode(_mac(head) + head).decode("ascii")
        self.issued.append(token)
        return token

    def wrong(self, token: str, family: str, model: str, content: str | None = None) -> str:
        """Returns what is wrong with a seal; empty if it is this server's and unchanged."""
        try:
            raw = b64decode(token, validate=True)
        except ValueError:
            return "it is not base64"
        mac, head = raw[:32], raw[32:]
        if not hmac.compare_digest(mac, _mac(head)):
            return "this server did not issue it"
        maker, made_for, _, digest = head.split(_SEPARATOR)
        if maker.decode() != family:
            return f"it is one of {maker.decode()}"
        if made_for.decode() != model:
            return f'it was made by the model "{made_for.decode()}"'
        if content is not None and digest not in (_digest(content), _digest("")):
            return "what it seals was changed"
        return ""

    def remember(self, call_id: str, seals: tuple[str, ...], thoughts: str) -> None:
        """Records what was sent with a call."""
        self._beside[call_id] = seals
        self._thoughts[call_id] = thoughts

    def beside(self, call_id: str) -> tuple[str, ...]:
        """Returns the seals sent with a call; none for a foreign call."""
        return self._beside.get(call_id, ())

    def thoughts(self, call_id: str) -> str | None:
        """Returns the reasoning sent with a call; None for a foreign call."""
        return self._thoughts.get(call_id)


def call_content(name: str, arguments: object) -> str:
    """Returns what a seal on a call covers, independent of JSON formatting; empty if the arguments
    are not JSON: such a seal covers nothing.
    """
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments or "{}")
        except msgspec.DecodeError:
            return ""
    return msgspec.json.encode([name, arguments], order="deterministic").decode()


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16].encode()


def _mac(head: bytes) -> bytes:
    return hmac.digest(_KEY, head, "sha256")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request as received, not decoded by us."""

    body: JsonObject
    headers: Mapping[str, str]
    model: str
    seals: Seals
    demands: Demands = NO_DEMANDS
    path: str = ""


def check(dialect: str, asked: Asked) -> None:
    """Raises the vendor's error for a request it would reject."""
    on_platform = "rawPredict" in asked.path or "RawPredict" in asked.path
    versioned = dialect == "anthropic-messages" and not on_platform
    if versioned and "anthropic-version" not in asked.headers:
        _refuse("anthropic-version: header is required")
    if dialect == "gemini":
        _check_ids(asked)
    for found in acceptance.violations(
        dialect, asked.body, asked.model, demands=asked.demands, in_address=on_platform
    ):
        _refuse(found.message, code=found.code, param=found.param, status=found.status)
    _SEALS[dialect](asked)


def _refuse(message: str, *, code: str = "", param: str = "", status: int = 400) -> None:
    kind = ErrorKind.NOT_FOUND if status == 404 else ErrorKind.BAD_REQUEST
    raise ProviderError(kind, message, status=status, code=code, param=param)


def _check_chat(asked: Asked) -> None:
    for number, message in numbered(asked.body["messages"]):
        path = f"messages.[{number}]"
        for call in objects_in(message.get("tool_calls")):
            signature = member(call, "extra_content", "google", "thought_signature")
            if signature is not None:
                function = call[call["type"]]
                content = call_content(function["name"], function.get("arguments"))
                wrong = asked.seals.wrong(signature, "openai-chat", asked.model, content)
                if wrong:
                    _refuse(f"{path}: thought signature is not valid: {wrong}", param=path)
        _check_details(message, path, asked)


def _check_details(message: JsonObject, path: str, asked: Asked) -> None:
    for detail in objects_in(message.get("reasoning_details")):
        seal, text = detail.get("data", detail.get("signature")), detail.get("text")
        wrong = asked.seals.wrong(str(seal), "openai-chat", asked.model, text) if seal else ""
        if wrong:
            _refuse(f"{path}: reasoning_details could not be verified: {wrong}", param=path)
    calls = objects_in(message.get("tool_calls"))
    if not calls:
        return
    call_id = str(calls[0].get("id"))
    issued = asked.seals.thoughts(call_id)
    sent = message.get("reasoning_content", message.get("reasoning"))
    if isinstance(sent, str) and issued is not None and sent != issued:
        _refuse(f"{path}: reasoning_content is not what was sent beside {call_id}", param=path)


def _check_responses(asked: Asked) -> None:
    present: set[str] = set()
    for item in objects_in(asked.body.get("input")):
        kind, item_id = item.get("type", "message"), item.get("id")
        if kind == "reasoning":
            _check_item_seal(item, asked)
            present.add(str(item.get("encrypted_content")))
            continue
        # A call that names its item is looked up, and its reasoning with it.
        named = kind in ("function_call", "custom_tool_call") and item_id is not None
        beside = asked.seals.beside(str(item.get("call_id"))) if named else ()
        if any(seal not in present for seal in beside):
            words = (
                f"Item '{item_id}' of type '{kind}' was provided without its required "
                "'reasoning' item."
            )
            _refuse(words, param="input")


def _check_item_seal(item: JsonObject, asked: Asked) -> None:
    data, item_id = item.get("encrypted_content"), item.get("id")
    if not isinstance(data, str):
        words = (
            f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to "
            "false. Try again with `store` set to true, or remove this item from your input."
        )
        _refuse(words, status=404, param="input")
    text = "".join(str(part.get("text", "")) for part in objects_in(item["summary"]))
    wrong = asked.seals.wrong(str(data), "openai-responses", asked.model, text)
    if wrong:
        words = f"The encrypted content for item {item_id} could not be verified. Reason: {wrong}."
        _refuse(words, code="invalid_encrypted_content")


def _check_anthropic(asked: Asked) -> None:
    turns = merged(objects_in(asked.body["messages"]))
    for number, (_, blocks) in enumerate(turns):
        for place, block in enumerate(blocks):
            path = f"messages.{number}.content.{place}"
            if block.get("type") == "thinking":
                signature, text = block["signature"], block["thinking"]
                wrong = asked.seals.wrong(signature, "anthropic-messages", asked.model, text)
                if wrong:
                    _refuse(f"{path}: Invalid `signature` in `thinking` block: {wrong}")
            if block.get("type") == "redacted_thinking":
                data = str(block.get("data"))
                wrong = asked.seals.wrong(data, "anthropic-messages", asked.model)
                if wrong:
                    _refuse(f"{path}: Invalid `data` in `redacted_thinking` block: {wrong}")
    newest = next((blocks for role, blocks in reversed(turns) if role == "assistant"), None)
    answered = turns[-1][0] == "user" and leading_results(turns[-1][1])
    if newest is None or not answered or member(asked.body, "thinking", "type") == "disabled":
        return
    there = [block.get("signature", block.get("data")) for block in newest]
    for call in newest:
        if any(seal not in there for seal in asked.seals.beside(str(call.get("id")))):
            _refuse(
                "messages: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the "
                "original response."
            )


def _gemini_parts(body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for number, content in enumerate(contents_of(camel_case(body))):
        for place, part in enumerate(parts_of(content)):
            yield f"contents[{number}].parts[{place}]", part


def _check_ids(asked: Asked) -> None:
    # Where the server gave no id, gemini-cli gives the call and its result one of its own.
    parts = list(_gemini_parts(asked.body))
    answered = [member(part, "functionResponse", "id") for _, part in parts]
    for path, part in parts:
        call_id = member(part, "functionCall", "id")
        if call_id in answered or call_id is None:
            continue
        if asked.seals.thoughts(str(call_id)) is None:
            _refuse(f"{path}.function_call.id: no call of that id was made by this model")


def _check_signatures(asked: Asked) -> None:
    for path, part in _gemini_parts(asked.body.get("request", asked.body)):
        call, signature = part.get("functionCall"), part.get("thoughtSignature")
        if signature is not None and signature not in SIGNATURE_SKIPS:
            sealed = call_content(call["name"], call.get("args", {})) if call else None
            # A field of bytes: Google's own SDK sends it back as URL-safe base64.
            token = str(signature).replace("-", "+").replace("_", "/")
            wrong = asked.seals.wrong(token, "gemini", asked.model, sealed)
            if wrong:
                _refuse(f"{path}: Thought signature is not valid: {wrong}")


_SEALS: dict[str, Callable[[Asked], None]] = {
    "openai-chat": _check_chat,
    "openai-responses": _check_responses,
    "anthropic-messages": _check_anthropic,
    "gemini": _check_signatures,
    "code-assist": _check_signatures,
}
