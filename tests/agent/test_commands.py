import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.agent.commands import NEVER, Access, Command, Redirect, Word, read

BASH = Path("/bin/bash")


def lines(text: str) -> list[str]:
    """Each command found, its words joined; words known only when it runs in angle brackets."""
    return [
        " ".join(word.text if word.plain else f"<{word.text}>" for word in command.words)
        for command in read(text).commands
    ]


def test_a_simple_command_has_its_words_and_where_it_writes():
    script = read("git log 'a b' > out.txt")
    assert script.commands == (
        Command(words=(Word("git"), Word("log"), Word("a b", quoted=True)), source="git log 'a b'"),
    )
    assert script.redirects == (Redirect(Access.WRITE, Word("out.txt"), "> out.txt"),)
    assert script.doubts == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a; b && c || d | e & f", ["a", "b", "c", "d", "e", "f"]),
        ("a $(b `c`) <(d) >(e)", ["c", "b <`c`>", "d", "e", "a <$(b `c`)> <<(d)> <>(e)>"]),
        ("(a; { b; })", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("for x in $(a); do b; done", ["a", "b"]),
        ("case $(a) in x) b;; y) c;; esac", ["a", "b", "c"]),
        ("f() { a; }; function g { b; }; f", ["a", "b", "f"]),
        ("! a", ["a"]),
        ("x=$(a) b", ["a", "b"]),
        ("> f a -b", ["a -b"]),
        ("a > f b c", ["a b c"]),
        ("a <<E\n$(b)\nE\nc", ["b", "a", "c"]),
        ("a <<E && c\nx\nE", ["a", "c"]),
        ("a <<< $(b)", ["b", "a"]),
        ("a 'b c' \"d e\" f\\ g $'h\\ti'", ["a b c d e f g h\ti"]),
        ('a b$c "d $e" {f,g}', ['a <b$c> <"d $e"> <{f,g}>']),
        ("$'\\x72\\155' x", ["rm x"]),
        ("env -i X=1 a b", ["env -i X=1 a b", "a b"]),
        ("timeout -k 1 5 nice -n 3 a", ["timeout -k 1 5 nice -n 3 a", "nice -n 3 a", "a"]),
        ("bash -c 'a; b \"c d\"'", ['bash -c a; b "c d"', "a", "b c d"]),
        ("eval 'a; b' c", ["eval a; b c", "a", "b c"]),
        ("xargs -n1 a b", ["xargs -n1 a b", "a b <(from its input)>"]),
        ("xargs -I{} a {} x{}", ["xargs -I{} a {} x{}", "a <{}> <x{}>"]),
        ("find . -exec a {} \\;", ["find . -exec a {} ;", "a <(each file found)>"]),
        ("find . -delete", ["find . -delete", "rm <(each file found)>"]),
        ("sudo -u x a", ["sudo -u x a", "a"]),
        ("trap 'a' EXIT", ["trap a EXIT", "a"]),
        ("watch 'a | b'", ["watch a | b", "a", "b"]),
        ("exec a", ["exec a", "a"]),
        ("command -v a", ["command -v a"]),
        ("# a", []),
        ("", []),
        (" \n ", []),
    ],
)
def test_every_command_is_found(text: str, found: list[str]):
    assert sorted(lines(text)) == sorted(found)
    assert read(text).doubts == ()


