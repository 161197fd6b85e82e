import json

import pytest
from msgspec.structs import replace

from toolwire import providers
from toolwire.dialects.quirks import Quirks
from toolwire.errors import UnknownName
from toolwire.providers import catalogue, vertex, zai
from toolwire.request import HttpRequest

SENTINEL = "skip_thought_signature_validator"


@pytest.mark.parametrize(
    ("model", "sampling", "role"),
    [
        ("gpt-5.6", False, "developer"),
        ("gpt-5-codex", False, "developer"),
        ("o3", False, "developer"),
        ("o4-mini", False, "developer"),
        ("gpt-4o", True, "system"),
        ("gpt-4.1-mini", True, "system"),
        ("gpt-5-chat-latest", True, "system"),
    ],
)
def test_reasoning_models_of_openai_take_no_sampling(model: str, sampling: bool, role: str) -> None:
    quirks = providers.get("openai").quirks_for(model)
    assert (quirks.sampling, quirks.system_role) == (sampling, role)
    assert quirks.max_tokens_field == "max_completion_tokens"


@pytest.mark.parametrize(
    ("model", "sampling", "adaptive"),
    [
        ("claude-3-5-haiku-latest", True, False),
        ("claude-opus-4-1-20250805", True, False),
        ("claude-sonnet-4-20250514", True, False),
        ("claude-haiku-4-5", True, False),
        ("claude-sonnet-4-6", True, True),
        ("claude-opus-4-7", False, True),
        ("claude-sonnet-5", False, True),
        ("claude-opus-5-5", False, True),
    ],
)
def test_the_newest_claude_takes_no_sampling_and_the_older_thinks_by_budget(
    model: str, sampling: bool, adaptive: bool
) -> None:
    quirks = providers.get("anthropic").quirks_for(model)
    assert (quirks.sampling, quirks.adaptive_thinking) == (sampling, adaptive)


@pytest.mark.parametrize("name", ["google", "vertex", "code-assist"])
@pytest.mark.parametrize(
    ("model", "thinking", "sentinel"),
    [
        ("gemini-2.5-pro", "budget", ""),
        ("models/gemini-2.0-flash", "budget", ""),
        ("gemini-3-pro-preview", "level", SENTINEL),
        ("gemini-3.5-flash", "level", SENTINEL),
    ],
)
def test_gemini_3_is_asked_for_a_level_and_2_5_for_a_budget(
    name: str, model: str, thinking: str, sentinel: str
) -> None:
    quirks = providers.get(name).quirks_for(model)
    assert quirks.gemini_thinking == thinking
    assert quirks.signature_sentinel == sentinel
    assert quirks.media_in_results == bool(sentinel)
    assert quirks.send_made_ids == (name == "code-assist")


def test_kimi_takes_a_forced_choice_only_since_k3() -> None:
    moonshot = providers.get("moonshot")
    assert "required" not in moonshot.quirks_for("kimi-k2-thinking").tool_choices
    assert "required" in moonshot.quirks_for("kimi-k3").tool_choices


def test_deepseek_thinks_by_default_and_then_takes_no_forced_choice() -> None:
    deepseek = providers.get("deepseek")
    assert deepseek.quirks_for("deepseek-v4-pro").tool_choices == {"auto", "none"}
    assert "required" in deepseek.quirks_for("deepseek-chat").tool_choices


def test_a_host_of_open_models_reads_think_tags_only_from_models_that_write_them() -> None:
    together = providers.get("together")
    assert together.quirks_for("deepseek-ai/DeepSeek-R1").think_tag == "think"
    assert together.quirks_for("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8").think_tag == ""
    rule = together.rule_for("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8")
    assert rule is not None
    assert rule.leaked == ("qwen3-coder",)


def test_featherless_serves_native_calls_only_on_some_models() -> None:
    featherless = providers.get("featherless")
    qwen = featherless.rule_for("Qwen/Qwen3-32B")
    assert not featherless.native_tools
    assert qwen is not None
    assert qwen.native_tools


def test_a_copilot_codex_model_answers_in_responses() -> None:
    copilot = providers.get("copilot")
    assert copilot.for_model("gpt-5.3-codex").dialect == "openai-responses"
    assert copilot.for_model("gpt-4.1").dialect == "openai-chat"


