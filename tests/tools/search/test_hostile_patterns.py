"""Patterns made to hang a matcher: each is decided at once, or refused with the reason."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.workspaces import call, context_in, put, refused, write
from toolwire.policy.rules import path_matches
from toolwire.tools.builtin import glob, list_directory, read_many_files
from toolwire.tools.search.gitignore import parsed
from toolwire.tools.search.globs import LONGEST, Globs
from toolwire.tools.search.ignore import IgnoreRules
from toolwire.tools.search.patterns import TooComplex, grouped

LIMIT = 20.0
"""Seconds for what takes milliseconds here and hours with a matcher that backtracks."""
NAME = "a" * 250
DEEP = "/".join(["a" * 60] * 30)
STARS = {
    "stars": "*a" * 120 + "b",
    "more stars than letters": "*a" * 2000 + "b",
    "runs of stars": "a*****" * 100 + "b",
    "marks": "*?" * 120 + "b",
    "classes": "*[ab]" * 120 + "b",
    "folders": "**/a*/" * 200 + "b",
    "stars in folders": "**/*a*a*a*a*a*a*a/" * 40 + "b",
    "open classes": "[" * 3000,
    "named classes": "[[:" * 1000 + "]",
    "backslashes": "\\" * 3001,
}
GROUPS = {
    "nested groups": "*(*(*(*(*(a)X|a)X|a)X|a)X|a)b",
    "choices": "@(a|a|a)" * 60 + "b",
    "optional": "?(a)" * 60 + "b",
    "repeated": "+(+(+(a)))b",
    "negated": "!(a)!(a)!(a)!(a)b",
    "open groups": "+(" * 15 + "a",
}
BRACES = {
    "many braces": "{a,b}" * 3000,
    "nested braces": "{" * 10_000 + "a,b" + "}" * 10_000,
    "open braces": "{" * 30_000,
    "large range": "{1..999999999}",
    "huge number": "{1.." + "9" * 10_000 + "}",
}
REFUSED = {
    "too long": "a" * (LONGEST + 1),
    "too many groups": "@(a)" * 100,
    "too many negations": "!(a)" * 30,
    "too deep": "@(" * 40 + "a" + ")" * 40,
    "too long with groups": "@(a)" + "*a" * 1000,
}


def named(cases: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pattern", cases.values(), ids=cases.keys())


def at_once(work: Callable[[], object]) -> None:
    start = time.monotonic()
    work()
    assert time.monotonic() - start < LIMIT


@named({**STARS, **GROUPS, **BRACES})
def test_a_glob_is_decided_at_once(pattern: str) -> None:
    def work() -> None:
        for one in (pattern, f"**/{pattern}"):
            globs = Globs([one])
            for path in (NAME, DEEP, f"{DEEP}/{NAME}"):
                with suppress(TooComplex):
                    assert not globs.matches(path)
                globs.enters(path.split("/"))
            with suppress(TooComplex):
                globs.among(f"{DEEP}/", [NAME])

    at_once(work)


@named(STARS)
def test_a_line_of_an_ignore_file_is_decided_at_once(pattern: str, tmp_path: Path) -> None:
    write(tmp_path / ".git" / "HEAD", "")
    write(tmp_path / ".gitignore", "\n".join([pattern, f"/{pattern}/", f"!{pattern}/x"] * 20))
    write(tmp_path / ".geminiignore", pattern)
    write(tmp_path / ".toolwireignore", f"a/{pattern}")

    def work() -> None:
        rules = IgnoreRules(tmp_path)
        for path in (NAME, DEEP, f"{DEEP}/{NAME}"):
            assert not rules.ignored(tmp_path / path)

    at_once(work)


def test_an_ignore_file_of_many_lines_is_read_in_time() -> None:
    at_once(lambda: parsed("\n".join(f"a*b{number}" for number in range(20_000))))


@named(STARS)
def test_a_path_of_a_rule_is_decided_at_once(pattern: str) -> None:
    def work() -> None:
        for path in (f"/{NAME}", f"/{DEEP}/{NAME}"):
            assert not path_matches(f"/{pattern}", path)
            assert not path_matches(f"**{pattern}", path)

    at_once(work)


@named({**STARS, **GROUPS, **BRACES})
def test_tools_that_take_globs_answer_at_once(pattern: str, tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = put(context, a_txt="x\n")
    write(root / "b" / NAME, "x\n")

    def work() -> None:
        assert "No files" in call(glob.TOOL, context, pattern=pattern).text
        read = call(
            read_many_files.TOOL, context, paths=["a.txt"], exclude=[pattern], include=["zz"]
        )
        assert read.beside
        listed = call(list_directory.TOOL, context, path=str(root / "b"), ignore=[pattern])
        assert NAME in listed.text

    at_once(work)


@named(REFUSED)
def test_a_glob_that_is_too_much_is_refused_with_the_reason(pattern: str, tmp_path: Path) -> None:
    context = context_in(tmp_path)
    with pytest.raises(TooComplex):
        Globs([pattern])
    assert "pattern" in refused(glob.TOOL, context, pattern=pattern)
    assert "pattern" in refused(read_many_files.TOOL, context, paths=[pattern])


def test_a_text_that_takes_too_many_steps_is_refused() -> None:
    globs = Globs(["*(!(*(a|aa)b)|a)" * 4 + "*(a|aa)" * 40 + "b"])
    with pytest.raises(TooComplex, match="takes too long"):
        globs.matches("a" * 4000)


PARTS = st.lists(
    st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", "\\*", ".", "**"]), min_size=1, max_size=6
).map("".join)


@given(
    route=st.lists(PARTS, min_size=1, max_size=4),
    path=st.lists(st.text("ab.*", min_size=1, max_size=5), min_size=1, max_size=5).map("/".join),
)
def test_both_matchers_agree(route: list[str], path: str) -> None:
    # Any group sends a pattern to the automaton; the others become regular expressions.
    pattern = "/".join(route)
    assert Globs([pattern]).matches(path) is grouped(
        [part for at, part in enumerate(route) if part != "**" or route[at - 1 : at] != ["**"]],
        ignore_case=True,
    ).fullmatch(path)


@given(
    pattern=st.lists(
        st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "ab"]), min_size=1, max_size=8
    ).map("".join),
    path=st.text("ab/\n", max_size=12),
)
def test_a_path_pattern_means_what_its_expression_says(pattern: str, path: str) -> None:
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    plain = "".join(meaning.get(piece, re.escape(piece)) for piece in pieces)
    assert path_matches(pattern, path) is bool(re.fullmatch(plain, path, re.DOTALL))
