import codecs
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.workspaces import call, context_in, put, refused, write
from toolwire.tools.builtin import read_file, replace, write_file
from toolwire.tools.files.encodings import detect
from toolwire.tools.files.text import read_document, read_lines
from toolwire.tools.spec import ToolContext

RUSSIAN = "Привет, мир! Это обычный текст на русском языке.\n"
JAPANESE = "日本語のテキストファイルです。これはテストです。\n"
CHINESE = "中文文本文件，这是一个测试。\n"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


@pytest.mark.parametrize(
    ("text", "encoding", "bom"),
    [
        ("héllo\nwörld\n", "utf-8", b""),
        ("héllo\nwörld\n", "utf-8", codecs.BOM_UTF8),
        ("héllo\nwörld 😀\n", "utf-16-le", codecs.BOM_UTF16_LE),
        ("héllo\nwörld 😀\n", "utf-16-be", codecs.BOM_UTF16_BE),
        ("héllo\nwörld\n", "utf-32-le", codecs.BOM_UTF32_LE),
        ("héllo\nwörld\n", "utf-32-be", codecs.BOM_UTF32_BE),
        ("# größe\nx = 1\n", "latin-1", b""),
        ("naïve “quotes”\n", "cp1252", b""),
        (RUSSIAN, "cp1251", b""),
        (RUSSIAN, "koi8-r", b""),
        (JAPANESE, "cp932", b""),
        (JAPANESE, "euc_jp", b""),
        (CHINESE, "gb18030", b""),
    ],
)
def test_text_of_any_encoding_is_read_and_edited_in_place(
    text: str, encoding: str, bom: bytes, context: ToolContext
) -> None:
    text = text + "last = 1\n"
    path = put(context, a_txt=bom + text.encode(encoding)) / "a.txt"
    assert call(read_file.TOOL, context, absolute_path=str(path)).text == text
    edit = {"instruction": "i", "old_string": "last = 1", "new_string": "last = 2"}
    call(replace.TOOL, context, file_path=str(path), **edit)
    assert path.read_bytes() == bom + text.replace("last = 1", "last = 2").encode(encoding)
    call(write_file.TOOL, context, file_path=str(path), content=text)
    assert path.read_bytes() == bom + text.encode(encoding)


def test_a_character_that_the_encoding_lacks_is_named(context: ToolContext) -> None:
    path = put(context, a_txt="größe\n".encode("latin-1")) / "a.txt"
    said = refused(write_file.TOOL, context, file_path=str(path), content="日本\n")
    assert said.startswith("File is encoded in cp1252, which has no '\\u65e5'")
    assert path.read_bytes() == "größe\n".encode("latin-1")


def test_broken_bytes_survive_an_edit_elsewhere(context: ToolContext) -> None:
    data = "äöü ".encode() * 3 + b"\xff\xfe broken\nx = 1\n"
    path = put(context, a_txt=data) / "a.txt"
    shown = call(read_file.TOOL, context, absolute_path=str(path)).text
    assert shown == "äöü äöü äöü \ufffd\ufffd broken\nx = 1\n"
    edit = {"instruction": "i", "old_string": "x = 1", "new_string": "x = 2"}
    call(replace.TOOL, context, file_path=str(path), **edit)
    assert path.read_bytes() == data.replace(b"x = 1", b"x = 2")


@given(data=st.binary(max_size=400))
def test_any_bytes_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    context = context_in(tmp_path_factory.mktemp("bytes"))
    path = put(context, a_txt=data) / "a.txt"
    document = read_document(path, context.workspace)
    assert document.encoding.encode(document.text) == data


