"""Markdown is cut into blocks as it grows, and the cut does not depend on its pieces."""

from hypothesis import given
from hypothesis import strategies as st

from toolwire.tui.blocks import Block, BlockKind, Blocks


def cut(text: str, *, every: int = 0) -> list[Block]:
    blocks = Blocks()
    pieces = [text[at : at + every] for at in range(0, len(text), every)] if every else [text]
    return [block for piece in pieces for block in blocks.feed(piece)] + blocks.close()


def kinds(text: str) -> list[tuple[str, str]]:
    return [(str(block.kind), block.text) for block in cut(text)]


def test_a_heading_is_final_when_its_line_ends():
    blocks = Blocks()
    assert blocks.feed("## Wh") == []
    assert blocks.open == Block(BlockKind.HEADING, "Wh", level=2)
    assert blocks.feed("y\n") == [Block(BlockKind.HEADING, "Why", level=2)]
    assert blocks.open is None


def test_a_paragraph_is_final_at_an_empty_line_or_at_another_block():
    assert kinds("one\ntwo\n\nthree\n# four\n") == [
        ("paragraph", "one\ntwo"),
        ("paragraph", "three"),
        ("heading", "four"),
    ]


def test_each_line_of_code_is_final_when_it_ends():
    blocks = Blocks()
    [start] = blocks.feed("```python\n")
    assert (start.kind, start.language) == (BlockKind.CODE_START, "python")
    assert [block.text for block in blocks.feed("a = 1\n\n")] == ["a = 1", ""]
    assert blocks.feed("  b") == []
    assert blocks.open == Block(BlockKind.CODE, "  b", "python")
    assert [block.kind for block in blocks.feed("\n```\n")] == [BlockKind.CODE, BlockKind.CODE_END]


def test_a_fence_inside_a_longer_fence_is_code():
    text = "````\n```\n````\n"
    assert kinds(text) == [("code_start", ""), ("code", "```"), ("code_end", "")]


def test_code_that_never_ends_is_closed_with_the_text():
    assert kinds("```\nx") == [("code_start", ""), ("code", "x"), ("code_end", "")]


def test_an_item_is_final_when_the_next_begins():
    blocks = Blocks()
    assert blocks.feed("- one\n  more\n") == []
    assert [block.text for block in blocks.feed("- two\n")] == ["- one\n  more"]
    assert [block.text for block in blocks.close()] == ["- two"]


def test_an_item_holds_its_nested_items():
    assert kinds("1. a\n   - b\n   - c\n2. d\n") == [
        ("item", "1. a\n   - b\n   - c"),
        ("item", "2. d"),
    ]


def test_code_in_an_item_is_printed_line_by_line():
    found = cut("- a\n  ```sh\n  ls\n  ```\n- b\n")
    assert [(str(block.kind), block.text, block.level) for block in found] == [
        ("item", "- a", 0),
        ("code_start", "", 2),
        ("code", "ls", 2),
        ("code_end", "", 0),
        ("item", "- b", 0),
    ]


def test_a_table_is_held_until_it_ends_and_long_ones_until_their_widths_are_known():
    head = "|a|b|\n|-|-|\n"
    assert kinds(f"{head}|1|2|\n\nx") == [("table", f"{head}|1|2|"), ("paragraph", "x")]
    rows = "|1|2|\n" * 50
    found = kinds(head + rows)
    assert [kind for kind, _ in found] == ["table"] + ["rows"] * 10
    assert found[0][1].count("\n") == 41


def test_a_line_with_a_bar_is_a_paragraph_without_a_delimiter_row():
    assert kinds("a | b\nc | d\n") == [("paragraph", "a | b\nc | d")]


def test_an_underlined_heading_is_a_heading():
    assert [(block.kind, block.level) for block in cut("Title\n=====\n\nSub\n---\n")] == [
        (BlockKind.HEADING, 1),
        (BlockKind.HEADING, 2),
    ]


def test_a_quote_takes_its_lazy_lines():
    assert kinds("> a\nb\n\nc\n") == [("quote", "> a\nb"), ("paragraph", "c")]


_LINES = st.sampled_from(
    ["", "text", "# h", "- item", "  more", "1. one", "```", "```py", "~~~~", "> q", "|a|b|",
     "|-|-|", "---", "===", "    deep", "**b", "\tq", "a|b", "é", "-", "\r"]
)  # fmt: skip


@given(st.lists(_LINES, max_size=30), st.integers(1, 7), st.booleans())
def test_the_blocks_do_not_depend_on_how_the_text_was_cut(
    lines: list[str], every: int, ended: bool
):
    text = "\n".join(lines) + ("\n" if ended else "")
    assert cut(text, every=every) == cut(text)


@given(st.lists(_LINES, max_size=30))
def test_no_word_is_lost(lines: list[str]):
    text = "\n".join(lines)
    kept = "".join(block.text for block in cut(text))
    for word in ("text", "item", "more", "one", "deep", "é"):
        assert kept.count(word) == text.count(word)


@given(st.lists(_LINES, max_size=20))
def test_what_is_open_becomes_final_as_it_was(lines: list[str]):
    blocks = Blocks()
    blocks.feed("\n".join(lines))
    shown = blocks.open
    rest = blocks.close()
    if shown is not None and shown.kind is BlockKind.PARAGRAPH:
        assert shown.text.split("\n")[0] in rest[0].text
