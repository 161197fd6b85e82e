import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.context.imports import MOST_DEPTH, ReadText, code_regions, with_imports


def tree(text: str, **files: str) -> str:
    """The text of /p/GEMINI.md with imports from files named `a` for /p/a.md."""
    return with_imports(text, "/p/GEMINI.md", reading(files)).text


def reading(files: dict[str, str]):
    known = {f"/p/{name.replace('__', '/')}.md": text for name, text in files.items()}

    def read(path: str) -> ReadText:
        if not path.startswith("/p/"):
            return ReadText(problem="Path traversal attempt")
        if path not in known:
            return ReadText(problem=f"ENOENT: no such file or directory, access '{path}'")
        return ReadText(known[path])

    return read


def wrapped(name: str, text: str) -> str:
    return f"<!-- Imported from: {name} -->\n{text}\n<!-- End of import from: {name} -->"


def test_an_import_is_replaced_by_the_file_between_two_comments():
    assert tree("see @./a.md and @a.md", a="A\n") == (
        f"see {wrapped('./a.md', 'A' + chr(10))} and {wrapped('a.md', 'A' + chr(10))}"
    )


def test_imports_are_found_from_the_file_that_names_them():
    text = tree("@d/a.md", d__a="up @../b.md", b="B")
    assert text == wrapped("d/a.md", f"up {wrapped('../b.md', 'B')}")


def test_a_file_that_imports_itself_is_put_in_once():
    assert tree("@a.md", a="again @./a.md") == wrapped(
        "a.md", "again <!-- File already processed: ./a.md -->"
    )


def test_imports_stop_five_deep():
    files = {f"f{n}": f"{n} @f{n + 1}.md" for n in range(9)}
    text = tree("@f0.md", **files)
    assert text.count("Imported from") == MOST_DEPTH
    assert "4 @f5.md" in text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("https://x.y/z.md", "Path traversal attempt"),
        ("file:///p/a.md", "Path traversal attempt"),
        ("../out.md", "Path traversal attempt"),
        ("/etc/passwd", "Path traversal attempt"),
        ("./gone.md", "ENOENT: no such file or directory, access '/p/gone.md'"),
    ],
)
def test_a_failed_import_says_why(name: str, reason: str):
    assert tree(f"x @{name} y", a="A") == f"x <!-- Import failed: {name} - {reason} --> y"


@pytest.mark.parametrize(
    "text",
    [
        "mail me@a.md",
        "@ a.md",
        "@1.md @@a.md",
        "`@a.md`",
        "``x ` @a.md ``",
        "```\n@a.md\n```",
        "text\n~~~ md\n@a.md",
        "   ```sh\n  @a.md\n   ```",
    ],
)
def test_what_is_not_an_import_or_is_code_stays(text: str):
    assert tree(text, a="A") == text


@pytest.mark.parametrize(
    "text",
    ["a ` b\n\n@a.md ` c", "`` x ` @a.md", "```\nx\n```\n@a.md", "`x` @a.md `y`"],
)
def test_backticks_that_hold_no_code_hide_nothing(text: str):
    assert wrapped("a.md", "A") in tree(text, a="A")


def test_the_flat_form_lists_each_file_once():
    found = with_imports(
        "root @a.md @b.md @a.md @gone.md",
        "/p/GEMINI.md",
        reading({"a": "A @b.md\n", "b": "B @./GEMINI.md"}),
        "flat",
    )
    assert found.text == "\n\n".join(
        f"--- File: {path} ---\n{text}\n--- End of File: {path} ---"
        for path, text in [
            ("/p/GEMINI.md", "root @a.md @b.md @a.md @gone.md"),
            ("/p/a.md", "A @b.md"),
            ("/p/b.md", "B @./GEMINI.md"),
        ]
    )
    assert found.files == ("/p/a.md", "/p/b.md")


def test_imports_that_multiply_come_to_an_end():
    files = {f"f{n}": f"@f{n + 1}.md " * 40 for n in range(5)}
    text = tree("@f0.md", **files, f5="x" * 1000)
    assert "Too much is imported" in text
    assert len(text) < 20_000_000


@given(st.text(alphabet="`~ab@.\n ", max_size=60))
def test_regions_are_in_order_and_inside_the_text(text: str):
    regions = code_regions(text)
    flat = [place for region in regions for place in region]
    assert flat == sorted(flat)
    assert all(0 <= start < end <= len(text) for start, end in regions)


@given(st.text(alphabet="`~ab@./\n md", max_size=80))
def test_only_imports_change(text: str):
    got = with_imports(text, "/p/x", lambda path: ReadText(problem="no")).text
    assert got.replace(" - no -->", "").replace("<!-- Import failed: ", "@") == text.replace(
        " - no -->", ""
    )
