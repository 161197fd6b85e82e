import msgspec
import pytest

from toolwire.errors import UnknownName
from toolwire.prompted import ToolStyle, choose, from_kilocode
from toolwire.providers._spec import ModelInfo, ModelRule, NoAuth, Provider


def provider(*rules: ModelRule, native: bool = True, schema: bool = False) -> Provider:
    return Provider(
        name="acme",
        title="Acme",
        dialect="openai-chat",
        base_url="http://localhost/v1",
        auth=NoAuth(),
        rules=rules,
        native_tools=native,
        json_schema_output=schema,
    )


OLD = ModelRule(pattern="old-*", reason="prints its calls", native_tools=False)
NEW = ModelRule(pattern="new-*", reason="was trained for it", native_tools=True)
OTHER = ModelRule(pattern="*", reason="speaks of something else")


@pytest.mark.parametrize(
    ("entry", "model", "style"),
    [
        (provider(), "m", "native"),
        (provider(), "", "xml"),
        (provider(native=False), "m", "xml"),
        (provider(native=False, schema=True), "m", "xml"),
        (provider(OLD), "old-1", "xml"),
        (provider(OLD), "OLD-1", "xml"),
        (provider(OLD), "m", "native"),
        (provider(NEW, native=False), "new-1", "native"),
        (provider(OTHER), "m", "native"),
        (provider(OTHER, native=False), "m", "xml"),
    ],
)
def test_auto_asks_the_model_rules_then_the_provider(entry: Provider, model: str, style: str):
    choice = choose(entry, model)
    assert choice.style == style
    assert choice.reason
    assert choice.warning == ""


def test_the_reason_of_a_rule_is_given():
    assert choose(provider(OLD), "old-1").reason == "acme old-*: prints its calls"


def test_auto_believes_the_catalogue_unless_a_rule_says_otherwise():
    no_tools = ModelInfo(provider="acme", id="new-1", tools=False)
    assert choose(provider(), "new-1", info=no_tools).style is ToolStyle.XML
    assert choose(provider(NEW), "new-1", info=no_tools).style is ToolStyle.NATIVE


@pytest.mark.parametrize(
    ("entry", "setting", "warned"),
    [
        (provider(), "native", False),
        (provider(native=False), "native", True),
        (provider(NEW, native=False), "native", False),
        (provider(ModelRule(pattern="new-*", reason="no", native_tools=False)), "native", True),
        (provider(), "xml", False),
        (provider(native=False), "xml", False),
        (provider(), "json", True),
        (provider(schema=True), "json", False),
    ],
)
def test_an_explicit_setting_is_honoured_with_a_warning(
    entry: Provider, setting: str, warned: bool
):
    choice = choose(entry, "new-1", setting)
    assert choice.style == setting
    assert choice.reason == f"the setting says {setting}"
    assert bool(choice.warning) is warned


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(UnknownName, match='did you mean "native"'):
        choose(provider(), "m", "nativ")


def test_json_in_kilocode_settings_means_native():
    assert [from_kilocode(word) for word in (None, "", "XML", "JSON", "json")] == [
        "auto",
        "auto",
        "xml",
        "native",
        "native",
    ]
    with pytest.raises(UnknownName):
        from_kilocode("yaml")


def test_a_provider_may_prefer_json_to_xml_where_native_calls_do_not_work():
    preferring = msgspec.structs.replace(provider(native=False), prompted_style="json")
    assert choose(preferring, "m").style is ToolStyle.JSON
    assert choose(provider(native=False), "m").style is ToolStyle.XML
