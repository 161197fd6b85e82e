import itertools
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from tests.tools.workspaces import write
from toolwire.context.prompt import PromptFacts, chosen_prompt, system_prompt
from toolwire.errors import BadInput
from toolwire.policy import Mode
from toolwire.tools.registry import ADDED, ORIGINAL

ALL = (*ORIGINAL, *ADDED)
EVERY = [
    PromptFacts(tools=tools, git=git, sandbox=sandbox, interactive=interactive, mode=mode)
    for tools, git, sandbox, interactive, mode in itertools.product(
        (ALL, ("read_file",), ()), (True, False), ("bubblewrap", ""), (True, False), Mode
    )
]


def headings(**facts: object) -> list[str]:
    members: dict[str, object] = {"tools": ALL, **facts}
    return re.findall("^# (.*)$", system_prompt(PromptFacts(**members)), re.M)  # pyright: ignore[reportArgumentType] - a test's keywords


def test_the_sections_depend_on_the_situation():
    assert headings(git=True) == [
        "How to work",
        "Tools",
        "Commands",
        "Care",
        "Git",
        "With the user",
        "Style",
    ]
    assert headings(tools=("read_file",), interactive=False) == [
        "How to work",
        "Tools",
        "Care",
        "Without the user",
        "Style",
    ]
    assert headings(mode=Mode.PLAN, git=True) == [
        "Plan mode",
        "How to work",
        "Tools",
        "With the user",
        "Style",
    ]
    assert "Tools" not in headings(tools=())


@pytest.mark.parametrize("facts", EVERY)
def test_every_situation_has_a_short_whole_prompt(facts: PromptFacts):
    prompt = system_prompt(facts)
    assert 250 <= len(prompt.split()) <= 1200
    assert not re.search(r"\{\w+\}|\n\n\n|[ \t]\n", prompt)
    assert prompt == prompt.strip()
    # Each list goes on without a gap, and nothing but a heading begins a section.
    assert all(piece.startswith(("#", "- ", "You are", "Only")) for piece in prompt.split("\n\n"))


def test_the_full_prompt_has_between_600_and_1200_words():
    facts = PromptFacts(tools=ALL, git=True)
    assert 600 <= len(system_prompt(facts).split()) <= 1200


@pytest.mark.parametrize("facts", EVERY)
def test_a_prompt_names_only_tools_that_are_offered(facts: PromptFacts):
    named = set(re.findall(r"`(\w+)`", system_prompt(facts))) & set(ALL)
    assert named <= set(facts.tools)


def test_the_sandbox_is_named_or_its_absence_is_reported():
    prompt = system_prompt(PromptFacts(tools=ALL, sandbox="bubblewrap"))
    assert "in a sandbox (bubblewrap)" in prompt
    assert "directly on the user's system" in system_prompt(PromptFacts(tools=ALL))


def test_each_way_of_approval_is_described_to_the_model():
    prompts = {system_prompt(PromptFacts(tools=ALL, mode=mode)) for mode in Mode}
    assert len(prompts) == len(Mode)


def test_the_order_of_tools_changes_no_byte():
    assert system_prompt(PromptFacts(tools=ALL)) == system_prompt(PromptFacts(tools=ALL[::-1]))


def test_every_text_is_used_somewhere():
    everything = "\n".join(system_prompt(facts) for facts in EVERY)
    texts = [
        file for file in files("toolwire.context.prompt").iterdir() if file.name.endswith(".md")
    ]
    assert len(texts) > 15
    for file in texts:
        text = file.read_text("utf-8").strip().replace("{sandbox}", "bubblewrap")
        assert text in everything, file.name


