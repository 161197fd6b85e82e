from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, put, write
from toolwire.messages import Media, Text
from toolwire.tools.builtin import read_many_files
from toolwire.tools.builtin.read_many_files import NOTHING
from toolwire.tools.spec import ToolContext, ToolSettings


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


def shown(context: ToolContext, *paths: str, **more: object) -> list[str]:
    output = call(read_many_files.TOOL, context, paths=list(paths), **more)
    root = context.workspace.roots[0]
    if not output.beside:
        assert output.text.partition("\n")[0] == NOTHING
        return []
    assert output.text.partition("\n")[0] == "Tool execution succeeded."
    assert output.beside[-1] == Text("\n--- End of content ---")
    return [
        part.text.split(" ---")[0].removeprefix(f"--- {root}/")
        if isinstance(part, Text)
        else part.mime
        for part in output.beside[:-1]
    ]


def test_pictures_come_only_if_they_are_asked_for(context: ToolContext) -> None:
    put(context, a_txt="A", pic_png=b"\x89PNG", doc_pdf=b"%PDF")
    assert shown(context, "*") == ["a.txt"]
    assert shown(context, "*", "*.png") == ["a.txt", "image/png"]
    assert shown(context, "doc*") == ["application/pdf"]
    output = call(read_many_files.TOOL, context, paths=["pic.png"])
    assert isinstance(output.beside[0], Media)


def test_default_excludes_can_be_switched_off(context: ToolContext) -> None:
    root = put(context, a_txt="A", GEMINI_md="g", build__o_txt="O")
    write(root / "node_modules" / "n.txt", "N")
    write(root / "x.bin", b"\0")
    assert shown(context, "**/*.txt", "*.md", "*.bin") == ["a.txt"]
    everything = shown(context, "**/*.txt", "*.md", "*.bin", useDefaultExcludes=False)
    assert {"GEMINI.md", "build/o.txt", "node_modules/n.txt", "x.bin"} <= set(everything)


def test_a_directory_matches_nothing(context: ToolContext) -> None:
    put(context, docs__a_md="A")
    assert shown(context, "docs") == []
    assert shown(context, "docs/") == []


def test_include_adds_and_exclude_takes_away(context: ToolContext) -> None:
    put(context, a_txt="A", b_md="B", c_md="C")
    assert shown(context, "*.txt", include=["*.MD"], exclude=["c.*"]) == ["a.txt", "b.md"]


def test_a_file_too_large_is_left_out_and_named_to_people(context: ToolContext) -> None:
    root = put(context, a_txt="A")
    with (root / "big.txt").open("wb") as file:
        file.truncate(21 << 20)
    output = call(read_many_files.TOOL, context, paths=["*.txt"])
    assert len(output.beside) == 2
    assert "big.txt" in output.display


def test_protected_files_come_only_if_they_are_named_and_ruled_on(context: ToolContext) -> None:
    root = put(context, a_txt="A", server_pem="P", sub__b_txt="B")
    write(root / "sub" / ".env.local", "KEY=1")
    (root / "link.txt").symlink_to("server.pem")
    assert shown(context, "**/*", "**/.*") == ["a.txt", "sub/b.txt"]
    assert shown(context, "*.pem") == []
    output = call(read_many_files.TOOL, context, paths=["**/*"])
    assert "- `server.pem` (protected; name the file itself to be asked for it)" in output.display
    assert output.text.partition("\n")[2] == (
        "Left out: 3 protected (link.txt, server.pem, sub/.env.local). "
        "Name one in read_file, which asks, if you need it."
    )
    for name in ("server.pem", "link.txt", str(root / "server.pem")):
        touched = read_many_files.TOOL.touches({"paths": ["*", name]}, context)
        assert touched == (root, root / Path(name).name)
    assert shown(context, "server.pem") == ["server.pem"]


def test_the_policy_is_not_asked_about_files_that_would_not_be_read(context: ToolContext) -> None:
    root = put(context, a_txt="A")
    write(root / ".env", "KEY=1")
    touches = read_many_files.TOOL.touches
    assert touches({"paths": [".env", "../outside/secret.txt"]}, context) == (root,)
    assert shown(context, ".env") == []
    assert touches({"paths": [".env"], "useDefaultExcludes": False}, context) == (
        root,
        root / ".env",
    )
    assert touches({"paths": 1}, context) == (root,)


def characters(context: ToolContext, *paths: str) -> tuple[int, str]:
    output = call(read_many_files.TOOL, context, paths=list(paths))
    texts = [part.text for part in output.beside if isinstance(part, Text)]
    return sum(map(len, texts)), output.text


def test_six_thousand_files_keep_the_limit_of_one_result(context: ToolContext) -> None:
    root = context.workspace.roots[0]
    for number in range(6000):
        write(root / f"{number:04}.txt", "x" * 200)
    size, text = characters(context, "**/*")
    assert 390_000 < size <= 400_500
    assert text.startswith("Tool execution succeeded.\n")
    assert text.endswith("characters. Name fewer files, or use read_file.")


def test_one_file_that_is_longer_than_the_limit_is_cut(tmp_path: Path) -> None:
    context = context_in(tmp_path, settings=ToolSettings(output_limit=5000))
    put(context, a_txt="a" * 1500 + "\n" + "a" * 1500, b_txt="b\n" * 2500, c_txt="c")
    size, text = characters(context, "*.txt")
    assert 4500 < size <= 5100
    assert "1 more files were not read" in text


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    context = context_in(tmp_path, settings=ToolSettings(output_limit=0))
    put(context, a_txt=("a" * 1000 + "\n") * 1000)
    assert characters(context, "*.txt")[0] > 1_000_000


def test_pictures_keep_a_limit_of_their_own(context: ToolContext) -> None:
    root = context.workspace.roots[0]
    for number in range(4):
        write(root / f"{number}.png", b"\x89PNG\r\n\x1a\n" + bytes(7 << 20))
    output = call(read_many_files.TOOL, context, paths=["*.png"])
    assert sum(isinstance(part, Media) for part in output.beside) == 2
    assert "more media than fits in one result" in output.display
