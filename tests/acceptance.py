"""Whether the vendors' own SDK types accept a request body."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import pydantic


class Rejected(AssertionError):
    """The vendor's types do not take the body."""


@cache
def _adapter(dialect: str) -> pydantic.TypeAdapter[Any]:
    if dialect == "openai-chat":
        from openai.types.chat import completion_create_params

        return pydantic.TypeAdapter(completion_create_params.CompletionCreateParams)
    if dialect == "openai-responses":
        from openai.types.responses import response_create_params

        return pydantic.TypeAdapter(response_create_params.ResponseCreateParams)
    from anthropic.types.beta import message_create_params

    return pydantic.TypeAdapter(message_create_params.MessageCreateParams)


def _consume(value: Any) -> None:
    # pydantic checks an Iterable only while it is read.
    if isinstance(value, dict):
        for inner in value.values():
            _consume(inner)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for inner in value:
            _consume(inner)


def _check_gemini(body: dict[str, Any]) -> None:
    from google.genai import types

    for content in body["contents"]:
        types.Content.model_validate(content)
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    if "systemInstruction" in body:
        types.Content.model_validate(body["systemInstruction"])
    if "toolConfig" in body:
        types.ToolConfig.model_validate(body["toolConfig"])
    if "generationConfig" in body:
        types.GenerationConfig.model_validate(body["generationConfig"])


def check(dialect: str, body: dict[str, Any]) -> None:
    """Raise Rejected if the SDK's request types refuse the body."""
    try:
        if dialect == "code-assist":
            _check_gemini(body["request"])
        elif dialect == "gemini":
            _check_gemini(body)
        else:
            _consume(_adapter(dialect).validate_python(body))
    except pydantic.ValidationError as error:
        raise Rejected(f"{dialect}: {error}") from error
