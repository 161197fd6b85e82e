"""How one vendor's server differs from its wire format: data, never an `if vendor ==`."""

from typing import Literal

import msgspec

from toolwire.history import HistoryRules
from toolwire.wire.names import NameRule


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """Safe defaults; a provider entry sets what its server needs."""

    history: HistoryRules | None = None
    """What ids and turns the server takes, where it is stricter than its wire format (Mistral: 9
    letters).
    """
    name_rule: NameRule | None = None
    """Tool names the server takes, where it is stricter than its wire format (Bedrock, older
    Gemini).
    """

    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    """Chat: OpenAI's reasoning models reject `max_tokens`; most compatible servers know only that.
    """
    system_role: Literal["system", "developer"] = "system"
    """Chat: OpenAI's reasoning models require `developer`; other servers answer 400 to it."""
    required_word: str = "required"
    """Chat: Mistral uses `any` and rejects `required`."""
    tool_choices: frozenset[str] = frozenset({"auto", "none", "required", "named", "subset"})
    """Forms of tool choice the server takes. Z.ai takes only `auto`; Kimi no forced choice while
    thinking.
    """
    parallel_flag: bool = True
    """Whether `parallel_tool_calls` may be sent; several compatible servers reject unknown members.
    """
    strict_tools: bool = False
    """Whether `strict` may be sent on tools; Z.ai, Moonshot and others reject it."""
    strict_all_or_none: bool = False
    """Cerebras answers 422 to a mix of strict and other tools."""
    stream_usage: bool = True
    """Chat: whether `stream_options.include_usage` may be sent; Mistral and Z.ai do not know it."""
    reasoning_field: Literal["", "reasoning_content", "reasoning"] = ""
    """Chat: the member in which thinking is sent back; DeepSeek and Kimi answer 400 without it."""
    reasoning_replay: Literal["never", "with_tools", "always"] = "with_tools"
    """Chat: when thinking is sent back. DeepSeek wants it beside calls, even empty, and not
    elsewhere.
    """
    think_tag: str = ""
    """Chat: thinking is inside the text between `<tag>` and `</tag>` (R1 distils, QwQ, local
    models).
    """
    assistant_between_results_and_user: bool = False
    """Chat: Mistral rejects a user message directly after tool messages."""
    cache_marks: bool = False
    """Chat: `cache_control` on content parts is understood (OpenRouter, LiteLLM for Claude and
    Gemini).
    """
    sampling: bool = True
    """Whether temperature and top_p may be sent; OpenAI's reasoning models and Claude's newest
    reject them.
    """

    store: bool = False
    """Responses: whether the server stores the answer; if not, reasoning can only be sent back
    encrypted.
    """
    encrypted_reasoning: bool | None = None
    """Responses: whether the model reasons, so that its reasoning is requested encrypted; others
    answer 400 to that. None leaves it to the catalogue, and without its word nothing is requested.
    """

    system_in_messages: bool = False
    """Anthropic: system turns inside the list, which only the newest models take."""
    default_max_tokens: int = 8192
    """Anthropic: `max_tokens` is required; sent when the request names none."""
    most_tokens: int = 0
    """Anthropic: the most tokens that the model writes, which the default may not exceed; 0 if
    unknown.
    """

    betas: tuple[str, ...] = ("*",)
    """Anthropic: shell-style patterns of the features in `anthropic-beta` that the server knows.
    Vertex answers 400 to others.
    """

    adaptive_thinking: bool = True
    """Anthropic: the model sizes its own thinking and takes an effort; models before 4.6 and most
    compatible servers know only a budget.
    """

    gemini_schema: Literal["json", "openapi"] = "json"
    """Gemini: `parametersJsonSchema`, or the OpenAPI subset in `parameters` for servers without it.
    """
    gemini_thinking: Literal["level", "budget"] = "level"
    """Gemini 3 takes a thinking level; 2.5 takes only a budget and rejects levels."""
    media_in_results: bool = False
    """Gemini 3 takes media inside a function response; older models want it beside the response."""
    signature_sentinel: str = ""
    """Gemini 3 rejects a step whose first call has no thought signature; this value skips that.
    """
    send_made_ids: bool = False
    """Gemini: Code Assist takes ids that its server did not issue; AI Studio and Vertex do not want
    them.
    """


DEFAULT = Quirks()
