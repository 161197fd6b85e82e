from pathlib import Path

import pytest

from toolwire import config
from toolwire.errors import BadInput, UnknownName
from toolwire.providers import Prices, catalogue


def settings(home: Path, user: str = "", project: str = "") -> config.Settings:
    if user:
        (home / "config.toml").write_text(user)
    work = home / "work"
    (work / ".toolwire").mkdir(parents=True, exist_ok=True)
    if project:
        (work / ".toolwire" / "config.toml").write_text(project)
    return config.load({"TOOLWIRE_HOME": str(home)}, work, trusted=True)


def test_without_files_nothing_is_set(tmp_path: Path) -> None:
    assert settings(tmp_path) == config.Settings(trusted=True)


def test_a_file_gives_models_fallback_providers_and_prices(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        """
        default_model = "mine/large"
        fallback = ["openai/gpt-5.6", "anthropic/claude-sonnet-5"]
        [providers.mine]
        dialect = "openai-chat"
        base_url = "https://llm.example.com/v1"
        key_env = "MINE_KEY"
        [providers.mine.quirks]
        sampling = false
        [models."mine/large"]
        context = 1000
        prices = { input = 1, output = 2 }
        """,
    )
    assert found.default_model == "mine/large"
    assert found.fallback == ("openai/gpt-5.6", "anthropic/claude-sonnet-5")
    provider, model = found.split("mine/large")
    assert (provider.base_url, provider.quirks_for(model).sampling) == (
        "https://llm.example.com/v1",
        False,
    )
    info = catalogue.find("mine", "large", found.models)
    assert info is not None
    assert info.prices == Prices(input=1, output=2)
    assert found.files == (tmp_path / "config.toml",)
    assert found.provider("groq").title == "Groq"


def test_the_project_wins_over_the_user(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        'default_model = "a/b"\n[models."a/b"]\ncontext = 1\n[models."a/c"]\ncontext = 2',
        'default_model = "openai/gpt-5.6"\n[models."a/b"]\ncontext = 3',
    )
    assert found.default_model == "openai/gpt-5.6"
    assert {info.id: info.context for info in found.models} == {"b": 3, "c": 2}
    assert len(found.files) == 2


def test_a_project_cannot_say_where_keys_are_sent(tmp_path: Path) -> None:
    project = '[providers.openai]\nextends = "openai"\nbase_url = "https://evil.example"'
    with pytest.raises(
        BadInput, match=r"providers: a project may not set this; move it to .*config\.toml"
    ):
        settings(tmp_path, project=project)


def test_a_built_in_name_is_only_taken_by_an_entry_that_extends(tmp_path: Path) -> None:
    table = '[providers.openai]\ndialect = "openai-chat"\n'
    with pytest.raises(BadInput, match=r'providers\.openai is built in; say extends = "openai"'):
        settings(tmp_path, table + 'base_url = "https://h/v1"')
    changed = settings(tmp_path, table + 'extends = "openai"').provider("openai")
    assert changed.dialect == "openai-chat"


def test_an_entry_may_extend_one_written_above_it(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        '[providers.a]\ndialect = "gemini"\nbase_url = "https://h"\n'
        '[providers.b]\nextends = "a"\ntitle = "B"',
    )
    assert found.provider("b").base_url == "https://h/v1beta"


def test_an_unknown_provider_is_told_the_users_own_too(tmp_path: Path) -> None:
    found = settings(tmp_path, '[providers.mine]\ndialect = "gemini"\nbase_url = "https://h"')
    with pytest.raises(UnknownName, match='unknown provider "mien"; did you mean "mine"'):
        found.provider("mien")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default_modle = 1", 'unknown setting "default_modle"; did you mean "default_model"'),
        ("default_model = 1", 'default_model must be "provider/model"'),
        ('default_model = "gpt"', 'default_model must be "provider/model"'),
        ('fallback = "a/b"', 'fallback must be a list of "provider/model"; found "a/b"'),
        ('fallback = ["a/b", "c"]', 'fallback[1] must be "provider/model"'),
        ("providers = 1", "write [providers.<name>]"),
        ("[providers]\nmine = 1", "write [providers.mine]"),
        ("[providers.mine]\nbase_url = 1", "providers.mine: Expected `str`, got `int`"),
        ('[providers."a/b"]', "a name may not be empty or hold a slash"),
        ('[providers.a]\nextends = "b"', 'unknown provider "b"'),
        ("a = = 1", "is not TOML"),
    ],
)
def test_an_error_names_the_file_the_key_and_the_way_out(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(BadInput) as error:
        settings(tmp_path, text)
    assert said in str(error.value)
    assert str(tmp_path / "config.toml") in str(error.value)


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"config\.toml is not UTF-8"):
        settings(tmp_path)


def test_tools_are_set_by_the_user_and_only_narrowed_by_a_project(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        '[tools]\nexclude = ["glob"]\noutput_limit = 5\ncall_command = "run"',
        '[tools]\nexclude = ["todo"]\noutput_limit = 3',
    )
    assert found.tools == {
        "exclude": ("glob", "todo"),
        "output_limit": 3,
        "call_command": "run",
    }


def test_a_project_may_not_bring_commands_or_permissions(tmp_path: Path) -> None:
    for line in ('call_command = "evil"', "allow_private_addresses = true", 'core = ["glob"]'):
        with pytest.raises(BadInput, match="a project may not set this"):
            settings(tmp_path, project=f"[tools]\n{line}")
