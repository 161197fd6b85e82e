import msgspec

from toolwire.config.schema import keys
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle


def test_every_setting_has_a_meaning_and_a_variable_of_its_own() -> None:
    found = keys().values()
    assert all(key.doc.endswith(".") for key in found)
    variables = [key.variable for key in found if not key.tables]
    assert len(set(variables)) == len(variables)


def test_every_default_is_a_value_the_setting_takes() -> None:
    unset = (None, "")
    for key in keys().values():
        if not key.tables and key.default not in unset:
            assert key.read(msgspec.to_builtins(key.default)) == key.default


def test_the_words_of_the_settings_are_those_of_the_parts_they_set() -> None:
    assert keys()["approval_mode"].expected == _one_of(*Mode)
    assert keys()["tool_style"].expected == _one_of(*ToolStyle)


def _one_of(*words: str) -> str:
    return "one of " + ", ".join(f'"{word}"' for word in words)