def test_a_command_inside_wrappers_knows_them():
    found = read("sudo env X=1 bash -c 'timeout 5 a'").commands
    assert found[-1].through == ("sudo", "env", "bash", "timeout")
    assert [command.transparent for command in found] == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("text", "covered_from"),
    [
        ("python3 -c x", 1),
        ("python3 -I -c x", 2),
        ("ssh host x", 1),
        (". file", 1),
        ("git -c a=b log", 1),
        ("bash", NEVER),
        ("eval $x", NEVER),
        ("env -S x", NEVER),
        ("tar -x --to-command=x", 2),
    ],
)
def test_what_hides_says_how_much_a_rule_must_name(text: str, covered_from: int):
    command = read(text).commands[0]
    assert command.hidden
    assert command.covered_from == covered_from


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("a > f", [("write", "f")]),
        ("a >> f 2>&1", [("write", "f")]),
        ("a < f", [("read", "f")]),
        ("a &> f", [("write", "f")]),
        ("a >& f", [("write", "f")]),
        ("a 2>&1 >&2 <&3 2>&-", []),
        ("exec 3> f", [("write", "f")]),
        ("{ a; } > f", [("write", "f")]),
        ("while a; do b; done < f > g", [("read", "f"), ("write", "g")]),
        ("a > $x", [("write", "$x")]),
        ("git log --output=f", [("write", "f")]),
        ("find . -fprint f", [("write", "f")]),
        ("curl -o f x", [("write", "f")]),
        ("$(< f)", [("read", "f")]),
    ],
)
def test_every_opened_file_is_found(text: str, opened: list[tuple[str, str]]):
    assert [(each.access, each.target.text) for each in read(text).redirects] == opened


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_reading_never_fails(text: str):
    read(text)


@given(st.text(alphabet="ab ;|&$(){}<>'\"`\\\n#=[]!*?~E-1", max_size=50))
@settings(max_examples=400, deadline=None)
def test_reading_shell_like_text_never_fails(text: str):
    read(text)


def test_a_long_text_is_not_read_at_all():
    for text in ("a" * 100_000, "a|" * 50_000, "a\n" * 50_000, "'" * 100_000):
        assert read(text).commands == ()
        assert read(text).doubts


@pytest.mark.parametrize(
    "piece",
    [
        "a=(",
        "${",
        "<<E ",
        "f() ",
        "a|",
        "$(",
        "`",
        "{ ",
        "[[ ",
        "case x in ",
        "a b ",
        "'a' ",
        "\t\\\n",
    ],
)
def test_the_longest_text_that_is_read_takes_bounded_time(piece: str):
    started = time.process_time()
    read((piece * 32_768)[:32_768])
    assert time.process_time() - started < 2


SCRAPS = """
aa bb cc dd ; & | && || ( ) ' " ` $( <( >( ${x } ${x:- \\ # <<E <<'E' <<-E E $ $x $' x=1 x= ! * ? ~
[ ] [[ (( )) $(( if then fi do done while case esac ;; x) f() = <<< > /dev/null >&2 2>&1 <
\\' \\" \\` {aa,bb} \\x61 eval -c command exec 1 |& &> time
"""
PIECES = tuple(SCRAPS.split())
GLUE = ("", "", "", " ", " ", "\n", "\\\n", "\t", "\nE\n")
RUN = """command_not_found_handle() { printf '%s\\n' "$1" >> "$LOG"; }
export -f command_not_found_handle
eval "$1"
"""


def started_by_bash(text: str, folder: Path) -> set[str]:
    """The names bash looks for when it runs the text: no program can be found."""
    log = folder.parent / "log"
    log.write_text("")
    environ = {"PATH": "/nonexistent", "LOG": str(log), "HOME": str(folder)}
    arguments = [str(BASH), "--noprofile", "--norc", "-c", RUN, "bash", text]
    try:
        subprocess.run(
            arguments,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
        )
    except subprocess.TimeoutExpired:
        return set()
    return set(log.read_text().split("\n")) - {""}


@pytest.mark.slow
@pytest.mark.skipif(not BASH.exists(), reason="compares with bash itself")
def test_bash_starts_nothing_and_writes_nothing_that_was_not_read(tmp_path: Path):
    chance = random.Random(os.environ.get("TOOLWIRE_SEED", "1"))
    folder = tmp_path / "work"
    folder.mkdir()
    compared = 0
    while compared < 1500:
        count = chance.randint(2, 12)
        text = "".join(chance.choice(PIECES) + chance.choice(GLUE) for _ in range(count))
        script = read(text)
        if script.doubts or any(command.covered_from for command in script.commands):
            continue
        compared += 1
        known = {command.words[0].text for command in script.commands}
        assert started_by_bash(text, folder) <= known, ascii(text)
        written = {path.name for path in folder.iterdir()}
        if all(redirect.target.plain for redirect in script.redirects):
            assert written <= {redirect.target.text for redirect in script.redirects}, ascii(text)
        for path in folder.iterdir():
            path.unlink()
