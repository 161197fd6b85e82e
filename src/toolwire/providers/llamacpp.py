"""llama.cpp's own server on this machine. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import WORDS, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=WORDS, reasoning_field="reasoning_content")

PROVIDER = Provider(
    name="llamacpp",
    title="llama.cpp server",
    dialect="openai-chat",
    base_url="http://localhost:8080/v1",
    other_dialects=(("anthropic-messages", "http://localhost:8080"),),
    auth=ApiKey(env=("LLAMA_API_KEY",), optional=True),
    quirks=_QUIRKS,
    reasons=(
        ("tool_choices", "a choice must be a string"),
        ("reasoning_field", "the chat templates of thinking models read it"),
    ),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    schema_beside_tools=False,
    docs="https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
    local=True,
)
