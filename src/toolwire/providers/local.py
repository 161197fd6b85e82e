"""The embedded model: llama.cpp inside this process, reached like any other server."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import WORDS
from toolwire.providers._spec import NoAuth, Provider
from toolwire.request import HttpRequest
from toolwire.wire.json_access import encode, parse_object

# A small model varies only for the worse, and without a limit one that repeats itself never ends.
# What it wrote twice it goes on writing: such runs are made unlikely if longer than a line of code.
_USUAL = {
    "temperature": 0,
    "max_tokens": 1024,
    "return_progress": True,
    "cache_prompt": True,
    "dry_multiplier": 1.0,
    "dry_allowed_length": 20,
    "dry_penalty_last_n": 256,
}


def _prepare(request: HttpRequest) -> HttpRequest:
    """What llama.cpp takes beyond the format, where the request does not say it itself."""
    return msgspec.structs.replace(
        request, body=encode(_USUAL | parse_object(request.body, "request"))
    )


PROVIDER = Provider(
    name="local",
    title="Embedded model",
    dialect="openai-chat",
    # The port is known once the model is loaded.
    base_url="http://127.0.0.1:0/v1",
    auth=NoAuth(),
    quirks=Quirks(tool_choices=WORDS, parallel_flag=False),
    reasons=(
        ("tool_choices", "a choice must be a string"),
        ("parallel_flag", "the small models make one call at a time"),
    ),
    native_tools=False,
    prompted_style="json",
    json_schema_output=True,
    default_model="qwen2.5-coder-1.5b",
    docs="docs/local-model.md",
    local=True,
    in_process=True,
    small=True,
    prepare=_prepare,
)
