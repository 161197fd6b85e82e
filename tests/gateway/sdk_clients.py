"""The vendors' SDKs as clients of a gateway, each with its own way to carry a conversation."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import msgspec

from tests.gateway.scripted_model import FILES, TOOL

CLIENTS = ("chat", "chat-echo", "responses", "responses-by-id", "anthropic", "gemini")
"""`chat` sends back text and calls only, as most chat clients do; `chat-echo` all members it got;
`responses-by-id` names the answer before with `previous_response_id`.
"""
_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "The file."}},
    "required": ["path"],
    "additionalProperties": False,
}
_WORDS = "Read a file."


class Asked(msgspec.Struct, frozen=True):
    """A call as the client received it."""

    id: str
    name: str
    arguments: dict[str, Any]


class Turn(msgspec.Struct, frozen=True):
    """One answer as the client received it."""

    text: str
    calls: tuple[Asked, ...]


class SdkClient(Protocol):
    """One conversation."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Adds a message of the user."""

    @abstractmethod
    def ask(self, *, stream: bool) -> Turn:
        """Returns the next answer, and keeps it the way this client does."""

    @abstractmethod
    def add_results(self, results: Sequence[tuple[Asked, str]]) -> None:
        """Adds the results of all calls of the last answer."""


def converse(client: SdkClient, prompts: Sequence[str], *, stream: bool) -> list[Turn]:
    """Returns every answer; files are read until the model makes no more calls."""
    turns: list[Turn] = []
    for prompt in prompts:
        client.say(prompt)
        while True:
            turn = client.ask(stream=stream)
            turns.append(turn)
            if not turn.calls:
                break
            client.add_results([(call, FILES[call.arguments["path"]]) for call in turn.calls])
    return turns


def client_of(name: str, origin: str, key: str = "k", *, thinks: bool = True) -> SdkClient:
    """Returns a new conversation of the client of that name.

    `thinks`: whether an Anthropic client turns thinking on, after which that vendor accepts no
    call without it.
    """
    match name:
        case "chat" | "chat-echo":
            return _Chat(_openai(origin, key), echo=name == "chat-echo")
        case "responses" | "responses-by-id":
            return _Responses(_openai(origin, key), by_id=name == "responses-by-id")
        case "anthropic":
            return _Anthropic(_anthropic(origin, key), thinks=thinks)
        case _:
            return _Gemini(_google(origin, key))


@cache
def _openai(origin: str, key: str) -> Any:
    import openai

    return openai.OpenAI(base_url=f"{origin}/v1", api_key=key, max_retries=0)


@cache
def _anthropic(origin: str, key: str) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=origin, api_key=key, max_retries=0)


@cache
def _google(origin: str, key: str) -> Any:
    from google import genai

    options = genai.types.HttpOptions(base_url=origin)
    return genai.Client(api_key=key, http_options=options)


class _Chat(SdkClient):
    def __init__(self, client: Any, *, echo: bool) -> None:
        self._client = client
        self._echo = echo
        self._messages: list[Any] = []

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def ask(self, *, stream: bool) -> Turn:
        function = {"name": TOOL, "description": _WORDS, "parameters": _SCHEMA, "strict": True}
        asked: Any = {
            "model": "gpt-5.5",
            "messages": self._messages,
            "tools": [{"type": "function", "function": function}],
            "reasoning_effort": "low",
        }
        if stream:
            with self._client.chat.completions.stream(**asked) as events:
                answer = events.get_final_completion()
        else:
            answer = self._client.chat.completions.create(**asked)
        message = answer.choices[0].message
        calls = message.tool_calls or []
        assert answer.choices[0].finish_reason == ("tool_calls" if calls else "stop")
        self._messages.append(self._sent_back(message))
        return Turn(
            message.content or "",
            tuple(
                Asked(call.id, call.function.name, json.loads(call.function.arguments))
                for call in calls
            ),
        )

    def _sent_back(self, message: Any) -> Any:
        if self._echo:
            sent = message.model_dump(exclude_none=True, exclude={"parsed": True})
            for call in sent.get("tool_calls", []):
                call["function"].pop("parsed_arguments", None)
                call.pop("index", None)
            return sent
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls or []
        ]
        sent = {"role": "assistant", "content": message.content}
        return {**sent, "tool_calls": calls} if calls else sent

    def add_results(self, results: Sequence[tuple[Asked, str]]) -> None:
        for call, text in results:
            self._messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


