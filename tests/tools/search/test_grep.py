from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.workspaces import context_in, put, write
from toolwire.tools.search.grep import MOST_MATCHES, FoundLine, Search, scan
from toolwire.tools.search.ignore import IgnoreRules
from toolwire.tools.search.regexes import BadPattern, compiled, literals, most_repeats
from toolwire.tools.spec import ToolContext

PIECES = st.sampled_from(
    [
        *(
            "a",
            "B",
            "k",
            "is",
            "foo",
            "1",
            " ",
            "é",
            "ſ",
            "\\.",
            "\\d",
            "\\w",
            "\\b",
            "\\x41",
            "\\o",
        ),
        *(
            ".",
            "^",
            "$",
            "*",
            "+",
            "?",
            "{2}",
            "{,2}",
            "{",
            "}",
            "|",
            "(",
            ")",
            "(?:",
            "(?=",
            "(?!",
        ),
        *("[ab]", "[^a]", "[]k]", "a*", "(a|b)", "(?<n>a)", "\\k<n>", "(a)\\1", "\\(", "-", "\n"),
    ]
)
PATTERNS = st.lists(PIECES, min_size=1, max_size=6).map("".join)
TEXTS = st.lists(
    st.sampled_from([*"aAbBkKisS1. -(){}é\n\n", "foo", "FOO", "\r\n", "ſ", "\u212a", "ı", "\t"]),
    max_size=30,
).map("".join)


def task_in(context: ToolContext, pattern: str, most: int = MOST_MATCHES) -> Search:
    root = context.workspace.roots[0].resolve()
    return Search(
        pattern=pattern,
        start=root,
        include="",
        workspace=context.workspace,
        rules=IgnoreRules(root),
        environ={},
        most=most,
    )


def by_line(pattern: str, name: str, text: str) -> list[FoundLine]:
    lines = text.removesuffix("\n").split("\n") if text else []
    return [
        FoundLine(name, number, line)
        for number, line in enumerate(lines, 1)
        if compiled(pattern).search(line.removesuffix("\r"))
    ]


def valid(pattern: str) -> bool:
    try:
        compiled(pattern)
    except BadPattern:
        return False
    return True


@settings(max_examples=60)
@given(
    pattern=PATTERNS.filter(valid),
    texts=st.lists(TEXTS, min_size=1, max_size=4),
    encoding=st.sampled_from(["utf-8", "utf-8", "utf-16"]),
)
def test_a_scan_finds_the_lines_that_fit_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, texts: list[str], encoding: str
) -> None:
    context = context_in(tmp_path_factory.mktemp("scan"))
    root = context.workspace.roots[0]
    wanted: list[FoundLine] = []
    for number, text in enumerate(texts):
        write(root / f"{number}.txt", text.encode(encoding) if text else b"")
        wanted += by_line(pattern, f"{number}.txt", text)
    assert scan(task_in(context, pattern), bool) == wanted


@given(pattern=PATTERNS.filter(valid), text=TEXTS.filter(str.isascii))
def test_a_line_that_fits_has_the_letters_that_the_pattern_asks_for(
    pattern: str, text: str
) -> None:
    letters = literals(pattern)
    for line in text.split("\n"):
        if letters and compiled(pattern).search(line):
            assert any(one in line.lower() for one in letters)


@pytest.mark.parametrize(
    ("pattern", "letters"),
    [
        ("needle_[0-9]+", ["needle_"]),
        (r"class\s+\w+\s+NEEDLE|compute_needle\(", ["needle", "compute_needle("]),
        (r"import\s+\{.*\}\s+from", ["import"]),
        ("colou?r", ["colo"]),
        ("ab+c", ["ab"]),
        ("ab{0}cd", ["cd"]),
        ("(foo|bar)baz", ["baz"]),
        ("foo|", []),
        (r"\d+", []),
        (r"\x41bc", []),
        (r"(?<n>a)\k<n>xyz", []),
        ("(?i)abc", []),
        ("foo{", ["fo"]),
        ("[^]]foo", ["foo"]),
    ],
)
def test_letters_of_a_pattern(pattern: str, letters: list[str]) -> None:
    assert literals(pattern) == letters


def test_binary_files_and_huge_lines_are_no_trouble(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    put(
        context,
        a_bin=b"foo\0" * 30_000,
        b_txt="x" * 200_000 + "\nfoo\n",
        c_txt=b"foo\n" * 20_000 + b"\0",
        d_txt="föo FOO\r\n".encode(),
        e_txt="Größe foo\n".encode("cp1252"),
    )
    assert scan(task_in(context, "foo"), bool) == [
        FoundLine("b.txt", 2, "foo"),
        FoundLine("d.txt", 1, "föo FOO\r"),
        FoundLine("e.txt", 1, "Größe foo"),
    ]


def test_a_line_may_end_in_a_carriage_return(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    put(context, a_txt="x 1\r\ny\r\n")
    assert scan(task_in(context, r"\d$"), bool) == [FoundLine("a.txt", 1, "x 1\r")]


def test_no_more_lines_than_wanted_are_given(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    put(context, a_txt="foo\n" * 5, b_txt="foo\n" * 5)
    found = scan(task_in(context, "foo", most=7), bool)
    assert [(line.path, line.number) for line in found] == [
        *(("a.txt", number) for number in range(1, 6)),
        *(("b.txt", number) for number in range(1, 3)),
    ]


def test_a_letter_beyond_ascii_that_is_a_capital_of_one_within_is_found(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    put(context, a_txt="\u212aey\nſong\n")
    assert [line.number for line in scan(task_in(context, "key"), bool)] == [1]
    assert [line.number for line in scan(task_in(context, "song"), bool)] == [2]


@pytest.mark.parametrize(
    ("pattern", "repeats"),
    [
        *(("", 0), ("plain", 0), (r"a\.b|c", 0), ("[a-z]x", 0), (r"[^\]a]", 0)),
        *(("needle_[0-9]+", 1), (r"\w*?:", 1), ("x{2,3}", 1), ("a*b+c?", 3), ("[*+?]{2}", 1)),
        *(("(a+)+", -1), ("(a)", -1), ("a++", -1), ("a{1}{2}", -1), (r"(.)\1", -1), ("[[]+", -1)),
        *((r"\x41+", -1), ("a" * 201, -1), ("(?=a)", -1), ("a{1000}", -1)),
    ],
)
def test_the_repeats_of_a_pattern_without_groups_are_counted(pattern: str, repeats: int) -> None:
    assert most_repeats(pattern) == repeats


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_repeat_finds_the_same_in_short_and_long_lines(size: int, tmp_path: Path) -> None:
    root = put(context_in(tmp_path))
    write(root / "a", f"key={'1' * size};\nkey={'1' * size}\nother\n")
    found = scan(task_in(context_in(tmp_path), "key=[0-9]+;"), bool)
    assert [line.number for line in found] == [1]