def test_an_account_speaks_only_its_formats_and_can_go_back() -> None:
    openai = providers.get("openai")
    assert openai.with_dialect("openai-chat").with_dialect("openai-responses") == openai
    with pytest.raises(UnknownName, match='unknown dialect of openai "gemini"'):
        openai.with_dialect("gemini")


def test_claude_on_vertex_has_its_model_in_the_path() -> None:
    sent = HttpRequest(
        path="/v1/messages",
        body=b'{"model":"claude-sonnet-5","stream":true,"max_tokens":9}',
        headers=(("content-type", "application/json"), ("anthropic-version", "2023-06-01")),
    )
    prepared = vertex.prepare(sent)
    assert prepared.path == "/publishers/anthropic/models/claude-sonnet-5:streamRawPredict"
    assert json.loads(prepared.body) == {
        "stream": True,
        "max_tokens": 9,
        "anthropic_version": "vertex-2023-10-16",
    }
    assert prepared.headers == (("content-type", "application/json"),)
    assert providers.get("vertex").for_model("claude-sonnet-5").dialect == "anthropic-messages"


def test_gemini_on_vertex_is_googles() -> None:
    sent = HttpRequest(path="/models/gemini-3.5-flash:generateContent", body=b"{}")
    prepared = vertex.prepare(sent)
    assert prepared.path == "/publishers/google/models/gemini-3.5-flash:generateContent"


def test_zai_is_asked_to_stream_calls_when_there_are_tools() -> None:
    def asked(body: bytes) -> bool:
        prepared = zai.prepare(HttpRequest(path="/chat/completions", body=body))
        return "tool_stream" in json.loads(prepared.body)

    assert asked(b'{"stream":true,"tools":[{}]}')
    assert not asked(b'{"stream":true}')
    assert not asked(b'{"tools":[{}]}')


@pytest.mark.parametrize("name", ["openai", "azure"])
def test_encrypted_reasoning_is_requested_where_the_catalogue_knows_reasoning(name: str) -> None:
    for info in catalogue.models(name):
        quirks = catalogue.quirks_of(providers.get(name), info.id)
        assert (info.id, bool(quirks.encrypted_reasoning)) == (info.id, info.thinking)


@pytest.mark.parametrize(
    ("name", "model", "reasons"),
    [
        ("openai", "gpt-4o-2024-08-06", False),
        ("openai", "gpt-5-chat", False),
        ("openai", "gpt-5-chat-latest", False),
        ("openai", "gpt-5.2-chat-latest", False),
        ("openai", "ft:gpt-4.1:mine", False),
        ("openai", "unheard-of", False),
        ("openai", "o1-pro", True),
        ("openai", "gpt-5.2-2025-12-11", True),
        ("azure", "gpt-5-chat", False),
        ("azure", "gpt-4o", False),
        ("azure", "prod-4o", False),
        ("azure", "gpt-5-mini-eu", True),
        ("copilot", "gpt-5.3-codex", True),
    ],
)
def test_a_model_outside_the_catalogue_reasons_by_its_family(
    name: str, model: str, reasons: bool
) -> None:
    provider = providers.get(name).for_model(model)
    assert bool(catalogue.quirks_of(provider, model).encrypted_reasoning) is reasons


def test_what_a_user_writes_of_a_deployment_decides() -> None:
    azure = providers.get("azure")
    for model, thinking in (("prod", True), ("gpt-5-mine", False)):
        info = catalogue.described(f"azure/{model}", {"thinking": thinking})
        assert catalogue.quirks_of(azure, model, [info]).encrypted_reasoning is thinking


@pytest.mark.parametrize(("model", "reasons"), [("gpt-5.6", True), ("gpt-4o", False), ("x", False)])
def test_a_server_of_ones_own_is_asked_as_the_vendor_of_the_model(
    model: str, reasons: bool
) -> None:
    own = replace(providers.get("openai"), name="mine", quirks=Quirks(), rules=())
    assert bool(catalogue.quirks_of(own, model).encrypted_reasoning) is reasons