class _Responses(SdkClient):
    def __init__(self, client: Any, *, by_id: bool) -> None:
        self._client = client
        self._by_id = by_id
        self._input: list[Any] = []
        self._before: str | None = None

    def say(self, text: str) -> None:
        self._input.append({"role": "user", "content": text})

    def ask(self, *, stream: bool) -> Turn:
        tool = {"type": "function", "name": TOOL, "description": _WORDS, "strict": True}
        asked: Any = {
            "model": "gpt-5.5",
            "input": self._input,
            "tools": [{**tool, "parameters": _SCHEMA}],
            "reasoning": {"effort": "low", "summary": "auto"},
        }
        if self._by_id:
            asked["previous_response_id"] = self._before
        else:
            asked |= {"store": False, "include": ["reasoning.encrypted_content"]}
        if stream:
            with self._client.responses.stream(**asked) as events:
                answer = events.get_final_response()
        else:
            answer = self._client.responses.create(**asked)
        assert answer.status == "completed", answer.status
        assert [item.type for item in answer.output].count("message") <= 1
        self._before = answer.id
        if self._by_id:
            self._input = []
        else:
            self._input += [_item(item) for item in answer.output]
        calls = [item for item in answer.output if item.type == "function_call"]
        return Turn(
            answer.output_text,
            tuple(Asked(call.call_id, call.name, json.loads(call.arguments)) for call in calls),
        )

    def add_results(self, results: Sequence[tuple[Asked, str]]) -> None:
        for call, text in results:
            output = {"type": "function_call_output", "call_id": call.id, "output": text}
            self._input.append(output)


def _item(item: Any) -> Any:
    sent = item.model_dump(exclude_none=True)
    sent.pop("parsed_arguments", None)
    for part in sent.get("content") or []:
        part.pop("parsed", None)
    return sent


class _Anthropic(SdkClient):
    def __init__(self, client: Any, *, thinks: bool) -> None:
        self._client = client
        self._thinks = thinks
        self._messages: list[Any] = []

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def ask(self, *, stream: bool) -> Turn:
        asked: Any = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 4096,
            "messages": self._messages,
            "tools": [{"name": TOOL, "description": _WORDS, "input_schema": _SCHEMA}],
        }
        if self._thinks:
            asked["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        if stream:
            with self._client.messages.stream(**asked) as events:
                answer = events.get_final_message()
        else:
            answer = self._client.messages.create(**asked)
        calls = [block for block in answer.content if block.type == "tool_use"]
        assert [block.type for block in answer.content].count("text") <= 1
        assert answer.stop_reason == ("tool_use" if calls else "end_turn")
        said = [block.model_dump(exclude_none=True) for block in answer.content]
        for block in said:
            block.pop("parsed_output", None)
        self._messages.append({"role": "assistant", "content": said})
        return Turn(
            "".join(block.text for block in answer.content if block.type == "text"),
            tuple(Asked(block.id, block.name, block.input) for block in calls),
        )

    def add_results(self, results: Sequence[tuple[Asked, str]]) -> None:
        content = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text}
            for call, text in results
        ]
        self._messages.append({"role": "user", "content": content})


class _Gemini(SdkClient):
    """A chat of google-genai, which keeps the history itself."""

    def __init__(self, client: Any) -> None:
        from google.genai import types

        self._types: Any = types
        declared = {"name": TOOL, "description": _WORDS, "parameters_json_schema": _SCHEMA}
        config = {
            "tools": [{"function_declarations": [declared]}],
            "thinking_config": {"include_thoughts": True},
            "automatic_function_calling": {"disable": True},
        }
        self._chat: Any = client.chats.create(model="gemini-3-pro", config=config)
        self._next: Any = ""

    def say(self, text: str) -> None:
        self._next = text

    def ask(self, *, stream: bool) -> Turn:
        if stream:
            chunks = list(self._chat.send_message_stream(self._next))
        else:
            chunks = [self._chat.send_message(self._next)]
        assert chunks[-1].candidates[0].finish_reason == "STOP"
        parts = [part for chunk in chunks for part in (chunk.candidates[0].content.parts or [])]
        return Turn(
            "".join(part.text for part in parts if part.text and not part.thought),
            tuple(
                Asked(part.function_call.id or "", part.function_call.name, part.function_call.args)
                for part in parts
                if part.function_call
            ),
        )

    def add_results(self, results: Sequence[tuple[Asked, str]]) -> None:
        self._next = [
            self._types.Part(
                function_response=self._types.FunctionResponse(
                    id=call.id or None, name=call.name, response={"output": text}
                )
            )
            for call, text in results
        ]
