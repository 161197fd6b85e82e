from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, put
from toolwire.tools.builtin import write_file
from toolwire.tools.proposals import DiffStat, Proposal
from toolwire.tools.spec import ToolContext


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"old\n", "new\n", b"new\n"),
        (b"old\n", "  new  ", b"  new  "),
        (b"old\n", "\n\nnew\n\n", b"\n\nnew\n\n"),
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfold\n", "new\n", b"\xef\xbb\xbfnew\n"),
        (b"", "x\n", b"x\n"),
        (b"old\n", "", b""),
    ],
)
def test_contents_are_written_as_given_in_the_style_of_the_file(
    before: bytes, content: str, after: bytes, context: ToolContext
) -> None:
    path = put(context, a_txt=before) / "a.txt"
    output = call(write_file.TOOL, context, file_path=str(path), content=content)
    assert output.text == f"Successfully overwrote file: {path}."
    assert path.read_bytes() == after


def test_a_preview_reports_a_new_file(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "a.txt"
    assert write_file.TOOL.preview is not None
    arguments = {"file_path": str(path), "content": "x\n"}
    assert write_file.TOOL.preview(arguments, context) == (
        Proposal(path=path, before="", after="x\n", new_file=True),
    )
    assert not path.exists()


def test_the_text_of_a_person_is_written_and_reported(context: ToolContext) -> None:
    path = put(context, a_txt="a\nb\n") / "a.txt"
    arguments = {"file_path": str(path), "content": "a\nc\n"}
    assert write_file.TOOL.preview is not None
    assert write_file.TOOL.adopt is not None
    (proposal,) = write_file.TOOL.preview(arguments, context)
    output = call(
        write_file.TOOL, context, **write_file.TOOL.adopt(arguments, proposal, "a\nd\ne\n")
    )
    assert path.read_text() == "a\nd\ne\n"
    assert output.text == (
        f"Successfully overwrote file: {path}. User modified the `content` to be: a\nd\ne\n"
    )
    assert output.stat == DiffStat(model_added=1, model_removed=1, user_added=2, user_removed=1)


def test_policy_learns_where_a_link_leads(context: ToolContext) -> None:
    root = put(context, real_txt="x")
    (root / "link").symlink_to("real.txt")
    arguments = {"file_path": f"{root}/link", "content": ""}
    assert write_file.TOOL.touches(arguments, context) == (root / "real.txt",)
