import msgspec

from toolwire import prompted
from toolwire.config.schema import keys
from toolwire.policy.rules import Mode
from toolwire.tools.builtin import replace, run_shell_command, search_file_content
from toolwire.tools.shell.processes import ProcessLimits
from toolwire.tools.spec import DEFAULT_LIMIT


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
    assert keys()["approval_mode"].wanted == _one_of(*Mode)
    assert keys()["tool_style"].wanted == _one_of(*prompted.SETTINGS)


def test_the_defaults_of_the_tools_are_the_tools_own() -> None:
    assert keys()["tools.output_limit"].default == DEFAULT_LIMIT
    assert keys()["tools.output_characters"].default == run_shell_command.OUTPUT_CHARACTERS
    usual = ProcessLimits()
    assert keys()["tools.shell_seconds"].default == usual.wall
    assert keys()["tools.shell_idle_seconds"].default == usual.idle
    for name in (replace.PLAIN_SETTING, replace.CORRECTION_SETTING):
        assert keys()[f"tools.{name}"].default is False
    assert f"tools.{search_file_content.WAY_SETTING}" in keys()


def _one_of(*words: str) -> str:
    return "one of " + ", ".join(f'"{word}"' for word in sorted(words))
