from pathlib import Path

import pytest

from toolwire import config
from toolwire.agent.usage import Limits
from toolwire.config import trust
from toolwire.config.schema import Key, keys, rendered
from toolwire.errors import BadInput, UnknownName
from toolwire.mcp.entry import Configured, read_entry
from toolwire.providers import Prices, catalogue
from toolwire.request import Effort
from toolwire.tools.spec import ToolSettings


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
    with pytest.raises(BadInput, match=r'providers\.openai is built in; write extends = "openai"'):
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


def test_an_unknown_provider_is_answered_with_the_users_own_too(tmp_path: Path) -> None:
    found = settings(tmp_path, '[providers.mine]\ndialect = "gemini"\nbase_url = "https://h"')
    with pytest.raises(UnknownName, match='unknown provider "mien"; did you mean "mine"'):
        found.provider("mien")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default_modle = 1", 'unknown setting "default_modle"; did you mean "default_model"'),
        ("default_model = 1", 'default_model must be "provider/model"'),
        ('default_model = "gpt"', 'default_model must be "provider/model"'),
        ('fallback = "a/b"', 'fallback must be a list, each "provider/model"; found "a/b"'),
        ('fallback = ["a/b", "c"]', 'fallback[1] must be "provider/model"'),
        ("providers = 1", "write [providers.<name>]"),
        ("[providers]\nmine = 1", "write [providers.mine]"),
        ("[providers.mine]\nbase_url = 1", "providers.mine: Expected `str`, got `int`"),
        ('[providers."a/b"]', "a name may not be empty or contain a slash"),
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
    assert found.tools == ToolSettings(exclude=("glob", "todo"), output_limit=3, call_command="run")


def test_a_project_may_not_bring_commands_or_permissions(tmp_path: Path) -> None:
    for line in ('call_command = "evil"', "allow_private_addresses = true", 'core = ["glob"]'):
        with pytest.raises(BadInput, match="a project may not set this"):
            settings(tmp_path, project=f"[tools]\n{line}")


def test_later_layers_win_and_each_value_reports_its_origin(tmp_path: Path) -> None:
    system, home, work = tmp_path / "system.toml", tmp_path / "home", tmp_path / "work"
    system.write_text("[limits]\nturns = 1\ntokens = 1\ncost = 1\nseconds = 1\n")
    home.mkdir()
    (home / "config.toml").write_text("[limits]\ntokens = 2\ncost = 2\nseconds = 2\n")
    environ = {
        "TOOLWIRE_SYSTEM_CONFIG": str(system),
        "TOOLWIRE_HOME": str(home),
        "TOOLWIRE_LIMITS_COST": "3",
        "TOOLWIRE_LIMITS_SECONDS": "3",
    }
    found = config.resolve(environ, work, flags={"limits.seconds": 4, "limits.turns": None})
    assert found.settings.limits == Limits(turns=1, tokens=2, cost=3.0, seconds=4.0)
    assert {path: found.origins[path] for path in found.origins if "limits" in path} == {
        "limits.turns": str(system),
        "limits.tokens": str(home / "config.toml"),
        "limits.cost": "TOOLWIRE_LIMITS_COST",
        "limits.seconds": "flag",
    }
    assert found.origins["tool_style"] == "default"
    assert found.values["tool_style"] == "auto"
    assert found.settings.files == (system, home / "config.toml")


