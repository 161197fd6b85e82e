"""What seven kinds of clients keep of an answer and send back: JSON of theirs, never our values."""

import json
from copy import deepcopy
from random import Random
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = dict[str, Any]
Items: TypeAlias = list[Json]
TOOLS = ("read", "write", "mcp__files__list_all")
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "number"}}}


def as_javascript(value: Any) -> Any:
    """The value after JSON.parse: integers beyond 2**53 change."""
    if isinstance(value, dict):
        return {name: as_javascript(one) for name, one in value.items()}
    if isinstance(value, list):
        return [as_javascript(one) for one in value]
    return int(float(value)) if type(value) is int and abs(value) > 2**53 else value


class Profile(Protocol):
    """One kind of client."""

    format: str

    def user(self, text: str) -> Items:
        """A message of the user."""
        ...

    def kept(self, body: Json) -> Items:
        """What the client keeps of an answer."""
        ...

    def results(self, answer: Items, chance: Random) -> Items:
        """The results of the answer's calls; none without calls."""
        ...

    def body(self, history: list[Items]) -> Json:
        """The body of the next request."""
        ...

    def edit(self, answer: Items) -> None:
        """Changes the words of an answer."""
        ...

    def merge(self, one: Items, other: Items) -> Items:
        """Two answers as one message."""
        ...


class Chat:
    """An OpenAI-compatible client that keeps text and calls, or the reasoning text too."""

    format = "openai-chat"

    def __init__(self, *, reasoning: bool) -> None:
        self._kept = ("content", "tool_calls", *(("reasoning_content",) if reasoning else ()))

    def user(self, text: str) -> Items:
        return [{"role": "user", "content": text}]

    def kept(self, body: Json) -> Items:
        message = body["choices"][0]["message"]
        kept = {name: message[name] for name in self._kept if message.get(name) is not None}
        for call in kept.get("tool_calls", ()):
            call.pop("extra_content", None)
        return [{"role": "assistant", "content": None, **kept}]

    def results(self, answer: Items, chance: Random) -> Items:
        calls = [call for message in answer for call in message.get("tool_calls", ())]
        found = [
            {"role": "tool", "tool_call_id": call["id"], "content": f"result {chance.random()}"}
            for call in calls
        ]
        chance.shuffle(found)
        return found

    def body(self, history: list[Items]) -> Json:
        tools = [
            {"type": "function", "function": {"name": n, "parameters": _SCHEMA}} for n in TOOLS
        ]
        messages = [item for items in history for item in items]
        return {"model": "m", "messages": messages, "tools": tools, "reasoning_effort": "high"}

    def edit(self, answer: Items) -> None:
        answer[0]["content"] = f"{answer[0].get('content') or ''} (changed)"

    def merge(self, one: Items, other: Items) -> Items:
        joined = {**deepcopy(other[0]), **deepcopy(one[0])}
        joined["content"] = (
            "\n".join(filter(None, (one[0]["content"], other[0]["content"]))) or None
        )
        calls = [*one[0].get("tool_calls", ()), *other[0].get("tool_calls", ())]
        joined.pop("reasoning_content", None)
        return [{**joined, **({"tool_calls": calls} if calls else {})}]


class Anthropic:
    """Claude Code: JavaScript, all blocks kept."""

    format = "anthropic-messages"

    def user(self, text: str) -> Items:
        return [{"role": "user", "content": [{"type": "text", "text": text}]}]

    def kept(self, body: Json) -> Items:
        return [{"role": "assistant", "content": as_javascript(body["content"])}]

    def results(self, answer: Items, chance: Random) -> Items:
        blocks = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": f"r {chance.random()}"}
            for message in answer
            for block in message["content"]
            if block["type"] == "tool_use"
        ]
        return [{"role": "user", "content": blocks}] if blocks else []

    def body(self, history: list[Items]) -> Json:
        tools = [{"name": name, "input_schema": _SCHEMA} for name in TOOLS]
        messages = [item for items in history for item in items]
        thinking = {"type": "enabled", "budget_tokens": 2000}
        limits = {"model": "m", "max_tokens": 9000, "thinking": thinking}
        return {**limits, "messages": messages, "tools": tools}

    def edit(self, answer: Items) -> None:
        at = sum(block["type"] != "tool_use" for block in answer[0]["content"])
        answer[0]["content"].insert(at, {"type": "text", "text": "changed"})

    def merge(self, one: Items, other: Items) -> Items:
        return [{"role": "assistant", "content": [*one[0]["content"], *other[0]["content"]]}]


