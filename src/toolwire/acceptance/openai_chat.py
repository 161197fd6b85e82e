"""What Chat Completions servers reject."""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolwire.acceptance import limits
from toolwire.acceptance.schemas import openai_root, openai_strict
from toolwire.acceptance.violation import (
    Subject,
    Violation,
    is_data_url,
    is_number,
    member,
    numbered,
    outside,
    texts,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import is_list, is_object, list_or_empty, objects_in

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_arguments = msgspec.json.Decoder(dict[str, Any])


def check(subject: Subject) -> Iterator[Violation]:
    """Yields why OpenAI or the server's demands would reject a request."""
    body = subject.body
    if not subject.in_address and (not isinstance(body.get("model"), str) or not body["model"]):
        yield Violation("model", "you must provide a model parameter")
    if not objects_in(body.get("messages")):
        message = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        yield Violation("messages", message)
    unknown = body.keys() - (subject.facts.members or body.keys())
    for name in sorted(unknown | (subject.demands.refused_members & body.keys())):
        message = f"Unrecognized request argument supplied: {name}"
        yield Violation(name, message, param=name)
    yield from _tools(subject)
    for number, message in numbered(body.get("messages")):
        yield from _message(message, f"messages.[{number}]", subject)
    yield from _pairs(subject)
    yield from refused_settings(subject, "max_completion_tokens")
    yield from _settings(subject)


def _tools(subject: Subject) -> Iterator[Violation]:
    body = subject.body
    tools = body.get("tools")
    if is_list(tools) and not tools:
        message = "Invalid 'tools': empty array. Expected an array with minimum length 1."
        yield Violation("tools", message)
    if not tools:
        for name in ("tool_choice", "parallel_tool_calls"):
            if body.get(name) is not None:
                message = f"'{name}' is only allowed when 'tools' are specified."
                yield Violation(name, message, param=name)
    choices, choice = subject.demands.tool_choices, body.get("tool_choice")
    word = choice if isinstance(choice, str) else "named"
    if choices is not None and choice is not None and word not in choices:
        message = f"tool_choice {choice!r} is not supported"
        yield Violation("tool_choice", message, param="tool_choice")
    yield from too_many_tools(tools, "openai-chat")
    for number, tool in numbered(tools):
        kind = tool.get("type")
        if kind in ("function", "custom"):
            place = f"tools[{number}].{kind}"
            inner = tool.get(kind)
            yield from _name(member(inner, "name"), f"{place}.name")
            yield from schema_of_tool(inner, place)


def _name(name: object, place: str) -> Iterator[Violation]:
    if not isinstance(name, str) or not limits.TOOL_NAME.fullmatch(name):
        message = f"Invalid '{place}': does not match pattern '^[a-zA-Z0-9_-]+$'."
        yield Violation(place, message, param=place)


def too_many_tools(tools: object, dialect: str) -> Iterator[Violation]:
    """Yields a list of tools that is too long."""
    count, most = len(list_or_empty(tools)), limits.MAX_TOOLS[dialect]
    if count > most:
        message = (
            f"Invalid 'tools': array too long. Expected an array with maximum length {most}, but "
            f"got an array with length {count} instead."
        )
        yield Violation("tools", message, code="array_above_max_length", param="tools")


def schema_of_tool(tool: object, place: str) -> Iterator[Violation]:
    """Yields a function's schema that OpenAI rejects."""
    schema = member(tool, "parameters")
    if schema is None:
        return
    wrong = openai_root(schema) if schema else ""
    if not wrong and member(tool, "strict") is True:
        wrong = openai_strict(schema)
    if wrong:
        path = f"{place}.parameters"
        message = f"Invalid schema for function '{member(tool, 'name')}': {wrong}"
        yield Violation(path, message, code="invalid_function_parameters", param=path)


def _message(message: JsonObject, path: str, subject: Subject) -> Iterator[Violation]:
    role, content = message.get("role"), message.get("content")
    if str(role) not in _ROLES:
        words = f"Invalid value: '{role}'. Supported values are: 'system', 'user', …"
        yield Violation(path, words, param=path)
        return
    if is_list(content):
        yield from _parts(content, str(role), path)
    if role == "assistant":
        yield from _assistant(message, path, subject)
    elif type(content) not in (str, list) and role != "function":
        words = f"Invalid type for '{path}.content': expected a string or a list"
        yield Violation(path, words, param=path)


def _parts(content: list[Any], role: str, path: str) -> Iterator[Violation]:
    if not content and role != "assistant":
        words = f"Invalid '{path}.content': empty array. Expected an array with minimum length 1."
        yield Violation(f"{path}.content", words, code="empty_array", param=path)
    for number, part in enumerate(content):
        where = f"{path}.content[{number}]"
        if not is_object(part) or not isinstance(part.get("type"), str):
            words = f"Missing required parameter: '{where}.type'."
            yield Violation(where, words, code="missing_required_parameter", param=where)
            continue
        if role not in ("user", "assistant") and part["type"] != "text":
            words = f"Invalid '{path}.content': {role} messages hold text only"
            yield Violation(where, words, param=path)
        url = member(part, "image_url", "url")
        if isinstance(url, str) and not is_data_url(url):
            yield Violation(where, "Invalid base64 image_url.", code="invalid_base64", param=where)
        data = member(part, "file", "file_data")
        if isinstance(data, str) and not is_data_url(data):
            yield Violation(where, "Invalid base64 file_data.", code="invalid_base64", param=where)


def _assistant(message: JsonObject, path: str, subject: Subject) -> Iterator[Violation]:
    calls = message.get("tool_calls")
    if is_list(calls) and not objects_in(calls):
        words = f"Invalid '{path}.tool_calls': empty array. Expected minimum length 1."
        yield Violation(path, words, param=path)
    said = calls or message.get("refusal") or message.get("function_call") or message.get("audio")
    if message.get("content") is None and not said:
        words = f"Invalid value for 'content': expected a string, got null. ({path})"
        yield Violation(path, words, param=path)
    for call in objects_in(calls):
        yield from _call(call, path, subject)
    thought = message.get("reasoning_content", message.get("reasoning"))
    if subject.demands.thinking_back and objects_in(calls) and thought is None:
        words = "The `reasoning_content` in the thinking mode must be passed back to the API."
        yield Violation(path, words)


def _call(call: JsonObject, path: str, subject: Subject) -> Iterator[Violation]:
    call_id, length = call.get("id"), subject.demands.id_length
    where = f"{path}.tool_calls[]"
    if not isinstance(call_id, str) or not call_id:
        yield Violation(where, f"Missing required parameter: '{where}.id'.", param=path)
    elif len(call_id) > limits.MAX_ID:
        yield Violation(where, f"Invalid '{where}.id': string too long.", param=path)
    elif length and not (len(call_id) == length and call_id.isascii() and call_id.isalnum()):
        words = f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of {length}."
        yield Violation(where, words, code="invalid_function_call")
    kind = call.get("type")
    if kind not in ("function", "custom"):
        yield Violation(where, f"Missing required parameter: '{where}.type'.", param=path)
        return
    name = member(call, str(kind), "name")
    if not isinstance(name, str) or not limits.TOOL_NAME.fullmatch(name):
        yield Violation(where, f"Invalid '{where}.{kind}.name': {name!r}", param=path)
    if kind == "function":
        yield from _call_arguments(member(call, "function", "arguments"), path, subject)


def _call_arguments(arguments: object, path: str, subject: Subject) -> Iterator[Violation]:
    if not isinstance(arguments, str):
        where = f"{path}.tool_calls[].function.arguments"
        yield Violation(where, f"Invalid type for '{where}': expected a string")
        return
    if subject.facts.any_arguments:
        return
    try:
        _arguments.decode(arguments)
    except msgspec.DecodeError as error:
        # OpenAI itself accepts it; Mistral, Groq and vLLM do not.
        words = f"{path}: function.arguments is no JSON object: {error}"
        yield Violation(f"{path}.tool_calls", words, param=path)


def _pairs(subject: Subject) -> Iterator[Violation]:
    waiting: list[Any] = []
    previous = ""
    messages = objects_in(subject.body.get("messages"))
    for number, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                words = (
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    f"preceding message with 'tool_calls'. ({call_id})"
                )
                yield Violation(f"messages.[{number}]", words, param=f"messages.[{number}].role")
        else:
            yield from _open(waiting, number)
            if previous == "tool" and role == "user" and not subject.demands.user_after_results:
                yield Violation(f"messages.[{number}]", "Unexpected role 'user' after role 'tool'")
            waiting = [call.get("id") for call in objects_in(message.get("tool_calls"))]
        previous = str(role)
    yield from _open(waiting, len(messages))


def _open(waiting: list[Any], number: int) -> Iterator[Violation]:
    if waiting:
        words = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        )
        place = f"messages.[{number}]"
        yield Violation(place, words + ", ".join(map(str, waiting)), param=f"{place}.role")


