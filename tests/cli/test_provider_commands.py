import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolwire import providers
from toolwire.cli.providers import models_command, providers_command

SECRET = "hush-this-is-a-key"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLWIRE_HOME", str(tmp_path))
    for name in ("OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    return tmp_path


def run(command: Any, *args: str) -> Result:
    return CliRunner().invoke(command, args)


def own_provider(home: Path) -> None:
    (home / "config.toml").write_text(
        '[providers.mine]\ndialect = "gemini"\nbase_url = "https://h"\nmodels = ["big", "small"]\n'
        '[models."mine/big"]\ncontext = 77'
    )


def test_the_list_says_which_key_is_set_and_never_what_it_is(home: Path) -> None:
    done = run(providers_command)
    assert done.exit_code == 0
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
    assert list(rows) == list(providers.names())
    assert rows["anthropic"].split() == [
        "anthropic",
        "anthropic-messages",
        "ANTHROPIC_API_KEY",
        "yes",
    ]
    assert rows["openai"].split()[3] == "no"
    assert rows["ollama"].endswith("this machine")
    assert SECRET not in done.output
    assert "\x1b" not in done.output


def test_one_provider_is_reported_with_its_quirks_and_reasons(home: Path) -> None:
    done = run(providers_command, "anthropic")
    assert "ANTHROPIC_API_KEY is set" in done.stdout
    assert "from Opus 4.7 on" in done.stdout
    assert SECRET not in done.output


def test_json_is_one_object_for_one_and_a_list_for_all(home: Path) -> None:
    one = json.loads(run(providers_command, "mistral", "--json").stdout)
    assert one["quirks"]["required_word"] == {"value": "any", "reason": "the value is `any`"}
    assert one["quirks"]["history"]["value"] == {"id_characters": "a-zA-Z0-9", "id_length": 9}
    everything = json.loads(run(providers_command, "--json").stdout)
    assert [entry["name"] for entry in everything] == list(providers.names())
    assert next(e for e in everything if e["name"] == "anthropic")["key_set"] == "ANTHROPIC_API_KEY"


def test_the_users_own_provider_is_listed(home: Path) -> None:
    own_provider(home)
    assert "mine" in run(providers_command).stdout
    assert "https://h/v1beta" in run(providers_command, "mine").stdout


def test_an_unknown_provider_is_wrong_usage(home: Path) -> None:
    for command, args in ((providers_command, ["openay"]), (models_command, ["-p", "openay"])):
        done = run(command, *args)
        assert done.exit_code == 2
        assert 'did you mean "openai"' in done.stderr


def test_a_broken_configuration_is_reported_and_fails(home: Path) -> None:
    (home / "config.toml").write_text("nonsense = 1")
    for command in (providers_command, models_command):
        done = run(command)
        assert done.exit_code == 1
        assert "config.toml" in done.stderr


def test_models_are_listed_by_provider_with_figures(home: Path) -> None:
    own_provider(home)
    lines = run(models_command, "--provider", "mine").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["mine/big", "77"], ["mine/small", "-"]]
    found = json.loads(run(models_command, "-p", "openai", "--json").stdout)
    assert {"gpt-4o", "gpt-5"} <= {info["id"] for info in found}
    assert next(i for i in found if i["id"] == "gpt-4o")["name"] == "openai/gpt-4o"


def test_a_provider_without_listed_models_says_how_to_name_one(home: Path) -> None:
    done = run(models_command, "-p", "vllm")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "vllm/<model>" in done.stderr