class Responses:
    """codex: items kept whole, each call followed by its output, calls of one answer apart."""

    format = "openai-responses"

    def __init__(self, *, by_id: bool = False) -> None:
        self.by_id = by_id
        self.last = ""

    def user(self, text: str) -> Items:
        return [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        ]

    def kept(self, body: Json) -> Items:
        self.last = body["id"]
        return body["output"]

    def results(self, answer: Items, chance: Random) -> Items:
        return [
            {
                "type": "function_call_output",
                "call_id": item["call_id"],
                "output": f"{chance.random()}",
            }
            for item in answer
            if item["type"] == "function_call"
        ]

    def body(self, history: list[Items]) -> Json:
        tools = [{"type": "function", "name": name, "parameters": _SCHEMA} for name in TOOLS]
        items: Items = []
        outputs = {item["call_id"]: item for part in history for item in part if "output" in item}
        for item in (item for part in history for item in part):
            if item.get("type") == "function_call_output":
                if item["call_id"] in outputs:
                    items.append(outputs.pop(item["call_id"]))
            else:
                items.append(item)
                if item.get("call_id") in outputs:
                    items.append(outputs.pop(item["call_id"]))
        body: Json = {"model": "m", "input": items, "tools": tools, "store": self.by_id}
        body["reasoning"] = {"effort": "high", "summary": "auto"}
        if self.by_id and self.last:
            body |= {"previous_response_id": self.last, "input": history[-1]}
        return body

    def edit(self, answer: Items) -> None:
        content = [{"type": "output_text", "text": "changed", "annotations": []}]
        calls = [n for n, item in enumerate(answer) if item["type"] == "function_call"]
        changed = {"type": "message", "role": "assistant", "content": content, "id": "msg_tw1x"}
        answer.insert(calls[0] if calls else len(answer), changed)

    def merge(self, one: Items, other: Items) -> Items:
        return [*one, *other]


class Gemini:
    """google-genai: parts kept whole, signatures in the URL-safe alphabet, ids dropped."""

    format = "gemini"

    def __init__(self, *, cli: bool) -> None:
        self._cli = cli
        self._made = 0

    def user(self, text: str) -> Items:
        return [{"role": "user", "parts": [{"text": text}]}]

    def kept(self, body: Json) -> Items:
        parts = [self._part(part) for part in body["candidates"][0]["content"].get("parts", ())]
        return [{"role": "model", "parts": [part for part in parts if part]}]

    def _part(self, part: Json) -> Json:
        part = deepcopy(part)
        if self._cli and part.get("thought"):
            return {}
        call = part.get("functionCall")
        if call is not None and self._cli:
            call["args"] = json.loads(json.dumps(call.get("args", {})), parse_int=float)
            if "id" not in call:
                self._made += 1
                call["id"] = f"{call['name']}_{1_800_000_000_000 + self._made}_{self._made}"
            part.setdefault("thoughtSignature", "skip_thought_signature_validator")
        elif call is not None:
            call.pop("id", None)
        signature = part.get("thoughtSignature", "")
        if signature and not self._cli:
            part["thoughtSignature"] = signature.replace("+", "-").replace("/", "_")
        return part

    def results(self, answer: Items, chance: Random) -> Items:
        parts: Items = []
        for call in (
            part["functionCall"] for c in answer for part in c["parts"] if "functionCall" in part
        ):
            response = {"name": call["name"], "response": {"output": f"r {chance.random()}"}}
            own = {"id": call["id"]} if "id" in call else {}
            parts.append({"functionResponse": {**own, **response}})
        return [{"role": "user", "parts": parts}] if parts else []

    def body(self, history: list[Items]) -> Json:
        declared = [{"name": name, "parametersJsonSchema": _SCHEMA} for name in TOOLS]
        contents = [item for items in history for item in items]
        thinking = {"thinkingConfig": {"includeThoughts": True}}
        tools = [{"functionDeclarations": declared}]
        return {"contents": contents, "tools": tools, "generationConfig": thinking}

    def edit(self, answer: Items) -> None:
        answer[0]["parts"].insert(0, {"text": "changed"})

    def merge(self, one: Items, other: Items) -> Items:
        return [{"role": "model", "parts": [*one[0]["parts"], *other[0]["parts"]]}]


PROFILES = {
    "chat": lambda: Chat(reasoning=False),
    "chat with reasoning": lambda: Chat(reasoning=True),
    "anthropic": Anthropic,
    "responses": Responses,
    "responses by id": lambda: Responses(by_id=True),
    "gemini": lambda: Gemini(cli=False),
    "gemini-cli": lambda: Gemini(cli=True),
}
