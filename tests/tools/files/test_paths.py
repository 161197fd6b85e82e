import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, put, refused, write
from toolwire.messages import Text
from toolwire.tools.builtin import (
    glob,
    list_directory,
    read_file,
    read_many_files,
    replace,
    search_file_content,
    write_file,
)
from toolwire.tools.files import paths
from toolwire.tools.spec import Tool, ToolContext, ToolFailed

SECRET = "the secret\n"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    context = context_in(tmp_path)
    write(tmp_path / "outside" / "secret.txt", SECRET)
    return context


def root(context: ToolContext) -> Path:
    return context.workspace.roots[0]


def outside(context: ToolContext) -> Path:
    return root(context).parent / "outside"


def link_file(context: ToolContext) -> str:
    (root(context) / "link.txt").symlink_to(outside(context) / "secret.txt")
    return f"{root(context)}/link.txt"


def link_folder(context: ToolContext) -> str:
    (root(context) / "folder").symlink_to(outside(context))
    return f"{root(context)}/folder/secret.txt"


def link_of_link(context: ToolContext) -> str:
    (root(context) / "first").symlink_to(outside(context))
    (root(context) / "second").symlink_to("first/secret.txt")
    return f"{root(context)}/second"


def link_up_and_down(context: ToolContext) -> str:
    (root(context) / "up").symlink_to("..")
    return f"{root(context)}/up/outside/secret.txt"


def link_then_dots(context: ToolContext) -> str:
    (outside(context) / "deep").mkdir()
    (root(context) / "deep").symlink_to(outside(context) / "deep")
    return f"{root(context)}/deep/../secret.txt"


def dots(context: ToolContext) -> str:
    return f"{root(context)}/../outside/secret.txt"


def absolute(context: ToolContext) -> str:
    return f"{outside(context)}/secret.txt"


def same_beginning(context: ToolContext) -> str:
    twin = root(context).with_name("workspace-twin")
    write(twin / "secret.txt", SECRET)
    return f"{twin}/secret.txt"


def nul(context: ToolContext) -> str:
    return f"{root(context)}/a\0b"


def loop(context: ToolContext) -> str:
    (root(context) / "loop").symlink_to("loop")
    return f"{root(context)}/loop"


def dangling(context: ToolContext) -> str:
    (root(context) / "new.txt").symlink_to(outside(context) / "made.txt")
    return f"{root(context)}/new.txt"


def through_proc(context: ToolContext) -> str:
    return f"/proc/self/root{outside(context)}/secret.txt"


Way = Callable[[ToolContext], str]
WAYS_OUT = (
    link_file,
    link_folder,
    link_of_link,
    link_up_and_down,
    link_then_dots,
    dots,
    absolute,
    same_beginning,
    nul,
    loop,
    dangling,
    through_proc,
)


