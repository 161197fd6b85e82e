"""Limits of each vendor and of its models: data.

Sources: the vendors' reference pages, the types of their SDKs, and recorded requests that they
accepted or answered with 400; a test holds every recorded accepted request against it.
"""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from toolwire import providers
from toolwire.providers import Provider, catalogue


class Demands(msgspec.Struct, frozen=True, kw_only=True):
    """Demands of one vendor's server beyond its wire format."""

    thinking_back: bool = False
    """Chat: calls must be sent back with their reasoning (DeepSeek, Kimi)."""
    id_length: int = 0
    """Chat: exact length of call ids in letters or digits (Mistral: nine)."""
    user_after_results: bool = True
    """Chat: whether a user message may follow results directly (Mistral: no)."""
    refused_members: frozenset[str] = frozenset()
    """Members of the body that the server answers with 400."""
    tool_choices: frozenset[str] | None = None
    """Chat: the supported values of `tool_choice`, `named` for a function; None for all."""


NO_DEMANDS = Demands()
DEMANDS = {
    "mistral": Demands(
        id_length=9,
        user_after_results=False,
        refused_members=frozenset({"stream_options", "max_completion_tokens"}),
        tool_choices=frozenset({"auto", "none", "any", "named"}),
    ),
    "deepseek": Demands(thinking_back=True, refused_members=frozenset({"max_completion_tokens"})),
    "moonshot": Demands(thinking_back=True),
    "zai": Demands(
        refused_members=frozenset({"max_completion_tokens"}),
        tool_choices=frozenset({"auto", "named"}),
    ),
}
"""By provider. From notes on these servers and recorded traffic: what is called refused is what the
notes give another name for or call unknown, and no recorded request was accepted with.
"""
_NO_THINKING = ("deepseek-chat", "moonshot-v1*")


def demands(provider: str, model: str) -> Demands:
    """Returns what a provider's server demands of requests to a model."""
    found = DEMANDS.get(provider, NO_DEMANDS)
    if any(fnmatchcase(model.lower(), pattern) for pattern in _NO_THINKING):
        return msgspec.structs.replace(found, thinking_back=False)
    return found


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model; the defaults refuse nothing."""

    thinking: bool | None = None
    """Whether it reasons; None if unknown."""
    sampling: bool = True
    """Whether temperature and top_p may differ from their defaults."""
    output: int = 0
    """The most tokens it writes; 0 if unknown."""
    efforts: frozenset[str] | None = None
    """The efforts it takes; None if unknown."""
    quiet: bool = False
    """Reasons only where an effort is named; until then it takes sampling."""
    any_arguments: bool = False
    """Takes a call's arguments that are not a JSON object."""
    members: frozenset[str] = frozenset()
    """The members of a body that the server knows, others being refused; empty if unknown."""
    looks_up_items: bool = False
    """Responses: items are looked up by their ids, which have a prefix for each kind."""
    refused: frozenset[str] = frozenset()
    """Members of the body that this model's server rejects."""


NO_FACTS = Facts()
_WITH_LIMIT = frozenset({"openai", "anthropic", "google"})
"""Vendors that answer 400 to a limit of tokens above the model's own, or to an effort for a model
that does not reason.
"""


class ModelLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the models whose name matches; every match applies."""

    provider: str
    pattern: str
    efforts: frozenset[str] | None = None
    quiet: bool = False
    refused: frozenset[str] = frozenset()


_LOW_TO_HIGH = frozenset({"low", "medium", "high"})
_REASONING = frozenset(
    {"stop", "frequency_penalty", "presence_penalty", "logit_bias", "max_tokens", "logprobs"}
)
"""Members of a chat request that OpenAI's reasoning models reject."""
_PREFILL = frozenset({"prefill"})
MODELS = (
    ModelLimits(provider="openai", pattern="o[134]*", efforts=_LOW_TO_HIGH),
    ModelLimits(provider="openai", pattern="gpt-5", efforts=_LOW_TO_HIGH | {"minimal"}),
    ModelLimits(provider="openai", pattern="gpt-5-*", efforts=_LOW_TO_HIGH | {"minimal"}),
    *(
        ModelLimits(provider="openai", pattern=f"gpt-5.[1-4]{ending}", quiet=True)
        for ending in ("", "-20*", "-mini*", "-nano*")
    ),
    ModelLimits(provider="anthropic", pattern="claude-*-4-[56]*", efforts=_LOW_TO_HIGH | {"max"}),
    ModelLimits(
        provider="anthropic", pattern="claude-*-4-[156]*", refused=frozenset({"temperature+top_p"})
    ),
    ModelLimits(provider="anthropic", pattern="claude-*-4-[678]*", refused=_PREFILL),
    *(
        ModelLimits(provider="anthropic", pattern=f"claude-{size}-5*", refused=_PREFILL)
        for size in ("haiku", "sonnet", "opus", "fable")
    ),
    ModelLimits(
        provider="google", pattern="gemini-[12]*", refused=frozenset({"tools+json", "media"})
    ),
    ModelLimits(provider="google", pattern="gemini-3*", refused=frozenset({"unsigned"})),
)
"""Words with `+` name members that exclude each other; `prefill`, `media` and `unsigned` name an
assistant's turn at the end, media in a function response, and calls without a signature.
"""

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
ANTHROPIC_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
MAX_ID = 64
MAX_TOOLS = {"openai-chat": 128, "openai-responses": 128, "gemini": 512}
MAX_STOPS = {"openai-chat": 4, "gemini": 5}
MAX_CACHE_MARKS = 4
METADATA = (16, 64, 512)
"""OpenAI: pairs, characters of a key, characters of a value."""
MIN_OUTPUT_TOKENS = 16
MIN_THINKING_BUDGET = 1024
MIN_TOP_P_THINKING = 0.95

