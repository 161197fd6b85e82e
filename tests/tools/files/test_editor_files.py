"""Files that an editor holds: unsaved text is read, edits are written through it."""

from pathlib import Path

import msgspec
import pytest

from tests.tools.workspaces import call, context_in, put
from toolwire.tools.builtin import apply_patch, read_file, read_many_files, replace, write_file
from toolwire.tools.spec import ToolContext, ToolFailed


class Editor:
    """An editor with open buffers; other paths are on the disk, or missing."""

    def __init__(self, **saves: str) -> None:
        self.buffers: dict[Path, str] = {}
        self.missing: set[Path] = set()
        self.written: list[Path] = []
        self.reads = self.writes = True
        self.on_save = saves

    def read(self, path: Path) -> str | None:
        if path in self.missing:
            raise FileNotFoundError(path)
        if not self.reads:
            return None
        if path not in self.buffers and not path.exists():
            raise FileNotFoundError(path)
        return self.buffers.get(path, path.read_text() if path.exists() else "")

    def write(self, path: Path, text: str) -> bool:
        if not self.writes:
            return False
        self.missing.discard(path)
        self.written.append(path)
        self.buffers[path] = text + self.on_save.get("adds", "")
        return True


@pytest.fixture
def editor() -> Editor:
    return Editor()


@pytest.fixture
def context(tmp_path: Path, editor: Editor) -> ToolContext:
    return msgspec.structs.replace(context_in(tmp_path), files=editor)


def edit(context: ToolContext, path: Path, old: str, new: str) -> str:
    arguments = {"file_path": str(path), "instruction": "x", "old_string": old, "new_string": new}
    return call(replace.TOOL, context, **arguments).text


def test_unsaved_text_is_read(context: ToolContext, editor: Editor):
    path = put(context, a_txt="on the disk\n") / "a.txt"
    editor.buffers[path] = "unsaved 1\nunsaved 2\n"
    assert call(read_file.TOOL, context, absolute_path=str(path)).text == "unsaved 1\nunsaved 2\n"
    found = call(read_file.TOOL, context, absolute_path=str(path), offset=1, limit=1).text
    assert found.endswith("unsaved 2")
    many = call(read_many_files.TOOL, context, paths=["a.txt"])
    assert "unsaved 1" in "".join(getattr(part, "text", "") for part in many.beside)


def test_a_new_file_that_was_never_saved_is_read(context: ToolContext, editor: Editor):
    path = context.workspace.roots[0] / "new.py"
    editor.buffers[path] = "x = 1\n"
    assert call(read_file.TOOL, context, absolute_path=str(path)).text == "x = 1\n"


def test_a_file_that_the_editor_does_not_have_is_not_found(context: ToolContext, editor: Editor):
    path = put(context, a_txt="x\n") / "a.txt"
    editor.missing.add(path)
    with pytest.raises(ToolFailed, match="File not found"):
        call(read_file.TOOL, context, absolute_path=str(path))
    with pytest.raises(ToolFailed, match="File not found"):
        edit(context, path, "x", "y")


def test_pictures_come_from_the_disk(context: ToolContext, editor: Editor):
    path = put(context, a_png=b"\x89PNG\r\n\x1a\n") / "a.png"
    editor.missing.add(path)
    assert call(read_file.TOOL, context, absolute_path=str(path)).media


def test_an_edit_is_made_in_unsaved_text_and_the_disk_stays(context: ToolContext, editor: Editor):
    path = put(context, a_txt="on the disk\n") / "a.txt"
    editor.buffers[path] = "one\r\ntwo\r\n"
    assert "1 replacements" in edit(context, path, "two\n", "2\nthree\n")
    assert editor.buffers[path] == "one\r\n2\r\nthree\r\n"
    assert path.read_text() == "on the disk\n"
    edit(context, path, "one", "1")
    assert editor.buffers[path] == "1\r\n2\r\nthree\r\n"


@pytest.mark.parametrize("name", ["new.txt", "deep/er/new.txt"])
def test_new_files_are_written_through_the_editor(name: str, context: ToolContext, editor: Editor):
    path = context.workspace.roots[0] / name
    call(write_file.TOOL, context, file_path=str(path), content="x\n")
    assert (editor.written, editor.buffers) == ([path], {path: "x\n"})
    assert path.parent.is_dir()
    edit(context, path, "x", "y")
    assert editor.buffers == {path: "y\n"}


def test_a_patch_changes_several_buffers(context: ToolContext, editor: Editor):
    folder = put(context, a_txt="a\n", b_txt="b\n")
    editor.buffers[folder / "a.txt"] = "unsaved\n"
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-unsaved\n+A\n"
        "*** Update File: b.txt\n@@\n-b\n+B\n*** End Patch"
    )
    call(apply_patch.TOOL, context, input=patch)
    assert editor.buffers == {folder / "a.txt": "A\n", folder / "b.txt": "B\n"}


def test_what_the_user_changed_in_the_editor_since_is_not_overwritten(
    context: ToolContext, editor: Editor
):
    path = put(context, a_txt="a\n") / "a.txt"
    call(read_file.TOOL, context, absolute_path=str(path))
    editor.buffers[path] = "a, and what the user typed\n"
    for attempt in (
        lambda: edit(context, path, "a", "b"),
        lambda: call(write_file.TOOL, context, file_path=str(path), content="b\n"),
    ):
        with pytest.raises(ToolFailed, match="changed since it was last read"):
            attempt()
    assert (editor.buffers[path], editor.written) == ("a, and what the user typed\n", [])


def test_what_an_editor_changes_on_saving_is_noticed_at_the_next_edit(tmp_path: Path):
    editor = Editor(adds="# formatted\n")
    context = msgspec.structs.replace(context_in(tmp_path), files=editor)
    path = put(context, a_txt="a\n") / "a.txt"
    edit(context, path, "a", "b")
    assert editor.buffers[path] == "b\n# formatted\n"
    with pytest.raises(ToolFailed, match="changed since it was last read"):
        edit(context, path, "b", "c")
    call(read_file.TOOL, context, absolute_path=str(path))
    edit(context, path, "b", "c")
    assert editor.buffers[path].startswith("c\n")


def test_an_editor_that_only_reads_leaves_the_disk_to_us(context: ToolContext, editor: Editor):
    editor.writes = False
    path = put(context, a_txt="a\n") / "a.txt"
    editor.buffers[path] = "unsaved a\n"
    edit(context, path, "unsaved a", "b")
    assert path.read_text() == "b\n"
    fresh = context.workspace.roots[0] / "new.txt"
    call(write_file.TOOL, context, file_path=str(fresh), content="x\n")
    assert fresh.read_text() == "x\n"


def test_an_editor_that_only_writes_gets_edits_of_the_disk(context: ToolContext, editor: Editor):
    editor.reads = False
    path = put(context, a_txt="a\n") / "a.txt"
    edit(context, path, "a", "b")
    assert (editor.buffers[path], path.read_text()) == ("b\n", "a\n")


def test_links_that_lead_out_never_reach_the_editor(context: ToolContext, editor: Editor):
    root = context.workspace.roots[0]
    outside = root.parent / "outside"
    outside.mkdir(exist_ok=True)
    (root / "link").symlink_to(outside)
    with pytest.raises(ToolFailed):
        call(write_file.TOOL, context, file_path=str(root / "link" / "x"), content="x")
    assert editor.written == []