@given(data=st.binary(max_size=300), start=st.integers(0, 6), count=st.integers(1, 5))
def test_a_range_of_lines_is_what_splitting_gives(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int, count: int
) -> None:
    context = context_in(tmp_path_factory.mktemp("lines"))
    path = put(context, a_txt=data) / "a.txt"
    text = detect(data).decode(data)
    with path.open("rb") as file:
        found = read_lines(file.fileno(), start, count, context, path)
    lines = text.split("\n")
    assert found.total == len(lines)
    shown = "\n".join(lines[start : start + count])
    assert found.text == "".join("\ufffd" if "\ud800" <= x <= "\udfff" else x for x in shown)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_part_of_a_huge_file_is_read_without_holding_the_file(
    encoding: str, context: ToolContext
) -> None:
    path = context.workspace.roots[0] / "huge.txt"
    line = f"{'x' * 99}\n".encode(encoding)
    with path.open("wb") as file:
        if encoding != "utf-8":
            file.write(codecs.BOM_UTF16_LE)
        for _ in range(30):
            file.write(line * 10_000)
        file.write("end\n".encode(encoding))
    tracemalloc.start()
    output = call(read_file.TOOL, context, absolute_path=str(path), offset=299_999, limit=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "Showing lines 300000-300001 of 300002 total lines." in output.text
    assert output.text.endswith("x\nend")
    assert peak < 12 << 20


def test_a_huge_file_requested_whole_is_answered_with_a_hint(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "huge.txt"
    with path.open("wb") as file:
        file.write(b"text\n" * 2000)
        file.truncate(21 << 20)
    said = refused(read_file.TOOL, context, absolute_path=str(path))
    assert said.split("\n") == [
        f"File size exceeds the 20MB limit: {path} (21.00MB)",
        "Read it in parts: give 'offset' and 'limit'.",
    ]


def test_one_endless_line_is_cut_without_holding_it(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "line.txt"
    with path.open("wb") as file:
        for _ in range(25):
            file.write(b"y" * (1 << 20))
    tracemalloc.start()
    output = call(read_file.TOOL, context, absolute_path=str(path), limit=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert output.text.endswith("\n" + "y" * 2000 + "... [truncated]")
    assert peak < 8 << 20


def test_a_long_line_is_counted_as_the_original_counts(context: ToolContext) -> None:
    path = put(context, a_txt="😀" * 1000 + "\n" + "😀" * 1001) / "a.txt"
    text = call(read_file.TOOL, context, absolute_path=str(path)).text
    first, second = text.split("\n")[-2:]
    assert first == "😀" * 1000
    assert second == "😀" * 1000 + "... [truncated]"


CHANGES = {
    "write_file": (write_file.TOOL, {"content": "ours\n"}),
    "replace": (replace.TOOL, {"instruction": "i", "old_string": "two", "new_string": "2"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_changed_since_it_was_read_is_reported_and_not_overwritten(
    name: str, context: ToolContext
) -> None:
    tool, arguments = CHANGES[name]
    path = put(context, a_txt="one\ntwo\n") / "a.txt"
    call(read_file.TOOL, context, absolute_path=str(path))
    write(path, "one\ntwo\nthree\n")
    said = refused(tool, context, file_path=str(path), **arguments)
    assert said.startswith(f"File has changed since it was last read: {path}. No edits made.")
    assert path.read_text() == "one\ntwo\nthree\n"
    call(read_file.TOOL, context, absolute_path=str(path))
    call(tool, context, file_path=str(path), **arguments)
    assert path.read_text() in ("ours\n", "one\n2\nthree\n")


def test_a_file_only_touched_since_it_was_read_has_not_changed(context: ToolContext) -> None:
    path = put(context, a_txt="one\n") / "a.txt"
    call(read_file.TOOL, context, absolute_path=str(path))
    os.utime(path, (1, 1))
    call(write_file.TOOL, context, file_path=str(path), content="two\n")
    assert path.read_text() == "two\n"


def test_edits_in_a_row_need_no_reading_in_between(context: ToolContext) -> None:
    path = put(context, a_txt="one\n") / "a.txt"
    call(read_file.TOOL, context, absolute_path=str(path))
    for old, new in (("one", "two"), ("two", "three")):
        edit = {"instruction": "i", "old_string": old, "new_string": new}
        call(replace.TOOL, context, file_path=str(path), **edit)
    assert path.read_text() == "three\n"
