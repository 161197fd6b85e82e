"""What the corpus samples spell, read in another way: whole texts, regular expressions, json."""

import json
import re
from typing import Any

Call = tuple[str, Any]

NOT_OFFERED = {
    *("ghost", "invalid_tool", "invalid_func", "unknown_function", "unknown_func"),
    *("nonexistent_func", "nonexistent", "nonexistent_fn"),
}
"""Names the samples themselves mean to be unknown."""

AROUND_JSON = [
    r"<tool_call>\s*([\[{].*?)\s*</tool_call>",
    r"<longcat_tool_call>(.*?)</longcat_tool_call>",
    r"<dots_function_call>(\{.*?)</dots_function_call>",
    r"<tool_calls>(\[.*?)</tool_calls>",
    r"<\|action_start\|><\|plugin\|>(.*?)<\|action_end\|>",
    r"<\|START_ACTION\|>(.*?)<\|END_ACTION\|>",
    r"<\|tool_call_start\|>([\[{].*?)<\|tool_call_end\|>",
    r"<\|tool_call\|>\s*(\[.*\])",
    r"^<tool_call> (\[.*\])$",
    r"<function_call>\s*(\{.*?\})\s*(?=<function_call>|$)",
    r"functools(\[.*\])",
    r"\[TOOL_CALLS\]\s*(\[.*\])",
    r"(?:<\|python_tag\|>|(?<=\};))(\{.*?\})(?=;|<\|python_tag\|>|$)",
]
NAMED_JSON = [
    r"\[TOOL_CALLS\](?P<name>\w+)\[ARGS\](?P<json>\{.*\})",
    r"<\|tool_call_begin\|>functions\.(?P<name>\w+):\d+<\|tool_call_argument_begin\|>"
    r"(?P<json>\{.*?\})<\|tool_call_end\|>",
    r"<｜tool▁call▁begin｜>function<｜tool▁sep｜>(?P<name>\w+)\n```json\n(?P<json>.*?)\n```"
    r"<｜tool▁call▁end｜>",
    r"<｜tool▁call▁begin｜>(?!function)(?P<name>\w+)<｜tool▁sep｜>(?P<json>.*?)<｜tool▁call▁end｜>",
    r"<\|channel\|>(?:commentary|analysis) to=(?:functions\.)?(?P<name>[\w.]+)"
    r"(?: <\|constrain\|>json)?<\|message\|>(?P<json>\{.*?\})<\|call\|>",
]
TAGGED = [
    (
        r"<function=(?P<name>[\w.-]+)>(?P<body>(?:(?!<function=).)*?)</function>",
        r"<parameter=(?P<key>\w+)>\n?(?P<value>.*?)\n?</parameter>",
    ),
    (
        r"(?<!`)<tool_call>\s*(?P<name>[\w.-]+)\s*(?:<tool_sep>)?\s*(?P<body>(?:<arg_key>(?:(?!<arg_key>)"
        r".)*?</arg_key>\s*<arg_value>.*?</arg_value>\s*)*)</tool_call>",
        r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>",
    ),
    (
        r'<(?P<pre>｜DSML｜|steptml:|)invoke name="(?P<name>\w+)"\s*'
        r"(?:/>|>(?P<body>.*?)</(?P=pre)invoke>)",
        r'<[^ ]*parameter name="(?P<key>\w+)"(?P<is> string="\w+")?>(?P<value>.*?)'
        r"</[^ >]*parameter>",
    ),
]
PYTHON = r"<\|tool_call_start\|>\[(?=\w+\()(?P<body>.*?)\]<\|tool_call_end\|>"
GEMMA = [
    (r"<\|tool_call>call:(?P<name>[\w.-]+)(?P<body>\{.*?\})<tool_call\|>", '<|"|>'),
    (r"<start_function_call>call:(?P<name>\w+)(?P<body>\{.*?\})<end_function_call>", "<escape>"),
]

ODD: dict[str, list[Call]] = {
    # A lone wrapper's end is text; the sample begins inside a word.
    "2f3866": [("search", {"query": "chairs"}), ("search", {"query": "tables"})],
    # A parameter that is never closed, a name without its bracket, a key without a value.
    "f0734a": [],
    "2900d0": [],
    "2d5219": [("get_current_weather", {"city": "Dallas", "state": "TX"})],
    "4f41c6": [],
    "bff818": [("search", {"query": "tacos"})],
    # No call▁begin, or a call that is not wrapped as its format asks.
    "82bea0": [],
    "5cc301": [],
}
"""Samples whose reading was decided by hand, by the first six letters of their id."""


def expected(sample: dict[str, Any]) -> list[Call]:
    """The calls a sample spells with every tool but the unknown ones offered, sorted."""
    odd = ODD.get(sample["id"][:6])
    found = list(_found(sample["text"])) if odd is None else odd
    return in_order([call for call in found if call[0] not in NOT_OFFERED])


def in_order(calls: list[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: json.dumps(call, sort_keys=True))


def _found(text: str) -> Any:
    for pattern in AROUND_JSON:
        for match in re.finditer(pattern, text, re.DOTALL):
            yield from _of_json(match[1])
    for pattern in NAMED_JSON:
        for match in re.finditer(pattern, text, re.DOTALL):
            arguments = _json(match["json"])
            if isinstance(arguments, dict):
                yield match["name"], arguments
    for outer, inner in TAGGED:
        for match in re.finditer(outer, text, re.DOTALL):
            yield match["name"], _of_tags(match["body"] or "", inner)
    for match in re.finditer(PYTHON, text, re.DOTALL):
        for call in re.finditer(r"(\w+)\(([^)]*)\)", match["body"]):
            yield call[1], dict(re.findall(r'(\w+)="([^"]*)"', call[2]))
    for pattern, quote in GEMMA:
        for match in re.finditer(pattern, text, re.DOTALL):
            keyed = re.sub(r"([{,])(\w+):", r'\1"\2":', match["body"])
            yield match["name"], json.loads(keyed.replace(quote, '"'))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _of_json(text: str) -> Any:
    value = _json(text)
    calls = value if isinstance(value, list) else [value]
    read: list[Call] = []
    for call in calls:
        if not isinstance(call, dict):
            return
        name = call.get("name", call.get("tool_name"))
        arguments = call.get("arguments", call.get("parameters"))
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return
        read.append((name, arguments))
    yield from read


def _of_tags(body: str, pattern: str) -> Any:
    if body.strip().startswith("{"):
        return _json(body)
    values: dict[str, Any] = {}
    for match in re.finditer(pattern, body, re.DOTALL):
        value = _json(match["value"])
        is_text = 'string="true"' in (match.groupdict().get("is") or "")
        plain = value is None and match["value"].strip() != "null"
        values[match["key"]] = match["value"] if is_text or plain else value
    return values
