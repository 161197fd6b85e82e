from pathlib import Path
from typing import Any

import pytest

from toolwire.app.model_choice import choose_model, stored_model
from toolwire.config import Settings
from toolwire.embedded.catalogue import DEFAULT, SMALL
from toolwire.errors import BadInput, ProviderError, UnknownName
from toolwire.providers.custom import read_upstream


def chosen(environ: dict[str, str] | None = None, settings: Settings | None = None, **more: Any):
    found = choose_model(settings or Settings(), environ or {}, **more)
    return found.name, found.reason


def test_a_named_model_wins_over_everything():
    settings = Settings(default_model="openai/gpt-5")
    assert chosen({}, settings, model="xai/grok", before="google/g") == ("xai/grok", "--model")


def test_a_session_goes_on_with_its_own_model():
    settings = Settings(default_model="openai/gpt-5")
    assert chosen({}, settings, before="google/g")[0] == "google/g"
    assert chosen({}, settings, before="upstream/g")[0] == "openai/gpt-5"


def test_a_key_in_the_environment_is_enough():
    name, reason = chosen({"OPENROUTER_API_KEY": "k", "GROQ_API_KEY": "k"})
    assert name.startswith("openrouter/")
    assert reason == "OPENROUTER_API_KEY is set"


def test_a_provider_without_a_model_takes_its_first_choice():
    assert chosen(provider="anthropic")[0].startswith("anthropic/claude")
    assert chosen(provider="anthropic", model="claude-x")[0] == "anthropic/claude-x"
    with pytest.raises(BadInput, match="--model"):
        chosen(provider="vllm")
    with pytest.raises(UnknownName, match="anthropic"):
        chosen(provider="antropic")


def test_nothing_configured_says_the_ways_out():
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY") as caught:
        chosen()
    assert caught.value.kind == "auth"


def test_an_upstream_is_a_provider_of_its_own():
    upstream = read_upstream("gemini=http://h,key=k,model=m,style=xml")
    found = choose_model(Settings(), {}, upstream=upstream)
    assert (found.name, found.key, found.style) == ("upstream/m", "k", "xml")
    assert found.settings.provider("upstream").base_url == "http://h"
    assert choose_model(Settings(), {}, upstream=upstream, model="n").name == "upstream/n"


@pytest.mark.parametrize(
    ("short", "environ", "full"),
    [
        ("gpt-5", {}, "openai/gpt-5"),
        ("GPT-5", {}, "openai/gpt-5"),
        ("gpt-5", {"AZURE_OPENAI_API_KEY": "k"}, "azure/gpt-5"),
        ("gemini-2.5-pro", {}, "google/gemini-2.5-pro"),
        ("gpt-oss-120b", {"SAMBANOVA_API_KEY": "k"}, "sambanova/gpt-oss-120b"),
    ],
)
def test_a_short_name_is_the_model_of_that_name(short: str, environ: dict[str, str], full: str):
    assert chosen(environ, model=short)[0] == full


@pytest.mark.parametrize("short", ["sonnet", "claude-sonnet", "opus", "haiku"])
def test_a_short_name_of_a_series_is_its_newest_model(short: str):
    from toolwire.providers import catalogue

    series = [one.id for one in catalogue.models("anthropic") if short.split("-")[-1] in one.id]
    assert chosen(model=short)[0] == f"anthropic/{series[0]}"


@pytest.mark.parametrize(
    ("short", "words"),
    [
        ("gpt-oss-120b", "could be cerebras/gpt-oss-120b, sambanova/gpt-oss-120b"),
        ("mini", "could be openai/"),
        ("gpt5", 'unknown model "gpt5"; did you mean "openai/gpt-5"?'),
        ("zzz", "see toolwire models"),
    ],
)
def test_a_short_name_that_is_not_unique_or_not_known_is_refused(short: str, words: str):
    with pytest.raises(BadInput, match=r".") as caught:
        chosen(model=short)
    assert words in str(caught.value)


def test_the_embedded_model_is_used_once_its_weights_are_here(tmp_path: Path):
    environ = {"TOOLWIRE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    assert stored_model(environ) == ""
    folder = tmp_path / "home" / "cache" / "models"
    folder.mkdir(parents=True)
    for weights in (DEFAULT, SMALL):
        (folder / weights.file).touch()
    assert stored_model(environ) in {f"local/{weights.model}" for weights in (DEFAULT, SMALL)}