def test_variables_win_over_the_project(tmp_path: Path) -> None:
    (tmp_path / ".toolwire").mkdir()
    (tmp_path / ".toolwire" / "config.toml").write_text('tool_style = "xml"')
    home = {"TOOLWIRE_HOME": str(tmp_path / "home")}
    assert config.load(home, tmp_path, trusted=True).tool_style == "xml"
    environ = {**home, "TOOLWIRE_TOOL_STYLE": "json"}
    assert config.load(environ, tmp_path, trusted=True).tool_style == "json"


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("TOOLWIRE_DEFAULT_MODEL", "a/b", "default_model", "a/b"),
        ("TOOLWIRE_FALLBACK", "a/b, c/d", "fallback", ("a/b", "c/d")),
        ("TOOLWIRE_FALLBACK", '["a/b,c"]', "fallback", ("a/b,c",)),
        ("TOOLWIRE_COMPRESSION_ENABLED", "Off", "compression.enabled", False),
        ("TOOLWIRE_COMPRESSION_KEEP", "0.5", "compression.keep", 0.5),
        ("TOOLWIRE_REASONING_EFFORT", "high", "reasoning.effort", Effort.HIGH),
        ("TOOLWIRE_REASONING_BUDGET", "-1", "reasoning.budget", -1),
        ("TOOLWIRE_REASONING_VISIBLE", "1", "reasoning.visible", True),
        ("TOOLWIRE_CONTEXT_FILES", "NOTES.md", "context.files", ("NOTES.md",)),
        ("TOOLWIRE_TOOLS_SEARCH_WITH", "own", "tools.search_with", "own"),
        ("TOOLWIRE_LIMITS_TURNS", "", "limits.turns", 0),
    ],
)
def test_a_variable_sets_its_setting(
    tmp_path: Path, variable: str, text: str, path: str, value: object
) -> None:
    found = config.resolve({"TOOLWIRE_HOME": str(tmp_path), variable: text}, tmp_path)
    assert found.values[path] == value


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("LIMITS_TURNS", "x", 'limits.turns must be a whole number of at least 0; found "x"'),
        ("LIMITS_TURNS", "-1", "limits.turns must be a whole number of at least 0; found -1"),
        ("LIMITS_COST", "nan", "limits.cost must be a number of at least 0; found nan"),
        ("LIMITS_COST", "inf", "limits.cost must be a number of at least 0; found inf"),
        ("COMPRESSION_ENABLED", "maybe", 'enabled must be true or false; found "maybe"'),
        ("APPROVAL_MODE", "yollo", 'approval_mode: unknown value "yollo"; did you mean "yolo"?'),
        ("FALLBACK", "[", "fallback: not a list"),
        ("FALLBACK", "[1]", 'fallback[0] must be "provider/model"; found 1'),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, text: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        config.load({"TOOLWIRE_HOME": str(tmp_path), f"TOOLWIRE_{variable}": text}, tmp_path)
    assert str(error.value).startswith(f"TOOLWIRE_{variable}: ")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nturn = 1", 'unknown setting of limits "turn"; did you mean "turns"'),
        ("limits = 1", "limits must be a table; write [limits]"),
        ("[limits]\nturns = 1.5", "limits.turns must be a whole number of at least 0; found 1.5"),
        ("[limits]\nturns = true", "limits.turns must be a whole number of at least 0; found true"),
        (
            "[limits]\nturns = {}",
            "limits.turns must be a whole number of at least 0; found a table",
        ),
        ("[compression]\nkeep = 2", "compression.keep must be a number between 0 and 1; found 2"),
        ("[context]\nfiles = [1]", "context.files[0] must be a file name without folders; found 1"),
        (
            "[context]\nfiles = 1",
            "context.files must be a list, each a file name without folders; found 1",
        ),
        ('[context]\nfiles = ["a.md", "../b.md"]', "files[1] must be a file name without folders"),
        ('[context]\nfiles = [".."]', 'files[0] must be a file name without folders; found ".."'),
        ('[reasoning]\neffort = "hgih"', 'unknown value "hgih"; did you mean "high"'),
        ("[reasoning]\nkept = 1", 'unknown setting of reasoning "kept"'),
        ("tool_style = 1", 'tool_style must be one of "auto", "native", "xml", "json"; found 1'),
        ('[tools]\nexlude = ["a"]', 'unknown setting of tools "exlude"; did you mean "exclude"'),
        ("[providers.a]\nbase_ulr = 1", 'unknown setting of providers.a "base_ulr"'),
        ('[models."a/b"]\ncontxt = 1', '"contxt"; did you mean "context"'),
        ("[mcp_servers]\na = 1", "mcp_servers.a must be a table; write [mcp_servers.a]"),
        ("files = 1", 'unknown setting "files"'),
        ("trusted = true", 'unknown setting "trusted"'),
    ],
)
def test_a_wrong_setting_says_what_was_found_and_what_is_wanted(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(BadInput) as error:
        settings(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'config.toml'}: ")
    assert said in str(error.value)


def test_a_project_sets_exactly_what_the_table_lets_it(tmp_path: Path) -> None:
    for key in keys().values():
        if key.tables:
            continue
        value = key.default if key.default not in (None, "") else _some(key)
        project = f"{key.path} = {rendered(value)}"
        if key.project:
            assert settings(tmp_path, project=project).trusted
        else:
            with pytest.raises(BadInput, match=f"{key.path}: a project may not set this"):
                settings(tmp_path, project=project)


def _some(key: Key) -> object:
    texts = ("a/b", "high", "own", "5", "true", "postgresql://h/d", "/toolwire")
    for text in texts:
        try:
            value = key.from_text(text)
            key.read(value)
        except BadInput:
            continue
        return value
    raise AssertionError(key.path)


def test_servers_are_typed_and_those_of_a_project_not_approved(tmp_path: Path) -> None:
    table = '[mcp_servers.files]\ncommand = "serve"\nargs = ["-v"]\n'
    entry = read_entry("files", {"command": "serve", "args": ["-v"]})
    assert settings(tmp_path, table).mcp_servers == {
        "files": Configured(entry=entry, origin="user")
    }
    assert settings(tmp_path / "other", project=table).mcp_servers == {
        "files": Configured(entry=entry, origin="project", approved=False)
    }


def test_the_users_server_wins_over_one_of_the_project_with_a_notice(tmp_path: Path) -> None:
    own, other = (f'[mcp_servers.files]\ncommand = "{name}"\n' for name in ("mine", "theirs"))
    (tmp_path / "config.toml").write_text(own)
    project = tmp_path / "w" / ".toolwire"
    project.mkdir(parents=True)
    (project / "config.toml").write_text(other)
    notices: list[str] = []
    environ = {"TOOLWIRE_HOME": str(tmp_path)}
    found = config.load(environ, tmp_path / "w", trusted=True, notice=notices.append)
    assert found.mcp_servers["files"].entry.command == "mine"
    assert "is ignored: you have one of that name" in notices[0]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            '[mcp_servers.a]\ncomand = "x"',
            'unknown setting of mcp_servers.a "comand"; did you mean',
        ),
        ('[mcp_servers.a]\nurl = "http://h"\noauth = { scope = 1 }', "mcp_servers.a.oauth"),
        ('[mcp_servers.a]\ncommand = "x"\ntimeout = 0', "a time limit must be above 0"),
        ("[mcp_servers.a]\nargs = []", "give either command or url"),
        ('[mcp_servers."a b"]\ncommand = "x"', "letters, digits"),
    ],
)
def test_a_wrong_server_is_named_with_its_file(tmp_path: Path, table: str, words: str) -> None:
    with pytest.raises(BadInput) as error:
        settings(tmp_path, table)
    assert words in str(error.value)
    assert str(error.value).count("config.toml") == 1