def refused_settings(subject: Subject, limit_name: str) -> Iterator[Violation]:
    """Yields settings that the model rejects, in both formats of OpenAI."""
    body, facts = subject.body, subject.facts
    for name in sorted(facts.refused & body.keys()):
        value = body[name]
        unset = value in (None, [], {}) or value is False
        default = value == 0 and name.endswith("penalty")
        if not (unset or default or (name == "logprobs" and _is_off(subject))):
            words = f"Unsupported parameter: '{name}' is not supported with this model."
            if name == "max_tokens":
                words += " Use 'max_completion_tokens' instead."
            yield Violation(name, words, code="unsupported_parameter", param=name)
    for name in ("temperature", "top_p"):
        value = body.get(name)
        if not facts.sampling and value not in (None, 1) and not _is_off(subject):
            words = (
                f"Unsupported value: '{name}' does not support {value} with this model. Only the "
                "default (1) value is supported."
            )
            yield Violation(name, words, code="unsupported_value", param=name)
    for name, value, bound in outside(body, limits.OPENAI_BOUNDS):
        low = value < bound
        words = (
            f"Invalid '{name}': decimal {'below minimum' if low else 'above maximum'} value. "
            f"Expected a value {'>=' if low else '<='} {bound:g}, but got {value} instead."
        )
        code = "decimal_below_min_value" if low else "decimal_above_max_value"
        yield Violation(name, words, code=code, param=name)
    most = body.get(limit_name, body.get("max_tokens"))
    if facts.output and is_number(most) and most > facts.output:
        words = (
            f"{limit_name} is too large: {most}. This model supports at most {facts.output} "
            "completion tokens."
        )
        yield Violation(limit_name, words, code="invalid_value", param=limit_name)
    yield from _metadata(body.get("metadata"))