OPENAI_BOUNDS = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "frequency_penalty": (-2.0, 2.0),
    "presence_penalty": (-2.0, 2.0),
}
ANTHROPIC_BOUNDS = {"temperature": (0.0, 1.0), "top_p": (0.0, 1.0)}
GEMINI_BOUNDS = {
    "temperature": (0.0, 2.0),
    "topP": (0.0, 1.0),
    "frequencyPenalty": (-2.0, 2.0),
    "presencePenalty": (-2.0, 2.0),
}

CHAT_MEMBERS = frozenset(
    {"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"}
    | {"max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model"}
    | {"moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty", "seed"}
    | {"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort"}
    | {"response_format", "safety_identifier", "service_tier", "stop", "store", "stream"}
    | {"stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user"}
    | {"verbosity", "web_search_options"}
)
"""Members that OpenAI knows; compatible servers have more."""
RESPONSES_MEMBERS = frozenset(
    {"background", "context_management", "conversation", "include", "input", "instructions"}
    | {"max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "prompt"}
    | {"parallel_tool_calls", "previous_response_id", "prompt_cache_key", "prompt_cache_options"}
    | {"prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store"}
    | {"stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs"}
    | {"top_p", "truncation", "user", "client_metadata"}
)
CHAT_ONLY_MEMBERS = frozenset(
    {"messages", "max_tokens", "max_completion_tokens", "stop", "frequency_penalty", "seed", "n"}
    | {"presence_penalty", "response_format", "functions", "function_call", "reasoning_effort"}
    | {"logit_bias", "logprobs", "verbosity", "modalities", "audio", "prediction"}
)
"""Members that the Responses server names as unknown though the chat server knows them."""
ANTHROPIC_MEMBERS = frozenset(
    {"model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "stream"}
    | {"temperature", "top_p", "top_k", "stop_sequences", "metadata", "service_tier", "container"}
    | {"context_management", "mcp_servers", "output_config", "output_format", "cache_control"}
    | {"anthropic_version", "anthropic_beta", "inference_geo", "speed", "betas", "fallbacks"}
)
ANTHROPIC_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
GEMINI_MEMBERS = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent"}
    | {"labels", "serviceTier", "store", "continuationToken", "generationConfig", "model"}
    | {"session_id", "modelArmorConfig"}
)
GEMINI_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
SIGNATURE_SKIPS = frozenset(
    {"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}
)
"""Values in place of a signature that Gemini takes without a check."""


_MEMBERS = {"openai-chat": CHAT_MEMBERS, "openai-responses": RESPONSES_MEMBERS}
_FAMILIES = {"azure": "openai", "vertex": "google", "code-assist": "google"}
"""Providers that serve the models of another under their own names."""


@lru_cache(maxsize=500)
def facts(dialect: str, model: str) -> Facts:
    """Returns what is known of a model whose name says whose it is."""
    provider = catalogue.vendor(dialect, model)
    return facts_of(provider, model) if provider is not None else NO_FACTS


def _is_named(family: str, name: str) -> bool:
    """Whether a deployment has the name of one of the family's models."""
    return any(fnmatchcase(name, pattern) for pattern in providers.get(family).own_models)


def facts_of(provider: Provider, model: str) -> Facts:
    """Returns what is known of a provider's model."""
    info = catalogue.find(provider.name, model)
    name = model.lower()
    family = _FAMILIES.get(provider.name, provider.name)
    if family != provider.name and info is None and not _is_named(family, name):
        return NO_FACTS
    limits = [one for one in MODELS if one.provider == family and fnmatchcase(name, one.pattern)]
    refused = frozenset[str]().union(*(one.refused for one in limits))
    quirks = catalogue.quirks_of(provider, model)
    sampling = quirks.sampling
    thinking = info.thinking if info is not None and family in _WITH_LIMIT else None
    if family == "openai":
        thinking = not sampling and quirks.encrypted_reasoning is not False
        refused |= _REASONING if thinking else frozenset()
    return Facts(
        thinking=thinking,
        sampling=sampling,
        output=info.output if info is not None and family in _WITH_LIMIT else 0,
        quiet=any(one.quiet for one in limits),
        any_arguments=family == "openai",
        members=_MEMBERS.get(provider.dialect, frozenset()) if family == "openai" else frozenset(),
        looks_up_items=family == "openai",
        efforts=next((one.efforts for one in limits if one.efforts is not None), None),
        refused=refused,
    )
