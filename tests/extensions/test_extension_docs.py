"""The examples of the pages about hooks, skills and commands, run as they are written."""

import re
from pathlib import Path

import pytest

from tests.examples import ROOT
from tests.extensions.sessions import held, script
from tests.extensions.test_command_turns import prompt_of, sends
from tests.fakes.scripted import calls, says
from tests.fakes.simulated import Place
from toolwire.extensions.skills import SkillFolder, prompt_section, read_skills


def blocks(page: str, heading: str) -> dict[str, str]:
    """The first block of each language below a heading."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found: dict[str, str] = {}
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S):
        found.setdefault(language, body)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_first_hook_of_the_page_refuses_as_the_page_says(place: Place):
    found = blocks("hooks.md", "A first hook")
    script(place.work / "check.sh", found["sh"])
    pushes = ("c1", "run_shell_command", {"command": "git push --force"})
    lists = ("c2", "run_shell_command", {"command": "echo fine"})
    ran = held(place, calls(pushes, lists), says("Done."), text=found["toml"])
    assert [text for text, error in ran.results if error] == [found["text"].strip()]
    assert "fine" in ran.results[1][0]


def test_the_first_skill_of_the_page_is_named_as_the_page_says(place: Place):
    found = blocks("skills.md", "A first skill")
    folder = place.work / ".agents" / "skills" / "release-notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(found["markdown"])
    read, problems = read_skills([SkillFolder(path=folder.parent, origin="", project=True)])
    assert problems == []
    assert found["text"] in prompt_section(list(read.values()), 0)


def test_the_first_command_of_the_page_sends_what_the_page_says(place: Place):
    found = blocks("custom-commands.md", "A first command")
    folder = place.work / ".toolwire" / "commands"
    folder.mkdir(parents=True)
    (folder / "changes.toml").write_text(found["toml"])
    assert prompt_of(sends(place, "/changes beginner")) == found["text"]
