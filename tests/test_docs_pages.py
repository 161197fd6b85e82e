import json
import re
from typing import Any

import pytest

from tests.examples import ROOT
from toolwire.cli.document import completions
from toolwire.config.schema import keys
from toolwire.tools.registry import builtins
from toolwire.tui.commands import COMMANDS

DOCS = ROOT / "docs"
OURS = re.compile(r"`([^`]+)`")
TREE = json.loads(completions())["tree"]
OPTIONS = {name for node in (TREE, *TREE["commands"].values()) for name in node["options"]}


def _below(node: dict[str, Any]) -> set[str]:
    return {*node["options"], *(o for one in node["commands"].values() for o in _below(one))}


def _ours(page: str) -> list[str]:
    """Code in the right column of tables, and in the rest of a page."""
    found: list[str] = []
    for line in (DOCS / page).read_text("utf-8").replace("\\|", "¦").splitlines():
        cells = line.strip("|").split("|")
        text = line if not line.startswith("|") else cells[-1]
        found += [one.replace("¦", "|") for one in OURS.findall(text)]
    return found


@pytest.mark.parametrize("page", ["coming-from.md", "troubleshooting.md", "tutorial.md"])
def test_every_option_that_the_page_names_exists(page: str) -> None:
    every = _below(TREE)
    named = {
        word
        for code in _ours(page)
        if not code.startswith(("pipx", "apt", "python3", "make"))
        for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", code)
    }
    assert named - every - {"-m"} == set()


@pytest.mark.parametrize("page", ["coming-from.md", "troubleshooting.md", "tutorial.md"])
def test_every_command_that_the_page_names_exists(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    for first, second in re.findall(r"(?<!/)toolwire ([a-z]+)(?: ([a-z]+))?", text):
        if first in TREE["commands"]:
            below = TREE["commands"][first]["commands"]
            assert not below or second in below, f"toolwire {first} {second}"
        else:
            assert first in ("needs", "does", "translates", "has", "and", "is"), first


@pytest.mark.parametrize("page", ["coming-from.md", "troubleshooting.md", "tutorial.md"])
def test_every_setting_that_the_page_names_exists(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    for name in re.findall(r"config (?:get|set) ([a-z_.]+)", text):
        assert [key for key in keys() if key == name or key.startswith(f"{name}.")], name


def test_the_tools_and_chat_commands_that_newcomers_look_for_exist() -> None:
    text = (DOCS / "coming-from.md").read_text("utf-8")
    names = set(builtins().names)
    assert {"read_file", "replace", "write_file", "run_shell_command", "glob"} <= names
    assert {"search_file_content", "apply_patch"} <= names
    known = {command.name for command in COMMANDS}
    for command in ("model", "compact", "new", "usage", "tools", "rewind", "diff"):
        assert f"`/{command}`" in text
        assert command in known


def test_the_newcomers_page_has_its_recording() -> None:
    page = (DOCS / "newcomer.md").read_text("utf-8")
    head, *events = (DOCS / "newcomer.cast").read_text("utf-8").splitlines()
    assert json.loads(head)["version"] == 2
    printed = "".join(json.loads(one)[2] for one in events)
    for words in (
        "toolwire --version",
        "Fix the typo",
        "now prints Hello.",
        "What did you change?",
    ):
        assert words in printed
    for step in ("install", "first answer", "an edit, approved at the terminal"):
        assert f"| {step} |" in page
    assert "the session resumed" in page
    assert (DOCS / "newcomer.svg").read_text("utf-8").startswith("<svg")
