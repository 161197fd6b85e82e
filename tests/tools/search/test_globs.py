import pytest

from toolwire.tools.search.globs import Globs, braces


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "sub/a.py", False),
        ("*.py", ".hidden.py", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("src/**", "src/a/b.c", True),
        ("src/**", "src", False),
        ("src/**/test.py", "src/test.py", True),
        ("src/**/test.py", "src/a/b/test.py", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a-c]x", "dx", True),
        ("[]]x", "]x", True),
        ("[", "[", True),
        ("[z-a]", "b", False),
        ("[[:digit:]]x", "7x", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("{src,test}/**/*.{c,h}", "test/x/y.h", True),
        ("f{1..3}", "f2", True),
        ("{a", "{a", True),
        ("@(a|b).txt", "b.txt", True),
        ("!(a|b).txt", "b.txt", False),
        ("!(a|b).txt", "c.txt", True),
        ("+(ab)", "abab", True),
        ("?(a)b", "b", True),
        (r"\*.py", "*.py", True),
        (r"\*.py", "a.py", False),
        ("./a.py", "a.py", True),
        ("a//b.py", "a/b.py", True),
        ("a/../b.py", "b.py", True),
        ("../b.py", "b.py", False),
        ("docs/", "docs", False),
        ("A.PY", "a.py", True),
        ("a.(py)", "a.(py)", True),
        ("a+b", "a+b", True),
    ],
)
def test_a_pattern_fits_the_paths_it_means(pattern: str, path: str, fits: bool) -> None:
    globs = Globs([pattern])
    assert globs.matches(path) is fits
    if fits:
        parts = path.split("/")[:-1]
        assert all(globs.enters(parts[:depth]) for depth in range(len(parts) + 1))


def test_case_counts_when_it_is_asked_to() -> None:
    assert not Globs(["*.PY"], ignore_case=False).matches("a.py")


def test_a_literal_path_is_not_a_pattern() -> None:
    globs = Globs((), literal=["app/[id]/page.tsx"])
    assert globs.matches("app/[id]/page.tsx")
    assert not globs.matches("app/i/page.tsx")


def test_folders_that_no_pattern_reaches_are_not_entered() -> None:
    globs = Globs(["src/*/a.py"])
    assert globs.enters(["src"])
    assert globs.enters(["src", "x"])
    assert not globs.enters(["docs"])
    assert not globs.enters(["src", "x", "y"])


def test_braces_spell_every_choice_and_no_more_than_a_bound() -> None:
    assert braces("a{b,c{d,e}}f") == ["abf", "acdf", "acef"]
    assert len(braces("{a,b}" * 30)) <= 4096
