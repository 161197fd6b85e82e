"""The embedded model: llama.cpp inside this process, reached like any other server."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import WORDS
from toolwire.providers._spec import NoAuth, Placeholder, Provider

PROVIDER = Provider(
    name="local",
    title="Embedded model",
    dialect="openai-chat",
    base_url="http://127.0.0.1:{port}/v1",
    placeholders=(Placeholder(name="port", env=("TOOLWIRE_LOCAL_PORT",)),),
    auth=NoAuth(),
    quirks=Quirks(tool_choices=WORDS, parallel_flag=False),
    reasons=(
        ("tool_choices", "a choice must be a word"),
        ("parallel_flag", "the small models make one call at a time"),
    ),
    native_tools=False,
    json_schema_output=True,
    default_model="qwen2.5-coder-1.5b-instruct",
    docs="https://github.com/ggml-org/llama.cpp",
    local=True,
)
