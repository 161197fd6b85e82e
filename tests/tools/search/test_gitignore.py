import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.workspaces import context_in, write
from toolwire.tools.search.globs import Globs
from toolwire.tools.search.ignore import Ignored, IgnoreRules
from toolwire.tools.search.walk import Walk, folders, walk

NAMES = st.sampled_from(
    ["a", "b", "ab", "x.log", "y.log", "build", "a-b", "[c]", "b.d", "!e", "c d"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    [
        *("a", "b", "x", "build", "*", "*", "**", "?", ".", "log", "*.log", "/", "/", "/"),
        *("[ab]", "[!a]", "[^b]", "[a-c]", "[c-a]", "[]a]", "[[:alpha:]]", "[[:no:]]", "[[:]", "["),
        *("[/a]", "\\", "\\a", "\\*", "\\[", "\\ ", " ", "!", "#", "-", "d", "[a-", "[x\\]]"),
    ]
)
LINES = st.one_of(
    st.sampled_from(
        [
            *("*.log", "!x.log", "build/", "/build", "a/", "!a/", "!a", "a/*", "!a/b", "/*", "*"),
            *(
                "**/b",
                "a/**",
                "a/**/b",
                "!a/**/b",
                "# no",
                "",
                "  ",
                "/a/b/",
                "b/a",
                "!*/",
                "a/**/",
            ),
            *(
                "**",
                "/**",
                "!/**/a",
                "\\!e",
                "\\[c]",
                "b.?",
                "c d",
                "a//b",
                "//a",
                "!",
                "/",
                "*.d\r",
            ),
        ]
    ),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "", "!", "/"]),
        st.lists(PIECES, min_size=1, max_size=5).map("".join),
        st.sampled_from(["", "", "/", " ", "\\ "]),
    ),
)
RULES = st.lists(LINES, max_size=6).map("\n".join)


def put_tree(root: Path, paths: list[str], rules: dict[str, str]) -> None:
    for path in paths:
        file = root / path
        # A name may be a file in one path and a directory in another: the first wins.
        if not any(parent.is_file() for parent in file.parents) and not file.exists():
            write(file, "text\n")
    for folder, text in rules.items():
        if (root / folder).is_dir():
            write(root / folder / ".gitignore", text)


def seen_by_git(root: Path) -> set[str]:
    asked = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"},
    )
    return {name for name in asked.stdout.decode().split("\0") if name}


@pytest.mark.parametrize(
    ("rules", "seen"),
    [
        ("/**\n!x.log\n", {"x.log"}),
        ("a/**\n!a/b\n!a/b/c\n", {"x.log", "b/x.log", ".gitignore", "a/b/c"}),
        ("*.log\n!b\n", {"a/b/c", "a/d/e", ".gitignore"}),
        ("/a/b\n", {"a/d/e", "x.log", "b/x.log", ".gitignore"}),
        ("a/b/c/\nb/*\n", {"a/b/c", "a/d/e", "x.log", ".gitignore"}),
        ("*\n!*/\n!e\n", {"a/d/e"}),
        ("\ufeffx.log\n", {"a/b/c", "a/d/e", ".gitignore"}),
    ],
)
def test_these_rules_hide_what_git_hides(rules: str, seen: set[str], tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = context.workspace.roots[0]
    put_tree(root, ["a/b/c", "a/d/e", "x.log", "b/x.log"], {"": rules})
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    plan = Walk(start=root, workspace=context.workspace, rules=IgnoreRules(root))
    assert {file.path for file in walk(plan) if not file.ignored} == seen == seen_by_git(root)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    paths=st.lists(PATHS, max_size=12),
    rules=st.dictionaries(st.sampled_from(["", "a", "b", "a/b", "build"]), RULES, max_size=3),
)
def test_random_rules_hide_what_git_hides(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], rules: dict[str, str]
) -> None:
    context = context_in(tmp_path_factory.mktemp("rules"))
    root = context.workspace.roots[0].resolve()
    put_tree(root, paths, {"": "", **rules})
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    known = IgnoreRules(root)
    plan = Walk(start=root, workspace=context.workspace, rules=known, into_ignored=True)
    found = {file.path: file.ignored for file in walk(plan)}
    assert {path for path, ignored in found.items() if not ignored} == seen_by_git(root)
    # Asked for one by one, the answer is the same.
    assert found == {path: known.ignored(root / path) for path in found}
    pruned = Walk(start=root, workspace=context.workspace, rules=known)
    assert [file for file in walk(pruned) if not file.ignored] == [
        file for file in walk(plan) if not file.ignored
    ]