@pytest.mark.parametrize("name", ["trust", "believe_hints", "headers_command"])
def test_a_project_may_not_loosen_what_its_server_may_do(tmp_path: Path, name: str) -> None:
    value = '"x"' if name == "headers_command" else "true"
    table = f'[mcp_servers.a]\ncommand = "x"\n{name} = {value}'
    with pytest.raises(BadInput, match=f"a project may not set {name}"):
        settings(tmp_path, project=table)


def test_a_path_starts_from_the_folder_of_its_file(tmp_path: Path) -> None:
    assert settings(tmp_path, 'system_prompt = "own.md"').system_prompt == str(tmp_path / "own.md")
    environ = {"TOOLWIRE_HOME": str(tmp_path), "TOOLWIRE_SYSTEM_PROMPT": "x.md"}
    assert config.load(environ, tmp_path / "w").system_prompt == str(tmp_path / "w" / "x.md")


def test_the_user_extends_what_the_system_describes(tmp_path: Path) -> None:
    system = tmp_path / "system.toml"
    system.write_text('[providers.corp]\ndialect = "gemini"\nbase_url = "https://h"\n')
    (tmp_path / "config.toml").write_text('[providers.corp]\nextends = "corp"\ntitle = "Ours"\n')
    environ = {"TOOLWIRE_HOME": str(tmp_path), "TOOLWIRE_SYSTEM_CONFIG": str(system)}
    provider = config.load(environ, tmp_path).provider("corp")
    assert (provider.title, provider.base_url) == ("Ours", "https://h/v1beta")


