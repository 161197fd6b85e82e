"""`toolwire decode`: decode a response body."""

import base64
import binascii
import sys

import click

from toolwire.cli.convert import each_line, error_object, need
from toolwire.cli.terminal import fail
from toolwire.codec import Answer, read_answer
from toolwire.dialects import tools
from toolwire.errors import BadInput, ProviderError, UnknownName
from toolwire.messages import CallKind, Refusal, ServerBlock, ToolCall
from toolwire.wire.json_access import JsonObject, dump

_GEMINI = (b'"candidates"', b'"usageMetadata"', b'"promptFeedback"')
_MARKS = {
    "openai-chat": (b'"choices"',),
    "openai-responses": (b'"response.', b"event: response."),
    "anthropic-messages": (b'"message_start"', b"event: message_start"),
    "gemini": _GEMINI,
    "code-assist": _GEMINI,
}
"""Beginnings of streams: one that broke before any content still has them."""


@click.command("decode")
@click.argument("dialect", required=False)
@click.option("--whole", is_flag=True, help="The input is one JSON body, not a stream.")
@click.option("--jsonl", is_flag=True, help="JSON Lines: one input object per line.")
def decode_command(dialect: str | None, whole: bool, jsonl: bool) -> None:
    """Decode a vendor's response body from standard input and print it as JSON.

    With --jsonl each line is {"id", "dialect", "whole", "body" or "body_b64"}.
    """
    if jsonl:
        each_line(_line)
        return
    if dialect is None:
        raise click.UsageError("name a DIALECT, or use --jsonl")
    body = sys.stdin.buffer.read()
    try:
        answer = read_answer(dialect, body, whole=whole)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    begun = not whole and any(mark in body for mark in _MARKS[dialect])
    if answer.error is not None and _is_nothing(answer) and not begun:
        fail(BadInput(f"this is not a valid {dialect} response: {answer.error}"))
    click.echo(dump(described(answer)))


def described(answer: Answer) -> JsonObject:
    """Returns the answer as the command prints it."""
    message, finished = answer.message, answer.finished
    usage = answer.usage
    refusal = "".join(part.text for part in message.parts if isinstance(part, Refusal))
    return {
        "text": message.text,
        "reasoning": message.thinking,
        "tool_calls": [_described_call(call) for call in message.calls],
        "stop_reason": str(finished.reason) if finished else None,
        "usage": {
            "input": usage.input if usage else None,
            "output": usage.output if usage else None,
            "cached": usage.cached if usage else None,
            "reasoning": usage.reasoning if usage else None,
            "cache_write": usage.cache_write if usage else None,
        },
        "notices": [{"kind": note.kind, "message": note.message} for note in answer.notices],
        "error": error_object(answer.error) if answer.error else None,
        "refusal": refusal,
        "stop_detail": finished.detail if finished else "",
        "server_items": [part.kind for part in message.parts if isinstance(part, ServerBlock)],
    }


def _described_call(call: ToolCall) -> JsonObject:
    freeform = call.kind is CallKind.FREEFORM
    value = None if freeform else tools.parsed(call)
    if not call.complete:
        status = "incomplete"
    else:
        status = "complete" if freeform or value is not None else "invalid"
    described: JsonObject = {
        "id": call.id,
        "name": call.name,
        "arguments": value,
        "raw": call.arguments,
        "status": status,
    }
    if freeform:
        described["kind"] = "freeform"
    if call.namespace:
        described["namespace"] = call.namespace
    return described


def _line(line: JsonObject) -> JsonObject:
    body = line.get("body")
    if isinstance(body, str):
        data = body.encode("utf-8", "surrogatepass")
    else:
        try:
            data = base64.b64decode(need(line, "body_b64"), validate=True)
        except binascii.Error as error:
            raise BadInput(f"body_b64 is not base64: {error}") from error
    return described(read_answer(need(line, "dialect"), data, whole=bool(line.get("whole"))))


def _is_nothing(answer: Answer) -> bool:
    return not answer.message.parts and not isinstance(answer.error, ProviderError)
