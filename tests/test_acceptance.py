"""What vendors reject: held against what they accepted, and each rule on a request of its own."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import corpus_harness as harness
from toolwire.acceptance import violations

Body = dict[str, Any]
VENDORS = {
    "openai-chat": ("openai", "azure"),
    "openai-responses": ("openai", "azure"),
    "anthropic-messages": ("anthropic",),
    "gemini": ("google", "vertex"),
}
IN_ADDRESS = ("azure", "vertex")
NOT_AS_SENT = {
    "06b6badebe0b7f24": "the recorder changed the ids of calls but not those of results",
    "0e61139b2013e1d9": "a blank text beside calls; answered with 400 elsewhere",
    "5cddc9ac218c205c": "the recorder gave two calls one id",
}
"""Accepted requests that a rule rejects; other rows of the same recording share the reason."""


def wrong(dialect: str, body: Body, model: str = "", **more: Any) -> list[str]:
    return [one.message for one in violations(dialect, body, model, **more)]


def of_row(row: Body) -> list[str]:
    request, in_address = row["request"], row["vendor"] in IN_ADDRESS
    model = request.get("model") or row["model"] or ""
    return wrong(row["dialect"], request, str(model), in_address=in_address)


@pytest.mark.skipif(not harness.CORPUS.is_dir(), reason="the recorded corpus is not here")
@pytest.mark.parametrize("dialect", VENDORS)
def test_what_a_vendor_accepted_violates_nothing(
    dialect: str, counted: Callable[[str], None]
) -> None:
    accepted = [
        row
        for row in harness.rows(dialect)
        if row["vendor"] in VENDORS[dialect]
        and isinstance(row["request"], dict)
        and row["provenance"] == "recorded-http"
        and 200 <= (row["status"] or 0) < 300
    ]
    found = {row["id"]: messages for row in accepted if (messages := of_row(row))}
    counted(f"{dialect}: {len(accepted)} accepted requests, {len(found)} of them violate a rule")
    alike = {str(found[known]) for known in NOT_AS_SENT if known in found}
    assert {row: messages for row, messages in found.items() if str(messages) not in alike} == {}


@pytest.mark.skipif(not harness.CORPUS.is_dir(), reason="the recorded corpus is not here")
@pytest.mark.parametrize(
    ("dialect", "row"),
    [
        ("openai-chat", "20cae3bd893867a1"),
        ("openai-chat", "71051a9268d11ba9"),
        ("openai-chat", "830b16f98a35a179"),
        ("openai-chat", "e00157935beded53"),
        ("openai-chat", "1e62bbf81e65e5d9"),
        ("openai-responses", "7afd5eff6a068476"),
        ("openai-responses", "f4147d2ecdae44dc"),
        ("anthropic-messages", "0417cd56258c93aa"),
        ("anthropic-messages", "9f64b8f708c51837"),
        ("gemini", "476af0c248ad28ea"),
    ],
)
def test_what_a_vendor_refused_violates_the_rule_it_named(dialect: str, row: str) -> None:
    found = next(one for one in harness.rows(dialect) if one["id"] == row)
    said = found["response_json"]["error"]["message"].replace("messages.1", "messages.0")
    assert any(message[:20] == said[:20] for message in of_row(found))


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**SCHEMA, "required": ["a"], "additionalProperties": False}
HI = {"role": "user", "content": "Hi"}
TURN = {"role": "user", "parts": [{"text": "Hi"}]}
URL_SAFE = "-_8="
GOOD: dict[str, Body] = {
    "openai-chat": {"model": "m", "messages": [HI]},
    "openai-responses": {"model": "m", "input": [HI]},
    "anthropic-messages": {"model": "m", "max_tokens": 9, "messages": [HI]},
    "gemini": {"contents": [TURN]},
    "code-assist": {"model": "m", "request": {"contents": [TURN]}},
}


def chat_tool(**more: Any) -> Body:
    return {"type": "function", "function": {"name": "f", "parameters": SCHEMA, **more}}


def claude_tool(**more: Any) -> Body:
    return {"name": "f", "input_schema": SCHEMA, **more}


def declared(**more: Any) -> Body:
    return {"functionDeclarations": [{"name": "f", **more}]}


def image(data: str, kind: str = "image/png") -> Body:
    source = {"type": "base64", "media_type": kind, "data": data}
    return {"role": "user", "content": [{"type": "image", "source": source}]}


def asking_json(text: str) -> Body:
    return {"text": {"format": {"type": "json_object"}}, "input": text}


CHAT, RESPONSES, CLAUDE, GEMINI, _ = GOOD
CASES: list[tuple[str, str, Body, str]] = [
    (CHAT, "", {"model": ""}, "must provide a model"),
    (CHAT, "", {"messages": []}, "'messages': empty array"),
    (CHAT, "gpt-4o", {"top_k": 9}, "Unrecognized request argument supplied: top_k"),
    (CHAT, "gpt-5", {"max_tokens": 9}, "Use 'max_completion_tokens'"),
    (CHAT, "gpt-5", {"temperature": 0}, "'temperature' does not support 0"),
    (CHAT, "o3", {"presence_penalty": 1}, "'presence_penalty' is not supported"),
    (CHAT, "gpt-4o", {"reasoning_effort": "low"}, "'reasoning_effort' is not supported"),
    (CHAT, "o4-mini", {"reasoning_effort": "minimal"}, "'minimal' is not supported"),
    (CHAT, "gpt-4o", {"max_completion_tokens": 16385}, "at most 16384"),
    (CHAT, "", {"temperature": 3}, "Expected a value <= 2"),
    (CHAT, "", {"stop": list("abcde")}, "Expected at most 4"),
    (CHAT, "", {"tools": [chat_tool()] * 129}, "maximum length 128"),
    (CHAT, "", {"tools": [chat_tool(name="a" * 65)]}, "function.name"),
    (CHAT, "", {"tools": [chat_tool(strict=True)]}, "'additionalProperties' is required"),
    (CHAT, "", {"tools": [chat_tool(parameters={"type": "array"})]}, "'type: \"object\"'"),
    (CHAT, "", {"tools": [chat_tool(parameters={**SCHEMA, "anyOf": []})]}, "at the top level"),
    (CHAT, "", {"tool_choice": "auto"}, "only allowed when 'tools'"),
    (CHAT, "", {"metadata": {"k": 1}}, "metadata.k"),
    (CHAT, "", {"stream_options": {}}, "only allowed when 'stream'"),
    (CHAT, "", {"response_format": {"type": "json_object"}}, "the word 'json'"),
    (CHAT, "", {"messages": [{"role": "user", "content": []}]}, "content': empty array"),
    (
        CHAT,
        "",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "image_url",
                            "image_url": {"url": f"data:image/png;base64,{URL_SAFE}"},
                        }
                    ],
                }
            ]
        },
        "Invalid base64",
    ),
    (RESPONSES, "", {"model": ""}, "'model'"),
    (RESPONSES, "", {"input": []}, "'input'"),
    (RESPONSES, "", {"max_output_tokens": 15}, ">= 16"),
    (RESPONSES, "", {"stop": ["x"]}, "Unknown parameter: 'stop'"),
    (RESPONSES, "gpt-4o", {"top_k": 9}, "Unknown parameter: 'top_k'"),
    (RESPONSES, "gpt-5-mini", {"top_p": 0.5}, "'top_p' does not support 0.5"),
    (RESPONSES, "gpt-5.4", {"temperature": 0, "reasoning": {"effort": "low"}}, "'temperature'"),
    (RESPONSES, "gpt-4.1", {"include": ["reasoning.encrypted_content"]}, "Encrypted content"),
    (RESPONSES, "gpt-4o", {"reasoning": {"effort": "low"}}, "'reasoning.effort'"),
    (RESPONSES, "", asking_json("Hi"), "the word 'json'"),
    (
        RESPONSES,
        "gpt-4o",
        {"input": [HI, {"type": "message", "id": "x", "role": "assistant", "content": "a"}]},
        "begins with 'msg'",
    ),
    (RESPONSES, "", {"input": [{"type": "reasoning", "summary": []}, HI]}, "following item"),
    (CLAUDE, "", {"model": ""}, "model: Field required"),
    (CLAUDE, "claude-sonnet-4-5", {"max_tokens": 64001}, "64001 > 64000"),
    (CLAUDE, "", {"seed": 1}, "seed: Extra inputs"),
    (CLAUDE, "", {"temperature": 1.5}, "less than or equal to 1"),
    (CLAUDE, "claude-sonnet-5", {"temperature": 0.5}, "`temperature` is deprecated"),
    (CLAUDE, "claude-sonnet-4-5", {"temperature": 0.5, "top_p": 0.5}, "cannot both"),
    (CLAUDE, "", {"thinking": {"type": "enabled", "budget_tokens": 1023}}, "equal to 1024"),
    (CLAUDE, "", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "must be greater than"),
    (CLAUDE, "", {"thinking": {"type": "adaptive"}, "temperature": 0}, "only be set to 1"),
    (CLAUDE, "", {"tools": [claude_tool(), claude_tool()]}, "must be unique"),
    (CLAUDE, "", {"tools": [claude_tool(strict=True)]}, "explicitly set to false"),
    (
        CLAUDE,
        "",
        {"tools": [claude_tool(input_schema={**SCHEMA, "properties": {"a b": {}}})]},
        "Property keys",
    ),
    (CLAUDE, "", {"tool_choice": {"type": "auto"}}, "while providing tools"),
    (CLAUDE, "", {"messages": [image(URL_SAFE)]}, "Invalid base64"),
    (CLAUDE, "", {"messages": [image("AAAA", "image/bmp")]}, "media_type"),
    (CLAUDE, "", {"messages": [HI, {"role": "assistant", "content": "So "}]}, "trailing"),
    (
        CLAUDE,
        "claude-sonnet-5",
        {"messages": [HI, {"role": "assistant", "content": "So"}]},
        "prefill",
    ),
    (CLAUDE, "", {"stop_sequences": ["\n"]}, "non-whitespace"),
    (CLAUDE, "", {"metadata": {"k": "v"}}, "metadata.k"),
    (CLAUDE, "", {"system": [{"type": "text", "text": ""}]}, "must be non-empty"),
    (
        CLAUDE,
        "",
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "explicitly set to false",
    ),
    (
        CLAUDE,
        "",
        {
            "output_config": {
                "format": {"type": "json_schema", "schema": {"type": "string", "minLength": 1}}
            }
        },
        "'minLength' is not supported",
    ),
    (CLAUDE, "claude-opus-4-6", {"output_config": {"effort": "xhigh"}}, "effort level 'xhigh'"),
    (GEMINI, "", {"contents": []}, "contents is not specified"),
    (GEMINI, "", {"messages": []}, 'Unknown name "messages"'),
    (GEMINI, "", {"tools": [declared(), declared()]}, "Duplicate function declaration"),
    (GEMINI, "", {"tools": [declared(parameters={"const": 1})]}, 'Unknown name "const"'),
    (GEMINI, "", {"tools": [declared(parameters={"type": "ARRAY"})]}, "items: missing field"),
    (GEMINI, "", {"tools": [declared(parameters={"type": ["string"]})]}, "not repeating"),
    (
        GEMINI,
        "",
        {"toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["f"]}}},
        "mode is ANY",
    ),
    (GEMINI, "", {"generationConfig": {"stopSequences": list("abcdef")}}, "at most 5"),
    (GEMINI, "", {"generationConfig": {"temperature": 2.5}}, "out of range"),
    (GEMINI, "gemini-2.0-flash", {"generationConfig": {"maxOutputTokens": 8193}}, "out of range"),
    (
        GEMINI,
        "gemini-2.0-flash",
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 5}}},
        "not enabled for this model",
    ),
    (
        GEMINI,
        "gemini-2.5-pro",
        {"tools": [declared()], "generationConfig": {"responseMimeType": "application/json"}},
        "Function calling with a response mime type",
    ),
    ("code-assist", "", {"model": ""}, "invalid argument: model"),
    ("code-assist", "", {"request": {"contents": []}}, "contents is not specified"),
]


@pytest.mark.parametrize(
    ("dialect", "model", "change", "words"), CASES, ids=[f"{d}-{w}" for d, _, _, w in CASES]
)
def test_a_request_out_of_bounds_violates_that_rule_alone(
    dialect: str, model: str, change: Body, words: str
) -> None:
    (message,) = wrong(dialect, {**GOOD[dialect], **change}, model)
    assert words in message


@pytest.mark.parametrize(
    ("dialect", "model", "change"),
    [
        *((dialect, "", {}) for dialect in GOOD),
        (CHAT, "gpt-5", {"temperature": 1, "stop": []}),
        (CHAT, "", {"top_k": 9, "thinking": {"type": "enabled"}}),
        (CHAT, "gpt-4o", {"max_tokens": 9, "temperature": 0}),
        (CHAT, "", {"tools": [chat_tool(strict=True, parameters=CLOSED)]}),
        (RESPONSES, "gpt-5.4-nano", {"temperature": 0}),
        (RESPONSES, "", asking_json("Answer in JSON.")),
        (RESPONSES, "", {"prompt": {"id": "p"}, "model": None, "input": None}),
        (CLAUDE, "claude-sonnet-4-5", {"temperature": 0.5, "max_tokens": 64000}),
        (CLAUDE, "", {"messages": [HI, {"role": "assistant", "content": "So"}]}),
        (GEMINI, "", {"contents": TURN, "system_instruction": {"parts": {"text": "s"}}}),
        (GEMINI, "", {"tools": [declared(parametersJsonSchema={"const": 1})]}),
    ],
)
def test_a_request_within_bounds_violates_nothing(dialect: str, model: str, change: Body) -> None:
    assert wrong(dialect, {**GOOD[dialect], **change}, model) == []
