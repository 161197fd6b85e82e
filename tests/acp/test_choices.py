"""The models that an editor offers: those that could be asked now."""

from pathlib import Path

import pytest

from toolwire.acp.choices import usable_models
from toolwire.config import load


@pytest.mark.parametrize(
    ("variables", "providers"),
    [
        ({}, set[str]()),
        ({"OPENAI_API_KEY": "k"}, {"openai"}),
        ({"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_APPLICATION_CREDENTIALS": "adc.json"}, {"vertex"}),
        ({"GOOGLE_API_KEY": "k"}, {"google", "vertex"}),
    ],
)
def test_models_are_those_of_providers_with_a_credential(
    variables: dict[str, str], providers: set[str], tmp_path: Path
):
    adc = tmp_path / "adc.json"
    adc.write_text('{"type": "authorized_user"}')
    given = {k: str(adc) if v == adc.name else v for k, v in variables.items()}
    environ = {"HOME": str(tmp_path), "TOOLWIRE_HOME": str(tmp_path / "home"), **given}
    found = usable_models(load(environ, tmp_path), environ)
    assert {name.partition("/")[0] for name in found} == providers


def test_models_of_an_unknown_provider_are_left_out(tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[models."upstream/scripted"]\ncontext = 1000\n')
    environ = {"HOME": str(tmp_path), "TOOLWIRE_HOME": str(tmp_path / "home")}
    assert usable_models(load(environ, tmp_path), environ) == []
