from pathlib import Path
from typing import Any

import pytest

from tests.tools.one_call import done
from toolwire.tools.builtin.save_memory import TOOL, with_fact
from toolwire.tools.spec import ToolContext, ToolFailed, ToolSettings, Workspace


def context(home: Path, **settings: Any) -> ToolContext:
    place = Workspace(roots=(home,), temp=home, home=home)
    return ToolContext(workspace=place, settings=ToolSettings(**settings))


def save(home: Path, fact: str, **settings: Any) -> str:
    return done(TOOL, {"fact": fact}, context(home, **settings)).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "## Gemini Added Memories\n- new\n"),
        ("# Mine", "# Mine\n\n## Gemini Added Memories\n- new\n"),
        ("# Mine\n", "# Mine\n\n## Gemini Added Memories\n- new\n"),
        ("# Mine\n\n", "# Mine\n\n## Gemini Added Memories\n- new\n"),
        ("## Gemini Added Memories\n- old\n", "## Gemini Added Memories\n- old\n- new\n"),
        (
            "## Gemini Added Memories\n- old\n\n## Other\ntext\n",
            "## Gemini Added Memories\n- old\n- new\n\n## Other\ntext\n",
        ),
        ("## Gemini Added Memories", "## Gemini Added Memories\n- new\n"),
    ],
)
def test_a_fact_goes_to_the_end_of_its_section(before: str, after: str) -> None:
    assert with_fact(before, "-- - new ") == after


def test_facts_are_kept_in_the_home(tmp_path: Path) -> None:
    assert save(tmp_path, "one") == (
        '{"success":true,"message":"Okay, I\'ve remembered that: \\"one\\""}'
    )
    save(tmp_path, "two")
    kept = (tmp_path / ".gemini" / "GEMINI.md").read_text()
    assert kept == "## Gemini Added Memories\n- one\n- two\n"


def test_the_file_can_be_another_one(tmp_path: Path) -> None:
    save(tmp_path, "one", memory_file="notes/MEMORY.md")
    assert (tmp_path / "notes" / "MEMORY.md").exists()
    assert TOOL.touches({"fact": "x"}, context(tmp_path)) == ()


def test_bytes_mode_and_links_of_the_file_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "real.md"
    real.write_bytes(b"caf\xe9\r\n")
    real.chmod(0o640)
    link = tmp_path / ".gemini" / "GEMINI.md"
    link.parent.mkdir()
    link.symlink_to(real)
    save(tmp_path, "one")
    assert real.read_bytes().startswith(b"caf\xe9\r\n")
    assert real.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


def test_an_empty_fact_is_refused(tmp_path: Path) -> None:
    words = 'Parameter "fact" must be a non-empty string.'
    assert TOOL.check({"fact": " "}, context(tmp_path)) == words
    assert TOOL.check({"fact": "\n"}, context(tmp_path)) == words


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".gemini").write_text("a file, not a folder")
    with pytest.raises(ToolFailed, match="Failed to save memory"):
        save(tmp_path, "one")
