"""Workspaces of plain tasks are found again by their folder, and only once they are complete."""

import asyncio
from pathlib import Path

import pytest

from toolwire.batch import workspace_files
from toolwire.batch.tasks import Task, TaskWorkspace
from toolwire.batch.workspaces import Workplace, Workspaces

_FILES = {"a.txt": "a", "sub/b.txt": "b"}


def _task(**members: object) -> Task:
    return Task(id="t", prompt="p", workspace=TaskWorkspace(**members))  # pyright: ignore[reportArgumentType]


def _made(spaces: Workspaces, task: Task) -> Workplace:
    async def make() -> Workplace:
        return await spaces.begin(1, await spaces.make(1, task.workspace), task)

    return asyncio.run(make())


@pytest.mark.parametrize(
    "task", [_task(), _task(files=_FILES), _task(files=_FILES, subfolder="sub")]
)
def test_a_plain_workspace_is_found_without_a_note(task: Task, tmp_path: Path):
    made = _made(Workspaces(tmp_path, "b", "copy"), task)
    later = Workspaces(tmp_path, "b", "copy")
    assert later.found(1, task) == made
    assert [path.name for path in later.place(1).iterdir()] == ["work"]
    assert asyncio.run(later.patch(1, made, task.workspace)) is not None


def test_one_with_a_setup_is_found_by_its_note_alone(tmp_path: Path):
    spaces, plain = Workspaces(tmp_path, "b", "copy"), _task(files=_FILES)
    task = Task(id="t", prompt="p", setup="true", workspace=plain.workspace)
    asyncio.run(spaces.make(1, task.workspace))
    assert spaces.found(1, task) is None
    assert spaces.found(1, plain) is not None
    made = _made(spaces, task)
    assert spaces.found(1, task) == made
    assert made.tree


def test_one_whose_files_were_not_all_written_is_made_anew(tmp_path: Path):
    spaces, task = Workspaces(tmp_path, "b", "copy"), _task(files=_FILES)
    draft = spaces.place(1) / "work.draft"
    draft.mkdir(parents=True)
    (draft / "a.txt").write_text("a")
    assert spaces.found(1, task) is None
    made = _made(spaces, task)
    assert spaces.found(1, task) == made
    assert (Path(made.folder) / "sub" / "b.txt").read_text() == "b"
    assert [path.name for path in spaces.place(1).iterdir()] == ["work"]


def test_an_unreadable_note_is_not_taken_for_none(tmp_path: Path):
    spaces, task = Workspaces(tmp_path, "b", "copy"), _task(files=_FILES)
    _made(spaces, task)
    (spaces.place(1) / "stage.json").write_bytes(b"")
    assert spaces.found(1, task) is None


@pytest.mark.parametrize("written", ["", "work/new.txt", "temp/new.txt"])
def test_whatever_was_written_is_removed(written: str, tmp_path: Path):
    spaces, task = Workspaces(tmp_path, "b", "copy"), _task()
    _made(spaces, task)
    if written:
        path = spaces.place(1) / written
        path.parent.mkdir(exist_ok=True)
        path.write_text("new")
    asyncio.run(spaces.remove(1))
    assert list((tmp_path / "work").iterdir()) == []


def test_a_start_is_removed_with_a_workspace_that_was_emptied(tmp_path: Path):
    spaces, task = Workspaces(tmp_path, "b", "copy"), _task(files=_FILES)
    made = _made(spaces, task)
    workspace_files.remove_tree(Path(made.root))
    Path(made.root).mkdir()
    found = asyncio.run(spaces.patch(1, made, task.workspace))
    assert found is not None
    assert found.removed == 2
    asyncio.run(spaces.remove(1))
    assert list((tmp_path / "work").iterdir()) == []
    assert list((tmp_path / "starts").iterdir()) == []
