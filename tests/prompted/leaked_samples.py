"""One or more printed calls per format, in words of our own, with the calls they spell."""

from typing import Any

FIND: tuple[str, dict[str, Any]] = ("find_ship", {"port": "Bergen", "berths": 3})
NAME: tuple[str, dict[str, Any]] = ("name_star", {"title": 'a "bright" one\n{x}'})
NOW: tuple[str, dict[str, Any]] = ("moon_now", {})

SAMPLES: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "hermes": (
        '<tool_call>\n{"name": "find_ship", "arguments": {"port": "Bergen", "berths": 3}}\n'
        '</tool_call>\n<tool_call>{"name": "name_star", "arguments": '
        '{"title": "a \\"bright\\" one\\n{x}"}}</tool_call>',
        [FIND, NAME],
    ),
    "longcat": (
        '<longcat_tool_call>{"name": "moon_now", "arguments": {}}</longcat_tool_call>',
        [NOW],
    ),
    "jamba": (
        '<tool_calls>[\n {"name": "find_ship", "arguments": {"port": "Bergen", "berths": 3}},\n'
        ' {"name": "moon_now", "arguments": {}}\n]</tool_calls>',
        [FIND, NOW],
    ),
    "internlm": (
        '<|action_start|><|plugin|>{"name": "find_ship", '
        '"parameters": {"port": "Bergen", "berths": 3}}<|action_end|>',
        [FIND],
    ),
    "cohere": (
        '<|START_ACTION|>\n[{"tool_call_id": "0", "tool_name": "moon_now", "parameters": {}}]\n'
        "<|END_ACTION|>",
        [NOW],
    ),
    "granite": (
        '<|tool_call|> [{"name": "find_ship", "arguments": {"port": "Bergen", "berths": 3}}]',
        [FIND],
    ),
    "granite-20b": ('<function_call> {"name": "moon_now", "arguments": {}}', [NOW]),
    "phi": ('functools[{"name": "moon_now", "arguments": {}}]', [NOW]),
    "llama": (
        '<|python_tag|>{"name": "find_ship", "parameters": {"port": "Bergen", "berths": 3}};'
        ' {"name": "moon_now", "parameters": {}}',
        [FIND, NOW],
    ),
    "mistral": (
        '[TOOL_CALLS]find_ship[ARGS]{"port": "Bergen", "berths": 3}[TOOL_CALLS]moon_now{}',
        [FIND, NOW],
    ),
    "fenced": (
        '```json\n{"name": "find_ship", "arguments": {"port": "Bergen", "berths": 3}}\n```',
        [FIND],
    ),
    "bare-json": ('{"name": "find_ship", "parameters": {"port": "Bergen", "berths": 3}}', [FIND]),
    "qwen3-coder": (
        "<tool_call>\n<function=find_ship>\n<parameter=port>\nBergen\n</parameter>\n"
        "<parameter=berths>\n3\n</parameter>\n</function>\n</tool_call>\n<function=name_star>"
        '<parameter=title>a "bright" one\n{x}</parameter></function>',
        [FIND, NAME],
    ),
    "glm": (
        "<tool_call>find_ship\n<arg_key>port</arg_key>\n<arg_value>Bergen</arg_value>\n"
        "<arg_key>berths</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
        "<tool_call>moon_now</tool_call>",
        [FIND, NOW],
    ),
    "hunyuan": (
        "<tool_calls>\n<tool_call>moon_now<tool_sep>\n</tool_call>\n<tool_call>find_ship<tool_sep>"
        "<arg_key>port</arg_key><arg_value>Bergen</arg_value>\n<arg_key>berths</arg_key>"
        "<arg_value>3</arg_value></tool_call>\n</tool_calls>",
        [NOW, FIND],
    ),
    "invoke": (
        '<function_calls>\n<invoke name="find_ship">\n<parameter name="port">Bergen</parameter>\n'
        '<parameter name="berths">3</parameter>\n</invoke>\n<invoke name="moon_now">\n</invoke>\n'
        "</function_calls>",
        [FIND, NOW],
    ),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="name_star">\n<parameter name="title">a "bright" one\n'
        "{x}</parameter>\n</invoke>\n</minimax:tool_call>",
        [NAME],
    ),
    "dsml": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="find_ship">\n'
        '<｜DSML｜parameter name="port" string="true">Bergen</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="berths" string="false">3'
        '</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="moon_now"/>\n'
        "</｜DSML｜function_calls>",
        [FIND, NOW],
    ),
    "dots": (
        '<dots_function_call><invoke name="moon_now"></invoke></dots_function_call>',
        [NOW],
    ),
    "step3": (
        '<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name="find_ship">'
        '<steptml:parameter name="port">Bergen</steptml:parameter><steptml:parameter '
        'name="berths">3</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
        [FIND],
    ),
    "harmony": (
        "<|start|>assistant<|channel|>commentary to=functions.find_ship <|constrain|>json"
        '<|message|>{"port":"Bergen","berths":3}<|call|>',
        [FIND],
    ),
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find_ship\n```json\n"
        '{"port": "Bergen", "berths": 3}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>moon_now'
        "<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [FIND, NOW],
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.find_ship:0"
        '<|tool_call_argument_begin|>{"port": "Bergen", "berths": 3}<|tool_call_end|>'
        "<|tool_call_begin|>functions.moon_now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>",
        [FIND, NOW],
    ),
    "lfm": (
        '<|tool_call_start|>[find_ship(port="Bergen", berths=3), moon_now()]<|tool_call_end|>',
        [FIND, NOW],
    ),
    "pythonic": ("<|python_start|>[find_ship(port='Bergen', berths=3)]<|python_end|>", [FIND]),
    "bare-pythonic": ("[find_ship(port='Bergen', berths=3), moon_now()]", [FIND, NOW]),
    "minimax-arrow": (
        '[TOOL_CALL]\n{tool => "find_ship", args => {\n  --port "Bergen"\n  --berths 3\n}}\n'
        "[/TOOL_CALL]",
        [FIND],
    ),
    "gemma": (
        '<|tool_call>call:find_ship{port:<|"|>Bergen<|"|>,berths:3}<tool_call|>'
        "<|tool_call>call:moon_now{}<tool_call|>",
        [FIND, NOW],
    ),
    "functiongemma": (
        "<start_function_call>call:find_ship{port:<escape>Bergen<escape>,berths:3}"
        "<end_function_call>",
        [FIND],
    ),
}