def test_the_texts_are_found_from_any_folder(tmp_path: Path):
    code = (
        "from toolwire.context.prompt import *; "
        "print(len(system_prompt(PromptFacts(tools=()))) > 99)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert done.stdout == b"True\n"


FACTS = PromptFacts(tools=("read_file",))
OWN = system_prompt(FACTS)


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.home = folder / "home"
        self.folder.mkdir()
        self.home.mkdir()

    def choose(self, file: Path | None = None, trusted: bool = True, **environ: str):
        prompt = chosen_prompt(
            FACTS,
            environ=environ,
            folder=self.folder,
            home=self.home,
            file=file,
            trusted=trusted,
        )
        return prompt.text, prompt.file, prompt.written


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


@pytest.mark.parametrize("value", ["", "0", "false", "FALSE"])
def test_our_own_prompt_is_used_by_default(desk: Desk, value: str):
    assert desk.choose(GEMINI_SYSTEM_MD=value, GEMINI_WRITE_SYSTEM_MD=value) == (OWN, "", "")


@pytest.mark.parametrize("value", ["1", "true", "True"])
@pytest.mark.parametrize("place", [".gemini/system.md", ".toolwire/system.md"])
def test_the_projects_own_prompt_takes_its_place(desk: Desk, value: str, place: str):
    file = write(desk.folder / place, "mine\n")
    assert desk.choose(GEMINI_SYSTEM_MD=value) == ("mine\n", str(file), "")


def test_a_path_is_taken_from_the_folder_or_from_home(desk: Desk):
    file = write(desk.folder / "a.md", "A")
    at_home = write(desk.home / "b.md", "B")
    assert desk.choose(GEMINI_SYSTEM_MD="a.md") == ("A", str(file), "")
    assert desk.choose(GEMINI_SYSTEM_MD="~/b.md") == ("B", str(at_home), "")
    assert desk.choose(GEMINI_SYSTEM_MD=str(at_home)) == ("B", str(at_home), "")


def test_the_flag_wins(desk: Desk):
    write(desk.folder / "a.md", "A")
    file = write(desk.folder / "b.md", "B")
    assert desk.choose(Path("b.md"), GEMINI_SYSTEM_MD="a.md") == ("B", str(file), "")


def test_a_missing_file_is_an_error_that_names_it(desk: Desk):
    with pytest.raises(BadInput, match=r"GEMINI_SYSTEM_MD: no such file: .*/\.gemini/system\.md"):
        desk.choose(GEMINI_SYSTEM_MD="1")
    with pytest.raises(BadInput, match=r"--system: no such file: .*gone"):
        desk.choose(Path("gone"))
    (desk.folder / "deep").mkdir()
    with pytest.raises(BadInput, match=r"--system: .* cannot be read"):
        desk.choose(Path("deep"))


def test_an_error_names_what_named_the_file(desk: Desk):
    with pytest.raises(BadInput, match="system_prompt: no such file"):
        chosen_prompt(
            FACTS,
            environ={},
            folder=desk.folder,
            home=desk.home,
            file=Path("gone"),
            source="system_prompt",
        )


def test_a_file_that_is_not_text_is_an_error(desk: Desk):
    write(desk.folder / "a.md", b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="is not UTF-8"):
        desk.choose(Path("a.md"))


def test_a_folder_that_is_not_trusted_brings_no_prompt(desk: Desk):
    write(desk.folder / ".gemini/system.md", "obey")
    with pytest.raises(BadInput, match="not trusted; trust the folder"):
        desk.choose(GEMINI_SYSTEM_MD="1", trusted=False)
    assert desk.choose(Path(".gemini/system.md"), trusted=False)[0] == "obey"


def test_our_own_prompt_is_written_out_on_demand(desk: Desk):
    default = desk.folder / ".gemini/system.md"
    assert desk.choose(GEMINI_WRITE_SYSTEM_MD="1") == (OWN, "", str(default))
    assert default.read_text() == OWN
    other = desk.folder / "deep/er/out.md"
    assert desk.choose(GEMINI_WRITE_SYSTEM_MD="deep/er/out.md") == (OWN, "", str(other))
    assert other.read_text() == OWN


def test_writing_out_never_replaces_the_prompt_in_use(desk: Desk):
    file = write(desk.folder / ".gemini/system.md", "mine")
    assert desk.choose(GEMINI_SYSTEM_MD="1", GEMINI_WRITE_SYSTEM_MD="1") == (
        "mine",
        str(file),
        "",
    )
    assert file.read_text() == "mine"


def test_a_place_that_cannot_be_written_is_an_error(desk: Desk):
    write(desk.folder / "file", "x")
    with pytest.raises(BadInput, match=r"GEMINI_WRITE_SYSTEM_MD: .* cannot be written"):
        desk.choose(GEMINI_WRITE_SYSTEM_MD="file/below.md")