def _is_off(subject: Subject) -> bool:
    """Whether reasoning is switched off, as models since gpt-5.1 can: then they take sampling."""
    body = subject.body
    effort = body.get("reasoning_effort") or member(body, "reasoning", "effort")
    return effort == "none" or (effort is None and subject.facts.quiet)


def _metadata(metadata: object) -> Iterator[Violation]:
    pairs, key_length, value_length = limits.METADATA
    if not is_object(metadata):
        return
    if len(metadata) > pairs:
        words = f"Invalid 'metadata': too many properties. Expected at most {pairs}."
        yield Violation("metadata", words, param="metadata")
    for key, value in metadata.items():
        if not isinstance(value, str) or len(key) > key_length or len(value) > value_length:
            words = f"Invalid 'metadata.{key}': expected a string of at most {value_length}."
            yield Violation(f"metadata.{key}", words, param="metadata")


def effort(subject: Subject, value: object, path: str) -> Iterator[Violation]:
    """Yields a reasoning effort that the model does not take."""
    facts = subject.facts
    if value is None:
        return
    if facts.thinking is False and value != "none":
        words = f"Unsupported parameter: '{path}' is not supported with this model."
        yield Violation(path, words, code="unsupported_parameter", param=path)
    elif facts.efforts is not None and str(value) not in facts.efforts:
        known = ", ".join(f"'{word}'" for word in sorted(facts.efforts))
        words = (
            f"Unsupported value: '{value}' is not supported with the '{subject.model}' model. "
            f"Supported values are: {known}."
        )
        yield Violation(path, words, code="unsupported_value", param=path)


def output_schema(wanted: object, path: str) -> Iterator[Violation]:
    """Yields an answer's schema that OpenAI rejects."""
    name, schema = member(wanted, "name"), member(wanted, "schema")
    if not isinstance(name, str) or not limits.TOOL_NAME.fullmatch(name):
        words = f"Invalid '{path}.name': does not match pattern '^[a-zA-Z0-9_-]+$'."
        yield Violation(f"{path}.name", words, param=f"{path}.name")
    if member(wanted, "strict") is True:
        wrong = openai_root(schema) or openai_strict(schema)
        if wrong:
            words = f"Invalid schema for response_format '{name}': {wrong}"
            yield Violation(f"{path}.schema", words, param=path)


def mentions_json(value: object) -> bool:
    """Whether the word that JSON mode requires is in some text."""
    return any("json" in text.lower() for text in texts(value))


def _settings(subject: Subject) -> Iterator[Violation]:
    body = subject.body
    stops = len(list_or_empty(body.get("stop")))
    if stops > limits.MAX_STOPS["openai-chat"]:
        words = f"Invalid 'stop': array too long. Expected at most 4, but got {stops} instead."
        yield Violation("stop", words, code="array_above_max_length", param="stop")
    if body.get("stream_options") is not None and body.get("stream") is not True:
        words = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield Violation("stream_options", words, param="stream_options")
    yield from effort(subject, body.get("reasoning_effort"), "reasoning_effort")
    wanted = body.get("response_format")
    kind = member(wanted, "type")
    if kind == "json_schema":
        path = "response_format.json_schema"
        yield from output_schema(member(wanted, "json_schema"), path)
    if kind == "json_object" and not mentions_json(body.get("messages")):
        words = (
            "'messages' must contain the word 'json' in some form, to use 'response_format' of "
            "type 'json_object'."
        )
        yield Violation("response_format", words, param="messages")
