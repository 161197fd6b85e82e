import sys
from pathlib import Path

import pytest

from toolwire import providers
from toolwire.errors import BadInput, UnknownName
from toolwire.history import HistoryRules
from toolwire.providers import ApiKey, NoAuth, Provider, catalogue, custom
from toolwire.providers.document import changed

MINE = {"dialect": "openai-chat", "base_url": "https://llm.example.com/v1"}


def test_a_table_is_a_provider_without_code() -> None:
    made = custom(
        "mine",
        {
            **MINE,
            "key_env": "MINE_KEY",
            "headers": {"X-Team": "wires"},
            "models": ["large"],
            "quirks": {"tool_choices": ["auto"], "history": {"id_length": 9}},
            "default_model": "large",
            "local": True,
        },
    )
    assert made.auth == ApiKey(env=("MINE_KEY",))
    assert made.headers == (("X-Team", "wires"),)
    assert made.quirks.tool_choices == {"auto"}
    assert made.quirks.history == HistoryRules(id_length=9)
    assert made.models == ("large",)
    assert made.local
    assert {name for name, _ in made.reasons} == set(changed(made.quirks))


def test_a_server_without_a_key_needs_none() -> None:
    assert custom("mine", MINE).auth == NoAuth()


@pytest.mark.parametrize(
    ("dialect", "header", "prefix"),
    [
        ("anthropic-messages", "x-api-key", ""),
        ("gemini", "x-goog-api-key", ""),
        ("openai-responses", "authorization", "Bearer "),
    ],
)
def test_a_key_goes_where_the_format_has_it(dialect: str, header: str, prefix: str) -> None:
    made = custom("mine", {"dialect": dialect, "base_url": "https://h", "key_env": "K"})
    assert made.auth == ApiKey(env=("K",), header=header, prefix=prefix)


def test_a_key_may_go_elsewhere() -> None:
    made = custom("mine", {**MINE, "key_env": ["A", "B"], "key_header": "Api-Key"})
    assert made.auth == ApiKey(env=("A", "B"), header="api-key", prefix="")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"base_ulr": "x"},
            'unknown setting of providers.mine "base_ulr"; did you mean "base_url"',
        ),
        ({"quirks": {"samplng": False}}, 'mine.quirks "samplng"; did you mean "sampling"'),
        ({"quirks": {"history": {"id_len": 1}}}, 'quirks.history "id_len"; did you mean "id_leng'),
        ({"quirks": {"sampling": "no"}}, "providers.mine.quirks: Expected `bool`"),
        ({"dialect": "openai"}, 'providers.mine.dialect: unknown dialect "openai"; did you mean'),
        ({"base_url": "llm.example.com"}, "begin it with https:// or http://"),
        ({"base_url": ""}, 'providers.mine has no "base_url"'),
        ({"key_header": "x"}, "sets how to send a key but not key_env"),
        ({"key_env": []}, "key_env is empty"),
        ({"models": "large"}, "got `str` - at `$.models`"),
    ],
)
def test_a_mistake_is_named_with_the_way_out(change: dict[str, object], said: str) -> None:
    with pytest.raises((BadInput, UnknownName)) as error:
        custom("mine", {**MINE, **change})
    assert said in str(error.value)


def test_an_entry_that_extends_another_changes_only_what_it_says() -> None:
    openai = providers.get("openai")
    made = custom("chat", {"extends": "openai", "dialect": "openai-chat"}, providers.get)
    assert made.dialect == "openai-chat"
    assert made.base_url == openai.base_url
    assert made.auth == openai.auth
    assert made.quirks_for("gpt-5.6").system_role == "developer"


def test_quirks_of_an_extending_entry_reach_its_rules() -> None:
    made = custom("x", {"extends": "openai", "quirks": {"strict_tools": False}}, providers.get)
    assert not made.quirks_for("gpt-5.6").strict_tools
    assert not made.quirks_for("gpt-4o").strict_tools
    assert made.quirks_for("gpt-4o").sampling


def test_a_vendors_key_does_not_follow_to_another_address() -> None:
    table = {"extends": "openai", "base_url": "https://proxy.example.com/v1"}
    moved = custom("proxy", table, providers.get)
    assert moved.auth == NoAuth()
    assert moved.base_url_env == ()
    named = custom("proxy", {**table, "key_env": "OPENAI_API_KEY"}, providers.get)
    assert named.auth == ApiKey(env=("OPENAI_API_KEY",))


def install(folder: Path, entry: str, code: str) -> None:
    (folder / "offering.py").write_text(code)
    info = folder / "offering-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{providers.ENTRY_POINTS}]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "offering", raising=False)
    return tmp_path


CODE = """
from toolwire.providers import NoAuth, Provider
PROVIDER = Provider(
    name="acme", title="Acme", dialect="gemini", base_url="https://a", auth=NoAuth()
)
def make(): return PROVIDER
def broken(): return 1
"""


@pytest.mark.parametrize("target", ["PROVIDER", "make"])
def test_an_installed_package_offers_a_provider(site: Path, target: str) -> None:
    install(site, f"acme = offering:{target}", CODE)
    assert isinstance(providers.get("acme"), Provider)
    assert catalogue.split("acme/big/one")[1] == "big/one"


def test_an_installed_package_cannot_take_a_built_in_name(site: Path) -> None:
    install(site, "openai = offering:PROVIDER", CODE)
    assert providers.get("openai").title == "OpenAI"


def test_an_entry_point_that_gives_no_provider_is_named(site: Path) -> None:
    install(site, "acme = offering:broken", CODE)
    with pytest.raises(BadInput, match=r'entry point "acme" .* returns no Provider'):
        providers.get("acme")


def test_an_unknown_provider_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match='unknown provider "grok"; did you mean "groq"'):
        providers.get("grok")