@settings(max_examples=30)
@given(paths=st.lists(PATHS, max_size=8), git=RULES, own=RULES, below=st.booleans())
def test_rules_of_both_kinds_are_distinguished_in_bulk_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], git: str, own: str, below: bool
) -> None:
    context = context_in(tmp_path_factory.mktemp("kinds"))
    root = context.workspace.roots[0].resolve()
    put_tree(root, [*paths, "a/z"], {"": git, "a": git})
    write(root / ".geminiignore", own)
    (root / ".git").mkdir()
    start = root / "a" if below and (root / "a").is_dir() else root
    known = IgnoreRules(root)
    for by_git, by_own in ((True, True), (True, False), (False, True)):
        plan = Walk(
            start=start,
            workspace=context.workspace,
            rules=known,
            git=by_git,
            own=by_own,
            into_ignored=True,
        )
        for file in walk(plan):
            path = start / file.path
            assert bool(file.ignored) == bool(known.ignored(path, git=by_git, own=by_own)), file


@settings(max_examples=100)
@given(
    patterns=st.lists(
        st.one_of(
            st.sampled_from(
                [
                    *("**/*.log", "*", "**", "a/**", "**/a/*", "*.{log,D}", "!(a)", "@(a/b|ab)"),
                    *(
                        "**/[ab]",
                        "?",
                        "a/*/b",
                        "**/*",
                        "A",
                        "x.LOG",
                        "**/*.ſ",
                        "b.*",
                        "**/!(x).log",
                    ),
                ]
            ),
            PATHS,
        ),
        max_size=3,
    ),
    paths=st.lists(st.one_of(PATHS, PATHS.map(str.upper), PATHS.map("ſ{}".format)), max_size=10),
    ignore_case=st.booleans(),
)
def test_names_asked_for_together_are_those_that_match_alone(
    patterns: list[str], paths: list[str], ignore_case: bool
) -> None:
    globs = Globs(patterns, ignore_case=ignore_case)
    for path in paths:
        folder, slash, name = path.rpartition("/")
        names = ["other", name, "z.log"]
        wanted = [one for one in names if globs.matches(folder + slash + one)]
        assert globs.among(folder + slash, names) == wanted


def test_a_link_to_a_directory_is_a_name_and_is_not_entered(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = context.workspace.roots[0]
    write(root / "real" / "a.txt", "text\n")
    (root / "link").symlink_to("real")
    (root / "gone").symlink_to("nowhere")
    write(root / ".gitignore", "link/\n")
    (root / ".git").mkdir()
    plan = Walk(start=root, workspace=context.workspace, rules=IgnoreRules(root))
    found = [(one.path, one.names, one.links, one.hidden, one.ignored) for one in folders(plan)]
    assert found == [
        ("", [".gitignore", "gone", "link"], {"gone", "link"}, Ignored.NO, {}),
        ("real/", ["a.txt"], set(), Ignored.NO, {}),
    ]


def test_a_walk_that_is_left_closes_what_it_opened(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = context.workspace.roots[0]
    write(root / "a" / "b" / "c" / "d.txt", "text\n")
    plan = Walk(start=root, workspace=context.workspace, rules=IgnoreRules(root))
    found = folders(plan)
    opened = [next(found) for _ in range(3)]
    assert [one.path for one in opened] == ["", "a/", "a/b/"]
    found.close()
    for one in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(one.descriptor)
