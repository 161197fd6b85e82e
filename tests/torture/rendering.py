"""Each scenario spelled in each wire format, oddities and all."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.torture.scenarios import Piece, Say, Scenario

Obj = dict[str, Any]


def _sse(data: Obj, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _pieces(scenario: Scenario, call: int) -> list[Piece]:
    return [step for step in scenario.steps if isinstance(step, Piece) and step.call == call]


def _name(scenario: Scenario, call: int) -> str:
    """The whole name: repeated words count once, pieces are joined."""
    words = [piece.name for piece in _pieces(scenario, call) if piece.name]
    return words[0] if len(set(words)) == 1 else "".join(words)


def _id(scenario: Scenario, call: int) -> str | None:
    return next((piece.id for piece in _pieces(scenario, call) if piece.id), None)


def _text(args: Any) -> str:
    return args if isinstance(args, str) else json.dumps(args) if args is not None else ""


def _arguments(scenario: Scenario, call: int) -> str:
    return "".join(_text(piece.args) for piece in _pieces(scenario, call))


def chat(scenario: Scenario) -> Iterator[bytes]:
    def chunk(delta: Obj, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _sse({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})

    yield chunk({"role": "assistant", "content": None})
    for step in scenario.steps:
        if isinstance(step, Say):
            yield chunk({"content": step.text})
            continue
        call: Obj = {} if step.at is None else {"index": step.at}
        if step.id is not None:
            call |= {"id": step.id, "type": "function"}
        call["function"] = {"arguments": step.args}
        if step.name is not None:
            call["function"]["name"] = step.name
        yield chunk({"tool_calls": [call]})
    if scenario.end != "broken":
        yield chunk({}, scenario.end)
        yield b"data: [DONE]\n\n"


def anthropic(scenario: Scenario) -> Iterator[bytes]:
    def event(kind: str, **members: Any) -> bytes:
        return _sse({"type": kind, **members}, kind)

    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    yield event("message_start", message={**message, "usage": usage})
    open_blocks: dict[int, int] = {}
    for number, step in enumerate(scenario.steps):
        if isinstance(step, Say):
            index = 100 + number
            block = {"type": "text", "text": ""}
            yield event("content_block_start", index=index, content_block=block)
            delta = {"type": "text_delta", "text": step.text}
            yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
            continue
        index = step.call if step.at is None else step.at
        if open_blocks.get(index) != step.call:
            if index in open_blocks:
                yield event("content_block_stop", index=index)
            open_blocks[index] = step.call
            block = {"type": "tool_use", "name": _name(scenario, step.call), "input": {}}
            call_id = _id(scenario, step.call)
            if call_id is not None:
                block["id"] = call_id
            if isinstance(step.args, dict):
                block["input"] = step.args
            yield event("content_block_start", index=index, content_block=block)
        if isinstance(step.args, str):
            delta = {"type": "input_json_delta", "partial_json": step.args}
            yield event("content_block_delta", index=index, delta=delta)
    if scenario.end == "broken":
        return
    for index in open_blocks:
        yield event("content_block_stop", index=index)
    words = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}
    delta = {"stop_reason": words[scenario.end], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": 9})
    yield event("message_stop")


def responses(scenario: Scenario) -> Iterator[bytes]:
    def event(kind: str, **members: Any) -> bytes:
        return _sse({"type": kind, **members}, kind)

    def item(call: int, status: str, text: str) -> Obj:
        made: Obj = {"type": "function_call", "id": f"fc_{call}", "status": status}
        call_id = _id(scenario, call)
        if call_id is not None:
            made["call_id"] = call_id
        return {**made, "name": _name(scenario, call), "arguments": text}

    def done(call: int, index: int | None) -> bytes:
        cut = scenario.end == "length" and call == last
        status = "incomplete" if cut else "completed"
        at = {} if index is None else {"output_index": index}
        text = _arguments(scenario, call)
        return event("response.output_item.done", item=item(call, status, text), **at)

    last = max(step.call for step in scenario.steps if isinstance(step, Piece))
    yield event("response.created", response={"id": "r", "status": "in_progress", "output": []})
    open_items: dict[int, int | None] = {}
    for number, step in enumerate(scenario.steps):
        if isinstance(step, Say):
            at = {"output_index": 100 + number, "content_index": 0, "item_id": f"msg_{number}"}
            yield event("response.output_text.delta", delta=step.text, **at)
            continue
        at = {} if step.at is None else {"output_index": step.at}
        if step.call not in open_items:
            same = [call for call, index in open_items.items() if index == step.at is not None]
            for call in same:
                yield done(call, open_items.pop(call))
            open_items[step.call] = step.at
            added = item(step.call, "in_progress", "")
            yield event("response.output_item.added", item=added, **at)
        if step.args:
            delta = {"item_id": f"fc_{step.call}", "delta": _text(step.args), **at}
            yield event("response.function_call_arguments.delta", **delta)
    if scenario.end == "broken":
        return
    for call, index in open_items.items():
        yield done(call, index)
    final: Obj = {"id": "r", "status": "completed", "output": [], "usage": None}
    if scenario.end == "length":
        final |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        yield event("response.incomplete", response=final)
    else:
        yield event("response.completed", response=final)


def _gemini_chunks(scenario: Scenario) -> Iterator[Obj]:
    def chunk(*parts: Obj, **more: Any) -> Obj:
        content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
        return {"candidates": [{**content, "index": 0, **more}]}

    seen: set[int] = set()
    for step in scenario.steps:
        if isinstance(step, Say):
            yield chunk({"text": step.text})
            continue
        if step.call in seen:
            continue
        seen.add(step.call)
        call: Obj = {"name": _name(scenario, step.call)}
        call_id = _id(scenario, step.call)
        if call_id is not None:
            call["id"] = call_id
        text = _arguments(scenario, step.call)
        if scenario.wanted[step.call].status == "incomplete":
            call["willContinue"] = True
            if text:
                piece = {"jsonPath": "$.path", "stringValue": "b", "willContinue": True}
                call["partialArgs"] = [piece]
        elif text:
            call["args"] = json.loads(text)
        yield chunk({"functionCall": call})
    if scenario.end != "broken":
        yield chunk(finishReason="MAX_TOKENS" if scenario.end == "length" else "STOP")


def gemini(scenario: Scenario) -> Iterator[bytes]:
    for chunk in _gemini_chunks(scenario):
        yield _sse(chunk).replace(b"\n", b"\r\n")


def code_assist(scenario: Scenario) -> Iterator[bytes]:
    for chunk in _gemini_chunks(scenario):
        yield _sse({"response": chunk})


RENDERERS: dict[str, Callable[[Scenario], Iterator[bytes]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic-messages": anthropic,
    "gemini": gemini,
    "code-assist": code_assist,
}
