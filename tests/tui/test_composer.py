"""What is written: pastes, pictures, history, drafts, and names that are found by a few letters."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from toolwire.config.settings import KeySettings
from toolwire.errors import BadInput
from toolwire.tools.spec import Workspace
from toolwire.tui import commands
from toolwire.tui.clipboard import image_problem
from toolwire.tui.composer import Composer, pasted_images
from toolwire.tui.finder import FileNames, has_changes
from toolwire.tui.history import Drafts, PromptHistory, searched
from toolwire.tui.keys import chosen_keys
from toolwire.tui.menu import Menu

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
BLOCK = "\n".join(f"line {number}" for number in range(20))


def test_the_same_paste_again_is_unfolded():
    composer = Composer(None)
    composer.paste(BLOCK)
    assert composer.text == "[pasted 20 lines #1]"
    composer.paste(BLOCK)
    assert composer.text == BLOCK


def test_a_mark_under_the_cursor_is_unfolded():
    composer = Composer(None)
    composer.paste(BLOCK)
    assert not composer.unfold()
    composer.buffer.cursor_position = 3
    assert composer.unfold()
    assert composer.text == BLOCK


def test_a_paste_carries_no_control_characters():
    composer = Composer(None)
    composer.paste("a\x1b[2Jb\x07\rc\x9b")
    assert composer.text == "a[2Jb\nc"


def test_five_megabytes_are_one_mark_and_sent_whole():
    composer = Composer(None)
    text = "word " * (1 << 20)
    composer.paste(text)
    assert composer.text == f"[pasted {len(text)} characters #1]"
    assert composer.take() == text


def test_pictures_are_marks_with_their_files(tmp_path: Path):
    one, two = tmp_path / "a b.png", tmp_path / "c.jpg"
    for path in (one, two):
        path.write_bytes(PNG)
    composer = Composer(None)
    for path in pasted_images(f"'{one}' {two}", tmp_path):
        composer.attach(path)
    assert composer.text == "[image 1] [image 2] "
    assert composer.images(composer.take() + "[image 9]") == (one, two)


@pytest.mark.parametrize("name", ["a b.png", "x.PNG"])
def test_dropped_paths_of_pictures_are_recognised(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes(PNG)
    quoted = str(tmp_path / name).replace(" ", "\\ ")
    address = (tmp_path / name).as_uri()
    for text in (quoted, address, f'"{tmp_path / name}"', name if " " not in name else quoted):
        assert pasted_images(f"{text}\n", tmp_path) == (tmp_path / name,)


@pytest.mark.parametrize("text", ["see a.png", "", "missing.png", "notes.txt", "\0.png"])
def test_other_text_is_not_a_picture(tmp_path: Path, text: str):
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "notes.txt").write_text("x")
    assert pasted_images(text, tmp_path) == ()


def test_what_a_model_cannot_take_is_reported(tmp_path: Path):
    good, odd = tmp_path / "a.png", tmp_path / "a.tiff"
    good.write_bytes(PNG)
    odd.write_bytes(b"II*\0")
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(21 << 20)
    assert image_problem(good, "m", True) == image_problem(good, "m", None) == ""
    assert "takes no pictures" in image_problem(good, "m", False)
    assert "PNG, JPEG" in image_problem(odd, "m", True)
    assert "at most 20 MB" in image_problem(large, "m", True)


def test_the_history_is_private_limited_and_without_secrets(tmp_path: Path):
    file = tmp_path / "history" / "x.jsonl"
    key = f"sk-{'a1B2' * 8}"
    for text in ("first", f"use {key} please", "password=hunter22 ok"):
        PromptHistory(file).store_string(text)
    assert PromptHistory(file).load_history_strings() == [
        "password=*** ok",
        "use *** please",
        "first",
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    with file.open("a") as out:
        out.writelines(f"{json.dumps(f'entry {number}')}\n" for number in range(5000))
    found = PromptHistory(file).load_history_strings()
    assert found[0] == "entry 4999"
    assert len(found) == 2000
    assert len(file.read_text().splitlines()) == 2000


def test_a_draft_of_a_dead_process_comes_back_once(tmp_path: Path):
    file = tmp_path / "x.jsonl"
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    Drafts(file).store("mine")
    (tmp_path / f"x.{dead.stdout.strip()}.draft").write_text("lost words")
    (tmp_path / f"x.{os.getppid()}.draft").write_text("of a program that runs")
    found = Drafts(file).left_behind()
    assert found in ("lost words", "mine")
    Drafts(file).store("")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [f"x.{os.getppid()}.draft"]


def test_prompts_are_searched_by_all_words():
    entries = ["Fix the parser", "parse the file", "fix the tests", "Fix the parser"]
    assert searched("fix pars", entries) == ["Fix the parser"]
    assert searched("", entries) == ["Fix the parser", "parse the file", "fix the tests"]


def test_a_search_puts_the_chosen_prompt_into_the_composer():
    composer = Composer(None)
    menu = Menu(dict, lambda name: (), lambda query: [])
    menu.search(["/style xml", "fix the parser", "fix the tests"])
    for letter in "fix":
        menu.type(letter)
    menu.move(1)
    assert menu.open
    assert not menu.choose(composer.buffer)
    assert composer.text == "fix the tests"
    menu.update(composer.text, len(composer.text))
    assert not menu.open


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("sty", "style"),
        ("resu", "sessions"),
        ("stats", "usage"),
        ("colours", "theme"),
        ("?", "help"),
    ],
)
def test_commands_are_found_by_name_alias_and_words(typed: str, first: str):
    menu = Menu(commands.listed, lambda name: (), lambda query: [])
    menu.update(f"/{typed}", len(typed) + 1)
    assert menu.items[0].name == f"/{first}"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    for name in ("src/prices.py", "src/parse/prices_test.py", "docs/prices.md", ".gitignore"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret.py\n")
    subprocess.run([*git, "add", "."], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-qm", "x"], cwd=tmp_path, check=True)
    (tmp_path / "secret.py").write_text("ignored")
    (tmp_path / "new_prices.py").write_text("untracked")
    return tmp_path


def names_of(folder: Path, *, trusted: bool = False) -> FileNames:
    found = FileNames(Workspace(roots=(folder,), home=folder, temp=folder), trusted=trusted)
    found.read()
    return found


def test_files_of_a_repository_are_found_and_ranked(repository: Path):
    names = names_of(repository)
    assert names.best("prices.py") == ["src/prices.py", "new_prices.py", "src/parse/prices_test.py"]
    assert names.best("secret") == []
    assert names.best("hooks") == []
    assert "src/parse/" in names.best("parse/")
    assert names.best("")[0] == "new_prices.py"
    names.chose("docs/prices.md")
    assert names.best("prices.md")[0] == names.best("")[0] == "docs/prices.md"


def test_open_changes_come_first(repository: Path):
    (repository / "docs/prices.md").write_text("changed\n")
    assert names_of(repository, trusted=True).best("")[:2] == ["docs/prices.md", "new_prices.py"]


def test_a_repository_with_changes_is_told_from_one_without(repository: Path):
    assert has_changes(repository)
    (repository / "new_prices.py").unlink()
    assert not has_changes(repository)
    assert not has_changes(repository / "nowhere")


def test_a_repository_cannot_run_a_program_of_its_own(repository: Path):
    hook = repository / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "alias.ls-files", "filter.own.clean"):
        subprocess.run(["git", "config", name, str(hook)], cwd=repository, check=True)
    (repository / ".git/info/attributes").write_text("* filter=own\n")
    # As long as before: only its content differs.
    (repository / "src/prices.py").write_text("SECRET.PY\n")
    assert names_of(repository).best("prices.py")
    assert not (repository / "ran").exists()


def test_a_longer_query_looks_only_at_what_the_shorter_one_found(repository: Path):
    names = names_of(repository)
    whole = names_of(repository).best("pripy")
    for query in ("p", "pr", "pri", "prip"):
        names.best(query)
    assert names.best("pripy") == whole


def test_a_key_with_two_meanings_is_an_error():
    with pytest.raises(BadInput, match=r"keys\.copy: ctrl-o is the key of keys\.transcript"):
        chosen_keys(KeySettings(copy=("ctrl-o",)))
    with pytest.raises(BadInput, match=r"keys\.copy: unknown key"):
        chosen_keys(KeySettings(copy=("ctrl-hyper",)))


def test_keys_may_be_moved_and_removed():
    found = chosen_keys(KeySettings(copy=(), transcript=("ctrl-y", "f5", "ctrl-x ctrl-e")))
    assert found["copy"] == []
    assert [len(presses) for presses in found["transcript"]] == [1, 1, 2]
