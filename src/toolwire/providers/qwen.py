"""Qwen on Alibaba's DashScope. Chat; the address is the international one."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._spec import ApiKey, Provider

PROVIDER = Provider(
    name="qwen",
    title="Qwen (DashScope)",
    dialect="openai-chat",
    base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    base_url_env=("DASHSCOPE_BASE_URL",),
    auth=ApiKey(
        env=("DASHSCOPE_API_KEY",),
        url="https://modelstudio.console.alibabacloud.com/?tab=playground#/api-key",
    ),
    quirks=Quirks(tool_choices=frozenset({"auto", "none", "named"})),
    reasons=(("tool_choices", "auto, none and a named function are taken; `required` is not"),),
    default_model="qwen3-coder-plus",
    docs="https://www.alibabacloud.com/help/en/model-studio",
)
