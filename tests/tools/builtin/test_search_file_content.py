import asyncio
from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, git, put, refused, write
from toolwire.tools.builtin import search_file_content
from toolwire.tools.search.grep import MOST_MATCHES, ripgrep
from toolwire.tools.spec import SearchWay, ToolContext, ToolSettings, Workspace

WAYS = [
    pytest.param(
        "rg", marks=pytest.mark.skipif(not ripgrep({}), reason="no ripgrep on this machine")
    ),
    "git",
    "own",
]


def files(context: ToolContext) -> Path:
    root = put(
        context,
        a_py="import os\nFOO = 1\n    foo = 2  \n",
        src__b_ts="let foo = 3;\r\n",
        src__c_tsx="const foo = 4\n",
        src__deep__d_js="nothing\nfoo() {\n",
        bin_dat=b"\0foo\n",
        wide_txt=b"\xff\xfe" + "föo foo\n".encode("utf-16-le"),
    )
    write(root / ".hidden" / "e.txt", "foo\n")
    write(root / "odd:name-1.txt", "foo:1:x\n")
    write(root / "node_modules" / "z.js", "foo\n")
    git(root)
    return root


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "^import"}, ["a.py:1"]),
        ({"pattern": r"foo\s*=\s*\d"}, ["a.py:2", "a.py:3", "src/b.ts:1", "src/c.tsx:1"]),
        ({"pattern": "foo", "include": "*.{ts,tsx}"}, ["src/b.ts:1", "src/c.tsx:1"]),
        ({"pattern": "foo", "include": "src/**"}, ["src/b.ts:1", "src/c.tsx:1", "src/deep/d.js:2"]),
        ({"pattern": "foo", "include": "src/*.ts"}, ["src/b.ts:1"]),
        ({"pattern": "foo", "include": "*.zig"}, []),
        ({"pattern": "foo() {"}, []),
        ({"pattern": r"foo\(\) {"}, ["src/deep/d.js:2"]),
        ({"pattern": "foo:1"}, ["odd:name-1.txt:1"]),
        ({"pattern": "-x|os$"}, ["a.py:1"]),
        ({"pattern": "let", "path": "src"}, ["b.ts:1"]),
        ({"pattern": "^foo$"}, [".hidden/e.txt:1"]),
    ],
)
def test_every_way_of_searching_finds_the_same(
    way: SearchWay, arguments: dict[str, str], found: list[str], tmp_path: Path
) -> None:
    context = context_in(tmp_path, settings=ToolSettings(search_with=way))
    files(context)
    text = call(search_file_content.TOOL, context, **arguments).text
    lines: list[str] = []
    name = ""
    for line in text.split("\n"):
        if line.startswith("File: "):
            name = line.removeprefix("File: ")
        elif line.startswith("L") and name:
            lines.append(f"{name}:{line[1:].split(':')[0]}")
    assert lines == found


def test_the_filter_is_reported(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    put(context, a_py="foo\n")
    assert call(search_file_content.TOOL, context, pattern="foo", include="*.py").text == (
        'Found 1 match for pattern "foo" in the workspace directory (filter: "*.py"):\n---\n'
        "File: a.py\nL1: foo\n---"
    )
    assert call(search_file_content.TOOL, context, pattern="bar", include="*.py").text == (
        'No matches found for pattern "bar" in the workspace directory (filter: "*.py").'
    )


def test_files_of_several_directories_bear_the_name_of_theirs(tmp_path: Path) -> None:
    roots = (tmp_path / "one", tmp_path / "two")
    for root in roots:
        write(root / "a.py", "foo\n")
    place = Workspace(roots=roots, temp=tmp_path / "temp", home=tmp_path)
    text = call(search_file_content.TOOL, ToolContext(workspace=place), pattern="foo").text
    assert text == (
        'Found 2 matches for pattern "foo" across 2 workspace directories:\n---\n'
        "File: one/a.py\nL1: foo\n---\nFile: two/a.py\nL1: foo\n---"
    )


@pytest.mark.parametrize("way", WAYS)
def test_matches_beyond_the_limit_are_left_out_and_reported(way: SearchWay, tmp_path: Path) -> None:
    context = context_in(tmp_path, settings=ToolSettings(search_with=way))
    git(put(context, a_txt="x\n" * (MOST_MATCHES + 5)))
    text = call(search_file_content.TOOL, context, pattern="x").text
    assert text.startswith(
        f'Found {MOST_MATCHES} matches for pattern "x" in the workspace directory '
        f"(results limited to {MOST_MATCHES} matches for performance):\n"
    )


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(foo", "Unterminated group"),
        ("foo)", "Unmatched ')'"),
        ("[a", "Unterminated character class"),
        ("*a", "Nothing to repeat"),
        ("a**", "Nothing to repeat"),
        ("a\\", "\\ at end of pattern"),
        ("[z-a]", "Range out of order in character class"),
        ("a{2,1}", "numbers out of order in {} quantifier"),
        ("(?<n>a)(?<n>b)", "Duplicate capture group name"),
    ],
)
def test_a_bad_pattern_is_reported_in_the_words_of_the_original(
    pattern: str, why: str, tmp_path: Path
) -> None:
    said = refused(search_file_content.TOOL, context_in(tmp_path), pattern=pattern)
    assert said == (
        f"Invalid regular expression pattern provided: {pattern}. "
        f"Error: Invalid regular expression: /{pattern}/: {why}"
    )


@pytest.mark.parametrize("pattern", [r"(?<name>f)oo", r"\/foo", r"f\oo", "foo{", "{foo", "[^]]foo"])
def test_patterns_of_javascript_are_understood(pattern: str, tmp_path: Path) -> None:
    context = context_in(tmp_path)
    put(context, a_txt="/foo{ {foo foo\n")
    assert call(search_file_content.TOOL, context, pattern=pattern).text.startswith("Found 1 ")


def test_a_search_that_is_cancelled_stops(tmp_path: Path) -> None:
    context = context_in(tmp_path, settings=ToolSettings(search_with="own"))
    root = put(context, a_txt="x\n")
    for number in range(300):
        write(root / f"d{number}" / "a.txt", "x\n")

    async def scenario() -> None:
        task = asyncio.ensure_future(search_file_content.TOOL.run({"pattern": "x"}, context))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


@pytest.mark.parametrize("way", WAYS)
def test_lines_of_protected_files_are_not_shown_and_reported(
    way: SearchWay, tmp_path: Path
) -> None:
    context = context_in(tmp_path, settings=ToolSettings(search_with=way))
    root = put(context, a_txt="KEY here\n", server_pem="KEY=1\n")
    write(root / "sub" / ".env", "KEY=2\n")
    write(root / ".env.example", "KEY=\n")
    git(root)
    assert call(search_file_content.TOOL, context, pattern="KEY").text == (
        'Found 2 matches for pattern "KEY" in the workspace directory:\n---\n'
        "File: .env.example\nL1: KEY=\n---\nFile: a.txt\nL1: KEY here\n---\n"
        "Not searched: 2 protected (server.pem, sub/.env). "
        "Name one in read_file, which asks, if you need it."
    )
    assert call(search_file_content.TOOL, context, pattern="KEY", path=str(root / "sub")).text == (
        f'No matches found for pattern "KEY" in path "{root / "sub"}".\n'
        "Not searched: 1 protected (.env). Name one in read_file, which asks, if you need it."
    )
