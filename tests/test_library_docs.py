import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.examples import ROOT, Example, examples_of, printed_by
from tests.fakes.simulated import Place
from toolwire.events import StopReason
from toolwire.simulator import Call, Script, refused, replies, reply

PAGES = ("docs/library.md", "docs/library-programs.md")
EXAMPLES = [example for page in PAGES for example in examples_of(page)]
SCRIPTS: dict[str, Callable[[Path], Script]] = {
    "Quick start": lambda work: replies(
        reply(Call.of("word_count", path="notes.txt")), "notes.txt has {last_result} words."
    ),
    "Tools": lambda work: replies(
        reply(Call.of("stock", item="cocoa")),
        reply(Call.of("stock", item="tea"), when="there is no cocoa; there are tea, milk"),
        reply("No cocoa, but {last_result} packs of tea.", when="12"),
    ),
    "Approval": lambda work: replies(
        reply(*(Call.of("delete", path=path) for path in ("keep.txt", "a.txt", "b.txt"))),
        reply("Clean.", when="that one stays"),
    ),
    "Asynchronously, as a stream": lambda work: replies(
        "Hello.", "Roses are red, violets are blue."
    ),
    "Conversations and sessions": lambda work: replies("Hello Ada.", "Ada."),
    "Results": lambda work: replies(
        reply("Once upon a", stop=StopReason.LENGTH), reply(fault=refused(401))
    ),
    "Built-in tools": lambda work: replies(
        reply(Call.of("list_directory", path=str(work))),
        reply(Call.of("read_file", absolute_path=str(work / "notes.txt")), when="notes.txt"),
        "They say: {last_result}",
    ),
    "Any model": lambda work: replies(),
    "The wire formats alone": lambda work: replies(),
    "Typed output": lambda work: replies(
        '{"name": "Tokyo"}',
        reply('{"name": "Tokyo", "people": 37000000}', when="required property 'people'"),
        reply('{"result": ["Yokohama", "Chiba"]}', when="neighbours"),
    ),
    "Output while it grows": lambda work: replies(
        reply('{"title": "Tea", "steps": ["Boil water.", "Wait."]}', delta=9)
    ),
    "Tools with dependencies": lambda work: replies(
        reply(Call.of("in_stock", item="tea")),
        "Yes, {last_result}.",
        reply(Call.of("in_stock", item="tea")),
        "Yes, {last_result}.",
    ),
    "Pictures and files": lambda work: replies(
        reply("Red; there is something to be done.", when="to be done")
    ),
    "Start from messages": lambda work: replies("Ada.", "ADA."),
    "Hooks": lambda work: replies(
        reply(Call.of("read", path="/etc/passwd"), Call.of("read", path="NOTES.txt")),
        reply("Done.", when="[password]"),
    ),
    "Hooks as programs": lambda work: replies("2031."),
    "Agents as tools": lambda work: replies(
        reply(Call.of("historian", prompt="When was the tower finished?")),
        reply(Call.of("search", words="tower")),
        reply("It was finished in 1889.", when="The tower was finished"),
        "In 1889.",
    ),
    "Traces": lambda work: replies("Hello."),
    "Options of one run": lambda work: replies(
        reply(Call.of("roll", sides=6)), "It is {last_result}.", reply(Call.of("roll", sides=6))
    ),
}


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.title for one in EXAMPLES])
def test_an_example_prints_what_the_page_says(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = SCRIPTS[example.title](Place(tmp_path).work)
    assert example.printed != ""
    assert printed_by(example.code, script, tmp_path, monkeypatch) == example.printed


def test_every_script_has_its_example() -> None:
    assert [one.title for one in EXAMPLES] == list(SCRIPTS)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pyright") is None, reason="pyright is not installed")
def test_the_examples_are_clean_under_a_strict_type_checker(tmp_path: Path) -> None:
    for number, example in enumerate(EXAMPLES):
        file = tmp_path / f"example_{number}.py"
        file.write_text(f"# pyright: strict\n{example.code}", "utf-8")
    inferred = (ROOT / "tests/library/inferred.py").read_text("utf-8")
    (tmp_path / "inferred.py").write_text(f"# pyright: strict\n{inferred}", "utf-8")
    checker = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(tmp_path)]
    done = subprocess.run(checker, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        "0 errors, 0 warnings, 0 informations",
    ), done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_the_page_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8"))
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
