import os
from pathlib import Path

import pytest

from tests.tools.workspaces import git, write
from toolwire.context import MemorySettings
from toolwire.context.memory import Memory, MemoryFile, load_memory, with_memory
from toolwire.tools.builtin.save_memory import memory_file
from toolwire.tools.spec import ToolContext, Workspace


class Land:
    """A home with a project in it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.home / "code" / "project"
        self.project.mkdir(parents=True)

    def load(
        self, cwd: str = "", *, trusted: bool = True, settings: MemorySettings | None = None
    ) -> Memory:
        root = self.project / cwd
        root.mkdir(parents=True, exist_ok=True)
        workspace = Workspace(roots=(root,), temp=self.home / "temp", home=self.home)
        file = memory_file(ToolContext(workspace=workspace))
        return load_memory(workspace, global_file=file, trusted=trusted, settings=settings)


@pytest.fixture
def land(tmp_path: Path) -> Land:
    return Land(tmp_path.resolve())


def block(shown: str, text: str) -> str:
    return f"--- Context from: {shown} ---\n{text}\n--- End of Context from: {shown} ---"


def shown(memory: Memory) -> list[str]:
    return [file.shown for file in memory.files]


def test_memory_is_global_then_from_outside_in_then_below_sorted(land: Land):
    git(land.project)
    write(land.home / ".gemini/GEMINI.md", "global\n")
    write(land.project / "GEMINI.md", "\nroot\n\n")
    write(land.project / "sub/GEMINI.md", "sub")
    write(land.project / "sub/b/GEMINI.md", "b")
    write(land.project / "sub/a/deep/GEMINI.md", "deep")
    write(land.project / "sub/a-z/GEMINI.md", "a-z")
    write(land.project / "sub/a/GEMINI.md", " \n")
    write(land.project / "beside/GEMINI.md", "not on the way")
    write(land.home / "GEMINI.md", "outside of the project")
    memory = land.load("sub")
    assert memory.text == "\n\n".join(
        [
            block("../../../.gemini/GEMINI.md", "global"),
            block("../GEMINI.md", "root"),
            block("GEMINI.md", "sub"),
            block("a-z/GEMINI.md", "a-z"),
            block("a/deep/GEMINI.md", "deep"),
            block("b/GEMINI.md", "b"),
        ]
    )
    assert memory.notices == ()
    assert memory.files[1] == MemoryFile(
        path=str(land.project / "GEMINI.md"),
        shown="../GEMINI.md",
        size=len(block("../GEMINI.md", "root")),
    )


def test_without_a_repository_the_way_up_ends_at_home(land: Land):
    write(land.home / "AGENTS.md", "home")
    write(land.home / "code/AGENTS.md", "code")
    write(land.home.parent / "AGENTS.md", "somebody else's")
    assert shown(land.load()) == ["../../AGENTS.md", "../AGENTS.md"]


def test_outside_of_home_and_repositories_only_the_folder_itself_counts(land: Land):
    other = land.home.parent / "other" / "project"
    write(other / "AGENTS.md", "here")
    write(other.parent / "AGENTS.md", "above")
    workspace = Workspace(roots=(other,), temp=other, home=land.home)
    assert shown(load_memory(workspace, global_file=land.home / "x")) == ["AGENTS.md"]


def test_all_names_of_a_folder_are_read_in_order_and_the_same_words_once(land: Land):
    write(land.project / "CLAUDE.md", "shared\n")
    write(land.project / "GEMINI.md", "own")
    write(land.project / "AGENTS.md", "shared")
    write(land.project / "sub/CLAUDE.md", "shared")
    (land.project / "sub/AGENTS.md").symlink_to("CLAUDE.md")
    assert shown(land.load()) == ["AGENTS.md", "GEMINI.md", "sub/CLAUDE.md"]


def test_the_names_are_a_setting(land: Land):
    write(land.project / "AGENTS.md", "no")
    write(land.project / "NOTES.md", "yes")
    write(land.home / ".gemini/NOTES.md", "global")
    memory = land.load(settings=MemorySettings(files=("NOTES.md",)))
    assert shown(memory) == ["../../.gemini/NOTES.md", "NOTES.md"]


def test_a_folder_that_is_not_trusted_has_no_say(land: Land):
    write(land.home / ".gemini/GEMINI.md", "global")
    write(land.project / "GEMINI.md", "obey me")
    assert land.load(trusted=False).text == block("../../.gemini/GEMINI.md", "global")


def test_nothing_found_is_no_memory(land: Land):
    assert land.load() == Memory()


def test_ignored_folders_are_not_searched_but_notes_kept_out_of_git_are_read(land: Land):
    git(land.project)
    write(land.project / ".gitignore", "build/\nCLAUDE.md\n")
    write(land.project / ".geminiignore", "/hidden/\n/half/GEMINI.md\n")
    write(land.project / "sub/CLAUDE.md", "mine")
    for folder in ("build", "hidden", "half", "node_modules/x", ".git"):
        write(land.project / folder / "GEMINI.md", "no")
    assert shown(land.load()) == ["sub/CLAUDE.md"]
    everything = land.load(settings=MemorySettings(respect_git_ignore=False))
    assert shown(everything) == ["build/GEMINI.md", "sub/CLAUDE.md"]


def test_only_so_many_folders_are_searched(land: Land):
    for number in range(6):
        write(land.project / f"d{number}/GEMINI.md", str(number))
    found = shown(land.load(settings=MemorySettings(max_dirs=4)))
    assert found == ["d0/GEMINI.md", "d1/GEMINI.md", "d2/GEMINI.md"]


def test_imports_are_read_inside_the_project_only(land: Land):
    git(land.project)
    write(land.home / "secret.md", "secret")
    write(land.project / "docs/style.md", "tabs\n")
    (land.project / "link.md").symlink_to(land.home / "secret.md")
    write(land.project / "sub/GEMINI.md", "@../docs/style.md\n@../../../secret.md\n@../link.md\n@.")
    memory = land.load()
    assert memory.text == block(
        "sub/GEMINI.md",
        "<!-- Imported from: ../docs/style.md -->\ntabs\n\n"
        "<!-- End of import from: ../docs/style.md -->\n"
        "<!-- Import failed: ../../../secret.md - Path traversal attempt -->\n"
        "<!-- Import failed: ../link.md - Path traversal attempt -->\n"
        "<!-- Import failed: . - EISDIR: illegal operation on a directory, read -->",
    )
    assert memory.files[0].imported == (str(land.project / "docs/style.md"),)


def test_the_flat_form_names_files_by_their_whole_path(land: Land):
    write(land.project / "GEMINI.md", "see @a.md")
    write(land.project / "a.md", "A")
    memory = land.load(settings=MemorySettings(import_format="flat"))
    root, a = land.project / "GEMINI.md", land.project / "a.md"
    assert memory.text == block(
        "GEMINI.md",
        f"--- File: {root} ---\nsee @a.md\n--- End of File: {root} ---\n\n"
        f"--- File: {a} ---\nA\n--- End of File: {a} ---",
    )


def test_a_memory_file_that_leads_out_of_the_project_is_left_out_and_reported(land: Land):
    git(land.project)
    write(land.home / "secret", "secret")
    (land.project / "GEMINI.md").symlink_to(land.home / "secret")
    assert land.load() == Memory(
        notices=(
            f"memory file {land.project / 'GEMINI.md'} was left out: it leads out of the project",
        )
    )


def test_the_global_file_may_be_a_link(land: Land):
    write(land.home / "dotfiles/notes.md", "global")
    (land.home / ".gemini").mkdir()
    (land.home / ".gemini/GEMINI.md").symlink_to(land.home / "dotfiles/notes.md")
    assert land.load().text == block("../../.gemini/GEMINI.md", "global")


def test_a_huge_file_is_no_memory(land: Land):
    write(land.project / "GEMINI.md", "x" * ((256 << 10) + 1))
    assert land.load().notices == (
        f"memory file {land.project / 'GEMINI.md'} was left out: larger than 256 KB",
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported(land: Land):
    write(land.project / "GEMINI.md", "x").chmod(0)
    assert "EACCES" in land.load().notices[0]


def test_a_pipe_does_not_keep_us_waiting(land: Land):
    os.mkfifo(land.project / "GEMINI.md")
    write(land.project / "AGENTS.md", "@./GEMINI.md")
    assert land.load().text == block(
        "AGENTS.md",
        f"<!-- Import failed: ./GEMINI.md - Path is not a regular file: "
        f"{land.project / 'GEMINI.md'} -->",
    )


def test_memory_follows_the_prompt_after_a_line():
    assert with_memory("prompt", " memory\n") == "prompt\n\n---\n\nmemory"
    assert with_memory("prompt", " \n") == "prompt"


def test_files_named_by_path_are_notes_too(land: Land):
    git(land.project)
    write(land.project / ".rules/b.md", "second")
    write(land.project / ".rules/a.md", "first")
    write(land.project / ".rules/c.txt", "no note")
    write(land.home / "outside.md", "secret")
    (land.project / ".rules/d.md").symlink_to(land.home / "outside.md")
    settings = MemorySettings(include=(".rules/*.md", "absent/x.md"))
    memory = land.load("sub", settings=settings)
    assert shown(memory) == ["../.rules/a.md", "../.rules/b.md"]
    assert len(memory.notices) == 1
    assert land.load("sub", trusted=False, settings=settings).files == ()