def test_a_system_file_that_is_named_must_exist(tmp_path: Path) -> None:
    environ = {"TOOLWIRE_HOME": str(tmp_path), "TOOLWIRE_SYSTEM_CONFIG": str(tmp_path / "no.toml")}
    with pytest.raises(BadInput, match="TOOLWIRE_SYSTEM_CONFIG: no file"):
        config.load(environ, tmp_path)


def test_a_file_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'\xef\xbb\xbftool_style = "xml"\r\n')
    assert settings(tmp_path).tool_style == "xml"


def test_a_folder_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(BadInput, match=r"config\.toml cannot be read"):
        settings(tmp_path)


def test_an_unknown_flag_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='flag: unknown setting of limits "turn"'):
        config.load({"TOOLWIRE_HOME": str(tmp_path)}, tmp_path, flags={"limits.turn": 1})


def test_a_project_that_no_one_trusts_is_left_out_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / ".toolwire").mkdir()
    (tmp_path / ".toolwire" / "config.toml").write_text("not even toml")
    said: list[str] = []
    environ = {"TOOLWIRE_HOME": str(tmp_path / "home")}
    found = config.load(environ, tmp_path, notice=said.append)
    assert found == config.Settings()
    assert len(said) == 1
    assert '"toolwire config trust"' in said[0]
    assert str(tmp_path / ".toolwire" / "config.toml") in said[0]


def test_a_notice_goes_to_standard_error_if_no_one_else_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".toolwire").mkdir()
    (tmp_path / ".toolwire" / "config.toml").write_text("")
    config.load({"TOOLWIRE_HOME": str(tmp_path / "home")}, tmp_path)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("toolwire: ")


def test_a_folder_that_was_refused_is_left_out_without_a_word(tmp_path: Path) -> None:
    (tmp_path / ".toolwire").mkdir()
    (tmp_path / ".toolwire" / "config.toml").write_text('tool_style = "xml"')
    environ = {"TOOLWIRE_HOME": str(tmp_path / "home")}
    trust.trust(tmp_path, trust.TrustAnswer.NO, environ)
    said: list[str] = []
    assert config.load(environ, tmp_path, notice=said.append).tool_style == "auto"
    assert said == []


def test_a_person_is_asked_once_and_only_about_a_folder_with_settings(tmp_path: Path) -> None:
    environ = {"TOOLWIRE_HOME": str(tmp_path / "home")}
    asked: list[Path] = []

    def ask(folder: Path) -> trust.TrustAnswer:
        asked.append(folder)
        return trust.TrustAnswer.YES

    assert not config.load(environ, tmp_path, ask=ask).trusted
    (tmp_path / ".toolwire").mkdir()
    (tmp_path / ".toolwire" / "config.toml").write_text('tool_style = "xml"')
    for _ in range(2):
        assert config.load(environ, tmp_path, ask=ask).tool_style == "xml"
    assert asked == [tmp_path]


def test_the_users_own_file_is_not_a_project(tmp_path: Path) -> None:
    own = tmp_path / ".toolwire"
    own.mkdir()
    (own / "config.toml").write_text('approval_mode = "yolo"')
    found = config.load({"TOOLWIRE_HOME": str(own)}, tmp_path, trusted=True)
    assert found.approval_mode == "yolo"
    assert found.files == (own / "config.toml",)


def test_a_folder_that_was_deleted_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(BadInput, match="the current folder no longer exists"):
        config.current_folder()
