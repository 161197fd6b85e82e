"""Ollama on this machine, through its chat-compatible address."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=frozenset({"auto"}), parallel_flag=False)

PROVIDER = Provider(
    name="ollama",
    title="Ollama",
    dialect="openai-chat",
    base_url="http://localhost:11434/v1",
    base_url_env=("OLLAMA_HOST",),
    takes_origin=True,
    auth=ApiKey(env=("OLLAMA_API_KEY",), url="https://ollama.com/settings/keys", optional=True),
    quirks=_QUIRKS,
    reasons=(
        ("tool_choices", "`tool_choice` is silently ignored: tools are omitted instead"),
        (
            "parallel_flag",
            "`parallel_tool_calls` is silently ignored: the loss is reported instead",
        ),
    ),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    schema_beside_tools=False,
    default_model="gpt-oss:20b",
    docs="https://docs.ollama.com/api/openai-compatibility",
    local=True,
)
