from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, put, refused, write
from toolwire.messages import MediaKind
from toolwire.tools.builtin import read_file
from toolwire.tools.spec import ToolContext


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "mime"),
    [
        ("a.png", MediaKind.IMAGE, "image/png"),
        ("a.JPG", MediaKind.IMAGE, "image/jpeg"),
        ("a.pdf", MediaKind.DOCUMENT, "application/pdf"),
        ("a.mp3", MediaKind.AUDIO, "audio/mpeg"),
        ("a.mp4", MediaKind.VIDEO, "video/mp4"),
    ],
)
def test_media_are_sent_as_they_are(
    name: str, kind: MediaKind, mime: str, context: ToolContext
) -> None:
    path = write(context.workspace.roots[0] / name, b"\0\1\2")
    output = call(read_file.TOOL, context, absolute_path=str(path))
    assert output.text == f"Binary content of type {mime} was processed."
    (media,) = output.media
    assert (media.kind, media.mime, media.data) == (kind, mime, b"\0\1\2")


def test_svg_is_text_up_to_a_size(context: ToolContext) -> None:
    path = put(context, a_svg="<svg/>" + "x" * 3000) / "a.svg"
    assert call(read_file.TOOL, context, absolute_path=str(path)).text == path.read_text()
    path.write_text("x" * (1024 * 1024 + 1))
    assert call(read_file.TOOL, context, absolute_path=str(path)).text == (
        "Cannot display content of SVG file larger than 1MB: a.svg"
    )


def test_an_offset_beyond_the_end_shows_nothing(context: ToolContext) -> None:
    path = put(context, a_txt="\n".join(map(str, range(11)))) / "a.txt"
    text = call(read_file.TOOL, context, absolute_path=str(path), offset=50).text
    assert "Showing lines 12-11 of 11 total lines." in text
    assert text.endswith("use offset: 50.\n\n--- FILE CONTENT (truncated) ---\n")


def test_files_kept_for_the_model_can_be_read(context: ToolContext) -> None:
    path = write(context.workspace.temp / "call.output", "kept\n")
    assert call(read_file.TOOL, context, absolute_path=str(path)).text == "kept\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"absolute_path": " "}, "The 'absolute_path' parameter must be non-empty."),
        ({"absolute_path": "{root}/a.txt", "offset": -1}, "Offset must be a non-negative number"),
        ({"absolute_path": "{root}/a.txt", "limit": 0}, "Limit must be a positive number"),
        ({"absolute_path": "{root}"}, "Path is a directory, not a file: {root}"),
        ({"absolute_path": "{root}/a.txt/b"}, "File not found: {root}/a.txt/b"),
    ],
)
def test_a_failure_says_what_is_wrong(
    arguments: dict[str, object], words: str, context: ToolContext
) -> None:
    root = put(context, a_txt="x")
    filled = {
        name: value.replace("{root}", str(root)) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    assert refused(read_file.TOOL, context, **filled) == words.replace("{root}", str(root))


def test_an_empty_file_is_empty(context: ToolContext) -> None:
    path = put(context, a_txt="") / "a.txt"
    assert call(read_file.TOOL, context, absolute_path=str(path)).text == ""
