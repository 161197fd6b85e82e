import pytest

from toolwire import providers
from toolwire.errors import BadInput
from toolwire.providers.addresses import address, completed

VERTEX = "/v1beta1/projects/p/locations/"


@pytest.mark.parametrize(
    ("name", "environ", "expected"),
    [
        ("openai", {}, "https://api.openai.com/v1"),
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"}, "http://127.0.0.1:9/v1"),
        ("groq", {"TOOLWIRE_GROQ_BASE_URL": "http://h/v1"}, "http://h/v1"),
        ("code-assist", {"TOOLWIRE_CODE_ASSIST_BASE_URL": "http://h"}, "http://h"),
        ("code-assist", {"CODE_ASSIST_ENDPOINT": "http://h"}, "http://h"),
        ("anthropic", {"ANTHROPIC_BASE_URL": "http://h:1"}, "http://h:1"),
        ("google", {"GOOGLE_GEMINI_BASE_URL": "http://h:1/"}, "http://h:1/v1beta"),
        ("google", {"GOOGLE_GEMINI_BASE_URL": "http://h:1/proxy"}, "http://h:1/proxy/v1beta"),
        ("google", {"GOOGLE_GEMINI_BASE_URL": "http://h:1/v1"}, "http://h:1/v1"),
        ("ollama", {"OLLAMA_HOST": "0.0.0.0:11500"}, "http://127.0.0.1:11500/v1"),
        ("ollama", {"OLLAMA_HOST": "box"}, "http://box:11434/v1"),
        ("ollama", {"OLLAMA_HOST": "http://box:1/v1"}, "http://box:1/v1"),
        ("azure", {"AZURE_RESOURCE_NAME": "r"}, "https://r.openai.azure.com/openai/v1"),
        (
            "azure",
            {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"},
            "https://r.openai.azure.com/openai/v1",
        ),
        (
            "vertex",
            {"GOOGLE_CLOUD_PROJECT": "p"},
            f"https://aiplatform.googleapis.com{VERTEX}global",
        ),
        (
            "vertex",
            {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "us-east5"},
            f"https://us-east5-aiplatform.googleapis.com{VERTEX}us-east5",
        ),
        (
            "vertex",
            {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "eu"},
            f"https://aiplatform.eu.rep.googleapis.com{VERTEX}eu",
        ),
        (
            "vertex",
            {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_VERTEX_BASE_URL": "http://h"},
            f"http://h{VERTEX}global",
        ),
    ],
)
def test_an_address_comes_from_the_vendors_variable_then_ours_then_the_entry(
    name: str, environ: dict[str, str], expected: str
) -> None:
    assert address(providers.get(name), environ) == expected


def test_a_flag_wins_over_variables_and_settings_over_placeholders_variables() -> None:
    openai, azure = providers.get("openai"), providers.get("azure")
    moved = {"OPENAI_BASE_URL": "http://variable/v1"}
    assert address(openai, moved, override="http://flag/v1") == "http://flag/v1"
    named = {"AZURE_RESOURCE_NAME": "variable"}
    filled = address(azure, named, settings={"resource": "said"})
    assert filled == "https://said.openai.azure.com/openai/v1"


def test_an_unfilled_placeholder_says_what_to_set() -> None:
    with pytest.raises(BadInput, match="vertex needs its project; set GOOGLE_CLOUD_PROJECT or"):
        address(providers.get("vertex"), {})


@pytest.mark.parametrize("value", ["evil.example/", "a@b", "x:1", "../x"])
def test_a_placeholder_cannot_lead_to_another_host(value: str) -> None:
    with pytest.raises(BadInput, match="is not a resource of azure"):
        address(providers.get("azure"), {"AZURE_RESOURCE_NAME": value})


def test_the_simulator_is_moved_as_a_whole_in_every_format() -> None:
    simulator = providers.get("simulator")
    assert {
        dialect: address(
            simulator.with_dialect(dialect), {"TOOLWIRE_SIMULATOR_BASE_URL": "http://h:1"}
        )
        for dialect, _ in ((simulator.dialect, ""), *simulator.other_dialects)
    } == {
        "openai-chat": "http://h:1/v1",
        "openai-responses": "http://h:1/v1",
        "anthropic-messages": "http://h:1",
        "gemini": "http://h:1/v1beta",
        "code-assist": "http://h:1",
    }


def test_a_gemini_server_gets_the_version_its_sdk_would_add() -> None:
    assert completed("gemini", "http://h/") == "http://h/v1beta"
    assert completed("gemini", "http://h/v1beta1/projects/p") == "http://h/v1beta1/projects/p"
    assert completed("openai-chat", "http://h/v1/") == "http://h/v1"
