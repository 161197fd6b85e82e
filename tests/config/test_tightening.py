from pathlib import Path

import pytest

from toolwire import config
from toolwire.errors import BadInput


def resolved(home: Path, user: str, project: str, flag: str | None = None) -> object:
    (home / "config.toml").write_text(user)
    folder = home / "work" / ".toolwire"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(project)
    environ, flags = {"TOOLWIRE_HOME": str(home)}, {"tools.sandbox": flag}
    found = config.load(environ, home / "work", trusted=True, flags=flags)
    return found.tools.sandbox


@pytest.mark.parametrize(
    ("user", "project"),
    [("auto", "read-only"), ("off", "workspace-write"), ("workspace-write", "workspace-write")],
)
def test_a_project_may_tighten_the_sandbox(user: str, project: str, tmp_path: Path) -> None:
    texts = [f'[tools]\nsandbox = "{level}"\n' for level in (user, project)]
    assert resolved(tmp_path, *texts) == project


@pytest.mark.parametrize(
    "project", ['sandbox = "off"', 'sandbox = "none"', "sandbox_network = true"]
)
def test_a_project_may_not_loosen_it(project: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a project may only tighten this"):
        resolved(tmp_path, "", f"[tools]\n{project}\n")


def test_the_flag_wins_over_the_project(tmp_path: Path) -> None:
    assert resolved(tmp_path, "", '[tools]\nsandbox = "read-only"\n', "off") == "off"