def contents(context: ToolContext) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(root(context).parent.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize("way", WAYS_OUT)
def test_no_path_leads_a_file_tool_out_of_the_workspace(way: Way, context: ToolContext) -> None:
    path = way(context)
    before = contents(context)
    assert "within one of the workspace" in refused(read_file.TOOL, context, absolute_path=path)
    assert "within one of the workspace" in refused(
        write_file.TOOL, context, file_path=path, content="x"
    )
    words = {"instruction": "i", "old_string": "secret", "new_string": "x"}
    assert "within one of the workspace" in refused(replace.TOOL, context, file_path=path, **words)
    for tool in (list_directory.TOOL, glob.TOOL, search_file_content.TOOL):
        assert SECRET.strip() not in refused(tool, context, path=path, pattern="x")
    assert contents(context) == before


@pytest.mark.parametrize("way", [link_file, link_folder, link_of_link, link_up_and_down, dots])
def test_no_search_follows_a_link_out_of_the_workspace(way: Way, context: ToolContext) -> None:
    way(context)
    assert SECRET.strip() not in call(
        search_file_content.TOOL, context, pattern="secret"
    ).text.replace('"secret"', "")
    for pattern in ("**/*", "folder/*", "up/outside/*", "../outside/*", "*.txt", "second"):
        many = call(read_many_files.TOOL, context, paths=[pattern])
        assert all(SECRET not in part.text for part in many.beside if isinstance(part, Text))
    found = call(glob.TOOL, context, pattern="**/secret.txt").text
    assert found.startswith("No files found")


def test_a_link_inside_the_workspace_is_followed_and_stays_a_link(context: ToolContext) -> None:
    put(context, real_txt="one\n")
    link = root(context) / "link.txt"
    link.symlink_to("real.txt")
    assert call(read_file.TOOL, context, absolute_path=str(link)).text == "one\n"
    call(write_file.TOOL, context, file_path=str(link), content="two\n")
    assert link.is_symlink()
    assert (root(context) / "real.txt").read_text() == "two\n"


def test_a_workspace_behind_a_link_is_a_workspace(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    put(context, a_txt="A\n")
    alias = tmp_path / "alias"
    alias.symlink_to("workspace")
    place = type(context.workspace)(roots=(alias,), temp=tmp_path / "temp", home=tmp_path)
    linked = ToolContext(workspace=place)
    assert call(read_file.TOOL, linked, absolute_path=f"{alias}/a.txt").text == "A\n"
    assert f"{alias}/a.txt" in call(glob.TOOL, linked, pattern="*.txt").text


def test_a_write_to_a_hard_link_changes_no_file_outside(context: ToolContext) -> None:
    shared = outside(context) / "shared.txt"
    shared.write_text("outside\n")
    inside = root(context) / "inside.txt"
    os.link(shared, inside)
    call(write_file.TOOL, context, file_path=str(inside), content="inside\n")
    assert shared.read_text() == "outside\n"
    assert inside.read_text() == "inside\n"


def test_dots_that_stay_inside_are_fine(context: ToolContext) -> None:
    put(context, a_txt="A\n", sub__b_txt="B\n")
    path = f"{root(context)}/sub/../a.txt"
    assert call(read_file.TOOL, context, absolute_path=path).text == "A\n"


@pytest.mark.parametrize("name", ["n" * 256, "/".join(["d" * 200] * 30), "é" * 200])
def test_a_name_too_long_is_a_plain_failure(name: str, context: ToolContext) -> None:
    path = f"{root(context)}/{name}"
    assert refused(read_file.TOOL, context, absolute_path=path)
    assert refused(write_file.TOOL, context, file_path=path, content="x")
    assert refused(list_directory.TOOL, context, path=path)
    assert refused(glob.TOOL, context, path=path, pattern="*")
    assert list(root(context).iterdir()) == []


def test_the_longest_name_can_be_written_and_replaced(context: ToolContext) -> None:
    path = root(context) / ("n" * 255)
    call(write_file.TOOL, context, file_path=str(path), content="1\n")
    call(write_file.TOOL, context, file_path=str(path), content="2\n")
    assert path.read_text() == "2\n"
    assert [path] == list(root(context).iterdir())


def test_a_named_pipe_is_refused_and_not_waited_for(context: ToolContext) -> None:
    pipe = root(context) / "pipe"
    os.mkfifo(pipe)
    said = refused(read_file.TOOL, context, absolute_path=str(pipe))
    assert said == f"Path is not a regular file: {pipe}"
    assert call(search_file_content.TOOL, context, pattern="x").text.startswith("No matches")


def test_a_folder_swapped_for_a_link_after_the_check_is_refused(context: ToolContext) -> None:
    put(context, sub__secret_txt="mine\n")
    folder = root(context) / "sub"
    path = paths.locate(folder / "secret.txt", context.workspace)
    assert path is not None
    folder.rename(root(context) / "moved")
    folder.symlink_to(outside(context))
    with pytest.raises(ToolFailed, match="a link appeared"):
        paths.open_file(path, context.workspace)


def test_a_file_swapped_for_a_link_after_the_check_is_refused(context: ToolContext) -> None:
    file = put(context, a_txt="mine\n") / "a.txt"
    path = paths.locate(file, context.workspace)
    assert path is not None
    file.unlink()
    file.symlink_to(outside(context) / "secret.txt")
    with pytest.raises(ToolFailed, match="a link appeared"):
        paths.open_file(path, context.workspace)


def test_a_race_of_links_never_shows_or_changes_what_is_outside(context: ToolContext) -> None:
    put(context, sub__secret_txt="mine\n")
    folder, link = root(context) / "sub", root(context) / "other"
    link.symlink_to(outside(context))
    done = threading.Event()

    def swap() -> None:
        aside = root(context) / "aside"
        while not done.is_set():
            folder.rename(aside)
            link.rename(folder)
            folder.rename(link)
            aside.rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[str] = set()
    try:
        path = f"{folder}/secret.txt"
        words = {"instruction": "i", "old_string": "e", "new_string": "ee"}
        for _ in range(300):
            seen.add(_tried(read_file.TOOL, context, absolute_path=path))
            seen.add(_tried(replace.TOOL, context, file_path=path, **words))
            context.seen.clear()
    finally:
        done.set()
        swapper.join()
    assert not any(SECRET in text for text in seen)
    assert (outside(context) / "secret.txt").read_text() == SECRET
    assert [path.name for path in outside(context).iterdir()] == ["secret.txt"]


def _tried(tool: Tool, context: ToolContext, **arguments: str) -> str:
    try:
        return call(tool, context, **arguments).text
    except ToolFailed as error:
        return str(error)
