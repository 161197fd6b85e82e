"""Z.ai (Zhipu). Chat; takes only the automatic tool choice, and streams calls when asked to."""

import json
from typing import Any

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._spec import ApiKey, Provider
from toolwire.request import HttpRequest


def prepare(request: HttpRequest) -> HttpRequest:
    """Ask for arguments as they are written: else they come in one late chunk, after timeouts."""
    if request.path != "/chat/completions":
        return request
    body: dict[str, Any] = json.loads(request.body)
    if not body.get("stream") or not body.get("tools"):
        return request
    body.setdefault("tool_stream", True)
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return msgspec.structs.replace(request, body=text.encode())


PROVIDER = Provider(
    name="zai",
    title="Z.ai",
    dialect="openai-chat",
    base_url="https://api.z.ai/api/paas/v4",
    other_dialects=(("anthropic-messages", "https://api.z.ai/api/anthropic"),),
    auth=ApiKey(env=("ZAI_API_KEY", "ZHIPU_API_KEY"), url="https://z.ai/manage-apikey"),
    quirks=Quirks(
        tool_choices=frozenset({"auto"}),
        stream_usage=False,
        reasoning_field="reasoning_content",
        adaptive_thinking=False,
    ),
    reasons=(
        ("tool_choices", "only `auto` is taken; for none the tools are left out"),
        ("stream_usage", "`stream_options` is not known; usage is sent anyway"),
        ("reasoning_field", "thinking between calls must be sent back with their results"),
        ("adaptive_thinking", "in Anthropic's format, thinking is only switched on or off"),
    ),
    default_model="glm-5.1",
    own_models=("glm-*",),
    docs="https://docs.z.ai",
    prepare=prepare,
)
